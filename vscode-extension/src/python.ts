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

/** The path of the selected interpreter; undefined without the Python extension. */
export async function selectedInterpreter(resource?: vscode.Uri): Promise<string | undefined> {
  const api = await pythonApi();
  if (api === undefined) {
    return undefined;
  }
  const chosen = api.environments.getActiveEnvironmentPath(resource);
  const resolved = await api.environments.resolveEnvironment(chosen);
  return resolved?.executable.uri?.fsPath;
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
