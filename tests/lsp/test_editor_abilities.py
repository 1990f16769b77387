"""Answers are cut to what the editor can show, and wrong settings are said, over the protocol."""

from __future__ import annotations

from pathlib import Path

from tests.lsp.asking import in_launch
from tests.lsp.rpc_client import CAPABILITIES, Client
from tests.lsp.test_more_protocol import Modern, capabilities
from tests.support.markers import kernel_text

TEXT = kernel_text(in_launch("T.clear(C)"))
LINE = next(n for n, line in enumerate(TEXT.split("\n")) if "T.clear" in line)


def test_an_editor_of_plain_text(tmp_path: Path) -> None:
    said = {"textDocument": {"hover": {"contentFormat": ["plaintext"]}}}
    uri = (tmp_path / "k.py").as_uri()
    with Client(capabilities=said) as client:
        client.open(uri, TEXT)
        hover = client.ask("textDocument/hover", uri, LINE, 12)["contents"]
        assert hover["kind"] == "plaintext"
        assert "```" not in hover["value"] and "T.clear(C_local)" in hover["value"]
        found = client.ask("textDocument/completion", uri, LINE, 8)["items"]
        assert all(item.get("insertTextFormat", 1) == 1 for item in found)
        assert not any("${" in item.get("insertText", "") for item in found)


def test_documentation_is_asked_for_later(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    with Client(capabilities=CAPABILITIES) as client:
        client.open(uri, TEXT)
        client.diagnostics(uri, 1)
        found = client.ask("textDocument/completion", uri, LINE, 10)
        (gemm,) = [i for i in found["items"] if i["label"] == "gemm"]
        assert "documentation" not in gemm
        resolved = client.request("completionItem/resolve", gemm)
        assert "T.gemm(A_shared" in resolved["documentation"]["value"]


def test_only_the_kinds_that_are_asked_for(tmp_path: Path) -> None:
    uri = (tmp_path / "k.py").as_uri()
    text = kernel_text(in_launch("s = T.alloc_shared((8,), 'float8_e4m3')\nT.clear(s)"))
    with Client(capabilities=capabilities(workspace__workspaceEdit={"documentChanges": True})) as c:
        c.open(uri, text, 3)
        c.diagnostics(uri, 3)
        whole = {"start": {"line": 0, "character": 0}, "end": {"line": 20, "character": 0}}

        def kinds(*only: str) -> list[str]:
            context = {"diagnostics": [], **({"only": list(only)} if only else {})}
            params = {"textDocument": {"uri": uri}, "range": whole, "context": context}
            found = c.request("textDocument/codeAction", params)
            versions = {
                e["textDocument"]["version"] for a in found for e in a["edit"]["documentChanges"]
                if e["textDocument"]["uri"] == uri
            }  # fmt: skip
            assert versions <= {3}
            return [a["kind"] for a in found]

        assert set(kinds("source.fixAll")) == {"source.fixAll.tilelang"}
        assert set(kinds("quickfix")) == {"quickfix"}
        assert "source.fixAll.tilelang" not in kinds()


def test_wrong_settings_are_said(tmp_path: Path) -> None:
    toml = tmp_path / "pyproject.toml"
    toml.write_text("[tool.tilelang]\ntarget = 'cdua'\n")
    uri = (tmp_path / "k.py").as_uri()
    with Modern({"diagnosticMode": "all"}, root=tmp_path) as client:
        client.open(uri, "# tilelang: hints layout\n" + TEXT)
        while True:
            message = client._notifications.get(timeout=60)
            if message["params"].get("uri") == toml.as_uri():
                break
        (found,) = message["params"]["diagnostics"]
        assert (found["code"], found["range"]["start"]["line"]) == ("TL403", 1)
        (said,) = client.diagnostics(uri, 1)
        assert (said["code"], said["range"]["start"]["line"]) == ("TL725", 0)
        assert any("diagnosticMode" in m for m in client.messages)


def test_an_editor_that_asks_but_not_again(tmp_path: Path) -> None:
    """As Neovim 0.11: what comes after its question is pushed, and not in the next answer too."""
    able = capabilities(textDocument__diagnostic={"dynamicRegistration": False})
    file = tmp_path / "k.py"
    text = TEXT.replace("T.clear(C)", "T.clear(C)\n        T.sync_global()") + "\n\n1 / 0\n"
    file.write_text(text)
    uri = file.as_uri()

    def pulled(client: Modern) -> list[str]:
        found = client.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})
        return [d["code"] for d in found["items"]]

    def pushed(client: Modern, version: int) -> list[tuple[str, int]]:
        found = client.diagnostics(uri, version)
        return [(d["code"], d["range"]["start"]["line"]) for d in found]

    with Modern(capabilities=able) as client:
        client.open(uri, text)
        client.until(uri, "deep", 1)
        assert pulled(client) == ["TL118"]
        found = client.request("workspace/executeCommand", {
            "command": "tilelang.server.compile", "arguments": [uri, "main"]})  # fmt: skip
        assert found["failed"]
        line = text.count("\n") - 1
        assert pushed(client, 1) == [("TL107", line)]
        assert pulled(client) == ["TL118"]
        client.replace(uri, "\n" + text, 2)
        assert pushed(client, 2) == [("TL107", line + 1)]
        assert pulled(client) == ["TL118"]
        client.replace(uri, text.replace("T.clear(C)", "T.fill(C, 1)"), 3)
        assert pushed(client, 3) == []
        assert "workspace/diagnostic/refresh" not in client.requests_from_server
