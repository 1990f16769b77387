// The extension in a window: a folder that would like to run something of its own, with trust and
// without. Programs of this machine are scripts that write down that they were started.

import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import type * as vscode from "vscode";
import { activate } from "../src/extension";
import { clients } from "./support/client";
import { fire, page, reset, run, state } from "./support/editor";

const SKIP = { skip: process.platform === "win32" && "its programs are shell scripts" };

/** Two folders, `ws` and `other`, each with programs of its own, and a Python elsewhere. */
interface Machine {
  ws: string;
  other: string;
  outside: string;
  /** Programs that were started, with their folder and arguments. */
  started(): string[];
}

function machine(t: TestContext): Machine {
  reset();
  clients.made.length = 0;
  clients.version = "0.1.0";
  const base = mkdtempSync(join(tmpdir(), "tilelang-window-"));
  const log = join(base, "log");
  const before = { path: process.env.PATH, library: process.env.PYTHONPATH, at: process.cwd() };
  t.after(() => {
    process.env.PATH = before.path;
    process.env.PYTHONPATH = before.library ?? "";
    process.chdir(before.at);
    rmSync(base, { recursive: true });
  });
  const program = (file: string): string => {
    mkdirSync(join(file, ".."), { recursive: true });
    writeFileSync(file, `#!/bin/sh\necho "$0|$PWD|$*" >> '${log}'\n`, { mode: 0o755 });
    return file;
  };
  const [ws, other] = [join(base, "ws"), join(base, "other")];
  for (const folder of [ws, other]) {
    program(join(folder, ".venv", "bin", "python"));
    program(join(folder, "python3"));
    program(join(folder, "tilelang"));
  }
  const outside = program(join(base, "usr", "bin", "python3"));
  symlinkSync(join(ws, "python3"), join(base, "usr", "bin", "led-in"));
  process.env.PATH = [".", ws, join(base, "usr", "bin"), "/usr/bin", "/bin"].join(delimiter);
  process.env.PYTHONPATH = [ws, "."].join(delimiter);
  process.chdir(ws);
  state.folders = [ws];
  const started = () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : []);
  return { ws, other, outside, started };
}

async function opened(version = "0.1.0"): Promise<void> {
  const kept = new Map<string, unknown>();
  await activate({
    extension: { packageJSON: { version } },
    subscriptions: [],
    globalState: {
      get: (key: string, fallback: unknown) => kept.get(key) ?? fallback,
      update: async (key: string, value: unknown) => void kept.set(key, value),
    },
  } as unknown as vscode.ExtensionContext);
}

const newest = () => clients.made.at(-1);
const settled = () => new Promise((resolve) => setTimeout(resolve, 200));

/** What the workspace says, or the user says of it, and the Python extension has selected. */
const ATTEMPTS: [string, (there: Machine) => void][] = [
  ["nothing but its programs", () => {}],
  ["the interpreter selected in it", ({ ws }) => { state.selected = () => join(ws, ".venv/bin/python"); }],
  ["one selected by a link", ({ outside }) => { state.selected = () => join(outside, "../led-in"); }],
  ["the default of its settings", ({ ws }) => {
    state.workspaceSettings["python.defaultInterpreterPath"] = join(ws, "..", "x");
    state.selected = () => join(ws, "..", "x");
  }],
  ["tilelang.interpreter", ({ ws }) => {
    state.workspaceSettings["tilelang.interpreter"] = [join(ws, "python3")];
  }],
  ["tilelang.interpreter elsewhere", () => {
    state.workspaceSettings["tilelang.interpreter"] = ["/usr/bin/env", "sh"];
  }],
  ["tilelang.path", ({ ws }) => { state.workspaceSettings["tilelang.path"] = [join(ws, "tilelang"), "lsp"]; }],
  ["tilelang.cwd", ({ ws }) => { state.workspaceSettings["tilelang.cwd"] = ws; }],
  ["tilelang.args", ({ ws }) => { state.workspaceSettings["tilelang.args"] = ["--log-file", join(ws, "x")]; }],
  ["a user's setting about any folder", () => {
    state.user["tilelang.interpreter"] = ["${workspaceFolder}/.venv/bin/python"];
    state.user["tilelang.path"] = ["./tilelang", "lsp"];
    state.user["tilelang.args"] = ["--log-file", "${workspaceFolder}/x"];
  }],
];

