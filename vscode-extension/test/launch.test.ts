import assert from "node:assert/strict";
import { test } from "node:test";
import { cliCommand, environment, interpreter, kernelArguments, serverCommand } from "../src/launch";
import { readSettings } from "../src/settings";

const settings = (given: Record<string, unknown> = {}) => readSettings((name) => given[name], "/work");

test("the interpreter of the settings comes first", () => {
  const found = interpreter(settings({ interpreter: ["py", "-3.11"] }), "/selected", "linux");
  assert.deepEqual(found, { program: "py", args: ["-3.11"] });
});

test("then the selected one, then the system's", () => {
  assert.equal(interpreter(settings(), "/selected", "linux").program, "/selected");
  assert.equal(interpreter(settings(), undefined, "linux").program, "python3");
  assert.equal(interpreter(settings(), undefined, "win32").program, "python");
});

test("the server is a module of that interpreter", () => {
  const found = serverCommand(settings({ args: ["--log-file", "x"] }), { program: "py", args: ["-3"] });
  assert.deepEqual(found, {
    program: "py",
    args: ["-3", "-m", "tilelang_lsp", "--log-level", "warning", "--log-file", "x"],
  });
});

test("or the command of the settings", () => {
  const given = settings({ path: ["tilelang", "lsp"], logLevel: "debug" });
  const found = serverCommand(given, { program: "py", args: [] });
  assert.deepEqual(found, { program: "tilelang", args: ["lsp", "--log-level", "debug"] });
});

test("the command line runs with the same interpreter", () => {
  assert.deepEqual(cliCommand({ program: "py", args: [] }, ["explain", "TL204"]), {
    program: "py",
    args: ["-m", "tilelang", "explain", "TL204"],
  });
});

test("modules of the opened folder do not replace Python's own", () => {
  assert.deepEqual(environment({ HOME: "/home" }), { HOME: "/home", PYTHONSAFEPATH: "1" });
});

test("a kernel is compiled with the values of the settings", () => {
  const given = settings({
    values: { M: 256, dtype: "float16", causal: true, out: null, order: [1, 2] },
    target: "cuda:sm_90a",
  });
  assert.deepEqual(kernelArguments("compile", "/work/a b.py", "matmul", given), [
    "compile", "/work/a b.py::matmul",
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
