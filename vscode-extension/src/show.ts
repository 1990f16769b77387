// Shows a page of the server's inside the window, which works where the server is remote, too.

import * as vscode from "vscode";

/** Shows pages of the kinds known here; undefined for all others. */
export function showResult(uri: string): Promise<{ success: boolean }> | undefined {
  const file = vscode.Uri.parse(uri);
  if (file.path.endsWith(".html")) {
    return showPage(file);
  }
  if (!file.path.endsWith(".md")) {
    return undefined;
  }
  const shown = vscode.commands.executeCommand("markdown.showPreview", file);
  return Promise.resolve(shown).then(() => ({ success: true }));
}

async function showPage(file: vscode.Uri): Promise<{ success: boolean }> {
  const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(file));
  const title = file.path.split("/").at(-1) ?? "trace";
  const panel = vscode.window.createWebviewPanel("tilelang.trace", title, vscode.ViewColumn.Active, {
    enableScripts: true,
    retainContextWhenHidden: true,
  });
  panel.webview.html = text;
  return { success: true };
}
