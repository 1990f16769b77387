// Starts, restarts and stops the language server, and says so when that fails.

import { execFile } from "node:child_process";
import * as vscode from "vscode";
import { LanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";
import { type Command, type Launch, launch, serverStart } from "./launch";
import { type Message, NOTHING_OUTSIDE, versionSkew, whyNot } from "./messages";
import { executeCommand } from "./middleware";
import { serverOptions, type Settings } from "./settings";
import { showResult } from "./show";
import { currentInterpreter, currentSettings, refuseToRun, surroundings } from "./surroundings";

/** Where the versions are kept that the user was told about. */
const TOLD = "versions told";

/** A server that can be started, or why there is none. */
type Found =
  | { settings: Settings; server: Launch; python: Command | undefined }
  | { settings: Settings; problem: string };

/** The server of this window. Restarts are done one after the other. */
export class Server implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private pending: Promise<void> = Promise.resolve();
  private readonly output = vscode.window.createOutputChannel("TileLang", { log: true });
  private readonly status = vscode.languages.createLanguageStatusItem("tilelang", {
    language: "python",
  });

  constructor(
    private readonly version: string,
    private readonly memory: vscode.Memento,
  ) {
    this.status.name = "TileLang";
    this.status.command = { command: "tilelang.restart", title: "Restart" };
  }

  /** Start the server, or start it again with the settings as they are now. */
  restart(): Promise<void> {
    this.pending = this.pending
      .then(() => this.stop())
      .then(() => this.start())
      .catch((error: unknown) => this.fail(currentSettings(), String(error)));
    return this.pending;
  }

  /** Folders came or went: a new one may bring the server, or hold the one that must not run. */
  async foldersChanged(): Promise<void> {
    if (this.client === undefined || !vscode.workspace.isTrusted) {
      await this.restart();
    }
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
    const found = await findServer();
    const { settings } = found;
    if ("problem" in found) {
      // Every Python project starts this extension; only those with kernels miss the compiler.
      this.fail(settings, found.problem, kernelsAreOpen());
      return;
    }
    const { program, args, cwd, env } = found.server;
    this.output.info(`starting ${[program, ...args].join(" ")} in ${cwd}`);
    this.client = new LanguageClient(
      "tilelang",
      "TileLang",
      { command: program, args, options: { cwd, env } },
      clientOptions(settings, this.output),
    );
    try {
      await this.client.start();
    } catch (error) {
      this.fail(settings, `the server could not be started: ${String(error)}`);
      return;
    }
    await this.started(settings, program, found.python);
  }

  private async started(settings: Settings, program: string, python: Command | undefined): Promise<void> {
    const server = this.client?.initializeResult?.serverInfo?.version;
    const skew = versionSkew(this.version, server, python, process.platform);
    const restricted = vscode.workspace.isTrusted ? "" : "restricted: kernels are not run; ";
    this.status.text = `TileLang ${server ?? ""}`.trim();
    this.status.detail = restricted + (skew?.text ?? program);
    this.status.severity =
      skew === undefined ? vscode.LanguageStatusSeverity.Information : vscode.LanguageStatusSeverity.Warning;
    if (skew !== undefined) {
      this.output.warn(skew.text);
      await this.tellOnce(`${this.version} ${server}`, skew, settings);
    }
  }

  /** A message about versions, once for each pair of them. */
  private async tellOnce(versions: string, message: Message, settings: Settings): Promise<void> {
    const told = this.memory.get<string[]>(TOLD, []);
    if (settings.showNotifications && !told.includes(versions)) {
      await this.memory.update(TOLD, [...told, versions]);
      void this.tell(message, vscode.window.showWarningMessage);
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

  private fail(settings: Settings, text: string, notify = true): void {
    this.output.error(text);
    this.status.text = "TileLang is not running";
    this.status.detail = text;
    this.status.severity = vscode.LanguageStatusSeverity.Error;
    if (settings.showNotifications && notify) {
      const trust = vscode.workspace.isTrusted ? [] : [{ title: "Manage Trust" } as const];
      const actions = [...trust, { title: "Settings" } as const, { title: "Log" } as const];
      void this.tell({ text, actions }, vscode.window.showErrorMessage);
    }
  }

  /** Shows a message, and does what its clicked button says. */
  private async tell(
    { text, actions }: Message,
    show: (text: string, ...titles: string[]) => Thenable<string | undefined>,
  ): Promise<void> {
    const title = await show(`TileLang: ${text}`, ...actions.map((action) => action.title));
    const chosen = actions.find((action) => action.title === title);
    switch (chosen?.title) {
      case "Manage Trust":
        await vscode.commands.executeCommand("workbench.trust.manage");
        break;
      case "Settings":
        await vscode.commands.executeCommand("workbench.action.openSettings", "tilelang.interpreter");
        break;
      case "Log":
        this.output.show();
        break;
      case "Update Extension":
        await vscode.commands.executeCommand("workbench.extensions.search", "@installed tilelang");
        break;
      case "Copy Command":
        await vscode.env.clipboard.writeText(chosen.command);
        break;
    }
  }
}

/** The first folder of the workspace whose Python has the server has its way. */
async function findServer(): Promise<Found> {
  const around = surroundings();
  const asked = new Set<string>();
  let first: Found | undefined;
  for (const folder of vscode.workspace.workspaceFolders ?? [undefined]) {
    const settings = currentSettings(folder?.uri);
    const python = await currentInterpreter(settings, around, folder?.uri);
    const start = serverStart(settings, python, around);
    const server = start && launch(start.command, settings, around);
    const probe = start?.probe && launch(start.probe, settings, around);
    if (server === undefined) {
      first ??= { settings, problem: NOTHING_OUTSIDE };
      continue;
    }
    const key = JSON.stringify([server.program, server.args]);
    if (asked.has(key)) {
      continue;
    }
    asked.add(key);
    const problem = probe && (await failure(probe));
    if (problem === undefined) {
      return { settings, server, python: probe && python };
    }
    first ??= { settings, problem: `${server.program} cannot import tilelang: ${problem}` };
  }
  return first ?? { settings: currentSettings(), problem: NOTHING_OUTSIDE };
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
      executeCommand: executeCommand({
        isTrusted: () => vscode.workspace.isTrusted,
        save: saveIfEdited,
        refuse: () => void refuseToRun(),
      }),
      window: { showDocument: (params, token, next) => showResult(params.uri) ?? next(params, token) },
    },
  };
}

/** The settings, and whether kernels may be run. */
function toldToServer(settings: Settings): Record<string, unknown> {
  return { ...serverOptions(settings), trusted: vscode.workspace.isTrusted };
}

async function saveIfEdited(given: string): Promise<void> {
  const uri = vscode.Uri.parse(given).toString();
  await vscode.workspace.textDocuments.find((d) => d.uri.toString() === uri && d.isDirty)?.save();
}

function kernelsAreOpen(): boolean {
  return vscode.workspace.textDocuments.some(
    (document) => document.languageId === "python" && document.getText().includes("tilelang"),
  );
}

/** Why a program fails; undefined where it does not. */
function failure({ program, args, cwd, env }: Launch): Promise<string | undefined> {
  return new Promise((resolve) => {
    execFile(program, args, { cwd, env }, (error, _, stderr) => {
      resolve(error === null ? undefined : whyNot(stderr) || error.message);
    });
  });
}
