import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Choices, type Surroundings, cliCommand, environment, interpreter, kernelArguments, launch,
  serverStart,
} from "../src/launch";
import { readSettings } from "../src/settings";
import { around } from "./support/around";

const settings = (given: Record<string, unknown> = {}) => readSettings((name) => given[name], "/ws");
const TRUSTED = { trusted: true };
const WINDOWS = { platform: "win32", folders: ["C:\\ws"] } as const;
const python = (choices: Partial<Choices>, where: Surroundings) => {
  const found = interpreter({ setting: [], ...choices }, where);
  return found === undefined ? undefined : [found.program, ...found.args].join(" ");
};

test("in a trusted workspace: the setting, the selected one, the folder's, the system's", () => {
  const there = around({ programs: ["/ws/.venv/bin/python"] }, TRUSTED);
  const all = { setting: ["py", "-3.11"], selected: "/ws/env/bin/python", folder: "/ws" };
  assert.equal(python(all, there), "py -3.11");
  assert.equal(python({ ...all, setting: [] }, there), "/ws/env/bin/python");
  assert.equal(python({ folder: "/ws" }, there), "/ws/.venv/bin/python");
  assert.equal(python({ folder: "/ws" }, around({}, TRUSTED)), "python3");
  assert.equal(python({ folder: "/ws" }, around({}, { ...TRUSTED, platform: "win32" })), "python");
});

test("on Windows the folder's is called otherwise", () => {
  const there = around({ programs: ["C:\\ws\\.venv\\Scripts\\python.exe"] }, { ...TRUSTED, ...WINDOWS });
  assert.equal(python({ folder: "C:\\ws" }, there), "C:\\ws\\.venv\\Scripts\\python.exe");
});

/** Without trust: who names which program, the links there are, and what is started. */
const SYSTEMS = "/usr/bin/python3";
const UNTRUSTED: [string, Partial<Choices>, Record<string, string>, string | undefined][] = [
  ["a setting elsewhere", { setting: ["/opt/py", "-X", "dev"] }, {}, "/opt/py -X dev"],
  ["a setting in the folder", { setting: ["/ws/py"] }, {}, SYSTEMS],
  ["a setting relative to it", { setting: ["./py"] }, {}, SYSTEMS],
  ["a setting relative to it by two names", { setting: [".venv/bin/python"] }, {}, SYSTEMS],
  ["a setting relative to it, led back", { setting: ["../bin/python3", "-X", "dev"] }, {}, SYSTEMS],
  ["a setting found on the path", { setting: ["python3", "-X", "dev"] }, {}, "/usr/bin/python3 -X dev"],
  ["a setting found nowhere", { setting: ["python9"] }, {}, SYSTEMS],
  ["an argument in the folder", { setting: ["/opt/uv", "run", "--project=/ws/x", "python"] }, {}, SYSTEMS],
  ["an argument by a link", { setting: ["/opt/uv", "/opt/link"] }, { "/opt/link": "/ws" }, SYSTEMS],
  ["the selected one elsewhere", { selected: "/opt/env/bin/python" }, {}, "/opt/env/bin/python"],
  ["the selected one in the folder", { selected: "/ws/.venv/bin/python" }, {}, SYSTEMS],
  ["the selected one in it, led out", { selected: "/ws/p" }, { "/ws/p": "/opt/py" }, SYSTEMS],
  ["the selected one, led in", { selected: "/opt/p" }, { "/opt/p": "/ws/p" }, SYSTEMS],
  ["the selected one, relative", { selected: "python" }, {}, SYSTEMS],
  ["the folder's own", { folder: "/ws" }, {}, SYSTEMS],
  ["the system's, led in", {}, { "/usr/bin/python3": "/ws/p" }, undefined],
];

for (const [name, choices, links, expected] of UNTRUSTED) {
  test(`without trust: ${name}`, () => {
    const there = around({ links, programs: ["/ws/.venv/bin/python", SYSTEMS] });
    assert.equal(python(choices, there), expected);
  });
}

test("without trust every folder of the workspace counts", () => {
  const there = around({ programs: [SYSTEMS] }, { folders: ["/a", "/b"] });
  assert.equal(python({ selected: "/b/bin/python" }, there), SYSTEMS);
  assert.equal(python({ selected: "/ws/bin/python" }, there), "/ws/bin/python");
});

test("without trust the path is searched without what the workspace has a say in", () => {
  const places = ["/ws/bin/", "bin/", "./", "", "/led/", "/opt/", "/usr/bin/"];
  const programs = places.map((place) => `${place}python3`);
  const PATH = ":.:bin:/ws/bin:/ws/../ws/bin:/led:/opt:/usr/bin";
  const links = { "/led": "/ws/bin", "/opt/python3": "/ws/bin/python3" };
  const there = around({ links, programs }, { env: { PATH } });
  assert.equal(python({}, there), SYSTEMS);
  assert.equal(environment(there).PATH, "/opt:/usr/bin");
});

test("on Windows neither is the current folder searched, nor a script taken", () => {
  const env = { Path: ";.;C:\\ws\\bin;C:\\tools;C:\\Python" };
  const programs = ["python.exe", "C:\\ws\\bin\\python.exe", "C:\\tools\\python.cmd", "C:\\Python\\python.exe"];
  const there = around({ programs }, { ...WINDOWS, env });
  assert.equal(python({}, there), "C:\\Python\\python.exe");
  assert.equal(environment(there).Path, "C:\\tools;C:\\Python");
});

