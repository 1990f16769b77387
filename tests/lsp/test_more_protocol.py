"""What newer editors ask for, over stdio: pulling, resolving, notebooks, encodings, commands."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.asking import in_launch
from tests.lsp.rpc_client import CAPABILITIES, Client
from tests.lsp.test_insight import GEMM
from tests.support.markers import kernel_text

URI = "file:///project/kernel.py"
WHOLE = {"start": {"line": 0, "character": 0}, "end": {"line": 10_000, "character": 0}}


def capabilities(**more: Any) -> dict[str, Any]:
    """Those of a plain client, with others beside."""
    found = copy.deepcopy(CAPABILITIES)
    for path, value in more.items():
        *parents, last = path.split("__")
        place = found
        for name in parents:
            place = place.setdefault(name, {})
        place[last] = value
    return found


class Modern(Client):
    """A client that pulls diagnostics, refreshes, and is told what was done."""

    def __init__(self, options: dict[str, Any] | None = None, **more: Any) -> None:
        self.status: list[tuple[str, str, int]] = []
        self.edits: list[Any] = []
        self.messages: list[str] = []
        super().__init__({"status": True, **(options or {})}, **more)

    def _take(self, message: dict[str, Any]) -> None:
        if message.get("method") == "tilelang/status":
            said = message["params"]
            self.status.append((said["uri"], said["what"], said["version"]))
        if message.get("method") == "window/showMessage":
            self.messages.append(message["params"]["message"])
        if message.get("method") == "workspace/applyEdit":
            self.edits.append(message["params"]["edit"])
        super()._take(message)

    def until(self, uri: str, what: str, version: int) -> None:
        """Wait until a version was analysed ("static"), or looked into, after its findings came
        ("deep")."""
        end = time.monotonic() + 90
        while (uri, what, version) not in self.status:
            assert time.monotonic() < end, (what, version, self.status, self.log)
            time.sleep(0.01)


@pytest.fixture(scope="module")
def client() -> Iterator[Modern]:
    pulling = capabilities(
        textDocument__diagnostic={"dynamicRegistration": False},
        workspace__diagnostics={"refreshSupport": True},
        workspace__codeLens={"refreshSupport": True},
        workspace__applyEdit=True,
        textDocument__rename={"prepareSupport": True},
        notebookDocument={"synchronization": {}},
    )
    with Modern({"target": "cuda:sm_80"}, capabilities=pulling) as made:
        yield made


def about(uri: str = URI, **more: Any) -> dict[str, Any]:
    return {"textDocument": {"uri": uri}, **more}


def test_what_it_offers(client: Modern) -> None:
    offered = client.capabilities
    for name in ("codeLens", "foldingRange", "selectionRange", "documentLink", "semanticTokens",
                 "rename", "callHierarchy", "workspaceSymbol", "diagnostic"):  # fmt: skip
        assert offered[f"{name}Provider"], name
    assert offered["inlayHintProvider"]["resolveProvider"]
    assert offered["renameProvider"]["prepareProvider"]
    assert offered["notebookDocumentSync"]["notebookSelector"]
    assert "tilelang.server.compile" in offered["executeCommandProvider"]["commands"]


def test_diagnostics_are_pulled_once(client: Modern) -> None:
    client.open(URI, kernel_text(in_launch("T.copy(missing, C)")))
    first = client.request("textDocument/diagnostic", about())
    assert [d["code"] for d in first["items"]] == ["TL110"]
    again = client.request("textDocument/diagnostic", about(previousResultId=first["resultId"]))
    assert again == {"kind": "unchanged", "resultId": first["resultId"]}
    client.replace(URI, kernel_text(in_launch("T.clear(C)")), 2)
    client.until(URI, "deep", 2)
    gone = client.request("textDocument/diagnostic", about(previousResultId=first["resultId"]))
    assert gone["items"] == []


def test_layouts_come_after_the_text_and_are_resolved_lazily(client: Modern) -> None:
    uri = "file:///project/gemm.py"
    client.open(uri, kernel_text(GEMM))
    client.until(uri, "deep", 1)
    hints = client.request("textDocument/inlayHint", about(uri, range=WHOLE))
    (hint,) = [h for h in hints if str(h["label"]).find("32/thread") >= 0]
    assert "tooltip" not in hint
    (part,) = hint["label"]
    assert part["location"]["uri"] == uri
    resolved = client.request("inlayHint/resolve", hint)
    assert resolved["tooltip"]["kind"] == "markdown"
    assert "0:0" in resolved["tooltip"]["value"]
    assert "workspace/codeLens/refresh" in client.requests_from_server
    assert "workspace/diagnostic/refresh" in client.requests_from_server


def test_lenses_lead_to_commands(client: Modern) -> None:
    uri = "file:///project/lenses.py"
    client.open(uri, kernel_text(GEMM))
    client.until(uri, "deep", 1)
    lenses = client.request("textDocument/codeLens", about(uri))
    titles = [lens["command"]["title"] for lens in lenses]
    assert titles[0].startswith("shared 24 KiB of 163 KiB")
    page = client.request("workspace/executeCommand", {
        "command": lenses[0]["command"]["command"],
        "arguments": lenses[0]["command"]["arguments"]})  # fmt: skip
    assert "`A_s` 3 stages" in page


def test_assumed_values_are_written_down(client: Modern) -> None:
    uri = "file:///project/open.py"
    text = kernel_text("""
        def factory(block):
            @T.prim_func
            def main(A: T.Tensor((128,), "int8")):
                with T.Kernel(1) as bx:
                    s = T.alloc_shared((block,), "int8")
            return main
    """)
    client.open(uri, text)
    client.until(uri, "deep", 1)
    arguments = [uri, "factory", 6, {"block": "32"}]
    client.request("workspace/executeCommand", {
        "command": "tilelang.server.set", "arguments": arguments})  # fmt: skip
    ((edit,),) = [e["changes"][uri] for e in client.edits if uri in e["changes"]]
    assert edit["newText"] == "# tilelang: set block=32\n"
    lines = text.split("\n")
    lines.insert(edit["range"]["start"]["line"], edit["newText"].rstrip())
    client.replace(uri, "\n".join(lines), 2)
    client.until(uri, "static", 2)
    hints = client.request("textDocument/inlayHint", about(uri, range=WHOLE))
    assert ": (32,) int8 shared" in [h["label"] for h in hints]
    client.until(uri, "deep", 2)
    client.messages.clear()
    again = {"command": "tilelang.server.set", "arguments": [uri, "factory", 7, {}]}
    assert client.request("workspace/executeCommand", again) is False
    assert "given by a comment in the file" in str(client.messages)


def test_commands_ask_to_save_first(client: Modern) -> None:
    assert client.request("workspace/executeCommand", {
        "command": "tilelang.server.compile", "arguments": [URI, "main", 6]}) is None  # fmt: skip


def test_a_clicked_kernel_is_compiled(client: Modern, tmp_path: Path) -> None:
    file = tmp_path / "saved.py"
    file.write_text(kernel_text(GEMM))
    client.open(file.as_uri(), kernel_text(GEMM))
    client.until(file.as_uri(), "deep", 1)
    status = client.request("workspace/executeCommand", {
        "command": "tilelang.server.trace", "arguments": [file.as_uri(), "main", 5]})  # fmt: skip
    assert not status["failed"]


def test_rename_and_its_refusal(client: Modern) -> None:
    uri = "file:///project/rename.py"
    client.open(uri, kernel_text(in_launch("x = bx * 2\ny = x + 1")))
    line = 6
    place = {"line": line, "character": 8}
    found = client.request("textDocument/prepareRename", about(uri, position=place))
    assert found["placeholder"] == "x"
    edits = client.request("textDocument/rename", about(uri, position=place, newName="z"))
    assert len(edits["changes"][uri]) == 2
    with pytest.raises(RuntimeError, match="'1' is no name"):
        client.request("textDocument/rename", about(uri, position=place, newName="1"))


def test_tokens_folds_selections_links(client: Modern) -> None:
    uri = "file:///project/text.py"
    client.open(uri, kernel_text(in_launch("x = '😀'; T.copy(A, C)  # TL204")))
    data = client.request("textDocument/semanticTokens/full", about(uri))["data"]
    assert len(data) % 5 == 0 and len(data) > 20
    folds = client.request("textDocument/foldingRange", about(uri))
    assert {"startLine": 4, "endLine": 6} in folds
    (nested,) = client.request("textDocument/selectionRange", about(
        uri, positions=[{"line": 6, "character": 24}]))  # fmt: skip
    assert nested["range"]["start"]["line"] == 6 and nested["parent"]
    (link,) = client.request("textDocument/documentLink", about(uri))
    assert link["target"].endswith("TL204.md")


def test_tokens_that_changed(client: Modern) -> None:
    uri = "file:///work/tokens.py"
    text = kernel_text(in_launch("x = bx * 2\nT.copy(A, C)"))
    client.open(uri, text)
    provider = client.capabilities["semanticTokensProvider"]
    assert (provider["full"], provider["range"]) == ({"delta": True}, True)
    whole = client.request("textDocument/semanticTokens/full", about(uri))
    lines = {"start": {"line": 6, "character": 0}, "end": {"line": 6, "character": 99}}
    some = client.request("textDocument/semanticTokens/range", about(uri, range=lines))["data"]
    assert some[0] == 6 and [n for n in some[5::5] if n] == []
    client.replace(uri, text.replace("T.copy", "# one more line\n        T.copy"), 2)
    ask = about(uri, previousResultId=whole["resultId"])
    found = client.request("textDocument/semanticTokens/full/delta", ask)
    (edit,) = found["edits"]
    assert (edit["deleteCount"], len(edit["data"])) == (5, 5)  # one token is a line lower
    data = list(whole["data"])
    data[edit["start"] : edit["start"] + 5] = edit["data"]
    again = client.request("textDocument/semanticTokens/full", about(uri))
    assert (again["data"], again["resultId"]) == (data, found["resultId"])
    ask["previousResultId"] = "unknown"
    assert client.request("textDocument/semanticTokens/full/delta", ask) == again


def test_a_parameter_that_is_not_there_is_no_first_one(client: Modern) -> None:
    uri = "file:///work/signature.py"
    client.open(uri, kernel_text(in_launch("T.clear(C, 1, 2, 3, )\nT.clear(C)")))
    client.until(uri, "static", 1)
    active = []
    for line, character in ((6, 28), (7, 16)):
        place = {"line": line, "character": character}
        found = client.request("textDocument/signatureHelp", about(uri, position=place))
        active.append(found["activeParameter"])
        count = len(found["signatures"][0]["parameters"])
    assert active == [count, 0]


def test_call_hierarchy(client: Modern) -> None:
    uri = "file:///project/macros.py"
    client.open(uri, kernel_text("@T.macro\ndef double(x):\n    x[0] = 2\n\n"
                                 + in_launch("double(A)")))  # fmt: skip
    (item,) = client.request("textDocument/prepareCallHierarchy", about(
        uri, position={"line": 4, "character": 5}))  # fmt: skip
    (caller,) = client.request("callHierarchy/incomingCalls", {"item": item})
    assert caller["from"]["name"] == "main"
    (called,) = client.request("callHierarchy/outgoingCalls", {"item": caller["from"]})
    assert called["to"]["name"] == "double"


@pytest.mark.parametrize("uri", ["untitled:Untitled-1", "file:///elsewhere/alone.py"])
def test_documents_outside_of_any_folder(client: Modern, uri: str) -> None:
    client.open(uri, kernel_text(in_launch("s = T.alloc_shared((4,), 'int8')")))
    client.until(uri, "deep", 1)
    found = client.request("textDocument/inlayHint", about(uri, range=WHOLE))
    assert ": (4,) int8 shared" in [h["label"] for h in found]


def test_lines_that_end_in_carriage_returns(client: Modern) -> None:
    uri = "file:///project/crlf.py"
    text = kernel_text(in_launch("T.copy(missing, C)\nx = bx * 2")).replace("\n", "\r\n")
    client.open(uri, text)
    (found,) = client.request("textDocument/diagnostic", about(uri))["items"]
    assert found["range"]["start"] == {"line": 6, "character": 15}
    client.edit(uri, 2, [{"range": found["range"], "text": "A"}])
    client.until(uri, "deep", 2)
    assert client.request("textDocument/diagnostic", about(uri))["items"] == []


def cell(uri: str) -> dict[str, Any]:
    return {"kind": 2, "document": uri}


def test_notebook_cells_are_one_text(client: Modern) -> None:
    notebook = "file:///project/book.ipynb"
    first, second = "vscode-notebook-cell:/project/book.ipynb#a", "vscode-notebook-cell:/w.ipynb#b"
    body = in_launch("s = T.alloc_shared((4,), 'int8')\nT.copy(missing, C)")
    client.notify("notebookDocument/didOpen", {
        "notebookDocument": {"uri": notebook, "notebookType": "jupyter-notebook", "version": 1,
                             "cells": [cell(first), cell(second)]},
        "cellTextDocuments": [
            {"uri": first, "languageId": "python", "version": 1,
             "text": "%pip list\nimport tilelang.language as T"},
            {"uri": second, "languageId": "python", "version": 1, "text": body},
        ]})  # fmt: skip
    client.until(notebook, "deep", 1)
    assert client.request("textDocument/diagnostic", about(first))["items"] == []
    (found,) = client.request("textDocument/diagnostic", about(second))["items"]
    assert found["range"]["start"] == {"line": 4, "character": 15}
    hints = client.request("textDocument/inlayHint", about(second, range=WHOLE))
    assert (": (4,) int8 shared", 3) in [(h["label"], h["position"]["line"]) for h in hints]
    hover = client.request("textDocument/hover", about(
        second, position={"line": 3, "character": 8}))  # fmt: skip
    assert "int8 shared" in hover["contents"]["value"]
    change = {"range": found["range"], "text": "A"}
    client.notify("notebookDocument/didChange", {
        "notebookDocument": {"uri": notebook, "version": 2},
        "change": {"cells": {"textContent": [
            {"document": {"uri": second, "version": 2}, "changes": [change]}]}}})  # fmt: skip
    client.until(notebook, "static", 2)
    errors = client.request("textDocument/diagnostic", about(second))["items"]
    assert [e["code"] for e in errors] != ["TL110"]
    client.notify("notebookDocument/didClose", {
        "notebookDocument": {"uri": notebook},
        "cellTextDocuments": [{"uri": first}, {"uri": second}]})  # fmt: skip
    assert client.request("textDocument/inlayHint", about(second, range=WHOLE)) == []


def test_nothing_went_wrong(client: Modern) -> None:
    assert client.log == []


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 17), ("utf-16", 15), ("utf-32", 14)])
def test_columns_in_the_unit_of_the_editor(encoding: str, column: int) -> None:
    agreed = capabilities(general__positionEncodings=[encoding])
    text = kernel_text(in_launch("x = '😀'; T.copy(missing, C)"))
    with Modern(capabilities=agreed) as client:
        assert client.capabilities["positionEncoding"] == encoding
        client.open(URI, text)
        (found,) = client.diagnostics(URI, 1)
        assert found["range"]["start"]["character"] == column + 8 + 2
        place = found["range"]["start"]
        hover = client.request("textDocument/definition", about(position=place))
        assert hover == []


def test_a_changed_project_file_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    text = kernel_text("""
        def factory(block):
            @T.prim_func
            def main(A: T.Tensor((128,), "int8")):
                with T.Kernel(1) as bx:
                    s = T.alloc_shared((block,), "int8")
            return main
    """)
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.tilelang.set]\nblock = 16\n")

    def labels(client: Modern) -> list[str]:
        found = client.request("textDocument/inlayHint", about(file.as_uri(), range=WHOLE))
        return [h["label"] for h in found]

    with Modern() as client:
        client.open(file.as_uri(), text)
        client.until(file.as_uri(), "deep", 1)
        assert ": (16,) int8 shared" in labels(client)
        project.write_text("[tool.tilelang.set]\nblock = 128\n")
        end = time.monotonic() + 60
        while ": (128,) int8 shared" not in labels(client):
            assert time.monotonic() < end
            time.sleep(0.05)


def test_the_files_of_a_workspace_that_are_not_open(tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(kernel_text(in_launch("T.copy(missing, C)")))
    (tmp_path / "right.py").write_text(kernel_text(in_launch("T.clear(C)")))
    (tmp_path / "other.py").write_text("x = missing\n")
    pulling = capabilities(textDocument__diagnostic={"dynamicRegistration": False})
    options = {"diagnosticMode": "workspace"}
    with Modern(options, capabilities=pulling, root=tmp_path) as client:
        found = client.request("workspace/diagnostic", {"previousResultIds": []})["items"]
        codes = {Path(r["uri"]).name: [d["code"] for d in r["items"]] for r in found}
        assert codes == {"wrong.py": ["TL110"], "right.py": []}
        symbols = client.request("workspace/symbol", {"query": "mai"})
        assert [s["name"] for s in symbols] == ["main", "main"]