for (const [name, attempt] of ATTEMPTS) {
  test(`without trust the folder starts nothing: ${name}`, SKIP, async (t) => {
    const there = machine(t);
    state.isTrusted = false;
    attempt(there);
    await opened();

    const { server, options } = newest() ?? assert.fail("no server");
    assert.equal(server.command, there.outside);
    assert.deepEqual(server.args, ["-P", "-m", "tilelang_lsp", "--log-level", "warning"]);
    assert.equal(options.initializationOptions.trusted, false);
    const { cwd, env } = server.options;
    assert.equal(cwd, __dirname);
    assert.equal(env.PATH?.split(delimiter).includes(there.ws), false);
    assert.equal(env.PATH?.split(delimiter).includes("."), false);
    assert.deepEqual([env.PYTHONPATH, env.PYTHONSAFEPATH], [undefined, "1"]);
    assert.equal(await page("TL204.md"), "");
    assert.deepEqual(there.started(), [
      `${there.outside}|${cwd}|-P -c import tilelang_lsp.worker`,
      `${there.outside}|${cwd}|-P -m tilelang explain TL204`,
    ]);
    assert.deepEqual(state.lookedInto, []);
  });
}

test("without trust a selected interpreter elsewhere is taken", SKIP, async (t) => {
  const there = machine(t);
  state.isTrusted = false;
  state.selected = () => there.outside;
  process.env.PATH = "/usr/bin";
  await opened();
  assert.equal(newest()?.server.command, there.outside);
  assert.deepEqual(state.lookedInto, [there.outside]);
});

test("without trust and a Python elsewhere no server runs, and why is said where kernels are", SKIP, async (t) => {
  const there = machine(t);
  state.isTrusted = false;
  process.env.PATH = there.ws;
  await opened();
  assert.deepEqual([newest(), there.started(), state.messages], [undefined, [], []]);
  assert.match(state.status.detail, /not trusted, and no Python was found outside of it\. Trust .* user settings/);

  state.documents = [{ path: join(there.ws, "k.py"), text: "import tilelang", isDirty: false }];
  state.answer = "Manage Trust";
  await run("tilelang.restart");
  await settled();
  assert.deepEqual(state.messages.map((m) => m.actions), [["Manage Trust", "Settings", "Log"]]);
  assert.deepEqual(state.executed, [["workbench.trust.manage"]]);
  assert.match((await page("TL204.md")) ?? "", /no Python was found outside/);
});

for (const subcommand of ["compile", "trace"]) {
  test(`without trust tilelang.${subcommand} is refused, and leads to where trust is given`, SKIP, async (t) => {
    const there = machine(t);
    state.isTrusted = false;
    state.active = { path: join(there.ws, "k.py"), line: 0 };
    await opened();
    state.answer = "Manage Trust";
    await run(`tilelang.${subcommand}`);
    assert.deepEqual(state.tasks, []);
    assert.deepEqual(state.messages.map((m) => m.actions), [["Manage Trust"]]);
    assert.match(state.messages[0]?.text ?? "", /not trusted: kernels are read, but not compiled, run or traced/);
    assert.deepEqual(state.executed, [["workbench.trust.manage"]]);
  });
}

test("without trust a lens is refused, with trust its file is saved", SKIP, async (t) => {
  const there = machine(t);
  const file = join(there.ws, "k.py");
  state.documents = [{ path: file, text: "", isDirty: true }];
  state.isTrusted = false;
  await opened();
  const click = () =>
    newest()?.options.middleware.executeCommand("tilelang.server.compile", [`file://${file}`], () => "ran");
  assert.deepEqual([await click(), state.saved], [undefined, []]);
  assert.match(state.messages[0]?.text ?? "", /not trusted/);
  state.isTrusted = true;
  assert.deepEqual([await click(), state.saved], ["ran", [file]]);
});

test("trust starts the server again, with what is the folder's", SKIP, async (t) => {
  const there = machine(t);
  state.isTrusted = false;
  await opened();
  state.isTrusted = true;
  fire("trust");
  await settled();
  const [before, after] = clients.made;
  assert.ok(before?.isDisposed);
  assert.equal(after?.server.command, join(there.ws, ".venv/bin/python"));
  assert.deepEqual([after?.server.options.cwd, after?.options.initializationOptions.trusted], [there.ws, true]);

  state.active = { path: join(there.ws, "k.py"), line: 0 };
  await run("tilelang.compile");
  assert.deepEqual(state.tasks, [{
    program: join(there.ws, ".venv/bin/python"), cwd: there.ws,
    args: ["-P", "-m", "tilelang", "compile", join(there.ws, "k.py"), "--emit", "source"],
  }]);
});

