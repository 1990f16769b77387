// Which command starts the server, which runs the command line, and where?
//
// In a workspace that is not trusted nothing may be started that its folders have a say in: no
// program in them, no program found by way of them, no module of theirs.

import { posix, win32 } from "node:path";
import { type Disk, isInside } from "./inside";
import type { Settings } from "./settings";

/** A program with its arguments; nothing here goes through a shell. */
export interface Command {
  program: string;
  args: string[];
}

/** A command with the folder and the environment it runs in. */
export interface Launch extends Command {
  cwd: string;
  env: NodeJS.ProcessEnv;
}

/** How a server is started, and what tells beforehand whether it is there. */
export interface Start {
  command: Command;
  /** Not where the settings name the command. */
  probe?: Command;
}

/** What decides about commands besides the settings. */
export interface Surroundings {
  trusted: boolean;
  /** The folders of the workspace. */
  folders: readonly string[];
  /** Where to run what must not run in those, the best first. */
  elsewhere: readonly string[];
  env: NodeJS.ProcessEnv;
  platform: NodeJS.Platform;
  disk: Disk;
}

/** What may name an interpreter, the first that does counts. */
export interface Choices {
  setting: readonly string[];
  /** The one selected in the Python extension. */
  selected?: string | undefined;
  /** The folder that has the file, whose `.venv` is taken. */
  folder?: string | undefined;
}

/** The Python to use; undefined where the workspace is not trusted and no other one is found. */
export function interpreter(choices: Choices, around: Surroundings): Command | undefined {
  const [program, ...args] = choices.setting;
  const candidates: Command[] = program === undefined ? [] : [{ program, args }];
  if (choices.selected) {
    candidates.push({ program: choices.selected, args: [] });
  }
  const own = choices.folder === undefined ? undefined : ownEnvironment(choices.folder, around);
  if (own !== undefined) {
    candidates.push({ program: own, args: [] });
  }
  candidates.push({ program: around.platform === "win32" ? "python" : "python3", args: [] });
  return firstOf(candidates, around);
}

/** The first command that may be started here. */
function firstOf(candidates: Command[], around: Surroundings): Command | undefined {
  for (const candidate of candidates) {
    const found = permitted(candidate, around);
    if (found !== undefined) {
      return found;
    }
  }
  return undefined;
}

/** A command as it may be started here, undefined where it may not. */
export function permitted(command: Command, around: Surroundings): Command | undefined {
  if (around.trusted) {
    return command;
  }
  const program = located(command.program, around);
  if (program === undefined || !isOutside(program, around)) {
    return undefined;
  }
  const { args } = command;
  return args.some((argument) => speaksOfWorkspace(argument, around)) ? undefined : { program, args };
}

/** Whether a path is absolute and no folder of the workspace has a say in it. */
export function isOutside(path: string, around: Surroundings): boolean {
  const { folders, disk, platform } = around;
  return toolsOf(around).isAbsolute(path) && !isInside(path, folders, disk, platform);
}

/**
 * Where a program is. Looked up here and not left to the system, which would also look in relative
 * entries of the path, and on Windows in the current folder first.
 */
function located(program: string, around: Surroundings): string | undefined {
  const tools = toolsOf(around);
  if (tools.isAbsolute(program)) {
    return program;
  }
  if (/[\\/]/.test(program)) {
    return undefined; // relative to the workspace
  }
  const path = valueOf(around.env, "PATH", around.platform) ?? "";
  const isBare = around.platform === "win32" && tools.extname(program) === "";
  const endings = isBare ? [".exe", ".com"] : [""];
  return path
    .split(tools.delimiter)
    .flatMap((folder) => endings.map((ending) => tools.join(folder, program + ending)))
    .find((file) => around.disk.isFile(file) && isOutside(file, around));
}

/** Whether an argument speaks of a place in the workspace: `${workspaceFolder}/x`, `--project=…`. */
function speaksOfWorkspace(argument: string, around: Surroundings): boolean {
  const { folders, disk } = around;
  const paths = argument.split("=").filter((part) => toolsOf(around).isAbsolute(part));
  return (
    folders.some((folder) => argument.includes(folder) || argument.includes(disk.real(folder))) ||
    paths.some((path) => !isOutside(path, around))
  );
}

/** The Python of a folder's `.venv`, if it has one. */
function ownEnvironment(folder: string, around: Surroundings): string | undefined {
  const tools = toolsOf(around);
  const names = around.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
  const file = tools.join(folder, ".venv", ...names);
  return around.disk.isFile(file) ? file : undefined;
}

