"""Damaged kernels are caught: a sample of those that `benchmarks.mutants` makes, or all of them."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import pytest

from benchmarks import mutants
from tests.emulator.damage import CHANGES
from tests.emulator.equivalents import EQUIVALENTS, ESCAPES
from tests.emulator.needs import needs_compiler
from tests.emulator.subjects import SUBJECTS
from tests.emulator.verdicts import Original, judge

pytestmark = needs_compiler
SAMPLE = 12
REPORT = Path(__file__).resolve().parent.parent / "reports" / "mutants.json"


@cache
def originals() -> dict[str, Original]:
    return {subject.name: Original(subject) for subject in SUBJECTS}


def rank(kernel: str, key: tuple[str, str, int]) -> str:
    """An order that stays as it is when other mutants come or go."""
    return hashlib.sha256(repr((kernel, key)).encode()).hexdigest()


def test_sample(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_EMULATOR_SECONDS", mutants.SECONDS)
    if full:
        REPORT.unlink(missing_ok=True)
        assert mutants.main(["--json", str(REPORT)]) == 0
        return
    known = {e.key for e in (*EQUIVALENTS, *ESCAPES)}
    made = [
        (rank(name, mutant.key), original, mutant)
        for name, original in originals().items()
        for mutant in original.mutants
        if (name, *mutant.key) not in known
    ]
    assert len(made) >= 150
    chosen = sorted(made, key=lambda row: row[0])[:SAMPLE]
    with ThreadPoolExecutor(2) as pool:
        verdicts = list(pool.map(lambda row: judge(row[1], row[2], prove=False), chosen))
    missed = [
        f"{original.subject.name}: {mutant}: {verdict}"
        for (_, original, mutant), verdict in zip(chosen, verdicts, strict=True)
        if not verdict.is_caught
    ]
    assert not missed


def test_reasons_are_about_mutants_there_are() -> None:
    keys = {(name, *m.key) for name, original in originals().items() for m in original.mutants}
    assert not [e for e in (*EQUIVALENTS, *ESCAPES) if e.key not in keys]


def test_every_change_is_made_somewhere() -> None:
    """A pattern that the printer no longer writes damages nothing."""
    seen = {m.change.name for original in originals().values() for m in original.mutants}
    assert seen == {change.name for change in CHANGES}