test("a folder that comes without trust may hold the Python that runs", SKIP, async (t) => {
  const there = machine(t);
  state.isTrusted = false;
  state.selected = () => join(there.other, "python3");
  await opened();
  assert.equal(newest()?.server.command, join(there.other, "python3"));
  state.folders = [there.ws, there.other];
  fire("folders");
  await settled();
  assert.equal(newest()?.server.command, there.outside);
  assert.equal(clients.made[0]?.isDisposed, true);
});

test("each folder is asked for its own interpreter, until one has the server", SKIP, async (t) => {
  const there = machine(t);
  state.folders = [there.ws, there.other];
  state.selected = (folder) => join(folder ?? "none", "python3");
  writeFileSync(join(there.ws, "python3"), "#!/bin/sh\necho No module named tilelang_lsp >&2\nexit 1\n");
  await opened();
  const { server } = newest() ?? assert.fail("no server");
  assert.deepEqual([server.command, server.options.cwd], [join(there.other, "python3"), there.other]);

  state.active = { path: join(there.ws, "k.py"), line: 0 };
  await run("tilelang.trace");
  state.active = { path: join(there.other, "sub", "k.py"), line: 0 };
  await run("tilelang.trace");
  assert.deepEqual(state.tasks.map(({ program, cwd }) => [program, cwd]), [
    [join(there.ws, "python3"), there.ws],
    [join(there.other, "python3"), there.other],
  ]);
});

test("two folders with one Python ask it once", SKIP, async (t) => {
  const there = machine(t);
  state.folders = [there.ws, there.other];
  state.selected = () => there.outside;
  writeFileSync(there.outside, `${readFileSync(there.outside, "utf8")}exit 1\n`);
  await opened();
  assert.deepEqual([newest(), there.started().length], [undefined, 1]);
});

test("a start that fails is not the last", SKIP, async (t) => {
  const there = machine(t);
  state.selected = () => {
    throw new Error("the other extension broke");
  };
  await opened();
  assert.match(state.status.detail, /the other extension broke/);
  state.selected = () => there.outside;
  await run("tilelang.restart");
  assert.equal(newest()?.server.command, there.outside);
});

test("only codes are explained", SKIP, async (t) => {
  machine(t);
  await opened();
  await run("tilelang.explain", "--help");
  assert.equal(state.executed.length, 0);
  await run("tilelang.explain", "TL204");
  assert.deepEqual(state.executed.map(([name, uri]) => [name, String(uri)]), [
    ["markdown.showPreview", "tilelang-page://TL204.md"],
  ]);
});

test("where none has it, the first folder's reason is said", SKIP, async (t) => {
  const there = machine(t);
  state.folders = [there.ws, there.other];
  state.documents = [{ path: join(there.ws, "k.py"), text: "import tilelang", isDirty: false }];
  for (const folder of state.folders) {
    const python = join(folder, ".venv/bin/python");
    writeFileSync(python, "#!/bin/sh\necho No module named tilelang_lsp >&2\nexit 1\n");
  }
  await opened();
  const python = join(there.ws, ".venv/bin/python");
  assert.deepEqual(state.messages, [{
    text: `TileLang: ${python} cannot import tilelang: No module named tilelang_lsp`,
    actions: ["Settings", "Log"],
  }]);
});

test("versions that do not fit are told once, with the command that helps", SKIP, async (t) => {
  const there = machine(t);
  state.answer = "Copy Command";
  await opened("0.2.0");
  await run("tilelang.restart");
  await settled();
  assert.equal(state.messages.length, 1);
  assert.match(state.messages[0]?.text ?? "", /tilelang 0\.1\.0 is installed/);
  assert.match(state.clipboard, new RegExp(`^${join(there.ws, ".venv/bin/python")} -m pip install`));
  assert.match(state.status.detail, /tilelang 0\.1\.0 is installed/);

  clients.version = "0.3.0";
  state.answer = "Update Extension";
  await run("tilelang.restart");
  await settled();
  assert.equal(state.messages.length, 2);
  assert.deepEqual(state.executed, [["workbench.extensions.search", "@installed tilelang"]]);
});

test("no message about versions where none are wanted", SKIP, async (t) => {
  machine(t);
  state.user["tilelang.showNotifications"] = "off";
  await opened("0.2.0");
  assert.deepEqual(state.messages, []);
  assert.equal(state.status.severity, 1);
});
