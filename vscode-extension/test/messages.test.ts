import assert from "node:assert/strict";
import { test } from "node:test";
import { versionSkew, whyNot } from "../src/messages";

const PYTHON = { program: "/opt/my env/python", args: [] };
const skew = (server: string | undefined, python: typeof PYTHON | undefined = PYTHON, on: NodeJS.Platform = "linux") =>
  versionSkew("0.2.0", server, python, on);

test("extension and server fit when their minor versions agree", () => {
  for (const server of ["0.2.0", "0.2.7", "0.2.0.dev1", undefined, "unknown"]) {
    assert.equal(skew(server), undefined, server);
  }
});

test("an older server: how to install the newer one, with that Python", () => {
  const told = skew("0.1.4");
  assert.match(told?.text ?? "", /tilelang 0\.1\.4 is installed.* made for 0\.2\.x.*Restart Server/);
  const command = "'/opt/my env/python' -m pip install --upgrade 'tilelang==0.2.*'";
  assert.deepEqual(told?.actions, [{ title: "Copy Command", command }]);
  const [there] = skew("0.1.4", { program: "C:\\my env\\python", args: [] }, "win32")?.actions ?? [];
  assert.equal(there && "command" in there && there.command,
    '"C:\\my env\\python" -m pip install --upgrade "tilelang==0.2.*"');
});

test("what a shell would expand is copied as it is", () => {
  const [action] = skew("0.1.4", { program: "/a$(x)'`", args: [] })?.actions ?? [];
  assert.match(action && "command" in action ? action.command : "", /^'\/a\$\(x\)'\\''`' -m pip/);
});

test("an older server of a command of the settings: where that is, is not known", () => {
  const told = versionSkew("0.2.0", "0.1.0", undefined, "linux");
  assert.match(told?.text ?? "", /Install tilelang==0\.2\.\* where the server is/);
  assert.deepEqual(told?.actions, []);
});

test("a newer server: update the extension", () => {
  for (const server of ["0.3.0", "0.10.0", "1.0.0"]) {
    const told = skew(server);
    assert.match(told?.text ?? "", /Update the extension to/);
    assert.deepEqual(told?.actions, [{ title: "Update Extension" }]);
  }
  assert.deepEqual(versionSkew("1.0.0", "0.9.0", PYTHON, "linux")?.actions.map((a) => a.title), ["Copy Command"]);
});

test("why a Python does not have the server", () => {
  assert.equal(whyNot("Traceback:\n  line\nModuleNotFoundError: No module named 'tvm'\n"),
    "ModuleNotFoundError: No module named 'tvm'");
  assert.equal(whyNot("Unknown option: -P\nusage: python3 [option] ...\nTry `python -h' for more.\n"),
    "it is older than Python 3.11");
  assert.equal(whyNot(""), "");
});
