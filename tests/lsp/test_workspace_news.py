"""An editor that does not pull hears of files that are not open, whenever the disk changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lsp.asking import in_launch
from tests.lsp.test_more_protocol import Modern, capabilities
from tests.support.markers import kernel_text

WRONG = kernel_text(in_launch("T.copy(missing, C)"))
RIGHT = kernel_text(in_launch("T.clear(C)"))
CREATED, CHANGED, DELETED = 1, 2, 3
# What a pyproject.toml says, and what is found then.
PROJECTS = (
    ("[tool.tilelang.lint]\nignore = ['TL110']\n", CREATED, []),
    ("[tool.tilelang.lint]\nignore = ['TL111']\n", CHANGED, ["TL110"]),
    ("[tool.tilelang.lint]\nselect = ['TL111']\n", CHANGED, []),
    ("", DELETED, ["TL110"]),
)


def heard(client: Modern, uri: str) -> list[str]:
    """The codes that are published next for a file."""
    while True:
        message: dict[str, Any] = client._notifications.get(timeout=60)
        if message["params"].get("uri") == uri:
            return [d["code"] for d in message["params"]["diagnostics"]]


def told(client: Modern, path: Path, kind: int) -> None:
    change = {"uri": path.as_uri(), "type": kind}
    client.notify("workspace/didChangeWatchedFiles", {"changes": [change]})


def test_what_is_shown_follows_the_disk(tmp_path: Path) -> None:
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    project = tmp_path / "pyproject.toml"
    first.write_text(WRONG)
    with Modern({"diagnosticMode": "workspace"}, root=tmp_path) as client:
        assert heard(client, first.as_uri()) == ["TL110"]
        first.write_text(RIGHT)
        told(client, first, CHANGED)
        assert heard(client, first.as_uri()) == []
        second.write_text(WRONG)
        told(client, second, CREATED)
        assert heard(client, second.as_uri()) == ["TL110"]
        second.unlink()
        told(client, second, DELETED)
        assert heard(client, second.as_uri()) == []
        first.write_text(WRONG)
        told(client, first, CHANGED)
        assert heard(client, first.as_uri()) == ["TL110"]
        for text, kind, codes in (PROJECTS[0], PROJECTS[-1]):
            project.write_text(text) if kind != DELETED else project.unlink()
            told(client, project, kind)
            assert heard(client, first.as_uri()) == codes, text
        assert client.messages == []
    assert "Traceback" not in "".join(client.log)


def test_an_editor_that_asks_is_told_to_ask_again(tmp_path: Path) -> None:
    first, project = tmp_path / "first.py", tmp_path / "pyproject.toml"
    first.write_text("# tilelang: target gpu\n" + WRONG)
    able = capabilities(
        textDocument__diagnostic={}, workspace__diagnostics={"refreshSupport": True}
    )
    results: list[dict[str, str]] = []
    with Modern({"diagnosticMode": "workspace"}, capabilities=able, root=tmp_path) as client:

        def asked() -> dict[str, list[str] | None]:
            """The codes of each file, None where they are as before."""
            found = client.request("workspace/diagnostic", {"previousResultIds": results})["items"]
            results[:] = [{"uri": r["uri"], "value": r["resultId"]} for r in found]
            return {Path(r["uri"]).name: None if r["kind"] == "unchanged"
                    else [d["code"] for d in r["items"]] for r in found}  # fmt: skip

        assert asked() == {"first.py": ["TL403", "TL110"]}
        assert asked() == {"first.py": None}
        assert "workspace/diagnostic/refresh" not in client.requests_from_server
        for text, kind, codes in PROJECTS:
            project.write_text(text) if kind != DELETED else project.unlink()
            told(client, project, kind)
            assert asked() == {"first.py": ["TL403", *codes]}, text
        # Once for each change at least: a slow machine may notice one in two steps.
        assert client.requests_from_server.count("workspace/diagnostic/refresh") >= len(PROJECTS)
        first.unlink()
        told(client, first, DELETED)
        assert asked() == {"first.py": []}
        assert client.log == []


def test_a_project_file_that_is_open_keeps_its_findings(tmp_path: Path) -> None:
    project = tmp_path / "pyproject.toml"
    project.write_text("[tool.tilelang]\ncolor = 1\n")
    uri = project.as_uri()
    with Modern({}, root=tmp_path) as client:
        client.open(uri, project.read_text())
        assert heard(client, uri) == ["TL725"]
        client.notify("textDocument/didClose", {"textDocument": {"uri": uri}})
        assert heard(client, uri) == ["TL725"]
        client.open(uri, "[tool.tilelang]\n")
        assert heard(client, uri) == []
