import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { DISK } from "../src/disk";
import { isInside } from "../src/inside";
import { around } from "./support/around";

/** A path, whether it is in `/ws`, and the links there are. */
const PATHS: [string, boolean, Record<string, string>][] = [
  ["/ws/.venv/bin/python", true, {}],
  ["/ws", true, {}],
  ["/ws/", true, {}],
  ["//ws//x", true, {}],
  ["/usr/bin/python3", false, {}],
  ["/wsx/python", false, {}],
  ["/usr/../ws/python", true, {}],
  ["/ws/../usr/bin/python", false, {}],
  // A name in the folder counts, wherever its link leads.
  ["/ws/.venv/bin/python", true, { "/ws/.venv/bin/python": "/usr/bin/python3" }],
  ["/ws/env/bin/python", true, { "/ws/env": "/opt/env" }],
  // What leads into it counts, too: by file, by folder, by a relative link, by two links.
  ["/usr/bin/python", true, { "/usr/bin/python": "/ws/evil" }],
  ["/opt/env/bin/python", true, { "/opt/env": "/ws/env" }],
  ["/opt/env/bin/python", true, { "/opt/env": "../ws/env" }],
  ["/opt/env/bin/python", true, { "/opt/env": "/a", "/a": "/ws" }],
  // And what only passes through it.
  ["/opt/env/bin/python", true, { "/opt/env": "/ws/env", "/ws/env": "/usr" }],
  // The folder by its other name.
  ["/data/ws/python", true, { "/ws": "/data/ws" }],
  ["/ws/python", true, { "/ws": "/data/ws" }],
  ["/data/python", false, { "/ws": "/data/ws" }],
  // `..` after a link leaves where the link led.
  ["/link/../x", false, { "/link": "/data/deep" }],
  ["/link/../x", true, { "/link": "/ws/deep" }],
  // Nobody knows where a circle leads.
  ["/a/python", true, { "/a": "/b", "/b": "/a" }],
];

for (const [path, expected, links] of PATHS) {
  test(`${path} with links ${JSON.stringify(links)}`, () => {
    assert.equal(isInside(path, ["/other", "/ws"], around({ links }).disk, "linux"), expected);
  });
}

test("without folders nothing is inside", () => {
  assert.equal(isInside("/ws/python", [], around().disk, "linux"), false);
});

test("a whole disk that was opened holds everything", () => {
  assert.ok(isInside("/usr/bin/python3", ["/"], around().disk, "linux"));
  assert.ok(isInside("c:\\Python\\python.exe", ["C:\\"], around().disk, "win32"));
});

test("upper and lower case are one where the system says so", () => {
  const { disk } = around();
  assert.ok(isInside("c:\\WS\\.venv\\python.exe", ["C:\\ws"], disk, "win32"));
  assert.ok(isInside("C:/ws/python.exe", ["C:\\ws"], disk, "win32"));
  assert.ok(!isInside("C:\\other\\python.exe", ["C:\\ws"], disk, "win32"));
  assert.ok(isInside("/WS/python", ["/ws"], disk, "darwin"));
  assert.ok(!isInside("/WS/python", ["/ws"], disk, "linux"));
});

test("the one name on the disk counts, whichever is given", () => {
  const disk = { ...around().disk, real: (path: string) => path.replace("MYWORK~1", "my workspace") };
  assert.ok(isInside("C:\\MYWORK~1\\python.exe", ["C:\\my workspace"], disk, "win32"));
});

test("on a real disk", (t) => {
  const base = mkdtempSync(join(tmpdir(), "tilelang-inside-"));
  t.after(() => rmSync(base, { recursive: true }));
  const [workspace, elsewhere] = [join(base, "ws"), join(base, "env", "bin")];
  mkdirSync(join(workspace, "bin"), { recursive: true });
  mkdirSync(elsewhere, { recursive: true });
  writeFileSync(join(workspace, "bin", "python"), "");
  writeFileSync(join(elsewhere, "python"), "");
  symlinkSync(join(workspace, "bin", "python"), join(elsewhere, "into"));
  symlinkSync(elsewhere, join(workspace, "out"));

  const inside = (path: string) => isInside(path, [workspace], DISK, process.platform);
  assert.ok(inside(join(workspace, "bin", "python")));
  assert.ok(inside(join(elsewhere, "into")));
  assert.ok(inside(join(workspace, "out", "python")));
  assert.ok(!inside(join(elsewhere, "python")));
  assert.ok(DISK.isFile(join(elsewhere, "into")) && !DISK.isFile(elsewhere));
  assert.ok(!DISK.isFile(join(elsewhere, "missing")));
});
