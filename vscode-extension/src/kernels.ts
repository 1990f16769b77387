// Which kernel is the cursor in? Answered from the outline that the server gives.

/** The part of a document symbol that matters here; lines count from 0, the end included. */
export interface Outline {
  name: string;
  detail: string;
  firstLine: number;
  lastLine: number;
  children: Outline[];
}

/**
 * The name `tilelang compile FILE::NAME` takes: that of the top-level function around the line,
 * if it is a kernel or holds one. Undefined elsewhere: then the file's only kernel is meant.
 */
export function kernelAt(outline: Outline[], line: number): string | undefined {
  return outline.find((node) => node.firstLine <= line && line <= node.lastLine && holdsKernel(node))
    ?.name;
}

function holdsKernel(node: Outline): boolean {
  return node.detail === "kernel" || node.children.some(holdsKernel);
}
