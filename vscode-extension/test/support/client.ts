// In place of the language client: remembers what it was made with, and starts nothing.

export interface Made {
  server: { command: string; args: string[]; options: { cwd: string; env: NodeJS.ProcessEnv } };
  options: {
    initializationOptions: Record<string, unknown>;
    middleware: {
      executeCommand(command: string, args: unknown[], next: (...given: unknown[]) => unknown): Promise<unknown>;
    };
  };
  notifications: [string, unknown][];
  isDisposed: boolean;
}

/** All clients, the newest last, and the version their server will say it has. */
export const clients = { made: [] as Made[], version: "0.1.0" };

export class LanguageClient {
  private readonly made: Made;

  constructor(_id: string, _name: string, server: Made["server"], options: Made["options"]) {
    this.made = { server, options, notifications: [], isDisposed: false };
    clients.made.push(this.made);
  }

  get initializeResult() {
    return { serverInfo: { version: clients.version } };
  }

  async start(): Promise<void> {}

  async dispose(): Promise<void> {
    this.made.isDisposed = true;
  }

  async sendNotification(method: string, params: unknown): Promise<void> {
    this.made.notifications.push([method, params]);
  }
}
