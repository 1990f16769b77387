import assert from "node:assert/strict";
import { test } from "node:test";
import { executeCommand } from "../src/middleware";

const RUNNING = ["tilelang.server.compile", "tilelang.server.emulate", "tilelang.server.trace", "tilelang.server.new"];
const READING = ["tilelang.server.show", "tilelang.server.target", "tilelang.server.set"];

/** What happens, in order, when a lens is clicked. */
async function clicked(command: string, args: unknown[], isTrusted: boolean): Promise<unknown[]> {
  const happened: unknown[] = [];
  const handle = executeCommand({
    isTrusted: () => isTrusted,
    save: async (uri) => void happened.push(`save ${uri}`),
    refuse: (message) => void happened.push(`refuse: ${message}`),
  });
  const answer = await handle(command, args, (...given) => {
    happened.push(given);
    return "done";
  });
  return [...happened, answer];
}

for (const command of RUNNING) {
  test(`${command} runs the file as it was saved`, async () => {
    const args = ["file:///k.py", "main", 3];
    assert.deepEqual(await clicked(command, args, true), ["save file:///k.py", [command, args], "done"]);
  });

  test(`${command} is refused without trust, and the server does not hear of it`, async () => {
    const [said, ...more] = await clicked(command, ["file:///k.py", "main", 3], false);
    assert.match(String(said), /^refuse: This workspace is not trusted: kernels are read, but not compiled, run/);
    assert.deepEqual(more, [undefined]);
  });

  test(`${command} without a file is the server's business`, async () => {
    assert.deepEqual(await clicked(command, [], true), [[command, []], "done"]);
  });
}

for (const command of READING) {
  test(`${command} needs no trust, and saves nothing`, async () => {
    assert.deepEqual(await clicked(command, ["file:///k.py"], false), [[command, ["file:///k.py"]], "done"]);
  });
}