/**
 * A command with the folder and the environment it runs in; undefined where the whole disk is the
 * workspace, and not trusted.
 */
export function launch(command: Command, settings: Settings, around: Surroundings): Launch | undefined {
  const cwd = around.trusted ? settings.cwd : around.elsewhere.find((folder) => isOutside(folder, around));
  return cwd === undefined ? undefined : { ...command, cwd, env: environment(around) };
}

/** How the server is started; undefined where nothing that could start it may be. */
export function serverStart(
  settings: Settings,
  python: Command | undefined,
  around: Surroundings,
): Start | undefined {
  const usable = around.trusted || !settings.args.some((a) => speaksOfWorkspace(a, around));
  const options = ["--log-level", settings.logLevel, ...(usable ? settings.args : [])];
  const [program, ...args] = settings.path;
  const given = program === undefined ? undefined : permitted({ program, args }, around);
  if (given !== undefined) {
    return { command: { program: given.program, args: [...given.args, ...options] } };
  }
  if (python === undefined) {
    return undefined;
  }
  const probe = { program: python.program, args: [...python.args, "-P", "-c", "import tilelang_lsp.worker"] };
  return { command: moduleOf(python, "tilelang_lsp", options), probe };
}

/** `tilelang SUBCOMMAND …` with the same Python. */
export function cliCommand(python: Command, args: string[]): Command {
  return moduleOf(python, "tilelang", args);
}

/** `-P`: else a `tilelang.py` or `json.py` of the current folder would be run in place of ours. */
function moduleOf(python: Command, name: string, args: string[]): Command {
  return { program: python.program, args: [...python.args, "-P", "-m", name, ...args] };
}

/**
 * The environment of all of them. Processes that they start do not look for modules in the current
 * folder either; without trust, no variable speaks of the workspace, or of a path from wherever one is.
 */
export function environment(around: Surroundings): NodeJS.ProcessEnv {
  const kept = Object.entries(around.env).flatMap(([name, value]) => {
    const rest = around.trusted ? value : withoutWorkspace(name, value ?? "", around);
    return rest === undefined ? [] : [[name, rest] as const];
  });
  return { ...Object.fromEntries(kept), PYTHONSAFEPATH: "1" };
}

function withoutWorkspace(name: string, value: string, around: Surroundings): string | undefined {
  const { delimiter, isAbsolute } = toolsOf(around);
  const entries = value.split(delimiter);
  const isSearched = /^(PATH|PYTHONPATH|LD_LIBRARY_PATH|DYLD_.*PATH)$/i.test(name);
  const kept = entries.filter((e) => (isAbsolute(e) ? isOutside(e, around) : !isSearched));
  if (kept.length === entries.length) {
    return value;
  }
  return kept.length === 0 ? undefined : kept.join(delimiter);
}

function valueOf(env: NodeJS.ProcessEnv, name: string, platform: NodeJS.Platform): string | undefined {
  const key = platform === "win32" ? Object.keys(env).find((k) => k.toUpperCase() === name) : name;
  return key === undefined ? undefined : env[key];
}

function toolsOf(around: Surroundings): typeof posix {
  return around.platform === "win32" ? win32 : posix;
}

/** Arguments that compile or trace a kernel with the values from the settings. */
export function kernelArguments(
  subcommand: "compile" | "trace",
  file: string,
  kernel: string | undefined,
  settings: Settings,
): string[] {
  const spec = kernel === undefined ? file : `${file}::${kernel}`;
  const values = Object.entries(settings.values).flatMap(([name, value]) => [
    "--set",
    `${name}=${literal(value)}`,
  ]);
  const target = settings.target === "" ? [] : ["--target", settings.target];
  const emit = subcommand === "compile" ? ["--emit", "source"] : [];
  return [subcommand, spec, ...values, ...target, ...emit];
}

/** A JSON value as the command line reads it: Python literals. */
function literal(value: unknown): string {
  if (value === null || value === undefined) {
    return "None";
  }
  if (typeof value === "boolean") {
    return value ? "True" : "False";
  }
  if (Array.isArray(value)) {
    return `[${value.map(literal).join(", ")}]`;
  }
  if (typeof value !== "string") {
    return String(value);
  }
  // Words stay as they are; what could be taken for something else is quoted.
  const plain = /^[A-Za-z_][\w.]*$/.test(value) && !/^(true|false|none)$/i.test(value);
  return plain ? value : JSON.stringify(value);
}
