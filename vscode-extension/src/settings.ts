// What the user set, checked: a settings file may hold anything.

/** The settings of one workspace folder. */
export interface Settings {
  interpreter: string[];
  path: string[];
  args: string[];
  cwd: string;
  values: Record<string, unknown>;
  target: string;
  diagnosticMode: string;
  inlayHints: Record<string, boolean>;
  showNotifications: boolean;
  logLevel: string;
}

const HINTS = [
  "enable", "types", "values", "launch", "loops", "layouts", "pipelines", "instructions",
];

/** What says which programs run, and where: `restrictedConfigurations` of package.json. */
export const RESTRICTED = ["interpreter", "path", "args", "cwd"];

/** A setting as VS Code knows it: what holds, and what each scope says. */
export interface Scopes {
  value: unknown;
  globalValue: unknown;
  defaultValue: unknown;
}

/**
 * The value that holds. VS Code leaves out what a workspace without trust says of the restricted
 * ones; not relying on that alone costs a line.
 */
export function heldValue(name: string, scopes: Scopes, trusted: boolean): unknown {
  if (trusted || !RESTRICTED.includes(name)) {
    return scopes.value;
  }
  return scopes.globalValue ?? scopes.defaultValue;
}

/** Reads one setting by its name without the `tilelang.` in front. */
export type Lookup = (name: string) => unknown;

/** The settings, with `${workspaceFolder}` replaced; wrong types count as not set. */
export function readSettings(lookup: Lookup, workspaceFolder: string): Settings {
  const text = (name: string, fallback: string): string => {
    const value = lookup(name);
    return typeof value === "string" && value !== "" ? value : fallback;
  };
  const list = (name: string): string[] => {
    const value = lookup(name);
    const items: unknown[] = Array.isArray(value) ? value : value === undefined ? [] : [value];
    return items
      .filter((item): item is string => typeof item === "string" && item !== "")
      .map((item) => expand(item, workspaceFolder));
  };
  const values = lookup("values");
  return {
    interpreter: list("interpreter"),
    path: list("path"),
    args: list("args"),
    cwd: expand(text("cwd", "${workspaceFolder}"), workspaceFolder),
    values: isRecord(values) ? values : {},
    target: text("target", ""),
    diagnosticMode: text("diagnosticMode", "openFilesOnly"),
    inlayHints: Object.fromEntries(
      HINTS.map((kind) => [kind, lookup(`inlayHints.${kind}`) !== false]),
    ),
    showNotifications: text("showNotifications", "onError") !== "off",
    logLevel: text("logLevel", "warning"),
  };
}

/** What the server is told, at start and whenever a setting changes. */
export function serverOptions(settings: Settings): Record<string, unknown> {
  return {
    values: settings.values,
    target: settings.target,
    diagnosticMode: settings.diagnosticMode,
    inlayHints: settings.inlayHints,
  };
}

function expand(text: string, workspaceFolder: string): string {
  return text.replaceAll("${workspaceFolder}", workspaceFolder);
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
