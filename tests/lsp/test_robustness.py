"""Whatever an editor sends is answered as LSP says, and never by a message box or a traceback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.asking import in_launch
from tests.lsp.rpc_client import TIMEOUT, Client
from tests.lsp.test_more_protocol import WHOLE, Modern, about, capabilities
from tests.support.markers import kernel_text
from tilelang_lsp.server import make_server
from tilelang_lsp.worker import Worker

PARSE, REQUEST, METHOD, PARAMS, TOO_EARLY = -32700, -32600, -32601, -32602, -32002
URI = "file:///project/odd.py"
WRONG = kernel_text(in_launch("T.copy(missing, C)"))
HERE = about(URI, position={"line": 6, "character": 10})
# Every question about a document, and what it says beside which one.
QUESTIONS: dict[str, dict[str, Any]] = {
    "hover": HERE, "completion": HERE, "signatureHelp": HERE, "definition": HERE,
    "references": {**HERE, "context": {"includeDeclaration": True}}, "documentHighlight": HERE,
    "prepareRename": HERE, "rename": {**HERE, "newName": "other"}, "documentSymbol": {},
    "codeAction": {"range": WHOLE, "context": {"diagnostics": []}}, "codeLens": {},
    "foldingRange": {}, "documentLink": {}, "semanticTokens/full": {},
    "semanticTokens/range": {"range": WHOLE},
    "semanticTokens/full/delta": {"previousResultId": "x"},
    "inlayHint": {"range": WHOLE},
    "selectionRange": {"positions": [{"line": 6, "character": 10}, {"line": 999, "character": 9}]},
    "prepareCallHierarchy": HERE,
}  # fmt: skip


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Modern]:
    """In a folder with a file whose name is no text."""
    root = tmp_path_factory.mktemp("root")
    Path(f"{root}/\udcff.py").write_text(WRONG)
    able = capabilities(notebookDocument={"synchronization": {}})
    with Modern({"diagnosticMode": "workspace"}, capabilities=able, root=root) as made:
        yield made


def is_alive(client: Client) -> bool:
    return bool(client.request("workspace/symbol", {"query": "no such"}) == [])


def ask_everything(client: Client, uri: str) -> dict[str, Any]:
    """The answer to each question; a rename may be refused."""
    answers = {}
    for name, params in QUESTIONS.items():
        with contextlib.suppress(RuntimeError) if name == "rename" else contextlib.nullcontext():
            about_it = {**params, "textDocument": {"uri": uri}}
            answers[name] = client.request(f"textDocument/{name}", about_it)
    return answers


def test_the_life_of_a_server() -> None:
    client = Client(greets=False)
    client.open(URI, WRONG)  # nobody hears of it
    assert client.refused("textDocument/hover", HERE) == TOO_EARLY
    assert client.refused("shutdown", None) == TOO_EARLY
    assert client.refused("no/such", None) == TOO_EARLY
    assert client.refused("initialize", {"capabilities": 3}) == PARAMS
    client.greet()
    assert client.refused("initialize", client.greeting) == REQUEST
    client.open(URI, WRONG, version=2)
    assert [d["code"] for d in client.diagnostics(URI, 2)] == ["TL110"]
    waiting = client.send("shutdown", None)
    assert client.refused("textDocument/hover", HERE) == REQUEST
    client.replace(URI, "", 3)
    assert client.wait(waiting) is None
    client.notify("exit", None)
    assert client.process.wait(TIMEOUT) == 0
    assert client.log == []


def test_leaving_without_a_shutdown() -> None:
    server = make_server(Worker(), "0")
    server.protocol.receive(b'{"jsonrpc": "2.0", "method": "exit"}')
    assert server.protocol.status == 1


def test_a_name_that_is_no_text(client: Modern) -> None:
    (found,) = client.request("workspace/symbol", {"query": "main"})
    uri = found["location"]["uri"]
    assert uri.endswith("/%FF.py")
    assert [d["code"] for d in client.diagnostics(uri, None)] == ["TL110"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", PARSE), (b"", PARSE), (b"\xff\xfe", PARSE), (b"[" * 100_000, PARSE),
        (b"[]", REQUEST), (b"null", REQUEST), (b'"hover"', REQUEST),
        (b'{"id": [], "x": 1}', REQUEST),
        (b'{"jsonrpc": "2.0", "id": [], "method": "shutdown"}', REQUEST),
        (b'{"jsonrpc": "2.0", "method": 3}', REQUEST),
    ],
    ids=lambda value: str(value)[:24],
)  # fmt: skip
def test_bodies_that_are_no_message(client: Modern, body: bytes, code: int) -> None:
    client.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
    assert client.error(None) == code
    assert is_alive(client)


@pytest.mark.parametrize("message", [{"jsonrpc": "1.0", "method": "shutdown"}, {"jsonrpc": "2.0"}])
def test_the_number_of_what_is_no_message_is_kept(client: Modern, message: dict[str, Any]) -> None:
    number = client.send("workspace/symbol", {"query": ""})
    client.wait(number)
    client._send({"id": number, **message})
    assert client.error(number) == REQUEST


def test_headers(client: Modern) -> None:
    client.write(b"no header\r\n\r\n\x00\xff\n")
    for head in (b"Content-Type: x; charset=utf-8\r\ncontent-length:%d\r\n\r\n",
                 b"Content-Length: %d\r\nOther: 3\r\n\r\n"):  # fmt: skip
        client.write(head % 1 + b"{")
        assert client.error(None) == PARSE


@pytest.mark.parametrize(
    ("method", "params", "code"),
    [
        ("no/such", {}, METHOD), ("$/other", None, METHOD), ("textDocument/formatting", {}, METHOD),
        ("no/such", [1, {"type_name": 3}], METHOD), ("window/logMessage", {}, METHOD),
        ("textDocument/hover", None, PARAMS), ("textDocument/hover", [], PARAMS),
        ("textDocument/hover", {}, PARAMS), ("textDocument/hover", {"textDocument": {}}, PARAMS),
        ("textDocument/hover", about(position={"line": -1, "character": 0}), PARAMS),
        ("textDocument/hover", about(position={"line": 1 << 40, "character": 0}), PARAMS),
        ("textDocument/hover", about(position={"line": "x", "character": 0}), PARAMS),
        ("textDocument/inlayHint", about(range={"start": {}}), PARAMS),
        ("textDocument/completion", "text", PARAMS), ("completionItem/resolve", {}, PARAMS),
        ("workspace/executeCommand", {"command": "no.such"}, PARAMS),
        ("workspace/executeCommand", {"command": "tilelang.server.show", "arguments": 3}, PARAMS),
    ],
)  # fmt: skip
def test_wrong_requests(client: Modern, method: str, params: Any, code: int) -> None:
    assert client.refused(method, params) == code


@pytest.mark.parametrize(
    ("method", "params", "answer"),
    [
        ("workspace/executeCommand", {"command": "tilelang.server.show"}, None),
        ("workspace/executeCommand",
         {"command": "tilelang.server.compile", "arguments": [None, {}, "x", []]}, None),
        ("workspace/executeCommand",
         {"command": "tilelang.server.set", "arguments": [URI, "main", 1, 3]}, False),
        ("completionItem/resolve", {"label": "x", "data": [3]}, {"label": "x", "data": [3]}),
        ("callHierarchy/incomingCalls", {"item": {
            "name": "x", "kind": 12, "uri": "http://[", "range": WHOLE,
            "selectionRange": WHOLE}}, []),
        ("textDocument/hover", about("", position={"line": 0, "character": 0}), None),
    ],
)  # fmt: skip
def test_requests_about_nothing(client: Modern, method: str, params: Any, answer: Any) -> None:
    assert client.request(method, params) == answer


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("no/such", {}), ("$/other", [1]), ("textDocument/didOpen", {}),
        ("textDocument/didOpen", {"textDocument": {"uri": 3, "version": "x"}}),
        ("textDocument/didOpen", {"textDocument": {
            "uri": "http://[", "languageId": "python", "version": 1, "text": ""}}),
        ("textDocument/didChange", about(contentChanges=3)),
        ("textDocument/didChange", {
            "textDocument": {"uri": "file:///project/not_open.py", "version": 1},
            "contentChanges": [{"text": "x = 1"}]}),
        ("textDocument/didClose", about("file:///project/not_open.py")),
        ("textDocument/didSave", about("file:///project/not_open.py")),
        ("$/cancelRequest", {"id": 77_777}), ("$/cancelRequest", {"id": "no"}),
        ("$/cancelRequest", {}),
        ("$/setTrace", {"value": "verbose"}),
        ("workspace/didChangeConfiguration", {"settings": None}),
        ("workspace/didChangeConfiguration", {"settings": [1]}),
        ("workspace/didChangeWatchedFiles", {"changes": [{"uri": "http://[", "type": 2}]}),
        ("workspace/didChangeWorkspaceFolders", {"event": {
            "added": [{"uri": "untitled:x", "name": "x"}],
            "removed": [{"uri": "x", "name": "y"}]}}),
        ("window/workDoneProgress/cancel", {"token": "unknown"}),
        ("notebookDocument/didClose", {
            "notebookDocument": {"uri": "file:///n.ipynb"}, "cellTextDocuments": []}),
        ("notebookDocument/didChange", {
            "notebookDocument": {"uri": "file:///n.ipynb", "version": 2}, "change": {}}),
    ],
)  # fmt: skip
def test_notifications_that_mean_nothing(client: Modern, method: str, params: Any) -> None:
    client.notify(method, params)
    assert is_alive(client)


def test_answers_that_nobody_waits_for(client: Modern) -> None:
    client._send({"jsonrpc": "2.0", "id": "unknown", "result": {}})
    client._send({"jsonrpc": "2.0", "id": 99_999, "error": {"code": 1, "message": "no"}})
    assert is_alive(client)


LONG = kernel_text(in_launch("\n".join(f"x{n} = bx * {n}" for n in range(200)))) + "\n".join(
    f"x{n} = {n}" for n in range(4_800)
)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", []),
        ("\n", []),
        ("\r", []),
        ("\x00", []),
        ("\ufeff", []),
        ("\f", []),
        ("\ud83d", []),
        ("import tilelang" + "\x00" * 3, ["TL101"]),
        (WRONG.replace("\n", "\r"), ["TL110"]),
        ("\ufeff" + WRONG, ["TL110"]),
        (WRONG.replace("        ", "\t\t").replace("    with", "\twith"), ["TL110"]),
        (WRONG.replace("T.copy", "\f\n        T.copy"), ["TL110"]),
        (WRONG.replace("T.copy", "x = '\u2028\x85\x1c\v'; T.copy"), ["TL110"]),
        (WRONG.replace("T.copy", "x = '\ud83d'; T.copy"), ["TL110"]),
        (WRONG + "\x00", ["TL101"]),
        (WRONG + "\\", None),
        (WRONG + "(" * 300, None),
        (WRONG + "x = " + "-" * 50_000 + "1\n", None),
        (LONG, []),
    ],
    ids=lambda value: f"{str(value)[-12:]!a}",
)
def test_odd_texts(client: Modern, text: str, codes: list[str] | None) -> None:
    uri = f"file:///project/odd{client._next}.py"
    client.open(uri, text)
    found = client.diagnostics(uri, 1)
    assert codes is None or [d["code"] for d in found] == codes
    for answer in ask_everything(client, uri).values():
        assert answer is None or isinstance(answer, dict | list)
    client.notify("textDocument/didClose", about(uri))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_edits_hit_what_the_editor_means(client: Modern, end: str) -> None:
    """Python's `splitlines` knows more line ends than an editor, which counts none of them."""
    uri = f"file:///project/edited{len(end)}{ord(end[0])}.py"
    text = WRONG.replace("T.copy", "x = '😀'  # \f\v\x1c\x85\u2028\n        T.copy").replace(
        "\n", end
    )
    client.open(uri, text)
    (found,) = client.diagnostics(uri, 1)
    client.edit(uri, 2, [{"range": found["range"], "text": "A"}])
    assert client.diagnostics(uri, 2) == []
    far = {"line": 9_999, "character": 7}
    behind = {"line": 0, "character": 9_999}
    client.edit(uri, 3, [
        {"range": {"start": far, "end": far}, "text": f"{end}import sys"},
        {"range": {"start": behind, "end": behind}, "text": "; import os"},
        {"range": {"start": far, "end": behind}, "text": "?"},
    ])  # fmt: skip
    assert [d["code"] for d in client.diagnostics(uri, 3)] == ["TL101"]
    client.replace(uri, text, 4)
    assert [d["code"] for d in client.diagnostics(uri, 4)] == ["TL110"]


