// What package.json declares, the code does and README.md says.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { RESTRICTED, readSettings } from "../src/settings";

interface Property {
  default: unknown;
  scope: string;
  description?: string;
  markdownDescription?: string;
}

const PACKAGE = JSON.parse(readFileSync("package.json", "utf8"));
const README = readFileSync("README.md", "utf8");
const PROPERTIES = Object.entries(PACKAGE.contributes.configuration.properties as Record<string, Property>);
const TABLE = /\| setting \| default \| meaning \|\n(?:\|.*\n)*/;

test("the table of settings in README.md is that of package.json", () => {
  const rows = PROPERTIES.map(([name, { default: value, markdownDescription, description }]) => {
    const text = markdownDescription ?? description ?? "";
    return `| \`${name}\` | \`${JSON.stringify(value)}\` | ${text.replaceAll("|", "\\|")} |`;
  });
  const expected = ["| setting | default | meaning |", "|---|---|---|", ...rows, ""].join("\n");
  if (process.env.UPDATE === "1") {
    writeFileSync("README.md", README.replace(TABLE, () => expected));
  }
  assert.equal(TABLE.exec(readFileSync("README.md", "utf8"))?.[0], expected, "UPDATE=1 npm test writes it");
});

test("README.md names every command", () => {
  for (const { title, category } of PACKAGE.contributes.commands) {
    assert.ok(README.includes(`| ${category}: ${title} |`), title);
  }
});

test("settings that say what is run are restricted, and not those of a folder", () => {
  const { restrictedConfigurations } = PACKAGE.capabilities.untrustedWorkspaces;
  assert.deepEqual(restrictedConfigurations, RESTRICTED.map((name) => `tilelang.${name}`));
  const machine = PROPERTIES.filter(([, { scope }]) => scope === "machine-overridable");
  assert.deepEqual(machine.map(([name]) => name), restrictedConfigurations);
  assert.equal(PACKAGE.capabilities.untrustedWorkspaces.supported, "limited");
});

test("every setting is read, and every setting that is read is declared", () => {
  const read = new Set<string>();
  readSettings((name) => void read.add(`tilelang.${name}`), "/ws");
  read.add("tilelang.trace.server"); // by the language client
  assert.deepEqual([...read].sort(), PROPERTIES.map(([name]) => name).sort());
});

test("defaults are those of the code", () => {
  const declared = Object.fromEntries(PROPERTIES.map(([name, p]) => [name.replace("tilelang.", ""), p.default]));
  assert.deepEqual(readSettings((name) => declared[name], "/ws"), readSettings(() => undefined, "/ws"));
});
