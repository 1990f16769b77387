"""The process that analyses: it answers, it can be lost, and it can be stopped."""

from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kernels import gemm
from tests.lsp.asking import in_launch
from tests.support.markers import kernel_text
from tilelang.layouts import machine
from tilelang_lsp.analysis import analyse
from tilelang_lsp.catalogue import read_catalogue
from tilelang_lsp.model import NOMINAL
from tilelang_lsp.options import Options
from tilelang_lsp.worker import Worker, WorkerFailed, WorkerStopped

TEXT = kernel_text(in_launch("T.copy(missing, C)"))


@pytest.fixture
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.stop()


def test_it_gives_what_analyse_gives(worker: Worker) -> None:
    assert asyncio.run(worker.analyse(TEXT, "k.py", Options())).analysis == analyse(TEXT, "k.py")


def test_it_knows_the_language(worker: Worker) -> None:
    assert asyncio.run(worker.catalogue()) == read_catalogue()


def test_a_dead_process_fails_one_request_and_is_replaced(worker: Worker) -> None:
    async def story() -> None:
        await worker.catalogue()
        assert worker._process is not None
        worker._process.kill()
        worker._process.wait()
        assert (await worker.analyse(TEXT, "k.py", Options())).head.diagnostics

    asyncio.run(story())


