"""A small language client over a real server process: requests, notifications, and what came."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PATHS = (ROOT, ROOT / "diagnostics", ROOT / "trace", ROOT / "lsp")
TIMEOUT = 150.0  # generous: says "hangs", not "slow", also where the emulator is built first

ENDED = "the server ended"
# To what the server asks; anything else gets null.
ANSWERS: dict[str, Any] = {"workspace/applyEdit": {"applied": True}}

CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "workspace": {"inlayHint": {"refreshSupport": True}, "workspaceFolders": True},
    "textDocument": {
        "publishDiagnostics": {
            "relatedInformation": True, "versionSupport": True, "codeDescriptionSupport": True,
            "tagSupport": {"valueSet": [1, 2]},
        },
        "inlayHint": {"resolveSupport": {"properties": ["tooltip"]}},
        "completion": {
            "completionItem": {"snippetSupport": True, "documentationFormat": ["markdown"]},
        },
        "signatureHelp": {
            "signatureInformation": {
                "documentationFormat": ["markdown"],
                "parameterInformation": {"labelOffsetSupport": True},
            },
        },
        "hover": {"contentFormat": ["markdown"]},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "codeAction": {"codeActionLiteralSupport": {"codeActionKind": {"valueSet": ["quickfix"]}}},
    },
}  # fmt: skip


class Client:
    """Starts `python -m tilelang_lsp` and speaks LSP with it; use as a context manager."""

    def __init__(
        self, options: dict[str, Any] | None = None, cwd: Path | None = None,
        capabilities: dict[str, Any] | None = None, root: Path | None = None, greets: bool = True,
    ) -> None:  # fmt: skip
        path = os.pathsep.join(map(str, PATHS))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tilelang_lsp", "--stdio"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd,
            # As the extension does it: modules of the opened folder are not the server's.
            env={**os.environ, "PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        )  # fmt: skip
        # An error about a message whose number cannot be told has the number None.
        self._answers: dict[int | None, queue.Queue[dict[str, Any]]] = {None: queue.Queue()}
        self._notifications: queue.Queue[dict[str, Any]] = queue.Queue()
        self._next = 0
        self.requests_from_server: list[str] = []
        self.log: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        threading.Thread(target=self._read_log, daemon=True).start()
        self.greeting = {
            "processId": os.getpid(), "rootUri": None if root is None else root.as_uri(),
            "capabilities": capabilities or CAPABILITIES,
            "initializationOptions": options or {},
        }  # fmt: skip
        if greets:
            self.greet()

    def greet(self) -> None:
        """Begin: nothing else is answered before."""
        self.capabilities = self.request("initialize", self.greeting)["capabilities"]
        self.notify("initialized", {})

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.request("shutdown", None)
            self.notify("exit", None)
            self.process.wait(TIMEOUT)
        finally:
            self.process.kill()

    def request(self, method: str, params: Any) -> Any:
        """The result; an error answer raises."""
        return self.wait(self.send(method, params))

    def send(self, method: str, params: Any) -> int:
        """Send a request without waiting; its id is for `wait` or a cancellation."""
        self._next += 1
        self._answers[self._next] = queue.Queue()
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        return self._next

    def wait(self, number: int) -> Any:
        """The result of the request `send` gave this number."""
        answer = self._answers[number].get(timeout=TIMEOUT)
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer["result"]

    def refused(self, method: str, params: Any) -> int:
        """The code of the error that answers a request."""
        return self.error(self.send(method, params))

    def error(self, number: int | None) -> int:
        """The code of the error that answers a message; None: one whose number is unknown."""
        answer = self._answers[number].get(timeout=TIMEOUT)
        assert "error" in answer, answer
        code: int = answer["error"]["code"]
        return code

    def answered(self, number: int) -> int | None:
        """None for an answer, else the code of the error."""
        answer = self._answers[number].get(timeout=TIMEOUT)
        return answer["error"]["code"] if "error" in answer else None

    def notify(self, method: str, params: Any) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def open(self, uri: str, text: str, version: int = 1) -> None:
        """Open a document."""
        document = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": document})

    def replace(self, uri: str, text: str, version: int) -> None:
        """Give a document a new text."""
        self.edit(uri, version, [{"text": text}])

    def edit(self, uri: str, version: int, changes: list[dict[str, Any]]) -> None:
        """Change a document."""
        document = {"uri": uri, "version": version}
        self.notify("textDocument/didChange", {"textDocument": document, "contentChanges": changes})

    def ask(self, method: str, uri: str, line: int, character: int, **more: Any) -> Any:
        """A request about a 0-based position."""
        return self.request(method, _about(uri, line, character, **more))

    def hints(self, uri: str) -> list[dict[str, Any]]:
        """All inlay hints of a document."""
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 100_000, "character": 0}}
        found: list[dict[str, Any]] = self.request(
            "textDocument/inlayHint", {"textDocument": {"uri": uri}, "range": whole}
        )
        return found

    def diagnostics(self, uri: str, version: int | None) -> list[dict[str, Any]]:
        """Wait for the diagnostics published for a version; None: of a file that is not open."""
        while True:
            try:
                message = self._notifications.get(timeout=TIMEOUT)
            except queue.Empty:
                raise AssertionError(f"nothing came: {''.join(self.log)}") from None
            params = message["params"]
            assert message["method"] != ENDED, "".join(self.log)
            if message["method"] == "textDocument/publishDiagnostics" and params["uri"] == uri:
                if params.get("version") == version:
                    found: list[dict[str, Any]] = params["diagnostics"]
                    return found

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        self.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)

    def write(self, data: bytes) -> None:
        """Send bytes, whatever they mean."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if not line:
                self._ended()
                return
            self._take(json.loads(stream.read(length)))

    def _take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self._answers[message["id"]].put(message)
        elif "id" in message:
            self.requests_from_server.append(message["method"])
            self._send({"jsonrpc": "2.0", "id": message["id"],
                        "result": ANSWERS.get(message["method"])})  # fmt: skip
        else:
            self._notifications.put(message)

    def _ended(self) -> None:
        """The server is gone: whoever waits is told."""
        for answers in list(self._answers.values()):
            answers.put({"error": "the server ended"})
        self._notifications.put({"method": ENDED, "params": {"uri": None}})

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.log.append(line.decode(errors="replace"))


def _about(uri: str, line: int, character: int, **more: Any) -> dict[str, Any]:
    position = {"line": line, "character": character}
    return {"textDocument": {"uri": uri}, "position": position, **more}
