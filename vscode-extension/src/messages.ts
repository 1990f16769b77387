// What is the user told, and what can be done about it?

import type { Command } from "./launch";

/** A message, with what its buttons say. */
export interface Message {
  text: string;
  actions: Action[];
}

export type Action =
  | { title: "Manage Trust" | "Settings" | "Log" | "Update Extension" }
  | { title: "Copy Command"; command: string };

/** Why kernels are not run. */
export const UNTRUSTED =
  "This workspace is not trusted: kernels are read, but not compiled, run or traced, since that would run their file.";

/** No interpreter is left in a workspace that is not trusted. */
export const NOTHING_OUTSIDE =
  "this workspace is not trusted, and no Python was found outside of it. " +
  "Trust the workspace, or name a Python elsewhere in tilelang.interpreter of your user settings";

/** Why a Python does not have the server, from what it printed. */
export function whyNot(stderr: string): string {
  if (/unknown option:? -P/i.test(stderr)) {
    return "it is older than Python 3.11";
  }
  return stderr.trim().split("\n").at(-1) ?? "";
}

/**
 * What to say when extension and server are of different minor versions, undefined when they fit.
 * The server comes with the compiler the user installed, so the two are updated apart.
 */
export function versionSkew(
  extension: string,
  server: string | undefined,
  python: Command | undefined,
  platform: NodeJS.Platform,
): Message | undefined {
  const ours = minor(extension);
  const theirs = minor(server ?? "");
  if (ours === undefined || theirs === undefined || ours.join(".") === theirs.join(".")) {
    return undefined;
  }
  const [major, small] = [ours[0] - theirs[0], ours[1] - theirs[1]];
  const found = `tilelang ${server} is installed, and this extension is made for ${ours.join(".")}.x: some of it may not work.`;
  if (major < 0 || (major === 0 && small < 0)) {
    const text = `${found} Update the extension to ${theirs.join(".")}.`;
    return { text, actions: [{ title: "Update Extension" }] };
  }
  const requirement = `tilelang==${ours.join(".")}.*`;
  if (python === undefined) {
    return { text: `${found} Install ${requirement} where the server is, then restart it.`, actions: [] };
  }
  const command = [python.program, ...python.args, "-m", "pip", "install", "--upgrade", requirement]
    .map((word) => quoted(word, platform))
    .join(" ");
  return {
    text: `${found} Install the newer one, then choose "TileLang: Restart Server".`,
    actions: [{ title: "Copy Command", command }],
  };
}

function minor(version: string): [number, number] | undefined {
  const found = /^(\d+)\.(\d+)\./.exec(version);
  return found === null ? undefined : [Number(found[1]), Number(found[2])];
}

/** A word as shells read it. */
function quoted(word: string, platform: NodeJS.Platform): string {
  if (/^[\w./:\\=+-]+$/.test(word)) {
    return word;
  }
  return platform === "win32" ? `"${word}"` : `'${word.replaceAll("'", "'\\''")}'`;
}
