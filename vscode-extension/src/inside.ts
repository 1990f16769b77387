// Does a path lie in a folder, whichever way its symbolic links lead?

import { posix, win32 } from "node:path";

/** What has to be asked about files; tests answer from a table. */
export interface Disk {
  /** Where a symbolic link leads, as it is written; undefined for all else. */
  linkAt(path: string): string | undefined;
  /** The one name a file has on the disk; the given one where that cannot be told. */
  real(path: string): string;
  isFile(path: string): boolean;
}

/** As many links as this lead nowhere. */
const MOST_LINKS = 40;

/**
 * Whether any of `folders` has a say in what `path` is: it lies there, or a link on the way to it
 * does. A link in such a folder that leads out of it counts, too: `.venv/bin/python` is the system's
 * Python by its link, and by its name takes its packages from `.venv`.
 */
export function isInside(
  path: string,
  folders: readonly string[],
  disk: Disk,
  platform: NodeJS.Platform,
): boolean {
  const tools = platform === "win32" ? win32 : posix;
  const same = platform === "win32" || platform === "darwin" ? lowerCase : asIs;
  const held = (place: string, folder: string): boolean =>
    same(place).startsWith(same(folder.endsWith(tools.sep) ? folder : folder + tools.sep));

  const places = placesOf(path, disk, tools);
  const last = places?.at(-1);
  if (places === undefined || last === undefined) {
    return folders.length > 0;
  }
  const ends = [last, tools.normalize(disk.real(path))];
  return folders.some((given) => {
    const end = placesOf(given, disk, tools)?.at(-1) ?? given;
    const names = [tools.resolve(given), end, disk.real(given)];
    return names.some(
      (folder) =>
        [...places, ...ends].some((place) => held(place, folder)) ||
        ends.some((end) => same(end) === same(folder)),
    );
  });
}

/**
 * Each place on the way to `path`, without links before it; the last is where it leads. Undefined
 * where links lead in a circle.
 */
function placesOf(path: string, disk: Disk, tools: typeof posix): string[] | undefined {
  let at = tools.parse(path).root;
  const places = [at];
  let rest = namesOf(path, tools);
  for (let links = 0; rest.length > 0; ) {
    const [name = "", ...after] = rest;
    rest = after;
    at = tools.join(at, name);
    places.push(at);
    const link = disk.linkAt(at);
    if (link === undefined) {
      continue;
    }
    links += 1;
    if (links > MOST_LINKS) {
      return undefined;
    }
    at = tools.isAbsolute(link) ? tools.parse(link).root : tools.dirname(at);
    rest = [...namesOf(link, tools), ...after];
  }
  return places;
}

function namesOf(path: string, tools: typeof posix): string[] {
  const separator = tools.sep === "\\" ? /[\\/]+/ : /\/+/;
  const names = path.slice(tools.parse(path).root.length).split(separator);
  return names.filter((name) => name !== "" && name !== ".");
}

function asIs(text: string): string {
  return text;
}

function lowerCase(text: string): string {
  return text.toLowerCase();
}
