// The interpreter selected in the Python extension, if that is installed. It is optional: an
// `extensionDependencies` entry would keep this extension from installing without it.

import * as vscode from "vscode";

interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(
      environment: { path: string },
    ): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

/**
 * The path of the interpreter selected for a file or folder; undefined without the Python extension.
 * What `isAllowed` refuses is not looked into, since that starts it.
 */
export async function selectedInterpreter(
  resource: vscode.Uri | undefined,
  isAllowed: (path: string) => boolean,
): Promise<string | undefined> {
  const api = await pythonApi();
  if (api === undefined || (!vscode.workspace.isTrusted && isNamedByWorkspace(resource))) {
    return undefined;
  }
  const chosen = api.environments.getActiveEnvironmentPath(resource);
  if (!isAllowed(chosen.path)) {
    return undefined;
  }
  const resolved = await api.environments.resolveEnvironment(chosen);
  return resolved?.executable.uri?.fsPath;
}

/** Whether settings of the workspace may have decided what is selected. */
function isNamedByWorkspace(resource: vscode.Uri | undefined): boolean {
  const settings = vscode.workspace.getConfiguration("python", resource);
  const scopes = settings.inspect("defaultInterpreterPath");
  return scopes?.workspaceValue !== undefined || scopes?.workspaceFolderValue !== undefined;
}

/** Calls `listener` when another interpreter is selected. */
export async function onInterpreterChange(listener: () => void): Promise<vscode.Disposable> {
  const api = await pythonApi();
  return api?.environments.onDidChangeActiveEnvironmentPath(listener) ?? { dispose: () => {} };
}

async function pythonApi(): Promise<PythonApi | undefined> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  if (extension === undefined) {
    return undefined;
  }
  try {
    const api = await extension.activate();
    return api?.environments === undefined ? undefined : api;
  } catch {
    return undefined;
  }
}
