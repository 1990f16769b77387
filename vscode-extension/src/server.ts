// Starts, restarts and stops the language server, and says so when that fails.

import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions, type ServerOptions } from "vscode-languageclient/node";
import { type Command, environment, interpreter, probeCommand, serverCommand } from "./launch";
import { selectedInterpreter } from "./python";
import { type Settings, readSettings, serverOptions } from "./settings";
import { versionSkew } from "./version";

const RUNS_THE_FILE = new Set(
  ["compile", "emulate", "trace"].map((name) => `tilelang.server.${name}`),
);

/** The server of this window. Restarts are done one after the other. */
export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private pending: Promise<void> = Promise.resolve();
  private readonly output = vscode.window.createOutputChannel("TileLang", { log: true });
  private readonly status = vscode.languages.createLanguageStatusItem("tilelang", {
    language: "python",
  });

  constructor(private readonly version: string) {
    this.status.name = "TileLang";
    this.status.command = { command: "tilelang.restart", title: "Restart" };
  }

  /** Start the server, or start it again with the settings as they are now. */
  restart(): Promise<void> {
    this.pending = this.pending.then(() => this.stop()).then(() => this.start());
    return this.pending;
  }

  /** Send changed settings that need no restart. */
  async configure(): Promise<void> {
    const settings = { tilelang: toldToServer(currentSettings()) };
    await this.client?.sendNotification("workspace/didChangeConfiguration", { settings });
  }

  dispose(): void {
    void this.stop();
    this.output.dispose();
    this.status.dispose();
  }

  private async start(): Promise<void> {
    const settings = currentSettings();
    const python = await currentInterpreter(settings);
    const problem = settings.path.length > 0 ? undefined : await probe(python, settings);
    if (problem !== undefined) {
      // Every Python project starts this extension; only those with kernels miss the compiler.
      this.fail(settings, `${python.program} cannot import tilelang: ${problem}`, kernelsAreOpen());
      return;
    }
    const command = serverCommand(settings, python);
    this.output.info(`starting ${[command.program, ...command.args].join(" ")}`);
    this.client = new LanguageClient(
      "tilelang",
      "TileLang",
      executable(command, settings),
      clientOptions(settings, this.output),
    );
    try {
      await this.client.start();
    } catch (error) {
      this.fail(settings, `the server could not be started: ${String(error)}`);
      return;
    }
    const server = this.client.initializeResult?.serverInfo?.version;
    const skew = versionSkew(this.version, server);
    this.status.text = `TileLang ${server ?? ""}`.trim();
    this.status.detail = skew ?? python.program;
    this.status.severity =
      skew === undefined ? vscode.LanguageStatusSeverity.Information : vscode.LanguageStatusSeverity.Warning;
    if (skew !== undefined) {
      this.output.warn(skew);
    }
  }

  private async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    try {
      await client?.dispose();
    } catch (error) {
      this.output.warn(`stopping the server: ${String(error)}`);
    }
  }

  private fail(settings: Settings, message: string, notify = true): void {
    this.output.error(message);
    this.status.text = "TileLang is not running";
    this.status.detail = message;
    this.status.severity = vscode.LanguageStatusSeverity.Error;
    if (settings.showNotifications && notify) {
      void this.offerHelp(message);
    }
  }

  private async offerHelp(message: string): Promise<void> {
    const chosen = await vscode.window.showErrorMessage(`TileLang: ${message}`, "Settings", "Log");
    if (chosen === "Settings") {
      await vscode.commands.executeCommand("workbench.action.openSettings", "tilelang.interpreter");
    } else if (chosen === "Log") {
      this.output.show();
    }
  }
}

/** The settings as they are now, for a file or the first folder of the window. */
export function currentSettings(resource?: vscode.Uri): Settings {
  const folders = vscode.workspace.workspaceFolders;
  const folder =
    (resource && vscode.workspace.getWorkspaceFolder(resource)) ?? folders?.[0];
  const configuration = vscode.workspace.getConfiguration("tilelang", resource ?? folder?.uri);
  return readSettings((name) => configuration.get(name), folder?.uri.fsPath ?? process.cwd());
}

/** The Python that runs server and commands. */
export async function currentInterpreter(settings: Settings, resource?: vscode.Uri): Promise<Command> {
  return interpreter(settings, await selectedInterpreter(resource), process.platform);
}

function executable(command: Command, settings: Settings): ServerOptions {
  const env = environment(process.env);
  return { command: command.program, args: command.args, options: { cwd: settings.cwd, env } };
}

function clientOptions(settings: Settings, output: vscode.LogOutputChannel): LanguageClientOptions {
  return {
    documentSelector: [
      { language: "python", scheme: "file" },
      { language: "python", scheme: "untitled" },
      { language: "python", notebook: "jupyter-notebook" },
    ],
    initializationOptions: toldToServer(settings),
    outputChannel: output,
    middleware: {
      // A lens runs the file as it is on the disk.
      executeCommand: async (command, args: unknown[], next) => {
        if (typeof args[0] === "string" && RUNS_THE_FILE.has(command)) {
          const uri = vscode.Uri.parse(args[0]).toString();
          await vscode.workspace.textDocuments.find((d) => d.uri.toString() === uri && d.isDirty)?.save();
        }
        return next(command, args);
      },
      window: { showDocument: (params, token, next) => showResult(params.uri) ?? next(params, token) },
    },
  };
}

/** The settings, and whether kernels may be run. */
function toldToServer(settings: Settings): Record<string, unknown> {
  return { ...serverOptions(settings), trusted: vscode.workspace.isTrusted };
}

/** Shows a page of the server's inside the window, which works where the server is remote, too. */
function showResult(uri: string): Promise<{ success: boolean }> | undefined {
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

function kernelsAreOpen(): boolean {
  return vscode.workspace.textDocuments.some(
    (document) => document.languageId === "python" && document.getText().includes("tilelang"),
  );
}

/** Why a Python does not have the server; undefined when it has. */
function probe(python: Command, settings: Settings): Promise<string | undefined> {
  const { program, args } = probeCommand(python);
  return new Promise((resolve) => {
    execFile(program, args, { cwd: settings.cwd, env: environment(process.env) }, (error, _, stderr) => {
      const lines = stderr.trim().split("\n");
      resolve(error === null ? undefined : lines.at(-1) || error.message);
    });
  });
}
