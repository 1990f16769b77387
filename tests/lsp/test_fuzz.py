"""Random edits, truncations, cancelled and shuffled requests: nothing breaks or is logged.

A seeded sample by default; 5,000 edits with --full.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from tests.lsp.rpc_client import Client

SEED = 20261130
SAMPLE, FULL = 60, 5000
ROOT = Path(__file__).resolve().parents[2]
TEXTS = [path.read_text() for path in sorted((ROOT / "examples").glob("*.py"))]
TYPED = (
    "(", ")", "[", "]", ":", "'", '"""', "\n", "\n    ", " = ", "T.", "for i in ", "@", "\\", "é",
    "😀", "\t", "#", ",", "0", "T.copy(", "if x", "\r\n", "lambda", "*", "**", "{", "}", "\0",
)  # fmt: skip
AT_A_PLACE = (
    "hover", "completion", "signatureHelp", "definition", "documentHighlight", "prepareRename",
    "prepareCallHierarchy",
)  # fmt: skip
OF_A_FILE = (
    "documentSymbol", "codeLens", "foldingRange", "documentLink", "semanticTokens/full",
)  # fmt: skip


def edited(rng: random.Random, text: str) -> str:
    """The text cut off, with a piece gone, with something typed, or with a piece moved."""
    if not text:
        return rng.choice(TEXTS)
    at = rng.randrange(len(text) + 1)
    match rng.randrange(10):
        case 0:
            return text[:at]
        case 1 | 2:
            return text[:at] + text[at + rng.randrange(1, 40) :]
        case 3:
            end = min(len(text), at + rng.randrange(1, 200))
            to = rng.randrange(len(text) + 1)
            return text[:to] + text[at:end] + text[to:]
        case 4:
            return rng.choice(TEXTS)
        case _:
            return text[:at] + rng.choice(TYPED) + text[at:]


def place(rng: random.Random, text: str) -> dict[str, int]:
    """A position, now and then one that does not exist."""
    lines = text.count("\n") + 1
    return {"line": rng.randrange(lines + 3), "character": rng.randrange(90)}


def ask(rng: random.Random, client: Client, uri: str, text: str) -> list[int]:
    """A few requests that are not waited for, some of them cancelled."""
    sent = []
    for _ in range(rng.randrange(4)):
        about: dict[str, Any] = {"textDocument": {"uri": uri}}
        kind = rng.randrange(4)
        if kind == 0:
            method = rng.choice(OF_A_FILE)
        elif kind == 1:
            method = "inlayHint"
            start, end = sorted((place(rng, text), place(rng, text)), key=lambda p: p["line"])
            about["range"] = {"start": start, "end": end}
        elif kind == 2:
            method = "codeAction"
            start, end = sorted((place(rng, text), place(rng, text)), key=lambda p: p["line"])
            about["range"], about["context"] = {"start": start, "end": end}, {"diagnostics": []}
        else:
            method = rng.choice(AT_A_PLACE)
            about["position"] = place(rng, text)
        number = client.send(f"textDocument/{method}", about)
        if rng.random() < 0.3:
            client.notify("$/cancelRequest", {"id": number})
        else:
            sent.append(number)
    return sent


def test_random_edits_and_requests(full: bool) -> None:
    rng = random.Random(SEED)
    uri = "file:///project/fuzz.py"
    text = rng.choice(TEXTS)
    with Client({"target": "cuda:sm_80"}) as client:
        client.open(uri, text)
        waiting: list[int] = []
        for version in range(2, (FULL if full else SAMPLE) + 2):
            text = edited(rng, text)
            client.replace(uri, text, version)
            waiting += ask(rng, client, uri, text)
            if rng.random() < 0.2:
                rng.shuffle(waiting)
                for number in waiting:
                    client.wait(number)
                waiting.clear()
            if rng.random() < 0.02:
                client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
                client.open(uri, text, version)
        for number in waiting:
            client.wait(number)
        client.replace(uri, TEXTS[0], 100_000)
        found = client.diagnostics(uri, 100_000)
        assert [d["code"] for d in found if d["severity"] < 3] == []
        assert client.log == []
