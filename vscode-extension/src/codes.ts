// Diagnostic codes: what the user may ask to have explained.

/** `TL204`, or a name such as `gemm-k-mismatch`. */
export function isCode(text: string): boolean {
  return /^(TL[1-9]\d\d|[a-z0-9]+(-[a-z0-9]+)+)$/i.test(text.trim());
}

/** A diagnostic as far as its code and place go; lines count from 0. */
export interface Found {
  source: string | undefined;
  code: string | undefined;
  firstLine: number;
  lastLine: number;
}

/** The code of the first finding of ours on a line. */
export function codeOnLine(found: Found[], line: number): string | undefined {
  return found.find(
    (d) => d.source === "tilelang" && d.code !== undefined && d.firstLine <= line && line <= d.lastLine,
  )?.code;
}
