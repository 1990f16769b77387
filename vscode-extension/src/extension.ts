// Where VS Code enters: the server is started, commands are registered, changes are followed.

import * as vscode from "vscode";
import { explain, registerPages, runOnKernel } from "./commands";
import { onInterpreterChange } from "./python";
import { Server } from "./server";

/** Settings that only a new server takes up. */
const NEED_RESTART = ["interpreter", "path", "args", "cwd", "logLevel"];

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const { version } = context.extension.packageJSON as { version: string };
  const server = new Server(version, context.globalState);
  context.subscriptions.push(
    server,
    registerPages(),
    vscode.commands.registerCommand("tilelang.restart", () => server.restart()),
    vscode.commands.registerCommand("tilelang.compile", () => runOnKernel("compile")),
    vscode.commands.registerCommand("tilelang.trace", () => runOnKernel("trace")),
    vscode.commands.registerCommand("tilelang.explain", explain),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (NEED_RESTART.some((name) => change.affectsConfiguration(`tilelang.${name}`))) {
        void server.restart();
      } else if (change.affectsConfiguration("tilelang")) {
        void server.configure();
      }
    }),
    vscode.workspace.onDidChangeWorkspaceFolders(() => void server.foldersChanged()),
    vscode.workspace.onDidGrantWorkspaceTrust(() => void server.restart()),
    await onInterpreterChange(() => void server.restart()),
  );
  await server.restart();
}

export function deactivate(): void {
  // The subscriptions stop the server.
}
