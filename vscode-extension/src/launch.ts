// Which command starts the server, and which runs the command line?

import type { Settings } from "./settings";

/** A program with its arguments; nothing here goes through a shell. */
export interface Command {
  program: string;
  args: string[];
}

/** The Python to use: the setting, else the one selected in the editor, else the system's. */
export function interpreter(
  settings: Settings,
  selected: string | undefined,
  platform: NodeJS.Platform,
): Command {
  const [program, ...args] = settings.interpreter;
  if (program !== undefined) {
    return { program, args };
  }
  const system = platform === "win32" ? "python" : "python3";
  return { program: selected || system, args: [] };
}

/** How the server is started. */
export function serverCommand(settings: Settings, python: Command): Command {
  const options = ["--log-level", settings.logLevel, ...settings.args];
  const [program, ...args] = settings.path;
  if (program !== undefined) {
    return { program, args: [...args, ...options] };
  }
  return { program: python.program, args: [...python.args, "-m", "tilelang_lsp", ...options] };
}

/** `tilelang SUBCOMMAND …` with the same Python. */
export function cliCommand(python: Command, args: string[]): Command {
  return { program: python.program, args: [...python.args, "-m", "tilelang", ...args] };
}

/** Asks a Python whether it has the server. */
export function probeCommand(python: Command): Command {
  return { program: python.program, args: [...python.args, "-c", "import tilelang_lsp.worker"] };
}

/** The environment of all of them: modules of the opened folder must not replace Python's own. */
export function environment(inherited: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return { ...inherited, PYTHONSAFEPATH: "1" };
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
