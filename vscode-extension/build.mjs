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
    entryPoints: readdirSync("test").map((name) => `test/${name}`),
    outdir: "out/test",
    outExtension: { ".js": ".cjs" },
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
