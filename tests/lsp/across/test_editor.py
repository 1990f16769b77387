"""Several files over the protocol: positions in both encodings, files that change, folders."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.rpc_client import ENDED
from tests.lsp.test_more_protocol import Modern, capabilities
from tests.support.markers import kernel_text

CREATED, CHANGED, DELETED = 1, 2, 3
OPS = "größe = '😀'; BLOCK = 16\r\n\r\ndef double(x):\r\n    return '😀', x, BLOCK\r\n"
USE = "from ops import BLOCK\nname = '😀é', BLOCK\n"
KERNEL = kernel_text("""
    from config import BLOCK

    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            A[BLOCK - 1] = 0.0
    """)


class Folders(Modern):
    """A client that opens several folders."""

    def __init__(self, folders: list[Path], **more: Any) -> None:
        self._folders = folders
        super().__init__(**more)

    def request(self, method: str, params: Any) -> Any:
        if method == "initialize":
            named = [{"uri": f.as_uri(), "name": f.name} for f in self._folders]
            params = {**params, "workspaceFolders": named}
        return super().request(method, params)

    def heard(self, uri: str, codes: list[str]) -> None:
        """Wait until these are the codes that a file is shown with."""
        while True:
            message: dict[str, Any] = self._notifications.get(timeout=60)
            assert message["method"] != ENDED, "".join(self.log)
            said = message["params"]
            if message["method"] != "textDocument/publishDiagnostics" or said["uri"] != uri:
                continue
            if [d["code"] for d in said["diagnostics"]] == codes:
                return

    def told(self, path: Path, kind: int) -> None:
        change = {"uri": path.as_uri(), "type": kind}
        self.notify("workspace/didChangeWatchedFiles", {"changes": [change]})


@pytest.fixture(scope="module", params=["utf-16", "utf-8"])
def client(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Folders]:
    folder = tmp_path_factory.mktemp("across")
    with (folder / "ops.py").open("w", encoding="utf-8", newline="") as out:
        out.write(OPS)
    (folder / "use.py").write_text(USE, encoding="utf-8")
    said = capabilities(textDocument__rename={"prepareSupport": True})
    said["general"]["positionEncodings"] = [request.param]
    with Folders([folder], capabilities=said) as made:
        assert made.capabilities["positionEncoding"] == request.param
        yield made


def units(client: Folders, text: str) -> int:
    """How long a text is in the units that were agreed on."""
    encoding = client.capabilities["positionEncoding"]
    return len(text.encode()) if encoding == "utf-8" else len(text.encode("utf-16-le")) // 2


def places(client: Folders, text: str, name: str) -> list[tuple[int, int, int]]:
    """Line, start and end of a name wherever a text has it."""
    found = []
    for number, line in enumerate(text.split("\n")):
        before, at = "", line.find(name)
        while at >= 0:
            before = line[:at]
            found.append((number, units(client, before), units(client, before + name)))
            at = line.find(name, at + 1)
    return found


def ranges(found: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    return sorted(
        (r["start"]["line"], r["start"]["character"], r["end"]["character"])
        for r in (f["range"] for f in found)
    )


def test_places_in_other_files(client: Folders) -> None:
    folder = client._folders[0]
    ops, use, new = (folder / "ops.py").as_uri(), (folder / "use.py").as_uri(), "untitled:new"
    text = "from ops import BLOCK\nname = '😀😀' + str(BLOCK)\n"
    client.open(new, text)
    line, start, _ = places(client, text, "BLOCK")[1]
    (found,) = client.ask("textDocument/definition", new, line, start + 2)
    assert found["uri"] == ops
    assert ranges([found]) == places(client, OPS, "BLOCK")[:1]
    expected = {ops: OPS, use: USE, new: text}
    told = client.ask("textDocument/references", new, line, start + 2,
                      context={"includeDeclaration": True})  # fmt: skip
    for uri, said in expected.items():
        here = [place for place in told if place["uri"] == uri]
        assert ranges(here) == places(client, said, "BLOCK"), uri
    edits = client.ask("textDocument/rename", new, line, start + 2, newName="TILE")["changes"]
    assert {uri: ranges(found) for uri, found in edits.items()} == {
        uri: places(client, said, "BLOCK") for uri, said in expected.items()
    }
    client.notify("textDocument/didClose", {"textDocument": {"uri": new}})


def test_a_refusal_says_why(client: Folders) -> None:
    uri = (client._folders[0] / "use.py").as_uri()
    client.open(uri, USE)
    with pytest.raises(RuntimeError, match=r"`ops` is a module: rename its file"):
        client.ask("textDocument/rename", uri, 0, 7, newName="other")
    with pytest.raises(RuntimeError, match=r"`größe` is another name of `ops\.py` already"):
        client.ask("textDocument/rename", uri, 0, 18, newName="größe")
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


def test_files_that_are_not_open(client: Folders) -> None:
    ops = (client._folders[0] / "ops.py").as_uri()
    name = {"start": {"line": 2, "character": 4}, "end": {"line": 2, "character": 10}}
    item = {"name": "double", "kind": 12, "uri": ops, "range": name, "selectionRange": name}
    assert client.request("callHierarchy/incomingCalls", {"item": item}) == []
    text = "import tilelang\nimport ops\n\ndef four(x):\n    return '😀', ops.double(x)\n"
    client.open("untitled:calls", text)
    (found,) = client.request("callHierarchy/incomingCalls", {"item": item})
    assert found["from"]["uri"] == "untitled:calls"
    at = found["fromRanges"][0]
    expected = places(client, text, "double")
    assert [(at["start"]["line"], at["start"]["character"], at["end"]["character"])] == expected
    (symbol,) = client.request("workspace/symbol", {"query": "four"})
    assert symbol["location"]["uri"] == "untitled:calls"
    client.notify("textDocument/didClose", {"textDocument": {"uri": "untitled:calls"}})


def test_edits_are_for_the_text_there_is(client: Folders) -> None:
    """What is typed while a name is looked for everywhere does not have its edits misplaced."""
    folder = client._folders[0] / "many"
    folder.mkdir()
    for number in range(200):
        (folder / f"use{number}.py").write_text("from ops import BLOCK\n" * 20)
    uri = (client._folders[0] / "use.py").as_uri()
    client.open(uri, USE)
    assert client.ask("textDocument/prepareRename", uri, 0, 18)["placeholder"] == "BLOCK"
    asked = client.send("textDocument/rename", {
        "textDocument": {"uri": uri}, "position": {"line": 0, "character": 18}, "newName": "TILE",
    })  # fmt: skip
    client.replace(uri, "\n\n" + USE, 2)
    try:
        edits = client.wait(asked)["changes"][uri]
    except RuntimeError as error:
        assert "the text changed while it was read" in str(error)
    else:  # it was found before
        assert ranges(edits) == places(client, USE, "BLOCK")
    found = client.ask("textDocument/rename", uri, 2, 18, newName="TILE")["changes"]
    assert ranges(found[uri]) == places(client, "\n\n" + USE, "BLOCK")
    assert len(found) == 202
    client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
    shutil.rmtree(folder)


def test_what_is_shown_follows_the_imported_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.mkdir()
    two.mkdir()
    config, main = one / "config.py", one / "main.py"
    config.write_text("BLOCK = 8\n")
    main.write_text(KERNEL)
    watching = capabilities(workspace__didChangeWatchedFiles={"dynamicRegistration": True})
    with Folders([one], capabilities=watching) as client:
        uri = main.as_uri()
        client.open(uri, KERNEL)
        client.heard(uri, [])
        config.write_text("BLOCK = 2 * 8\n")  # on the disk
        client.told(config, CHANGED)
        client.heard(uri, ["TL220"])
        client.open(config.as_uri(), "BLOCK = 4\n")  # in the editor
        client.heard(uri, [])
        client.replace(config.as_uri(), "BLOCK = 32\n", 2)
        client.heard(uri, ["TL220"])
        client.replace(config.as_uri(), "BLOCK = 4\n", 3)
        client.heard(uri, [])
        client.notify("textDocument/didClose", {"textDocument": {"uri": config.as_uri()}})
        client.heard(uri, ["TL220"])  # as on the disk
        config.unlink()
        client.told(config, DELETED)
        client.heard(uri, [])
        (two / "config.py").write_text("BLOCK = 64\n")  # in a folder that is not open
        added = {"added": [{"uri": two.as_uri(), "name": "two"}], "removed": []}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": added})
        client.heard(uri, ["TL220"])
        removed = {"added": [], "removed": [{"uri": two.as_uri(), "name": "two"}]}
        client.notify("workspace/didChangeWorkspaceFolders", {"event": removed})
        client.heard(uri, [])
        config.write_text("BLOCK = 128\n")
        client.told(config, CREATED)
        client.heard(uri, ["TL220"])
    assert "Traceback" not in "".join(client.log)
