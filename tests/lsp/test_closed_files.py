"""Files that are not open, and a worker that does not answer."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.lsp.asking import in_launch
from tests.support.markers import kernel_text
from tilelang_lsp import analysis
from tilelang_lsp.assembly import Reading
from tilelang_lsp.client import Client
from tilelang_lsp.closed_files import ClosedFiles
from tilelang_lsp.options import Options
from tilelang_lsp.worker import WorkerFailed, WorkerStopped
from tilelang_lsp.workspace import Workspace

WRONG = kernel_text(in_launch("T.copy(missing, C)"))


class Failing:
    """Analyses for real, unless it is to fail."""

    def __init__(self) -> None:
        self.fails: WorkerFailed | None = None
        self.asked = 0

    async def analyse(self, text: str, path: str, options: Options) -> Reading:
        self.asked += 1
        if self.fails is not None:
            raise self.fails
        return analysis.Analyser().analyse(text, path, options)


@pytest.fixture
def worker() -> Failing:
    return Failing()


@pytest.fixture
def closed(worker: Failing, tmp_path: Path) -> ClosedFiles:
    (tmp_path / "kernels.py").write_text(WRONG)
    workspace = Workspace()
    workspace.set_folders([str(tmp_path)])
    server: Any = SimpleNamespace(
        client={"diagnosticMode": "workspace"}, linked=SimpleNamespace(workspace=workspace),
        worker=worker, options_of=lambda path, text: Options(), editor=Client(),
        workspace=SimpleNamespace(position_encoding="utf-16"),
    )  # fmt: skip
    return ClosedFiles(server)


def codes(closed: ClosedFiles) -> list[Any]:
    (found,) = asyncio.run(closed.findings()).values()
    return [d.code for d in found]


def test_what_takes_too_long_says_so_and_is_not_tried_again(
    closed: ClosedFiles, worker: Failing
) -> None:
    worker.fails = WorkerFailed("killed", 20.0)
    assert codes(closed) == codes(closed) == ["TL819"]
    assert worker.asked == 1


def test_a_process_that_ended_is_followed_by_another(closed: ClosedFiles, worker: Failing) -> None:
    worker.fails = WorkerFailed("ended")
    assert codes(closed) == ["TL819"]
    worker.fails = None
    assert codes(closed) == ["TL110"]


def test_a_server_that_shuts_down_says_nothing(closed: ClosedFiles, worker: Failing) -> None:
    worker.fails = WorkerStopped()
    with pytest.raises(WorkerStopped):
        codes(closed)
