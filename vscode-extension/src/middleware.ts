// What happens to a clicked lens before the server hears of it?

import { UNTRUSTED } from "./messages";

/** Commands of the server that read; any other may import the kernel's file. */
const READS = new Set(["show", "set", "target"].map((name) => `tilelang.server.${name}`));

/** What is asked of the editor. */
export interface Editor {
  isTrusted(): boolean;
  /** Save a document if it is open and was edited. */
  save(uri: string): Promise<void>;
  refuse(message: string): void;
}

type Next = (command: string, args: unknown[]) => unknown;

/** Refuses to run a file that is not trusted, and saves it before it is run: the disk's text counts. */
export function executeCommand(editor: Editor) {
  return async (command: string, args: unknown[], next: Next): Promise<unknown> => {
    if (!READS.has(command)) {
      if (!editor.isTrusted()) {
        editor.refuse(UNTRUSTED);
        return undefined;
      }
      if (typeof args[0] === "string") {
        await editor.save(args[0]);
      }
    }
    return next(command, args);
  };
}
