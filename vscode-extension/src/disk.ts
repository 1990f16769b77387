// The files of this machine, as `inside.ts` asks about them.

import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import type { Disk } from "./inside";

export const DISK: Disk = {
  linkAt: (path) => attempt(() => readlinkSync(path)),
  real: (path) => attempt(() => realpathSync.native(path)) ?? path,
  // Not what a link leads to: the Pythons of the Microsoft Store are links that cannot be followed.
  isFile: (path) => attempt(() => !lstatSync(path).isDirectory()) ?? false,
};

function attempt<T>(ask: () => T): T | undefined {
  try {
    return ask();
  } catch {
    return undefined;
  }
}
