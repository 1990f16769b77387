import assert from "node:assert/strict";
import { test } from "node:test";
import { codeOnLine, isCode } from "../src/codes";

test("codes and names", () => {
  for (const text of ["TL204", "tl204", " TL900 ", "gemm-k-mismatch", "bank-conflicts"]) {
    assert.ok(isCode(text), text);
  }
  for (const text of ["", "TL04", "TL2044", "204", "gemm", "--help", "a b-c"]) {
    assert.ok(!isCode(text), text);
  }
});

test("the first finding of ours on the line", () => {
  const found = [
    { source: "Pylance", code: "reportX", firstLine: 3, lastLine: 3 },
    { source: "tilelang", code: "TL110", firstLine: 2, lastLine: 4 },
    { source: "tilelang", code: "TL111", firstLine: 3, lastLine: 3 },
  ];
  assert.equal(codeOnLine(found, 3), "TL110");
  assert.equal(codeOnLine(found, 5), undefined);
});
