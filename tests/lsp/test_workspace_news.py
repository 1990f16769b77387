"""An editor that does not pull hears of files that are not open, whenever the disk changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.lsp.asking import in_launch
from tests.lsp.test_more_protocol import Modern
from tests.support.markers import kernel_text

WRONG = kernel_text(in_launch("T.copy(missing, C)"))
RIGHT = kernel_text(in_launch("T.clear(C)"))
CREATED, CHANGED, DELETED = 1, 2, 3


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
        assert client.messages == []
    assert "Traceback" not in "".join(client.log)
