"""Other language servers on the same session: how long until their diagnostics of an edit?

They answer another question (names and types of Python, not kernels); the figures say what editors
are used to. Only those that are on the path are asked.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PEERS = {
    "ruff": ("ruff", "server"),
    "ty": ("ty", "server"),
    "pyrefly": ("pyrefly", "lsp"),
}
CAPABILITIES: dict[str, Any] = {
    "general": {"positionEncodings": ["utf-16"]},
    "textDocument": {"diagnostic": {"dynamicRegistration": False}},
}


def measure_peers(folder: Path, name: str, text: str, edits: list[Any]) -> Iterator[str]:
    """A line for each server there is."""
    file = folder / name
    file.write_text(text)
    for peer, command in PEERS.items():
        if shutil.which(command[0]) is None:
            yield f"{name:<20} {peer}: not on the path"
            continue
        seconds = _session(command, folder, file, text, edits)
        ordered = sorted(seconds)
        p95 = ordered[round(0.95 * (len(ordered) - 1))]
        yield (
            f"{name:<20} {peer + ' diagnostics':<22} {len(seconds):>4} "
            f"{statistics.median(seconds) * 1000:>6.1f} ms {p95 * 1000:>6.1f} ms "
            f"{max(seconds) * 1000:>6.1f} ms"
        )


def _session(
    command: tuple[str, ...], folder: Path, file: Path, text: str, edits: list[Any]
) -> list[float]:
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        cwd=folder,
    )  # fmt: skip
    peer = _Peer(process)
    uri = file.as_uri()
    try:
        peer.request("initialize", {"processId": None, "rootUri": folder.as_uri(),
                                    "capabilities": CAPABILITIES})  # fmt: skip
        peer.notify("initialized", {})
        peer.notify("textDocument/didOpen", {"textDocument": {
            "uri": uri, "languageId": "python", "version": 1, "text": text}})  # fmt: skip
        about = {"textDocument": {"uri": uri}}
        peer.request("textDocument/diagnostic", about)
        found = []
        for version, (edit, new) in enumerate(edits, 2):
            began = time.perf_counter()
            peer.notify("textDocument/didChange", {
                "textDocument": {"uri": uri, "version": version},
                "contentChanges": [_change(text, edit)]})  # fmt: skip
            peer.request("textDocument/diagnostic", about)
            found.append(time.perf_counter() - began)
            text = new
            time.sleep(0.02)
        return found
    finally:
        process.kill()


def _change(text: str, edit: Any) -> dict[str, Any]:
    def place(offset: int) -> dict[str, int]:
        before = text[:offset]
        return {"line": before.count("\n"), "character": offset - (before.rfind("\n") + 1)}

    return {"range": {"start": place(edit.at), "end": place(edit.at + edit.length)},
            "text": edit.text}  # fmt: skip


class _Peer:
    """Requests and notifications over the pipes of a process."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._next = 0
        self._answers: dict[int, Any] = {}
        self._came = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def request(self, method: str, params: Any, timeout: float = 30.0) -> Any:
        """The answer, an error too."""
        self._next += 1
        number = self._next
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        with self._came:
            if not self._came.wait_for(lambda: number in self._answers, timeout):
                raise TimeoutError(method)
            return self._answers.pop(number)

    def notify(self, method: str, params: Any) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def _send(self, message: dict[str, Any]) -> None:
        body = json.dumps(message).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self._process.stdin.flush()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        while True:
            length = 0
            while (line := stream.readline()) not in (b"\r\n", b""):
                key, _, value = line.partition(b":")
                if key.lower() == b"content-length":
                    length = int(value)
            if not line:
                return
            message = json.loads(stream.read(length))
            if "method" in message:
                if "id" in message:
                    self._send({"jsonrpc": "2.0", "id": message["id"], "result": None})
                continue
            with self._came:
                self._answers[message["id"]] = message
                self._came.notify_all()
