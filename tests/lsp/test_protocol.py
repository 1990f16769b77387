"""The server as an editor meets it: a real process, a few messages of each kind.

Everything that can be tested without a process is tested in the other files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.asking import in_launch, without_cursor
from tests.lsp.rpc_client import Client
from tests.support.markers import kernel_text

URI = "file:///project/kernel.py"


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client() as made:
        yield made


def place(text: str) -> tuple[str, int, int]:
    """A text without its `$0`, and the cursor as LSP counts it (UTF-16)."""
    source, line, column = without_cursor(text)
    before = source.split("\n")[line - 1][: column - 1]
    return source, line - 1, len(before.encode("utf-16-le")) // 2


def text_at(text: str, range_: dict[str, Any]) -> str:
    """The text an LSP range on one line covers."""
    line = text.split("\n")[range_["start"]["line"]].encode("utf-16-le")
    start, end = range_["start"]["character"] * 2, range_["end"]["character"] * 2
    return line[start:end].decode("utf-16-le")


def test_what_it_offers(client: Client) -> None:
    offered = client.capabilities
    for name in ("hover", "completion", "signatureHelp", "definition", "references",
                 "documentHighlight", "documentSymbol", "codeAction", "inlayHint"):  # fmt: skip
        assert offered[f"{name}Provider"], name
    assert offered["positionEncoding"] == "utf-16"
    assert "diagnosticProvider" not in offered  # pushed; both would show everything twice


def test_diagnostics_with_columns_in_utf_16(client: Client) -> None:
    text = kernel_text(in_launch("x = '😀é'; T.copy(missing, C)"))
    client.open(URI, text)
    (found,) = client.diagnostics(URI, 1)
    assert (found["code"], found["severity"], found["source"]) == ("TL110", 1, "tilelang")
    assert text_at(text, found["range"]) == "missing"
    assert found["codeDescription"]["href"].endswith("/TL110.md")
    assert "`missing`" in found["message"]


def test_hints_follow_the_text(client: Client) -> None:
    uri = "file:///project/hints.py"
    text = kernel_text(in_launch("é = T.alloc_shared((4,), 'int8')"))
    client.open(uri, text)
    client.diagnostics(uri, 1)
    (hint,) = client.hints(uri)
    line = next(n for n, row in enumerate(text.split("\n")) if "alloc_shared" in row)
    assert hint["position"] == {"line": line, "character": 9}
    assert hint["label"] == ": (4,) int8 shared"
    origin = {"line": 0, "character": 0}
    client.edit(uri, 2, [{"range": {"start": origin, "end": origin}, "text": "\n\n"}])
    assert client.hints(uri)[0]["position"]["line"] == line + 2  # moved, before any analysis
    client.diagnostics(uri, 2)
    client.replace(uri, text.replace("4,", "8,"), 3)
    client.diagnostics(uri, 3)
    assert client.hints(uri)[0]["label"] == ": (8,) int8 shared"
    assert "workspace/inlayHint/refresh" in client.requests_from_server


def test_a_half_written_line_hides_nothing(client: Client) -> None:
    uri = "file:///project/broken.py"
    text = kernel_text(in_launch("s = T.alloc_shared((4,), 'int8')\nT.copy(s, "))
    client.open(uri, text)
    assert [d["code"] for d in client.diagnostics(uri, 1)] == ["TL101"]
    assert [h["label"] for h in client.hints(uri)] == [": (4,) int8 shared"]


def test_questions_about_a_place(client: Client) -> None:
    uri = "file:///project/places.py"
    text, line, character = place(
        kernel_text(in_launch("s = T.alloc_shared((4,), 'int8')\nx = '😀'; T.copy($0s, C)"))
    )
    client.open(uri, text)
    hover = client.ask("textDocument/hover", uri, line, character)
    assert "(4,) int8 shared" in hover["contents"]["value"]
    assert text_at(text, hover["range"]) == "s"
    (found,) = client.ask("textDocument/definition", uri, line, character)
    assert (found["uri"], text_at(text, found["range"])) == (uri, "s")
    more = {"context": {"includeDeclaration": True}}
    assert len(client.ask("textDocument/references", uri, line, character, **more)) == 2
    signature = client.ask("textDocument/signatureHelp", uri, line, character)
    (only,) = signature["signatures"]
    assert only["label"].startswith("T.copy(src, dst")
    start, end = only["parameters"][signature["activeParameter"]]["label"]
    assert only["label"][start:end] == "src"
    items = client.ask("textDocument/completion", uri, line, character)["items"]
    assert {"s", "A", "C"} <= {item["label"] for item in items}


def test_completion_of_text_that_is_newer_than_any_analysis(client: Client) -> None:
    uri = "file:///project/typing.py"
    text = kernel_text(in_launch("T.clear(C)"))
    client.open(uri, text)
    client.diagnostics(uri, 1)
    typed, line, character = place(text.replace("T.clear(C)", "T.$0"))
    client.replace(uri, typed, 2)
    items = client.ask("textDocument/completion", uri, line, character)["items"]
    assert {"copy", "gemm", "Kernel"} <= {item["label"] for item in items}


def test_the_outline(client: Client) -> None:
    uri = "file:///project/outline.py"
    client.open(uri, kernel_text(in_launch("s = T.alloc_shared((4,), 'int8')")))
    (kernel,) = client.request("textDocument/documentSymbol", {"textDocument": {"uri": uri}})
    assert kernel["name"] == "main"
    assert [child["name"] for child in kernel["children"]] == ["A", "C", "n", "s"]


def test_a_warning_offers_to_be_ignored(client: Client) -> None:
    uri = "file:///project/actions.py"
    client.open(uri, kernel_text(in_launch("T.sync_global()")))
    (warning,) = client.diagnostics(uri, 1)
    assert warning["tags"] == [2]  # deprecated: drawn with a line through it
    actions = client.request(
        "textDocument/codeAction",
        {"textDocument": {"uri": uri}, "range": warning["range"],
         "context": {"diagnostics": [warning]}},
    )  # fmt: skip
    assert "Ignore deprecated-name on this line" in [a["title"] for a in actions]


def test_closing_takes_the_diagnostics_away(client: Client) -> None:
    uri = "file:///project/closed.py"
    client.open(uri, kernel_text(in_launch("T.copy(missing, C)")))
    assert client.diagnostics(uri, 1)
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    client.open(uri, "x = 1\n", version=2)
    assert client.diagnostics(uri, 2) == []


def test_questions_about_unknown_documents_are_answered_empty(client: Client) -> None:
    assert client.hints("file:///project/never_opened.py") == []
    assert client.ask("textDocument/hover", "file:///project/never_opened.py", 0, 0) is None


def test_cancelled_requests_do_not_hold_up_others(client: Client) -> None:
    uri = "file:///project/cancelled.py"
    text = kernel_text(in_launch("T.clear(C)"))
    client.open(uri, text)
    client.replace(uri, text + "#", 2)  # so that there is something to wait for
    about = {"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}}
    numbers = [client.send("textDocument/hover", about) for _ in range(5)]
    for number in numbers:
        client.notify("$/cancelRequest", {"id": number})
    assert client.ask("textDocument/definition", uri, 0, 0) == []
    for number in numbers:
        with contextlib.suppress(RuntimeError):  # "cancelled", unless the answer was faster
            assert client.wait(number) is None


def test_values_and_switches_from_the_client() -> None:
    text = kernel_text("""
        def factory(block):
            @T.prim_func
            def main(A: T.Tensor((128,), "int8"), n: T.int32):
                with T.Kernel(n) as bx:
                    s = T.alloc_shared((block,), "int8")
            return main
    """)
    with Client({"values": {"block": 32}}) as client:
        client.open(URI, text)
        client.diagnostics(URI, 1)
        assert [h["label"] for h in client.hints(URI)] == [": (32,) int8 shared"]
        settings = {"tilelang": {"values": {"block": 8}}}
        client.notify("workspace/didChangeConfiguration", {"settings": settings})
        client.diagnostics(URI, 1)
        assert [h["label"] for h in client.hints(URI)] == [": (8,) int8 shared"]
        settings = {"tilelang": {"inlayHints": {"enable": False}}}
        client.notify("workspace/didChangeConfiguration", {"settings": settings})
        client.diagnostics(URI, 1)
        assert client.hints(URI) == []


def test_modules_of_the_opened_folder_are_not_imported(tmp_path: Path) -> None:
    for name in ("pickle.py", "tilelang.py", "rich.py"):
        (tmp_path / name).write_text("raise SystemExit('imported')\n")
    with Client(cwd=tmp_path) as client:
        client.open(URI, kernel_text(in_launch("T.copy(missing, C)")))
        assert [d["code"] for d in client.diagnostics(URI, 1)] == ["TL110"]


def test_nothing_was_logged(client: Client) -> None:
    assert client.log == []
