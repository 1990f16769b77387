import assert from "node:assert/strict";
import { test } from "node:test";
import { type Outline, kernelAt } from "../src/kernels";

const node = (name: string, detail: string, firstLine: number, lastLine: number, children: Outline[] = []) => ({
  name, detail, firstLine, lastLine, children,
});
const OUTLINE = [
  node("relu", "macro", 0, 3),
  node("main", "kernel", 5, 9, [node("A", "(4,) int8 shared", 7, 7)]),
  node("factory", "", 11, 20, [node("inner", "kernel", 13, 18)]),
];

test("the kernel around the cursor", () => {
  assert.equal(kernelAt(OUTLINE, 5), "main");
  assert.equal(kernelAt(OUTLINE, 9), "main");
});

test("the factory of the kernel around the cursor", () => {
  assert.equal(kernelAt(OUTLINE, 15), "factory");
  assert.equal(kernelAt(OUTLINE, 11), "factory");
});

test("no kernel", () => {
  assert.equal(kernelAt(OUTLINE, 2), undefined);
  assert.equal(kernelAt(OUTLINE, 10), undefined);
  assert.equal(kernelAt([], 0), undefined);
});