def test_a_request_whose_process_dies_is_asked_once_more(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def killed_during(number: int) -> None:
        asked = asyncio.ensure_future(worker.analyse(TEXT, "k.py", Options()))
        for _ in range(number):
            before = worker._process
            while worker._process is before or worker._process is None:
                await asyncio.sleep(0.001)
            worker._process.kill()
        assert (await asked).head.diagnostics

    asyncio.run(killed_during(1))
    worker._process = None
    with pytest.raises(WorkerFailed, match="ended"):
        asyncio.run(killed_during(2))


def test_a_new_process_is_warmed_like_the_first(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    exchange = worker._exchange_once
    monkeypatch.setattr(worker, "_exchange_once", lambda r: (asked.append(r[0]), exchange(r))[1])

    async def story() -> None:
        await worker.warm()
        monkeypatch.setattr(worker, "_timeout", -59.9)  # all that a new process may take: 0.1 s
        assert worker._process is not None
        worker._process.kill()
        worker._process.wait()
        with pytest.raises(WorkerFailed, match="took too long"):
            await worker.look(SLOW, "k.py", "main", 5, Options(), True)
        monkeypatch.setattr(worker, "_timeout", 20.0)
        await worker.catalogue()

    asyncio.run(story())
    assert asked == ["warm", "look", "warm", "catalogue"]


def test_what_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    # A timeout so short that the process is still starting.
    monkeypatch.setattr("tilelang_lsp.worker.LONGEST_START_SECONDS", 0.0)
    worker = Worker(timeout=0.001)
    with pytest.raises(WorkerFailed, match="took too long") as failed:
        asyncio.run(worker.analyse(TEXT, "k.py", Options()))
    assert failed.value.after == 0.001
    worker.stop()


def test_a_cancelled_request_does_not_answer_the_next(worker: Worker) -> None:
    async def story() -> None:
        first = asyncio.ensure_future(worker.analyse("tilelang = 1", "first.py", Options()))
        await asyncio.sleep(0)
        first.cancel()
        assert (await worker.analyse(TEXT, "second.py", Options())).path == "second.py"

    asyncio.run(story())


def test_an_analysis_of_a_whole_file_travels() -> None:
    with open(gemm.__file__) as source:
        analysis = analyse(source.read(), gemm.__file__)
    assert analysis.kernels
    assert pickle.loads(pickle.dumps(analysis)) == analysis


@pytest.mark.parametrize(
    "code",
    [
        "import tilelang_lsp.server",
        f"from tilelang_lsp.analysis import analyse; analyse({TEXT!r}, 'k.py')",
        "from tilelang_lsp.catalogue import read_catalogue; read_catalogue()",
    ],
)
def test_neither_tvm_nor_torch_is_imported(code: str) -> None:
    heavy = "('tvm', 'torch', 'tvm_ffi')"
    check = f"import sys\n{code}\nprint([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{check}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert result.stdout.strip() == "[]"


def test_the_process_that_answers_imports_nothing_of_the_compiler() -> None:
    compiler = "('tilelang.language', 'tilelang.program', 'tilelang.layouts', 'tilelang.checks')"
    check = f"import sys, tilelang_lsp.server\nprint([m for m in {compiler} if m in sys.modules])"
    result = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path[:] = {sys.path!r}\n{check}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert result.stdout.strip() == "[]"


def test_the_nominal_target_is_the_one_of_layouts() -> None:
    assert str(machine.NOMINAL) == NOMINAL


def test_user_code_is_never_run(tmp_path: object) -> None:
    text = kernel_text(f"open({str(tmp_path)!r} + '/ran', 'w')\n" + in_launch("T.clear(C)"))
    analyse(text, "k.py")
    assert not list(tmp_path.iterdir())  # type: ignore[attr-defined]


SLOW = kernel_text(in_launch("T.clear(C)"))


def test_a_look_nobody_waits_for_is_ended_and_the_next_answered(worker: Worker) -> None:
    async def story() -> None:
        await worker.warm()
        first = asyncio.ensure_future(worker.look(SLOW, "k.py", "main", 5, Options(), True))
        while worker._alarm is None:
            await asyncio.sleep(0.001)
        first.cancel()
        worker.abandon(grace=0.0)
        found = await worker.look(SLOW, "k.py", "main", 5, Options(), False)
        assert found.kernel == "main"

    asyncio.run(story())
    assert worker.killed <= 1


def test_a_look_that_nobody_waits_for_yet_is_never_begun(worker: Worker) -> None:
    async def story() -> None:
        await worker.warm()
        looks = [
            asyncio.ensure_future(worker.look(SLOW, f"{n}.py", "main", 5, Options(), False))
            for n in range(5)
        ]
        await asyncio.sleep(0)
        for look in looks:
            look.cancel()
        assert (await worker.look(SLOW, "last.py", "main", 5, Options(), False)).budgets

    asyncio.run(story())


def test_a_new_process_is_sent_nothing_it_does_not_have(worker: Worker) -> None:
    async def story() -> None:
        for number in range(3):
            found = await worker.analyse(TEXT, "k.py", Options())
            assert found.analysis == analyse(TEXT, "k.py")
            if number == 1:
                assert worker._process is not None
                worker._process.kill()
                worker._process.wait()

    asyncio.run(story())


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks the kernel for memory")
def test_reading_without_a_pause_leaves_nothing_behind(worker: Worker) -> None:
    text = kernel_text(in_launch("\n".join(["T.clear(C)"] * 60)))

    async def megabytes(rounds: int) -> float:
        for number in range(rounds):
            await worker.analyse(f"{text}\n# {number}\n", "k.py", Options())
        assert worker._process is not None
        pages = Path(f"/proc/{worker._process.pid}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE") / 2**20

    async def story() -> tuple[float, float]:
        return await megabytes(40), await megabytes(120)

    first, last = asyncio.run(story())
    assert last - first < 8


def test_what_was_ended_leaves_no_process_behind() -> None:
    async def story() -> list[int]:
        worker, pids = Worker(), []
        for _ in range(2):
            await worker.catalogue()
            assert worker._process is not None
            pids.append(worker._process.pid)
            worker._process.kill()
            with contextlib.suppress(WorkerFailed):  # unless it was seen to be gone
                await worker.catalogue()
        await worker.catalogue()
        assert worker._process is not None
        pids.append(worker._process.pid)
        worker.stop()
        return pids

    for pid in asyncio.run(story()):
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_it_is_stopped_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while its thread is seeing off a process that has just died."""
    monkeypatch.setattr("tilelang_lsp.worker._SERVE", "sys.stdin.read()")

    async def story() -> None:
        for round in range(20):
            worker = Worker()
            worker.start()
            asked = asyncio.ensure_future(worker.catalogue())
            await asyncio.sleep(0.001 * round)
            process = worker._process
            assert process is not None
            process.kill()
            await asyncio.to_thread(worker.stop)
            assert process.poll() is not None
            with pytest.raises((WorkerFailed, asyncio.CancelledError)):
                await asked
            with pytest.raises(WorkerStopped):
                await worker.catalogue()
            assert worker._process is None or worker._process.poll() is not None

    asyncio.run(story())


def test_what_ends_with_the_server_is_no_failure_of_a_file(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tilelang_lsp.worker._SERVE", "sys.stdin.read()")

    async def story() -> None:
        worker = Worker()
        asked = asyncio.ensure_future(worker.analyse(TEXT, "k.py", Options()))
        while worker._process is None:
            await asyncio.sleep(0.001)
        worker.stop()
        with pytest.raises((WorkerStopped, asyncio.CancelledError)):
            await asked

    asyncio.run(story())
