import assert from "node:assert/strict";
import { test } from "node:test";
import { heldValue, readSettings, serverOptions } from "../src/settings";

const read = (given: Record<string, unknown>) => readSettings((name) => given[name], "/ws");

test("nothing set", () => {
  assert.deepEqual(read({}), {
    interpreter: [],
    path: [],
    args: [],
    cwd: "/ws",
    values: {},
    target: "",
    diagnosticMode: "openFilesOnly",
    inlayHints: {
      enable: true, types: true, values: true, launch: true, loops: true, layouts: true,
      pipelines: true, instructions: true,
    },
    showNotifications: true,
    logLevel: "warning",
  });
});

test("the workspace folder is filled in", () => {
  const settings = read({ interpreter: ["${workspaceFolder}/.venv/bin/python"], cwd: "${workspaceFolder}/src" });
  assert.deepEqual(settings.interpreter, ["/ws/.venv/bin/python"]);
  assert.equal(settings.cwd, "/ws/src");
});

test("values of wrong types count as not set", () => {
  const settings = read({ interpreter: [1, "", null], values: [1], target: 3, cwd: {}, path: "tilelang" });
  assert.deepEqual(settings.interpreter, []);
  assert.deepEqual(settings.values, {});
  assert.equal(settings.target, "");
  assert.equal(settings.cwd, "/ws");
  assert.deepEqual(settings.path, ["tilelang"]);
});

test("what the server is told", () => {
  const settings = read({ values: { M: 4 }, target: "cpu", "inlayHints.enable": false,
    "inlayHints.layouts": false, diagnosticMode: "workspace" });
  assert.deepEqual(serverOptions(settings), {
    values: { M: 4 },
    target: "cpu",
    diagnosticMode: "workspace",
    inlayHints: {
      enable: false, types: true, values: true, launch: true, loops: true, layouts: false,
      pipelines: true, instructions: true,
    },
  });
});

test("without trust the user says what is run, and the workspace does not", () => {
  const scopes = { value: "workspace", globalValue: "user", defaultValue: "default" };
  const unset = { ...scopes, globalValue: undefined };
  for (const name of ["interpreter", "path", "args", "cwd"]) {
    assert.equal(heldValue(name, scopes, true), "workspace");
    assert.equal(heldValue(name, scopes, false), "user");
    assert.equal(heldValue(name, unset, false), "default");
  }
  assert.equal(heldValue("values", scopes, false), "workspace");
});
