// The commands of the palette: each runs the command line with the interpreter of the server.

import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { codeOnLine, isCode } from "./codes";
import { type Outline, kernelAt } from "./kernels";
import { cliCommand, kernelArguments, launch } from "./launch";
import { NOTHING_OUTSIDE } from "./messages";
import { currentInterpreter, currentSettings, refuseToRun, surroundings } from "./surroundings";

const PAGES = "tilelang-page";

/** Compile or trace the kernel at the cursor, in a terminal of its own. Both run the file. */
export async function runOnKernel(subcommand: "compile" | "trace"): Promise<void> {
  if (!vscode.workspace.isTrusted) {
    await refuseToRun();
    return;
  }
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || editor.document.languageId !== "python") {
    void vscode.window.showInformationMessage("TileLang: open a Python file with a kernel first.");
    return;
  }
  const { document } = editor;
  if (document.isUntitled || (document.isDirty && !(await document.save()))) {
    void vscode.window.showInformationMessage("TileLang: save the file first.");
    return;
  }
  const settings = currentSettings(document.uri);
  const kernel = kernelAt(await outlineOf(document.uri), editor.selection.active.line);
  const around = surroundings();
  const python = await currentInterpreter(settings, around, document.uri);
  const args = kernelArguments(subcommand, document.uri.fsPath, kernel, settings);
  const started = python && launch(cliCommand(python, args), settings, around);
  if (started === undefined) {
    return; // trust cannot be taken back while a window is open
  }
  const execution = new vscode.ProcessExecution(started.program, started.args, {
    cwd: started.cwd,
    env: { PYTHONSAFEPATH: "1" },
  });
  const task = new vscode.Task(
    { type: "tilelang", subcommand },
    vscode.TaskScope.Workspace,
    `${subcommand} ${kernel ?? document.uri.path.split("/").at(-1) ?? ""}`,
    "TileLang",
    execution,
  );
  task.presentationOptions = { clear: true, reveal: vscode.TaskRevealKind.Always };
  await vscode.tasks.executeTask(task);
}

/** Show the page of a code: the one on the cursor's line, else one that is typed. */
export async function explain(given?: unknown): Promise<void> {
  const code = typeof given === "string" ? given : await askForCode();
  if (code === undefined || !isCode(code)) {
    return;
  }
  const uri = vscode.Uri.from({ scheme: PAGES, path: `${code.trim()}.md` });
  await vscode.commands.executeCommand("markdown.showPreview", uri);
}

/** Gives the preview of `explain` its text. */
export function registerPages(): vscode.Disposable {
  return vscode.workspace.registerTextDocumentContentProvider(PAGES, {
    provideTextDocumentContent: (uri) => pageOf(uri.path.replace(/\.md$/, "")),
  });
}

async function askForCode(): Promise<string | undefined> {
  const editor = vscode.window.activeTextEditor;
  const found = editor === undefined ? [] : vscode.languages.getDiagnostics(editor.document.uri);
  const value = codeOnLine(found.map(asFound), editor?.selection.active.line ?? -1);
  return vscode.window.showInputBox({
    prompt: "Which diagnostic? A code or its name.",
    placeHolder: "TL204",
    ...(value === undefined ? {} : { value }),
    validateInput: (text) => (isCode(text) ? undefined : "A code is written TL204."),
  });
}

function asFound(diagnostic: vscode.Diagnostic) {
  const { code, source, range } = diagnostic;
  const text = typeof code === "object" ? code.value : code;
  return {
    source,
    code: text === undefined ? undefined : String(text),
    firstLine: range.start.line,
    lastLine: range.end.line,
  };
}

async function pageOf(code: string): Promise<string> {
  const settings = currentSettings();
  const around = surroundings();
  const python = await currentInterpreter(settings, around);
  const asked = python && launch(cliCommand(python, ["explain", code]), settings, around);
  if (asked === undefined) {
    return `# ${code}\n\n${NOTHING_OUTSIDE}\n`;
  }
  const { program, args, cwd, env } = asked;
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env }, (error, stdout, stderr) => {
      resolve(error === null ? stdout : `# ${code}\n\n${stderr.trim() || error.message}\n`);
    });
  });
}

async function outlineOf(uri: vscode.Uri): Promise<Outline[]> {
  const symbols = await vscode.commands.executeCommand<vscode.DocumentSymbol[] | undefined>(
    "vscode.executeDocumentSymbolProvider",
    uri,
  );
  return (symbols ?? []).map(asOutline);
}

function asOutline(symbol: vscode.DocumentSymbol): Outline {
  return {
    name: symbol.name,
    detail: symbol.detail,
    firstLine: symbol.range.start.line,
    lastLine: symbol.range.end.line,
    children: symbol.children.map(asOutline),
  };
}