def test_a_document_that_is_opened_twice(client: Modern) -> None:
    client.open(URI, WRONG)
    client.open(URI, kernel_text(in_launch("T.copy(other, C)")), version=5)
    (found,) = client.diagnostics(URI, 5)
    assert "`other`" in found["message"]


@pytest.mark.parametrize(
    "uri",
    [
        "untitled:Untitled-1", "git:/project/x.py?%7B%22ref%22%3A%22HEAD%22%7D", "vscode-vfs://github/x.py",
        "file:///project/%C3%A4%20%23%25/%E5%8F%98.py", "file:///project/%FF.py", "file:///c%3A/Users/x.py",
        "file:///C:/Users/x.py", "file://server/share/x.py", "file:///project/a;b(c)!.py", "file:///",
        "file:///project/%00.py", "x", "file:///project/ä ß.py", "zipfile:/a.whl::b.py",
    ],
)  # fmt: skip
def test_addresses(client: Modern, uri: str) -> None:
    client.open(uri, kernel_text("@T.macro\ndef twice(x):\n    x[0, 0] = 2\n\n"
                                 + in_launch("twice(A)\nT.copy(missing, C)")))  # fmt: skip
    (found,) = client.diagnostics(uri, 1)
    assert found["code"] == "TL110"
    answers = ask_everything(client, uri)
    assert answers["documentSymbol"]
    line = next(n for n, row in enumerate(WRONG.split("\n")) if "T.copy" in row) + 4
    (place,) = client.ask("textDocument/definition", uri, line, 9)
    assert place["uri"] == uri
    client.notify("textDocument/didClose", about(uri))


def test_nothing_went_wrong(client: Modern) -> None:
    assert client.messages == []
    assert [line for line in client.log if "WARNING" not in line] == []
