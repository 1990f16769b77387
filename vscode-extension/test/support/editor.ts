// In place of `vscode`: as much of an editor as the extension asks for, in the hands of a test.

type Listener = (event: unknown) => void;
type Values = Record<string, unknown>;

/** What the window is, and what became of it. */
export const state = {
  isTrusted: true,
  folders: [] as string[],
  /** Settings by scope, with their full names. */
  user: {} as Values,
  workspaceSettings: {} as Values,
  /** What the Python extension has selected, and which of these it was made to look into. */
  selected: undefined as ((folder: string | undefined) => string) | undefined,
  lookedInto: [] as string[],
  active: undefined as { path: string; line: number } | undefined,
  documents: [] as { path: string; text: string; isDirty: boolean }[],
  messages: [] as { text: string; actions: string[] }[],
  answer: undefined as string | undefined,
  executed: [] as unknown[][],
  tasks: [] as { program: string; args: string[]; cwd: string }[],
  clipboard: "",
  status: { text: "", detail: "", severity: 0 },
  saved: [] as string[],
};
const BEGINNING = structuredClone({ ...state, selected: undefined });
const listeners = new Map<string, Listener[]>();
const registered = new Map<string, (...args: unknown[]) => unknown>();
const providers: { provideTextDocumentContent(uri: Uri): Promise<string> }[] = [];

/** A new window. */
export function reset(): void {
  Object.assign(state, structuredClone(BEGINNING), { selected: undefined });
  listeners.clear();
  registered.clear();
  providers.length = 0;
}

/** Something happens, such as `trust`. */
export function fire(what: string, event: unknown = undefined): void {
  for (const listener of listeners.get(what) ?? []) {
    listener(event);
  }
}

/** Run a command of the extension. */
export function run(name: string, ...args: unknown[]): unknown {
  return registered.get(name)?.(...args);
}

/** A page that the extension shows, as text. */
export async function page(path: string): Promise<string | undefined> {
  return providers[0]?.provideTextDocumentContent(new Uri("tilelang-page", path));
}

function on(what: string) {
  return (listener: Listener) => {
    listeners.set(what, [...(listeners.get(what) ?? []), listener]);
    return { dispose: () => {} };
  };
}

async function message(text: string, ...actions: string[]): Promise<string | undefined> {
  state.messages.push({ text, actions });
  return state.answer;
}

export class Uri {
  constructor(
    readonly scheme: string,
    readonly path: string,
  ) {}

  static parse(text: string): Uri {
    const [scheme = "", path = ""] = text.split("://");
    return new Uri(scheme, path);
  }

  static from(parts: { scheme: string; path: string }): Uri {
    return new Uri(parts.scheme, parts.path);
  }

  get fsPath(): string {
    return this.path;
  }

  toString(): string {
    return `${this.scheme}://${this.path}`;
  }
}

function document(given: (typeof state.documents)[number]) {
  return {
    uri: new Uri("file", given.path),
    languageId: "python",
    isUntitled: false,
    isDirty: given.isDirty,
    getText: () => given.text,
    save: async () => state.saved.push(given.path) > 0,
  };
}

function folder(path: string) {
  return { uri: new Uri("file", path), name: path, index: 0 };
}

export const workspace = {
  get isTrusted() {
    return state.isTrusted;
  },
  get workspaceFolders() {
    return state.folders.length === 0 ? undefined : state.folders.map(folder);
  },
  get textDocuments() {
    return state.documents.map(document);
  },
  getWorkspaceFolder(uri: Uri) {
    const held = state.folders.find((path) => uri.path === path || uri.path.startsWith(`${path}/`));
    return held === undefined ? undefined : folder(held);
  },
  /** Unlike VS Code without trust, this gives what the workspace says of restricted settings. */
  getConfiguration: (section: string) => ({
    get: (name: string) =>
      state.workspaceSettings[`${section}.${name}`] ?? state.user[`${section}.${name}`],
    inspect: (name: string) => ({
      globalValue: state.user[`${section}.${name}`],
      workspaceValue: state.workspaceSettings[`${section}.${name}`],
    }),
  }),
  onDidChangeConfiguration: on("configuration"),
  onDidChangeWorkspaceFolders: on("folders"),
  onDidGrantWorkspaceTrust: on("trust"),
  registerTextDocumentContentProvider(_scheme: string, provider: (typeof providers)[number]) {
    providers.push(provider);
    return { dispose: () => {} };
  },
};

export const window = {
  get activeTextEditor() {
    const { active } = state;
    return active === undefined
      ? undefined
      : {
          document: document({ path: active.path, text: "", isDirty: false }),
          selection: { active: { line: active.line } },
        };
  },
  createOutputChannel: () => ({ info() {}, warn() {}, error() {}, show() {}, dispose() {} }),
  showInformationMessage: message,
  showWarningMessage: message,
  showErrorMessage: message,
};

export const languages = {
  createLanguageStatusItem: () => Object.assign(state.status, { dispose() {} }),
  getDiagnostics: () => [],
};

export const commands = {
  registerCommand(name: string, action: (...args: unknown[]) => unknown) {
    registered.set(name, action);
    return { dispose: () => {} };
  },
  async executeCommand(...given: unknown[]) {
    state.executed.push(given);
  },
};

export const extensions = {
  getExtension: () =>
    state.selected && {
      activate: async () => ({
        environments: {
          getActiveEnvironmentPath: (uri?: Uri) => ({ path: state.selected?.(uri?.path) }),
          async resolveEnvironment({ path }: { path: string }) {
            state.lookedInto.push(path);
            return { executable: { uri: new Uri("file", path) } };
          },
          onDidChangeActiveEnvironmentPath: on("interpreter"),
        },
      }),
    },
};

export const env = {
  clipboard: {
    async writeText(text: string) {
      state.clipboard = text;
    },
  },
};

export class ProcessExecution {
  constructor(
    readonly program: string,
    readonly args: string[],
    readonly options: { cwd: string },
  ) {}
}

export class Task {
  presentationOptions = {};

  constructor(
    _definition: unknown,
    _scope: unknown,
    readonly name: string,
    _source: string,
    readonly execution: ProcessExecution,
  ) {}
}

export const tasks = {
  async executeTask({ execution }: Task) {
    state.tasks.push({ program: execution.program, args: execution.args, cwd: execution.options.cwd });
  },
};

export const LanguageStatusSeverity = { Information: 0, Warning: 1, Error: 2 };
export const TaskScope = { Workspace: 2 };
export const TaskRevealKind = { Always: 1 };
export const ViewColumn = { Active: -1 };
