// Bundles the extension into out/extension.js and, with --tests, each test into out/test/.

import { readdirSync, rmSync } from "node:fs";
import { build } from "esbuild";

const tests = process.argv.includes("--tests");
const common = {
  bundle: true,
  platform: "node",
  target: "node20",
  format: "cjs",
  logLevel: "warning",
};

rmSync(tests ? "out/test" : "out", { recursive: true, force: true });
if (tests) {
  await build({
    ...common,
    entryPoints: readdirSync("test").filter((name) => name.endsWith(".ts")).map((name) => `test/${name}`),
    outdir: "out/test",
    outExtension: { ".js": ".cjs" },
    // No editor is there: a small one of our own, and a client that only remembers its options.
    alias: { vscode: "./test/support/editor.ts", "vscode-languageclient/node": "./test/support/client.ts" },
  });
} else {
  await build({
    ...common,
    entryPoints: ["src/extension.ts"],
    outfile: "out/extension.js",
    external: ["vscode"],
    minify: process.argv.includes("--minify"),
  });
}