test("without trust no variable speaks of the workspace", () => {
  const env = {
    HOME: "/home/me", URL: "http://host:80/ws", PYTHONPATH: "/ws/lib:/opt/lib::lib", LD_PRELOAD: "/ws/x.so",
    PYTHONHOME: "/ws/py", VIRTUAL_ENV: "/ws/.venv", LD_LIBRARY_PATH: "lib", FLAGS: "-O2:-g",
  };
  assert.deepEqual(environment(around({}, { env })), {
    HOME: "/home/me", URL: "http://host:80/ws", PYTHONPATH: "/opt/lib", FLAGS: "-O2:-g",
    PYTHONSAFEPATH: "1",
  });
  assert.deepEqual(environment(around({}, { env, ...TRUSTED })), { ...env, PYTHONSAFEPATH: "1" });
});

/** A workspace with trust or without, and where its server and commands run. */
const PLACES: [Partial<Surroundings>, Record<string, string>, string | undefined][] = [
  [TRUSTED, {}, "/ws/sub"],
  [{}, {}, "/ext"],
  [{ folders: ["/ext"] }, {}, "/home/me"],
  [{ folders: ["/ext", "/home"] }, {}, "/"],
  [{}, { "/ext": "/ws/ext" }, "/home/me"],
  [{ folders: ["/"] }, {}, undefined],
];

for (const [more, links, expected] of PLACES) {
  test(`where ${JSON.stringify(more)} runs, with links ${JSON.stringify(links)}`, () => {
    const given = settings({ cwd: "${workspaceFolder}/sub" });
    const found = launch({ program: "py", args: ["-c", "1"] }, given, around({ links }, more));
    assert.equal(found?.cwd, expected);
    if (found !== undefined) {
      assert.deepEqual([found.program, found.args, found.env.PYTHONSAFEPATH], ["py", ["-c", "1"], "1"]);
    }
  });
}

test("the server is a module of the interpreter, and not of the current folder", () => {
  const given = settings({ args: ["--log-file", "x"] });
  assert.deepEqual(serverStart(given, { program: "py", args: ["-3"] }, around({}, TRUSTED)), {
    command: {
      program: "py",
      args: ["-3", "-P", "-m", "tilelang_lsp", "--log-level", "warning", "--log-file", "x"],
    },
    probe: { program: "py", args: ["-3", "-P", "-c", "import tilelang_lsp.worker"] },
  });
});

test("or the command of the settings, which is not asked first", () => {
  const given = settings({ path: ["tilelang", "lsp"], logLevel: "debug" });
  assert.deepEqual(serverStart(given, { program: "py", args: [] }, around({}, TRUSTED)), {
    command: { program: "tilelang", args: ["lsp", "--log-level", "debug"] },
  });
});

test("without trust that command is one elsewhere, as the interpreter is", () => {
  const python = { program: "/opt/py", args: [] };
  const started = (path: string[], where = around({ programs: ["/usr/bin/tilelang"] })) =>
    serverStart(settings({ path }), python, where)?.command.program;
  assert.equal(started(["tilelang", "lsp"]), "/usr/bin/tilelang");
  assert.equal(started(["/ws/tilelang", "lsp"]), "/opt/py");
  assert.equal(started(["bin/tilelang", "lsp"]), "/opt/py");
  assert.equal(started(["/usr/bin/env", "-C", "${workspaceFolder}", "x"]), "/opt/py");
  assert.equal(serverStart(settings({ path: ["/ws/x"] }), undefined, around()), undefined);
});

test("without trust the server is told to write nowhere in the workspace", () => {
  const args = (given: string[], more: Partial<Surroundings> = {}) =>
    serverStart(settings({ args: given }), { program: "py", args: [] }, around({}, more))?.command.args.slice(5);
  assert.deepEqual(args(["--log-file", "/log"]), ["--log-file", "/log"]);
  assert.deepEqual(args(["--log-file", "${workspaceFolder}/log"]), []);
  assert.deepEqual(args(["--log-file=/ws/log"]), []);
  assert.deepEqual(args(["--log-file=/ws/log"], TRUSTED), ["--log-file=/ws/log"]);
});

test("the command line runs with the same interpreter", () => {
  assert.deepEqual(cliCommand({ program: "py", args: [] }, ["explain", "TL204"]), {
    program: "py",
    args: ["-P", "-m", "tilelang", "explain", "TL204"],
  });
});

test("a kernel is compiled with the values of the settings", () => {
  const given = settings({
    values: { M: 256, dtype: "float16", causal: true, out: null, order: [1, 2] },
    target: "cuda:sm_90a",
  });
  assert.deepEqual(kernelArguments("compile", "/ws/a b.py", "matmul", given), [
    "compile", "/ws/a b.py::matmul",
    "--set", "M=256", "--set", "dtype=float16", "--set", "causal=True", "--set", "out=None",
    "--set", "order=[1, 2]", "--target", "cuda:sm_90a", "--emit", "source",
  ]);
});

test("texts that look like something else are quoted", () => {
  const given = settings({ values: { a: "1,2", b: "none", c: "12" } });
  assert.deepEqual(kernelArguments("trace", "k.py", undefined, given), [
    "trace", "k.py", "--set", 'a="1,2"', "--set", 'b="none"', "--set", 'c="12"',
  ]);
});

test("without a kernel at the cursor the file's only one is meant", () => {
  assert.deepEqual(kernelArguments("trace", "k.py", undefined, settings()), ["trace", "k.py"]);
});
