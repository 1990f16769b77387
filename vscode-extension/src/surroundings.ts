// What holds in this window: its folders and their trust, the settings, the interpreter.

import { homedir } from "node:os";
import { parse } from "node:path";
import * as vscode from "vscode";
import { DISK } from "./disk";
import { type Command, type Surroundings, interpreter, isOutside } from "./launch";
import { UNTRUSTED } from "./messages";
import { selectedInterpreter } from "./python";
import { type Settings, heldValue, readSettings } from "./settings";

/** The window as it is now. */
export function surroundings(): Surroundings {
  return {
    trusted: vscode.workspace.isTrusted,
    folders: (vscode.workspace.workspaceFolders ?? []).map((folder) => folder.uri.fsPath),
    elsewhere: [__dirname, homedir(), parse(__dirname).root],
    env: process.env,
    platform: process.platform,
    disk: DISK,
  };
}

/** The settings as they are now, for a file or the first folder of the window. */
export function currentSettings(resource?: vscode.Uri): Settings {
  const folder = folderOf(resource);
  const configuration = vscode.workspace.getConfiguration("tilelang", resource ?? folder?.uri);
  const lookup = (name: string): unknown => {
    const { globalValue, defaultValue } = configuration.inspect(name) ?? {};
    const scopes = { value: configuration.get(name), globalValue, defaultValue };
    return heldValue(name, scopes, vscode.workspace.isTrusted);
  };
  return readSettings(lookup, folder?.uri.fsPath ?? process.cwd());
}

/** The Python that runs server and commands; undefined where none may be started. */
export async function currentInterpreter(
  settings: Settings,
  around: Surroundings,
  resource?: vscode.Uri,
): Promise<Command | undefined> {
  const folder = folderOf(resource)?.uri;
  const isAllowed = (path: string): boolean => around.trusted || isOutside(path, around);
  const selected = await selectedInterpreter(folder ?? resource, isAllowed);
  return interpreter({ setting: settings.interpreter, selected, folder: folder?.fsPath }, around);
}

/** Says that kernels are not run here, and leads to where that is changed. */
export async function refuseToRun(): Promise<void> {
  const chosen = await vscode.window.showWarningMessage(`TileLang: ${UNTRUSTED}`, "Manage Trust");
  if (chosen !== undefined) {
    await vscode.commands.executeCommand("workbench.trust.manage");
  }
}

function folderOf(resource: vscode.Uri | undefined): vscode.WorkspaceFolder | undefined {
  return (
    (resource && vscode.workspace.getWorkspaceFolder(resource)) ?? vscode.workspace.workspaceFolders?.[0]
  );
}
