// A machine in a table: which links there are, and which programs.

import type { Surroundings } from "../../src/launch";

/** Links and where they lead; programs. */
export interface Files {
  links?: Record<string, string>;
  programs?: string[];
}

/** A window that is not trusted, with the folder `/ws`, unless told otherwise. */
export function around(files: Files = {}, more: Partial<Surroundings> = {}): Surroundings {
  return {
    trusted: false,
    folders: ["/ws"],
    elsewhere: ["/ext", "/home/me", "/"],
    env: { PATH: "/usr/bin" },
    platform: "linux",
    disk: {
      linkAt: (path) => files.links?.[path],
      real: (path) => path,
      isFile: (path) => files.programs?.includes(path) ?? false,
    },
    ...more,
  };
}
