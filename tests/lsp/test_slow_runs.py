"""What is said of a run on the emulator that takes long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tilelang_lsp import runs
from tilelang_lsp.clicked import Asked, Outcome
from tilelang_lsp.model import Insight
from tilelang_lsp.smaller import advice, smaller_sizes

ASKED = Asked("emulate", "k.py", "matmul", None, (), "")
ADVICE = "with smaller sizes it ends sooner: `# tilelang: set M=256` above the kernel"


def insight(**assumed: object) -> Insight:
    values = tuple((name, str(value), "its default") for name, value in assumed.items())
    return Insight("main", 1, "cuda:sm_80", True, assumed=values)


@pytest.mark.parametrize(
    ("assumed", "smaller"),
    [
        ({"M": 4096, "N": 256, "K": 8192}, {"M": "256", "K": "256"}),
        ({"M": 5000, "block": 128}, {"M": "625"}),
        ({"M": 999, "dtype": "float16", "scale": 0.5, "flag": True}, {}),
        ({}, {}),
    ],
)
def test_large_sizes_are_halved(assumed: dict[str, object], smaller: dict[str, str]) -> None:
    assert smaller_sizes(insight(**assumed)) == smaller


def test_the_advice_is_a_comment_to_write() -> None:
    assert advice({"M": "256"}) == ADVICE
    assert advice(smaller_sizes(None)) == "with smaller tensors it ends sooner"


def watched(
    monkeypatch: pytest.MonkeyPatch, seconds: float, shows_progress: bool = False
) -> tuple[Any, list[str]]:
    """The outcome of a run of so many seconds, and what the editor heard."""
    heard: list[str] = []

    async def work(server: Any, asked: Asked, report: Callable[[str], None]) -> Outcome:
        await asyncio.sleep(seconds)
        return Outcome()

    async def created(token: str) -> None:
        pass

    progress = SimpleNamespace(
        create_async=created, begin=lambda *_: progress.tokens.update(
            {_[0]: asyncio.get_running_loop().create_future()}
        ),
        report=lambda _, step: heard.append(f"progress: {step.message}"), end=lambda *_: None,
        tokens={},
    )  # fmt: skip
    server: Any = SimpleNamespace(
        client_capabilities=SimpleNamespace(
            window=SimpleNamespace(work_done_progress=shows_progress)
        ),
        window_show_message=lambda params: heard.append(params.message),
        work_done_progress=progress,
    )
    monkeypatch.setattr(runs, "_in_a_process", work)
    monkeypatch.setattr(runs, "SLOW_SECONDS", 0.05)
    monkeypatch.setattr(runs, "LONGEST_RUN_SECONDS", 0.3)

    async def story() -> Any:
        return await runs._watched(server, ASKED, ADVICE)

    return asyncio.run(story()), heard


def test_a_quick_run_hears_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(monkeypatch, 0.0) == (Outcome(), [])


def test_a_slow_one_hears_how_it_takes_less(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, heard = watched(monkeypatch, 0.15)
    assert outcome == Outcome()
    assert heard == [f"matmul still runs on the emulator; {ADVICE}"]
    assert watched(monkeypatch, 0.15, shows_progress=True)[1] == [f"progress: {ADVICE}"]


def test_one_that_was_ended_too(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome, heard = watched(monkeypatch, 5.0)
    assert outcome is None
    assert heard[-1] == f"emulate matmul: ended after 0 s; {ADVICE}"
