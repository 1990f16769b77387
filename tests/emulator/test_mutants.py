"""Damaged kernels are caught: a sample of those that `benchmarks.mutants` makes, or all of them."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from benchmarks import mutants
from tests.emulator.damage import CHANGES
from tests.emulator.equivalents import EQUIVALENTS
from tests.emulator.needs import needs_compiler
from tests.emulator.subjects import SUBJECTS
from tests.emulator.verdicts import Original, judge

pytestmark = needs_compiler
SAMPLE = 25
REPORT = Path(__file__).resolve().parent.parent / "reports" / "mutants.json"


def rank(kernel: str, key: tuple[str, str, int]) -> str:
    """An order that stays as it is when other mutants come or go."""
    return hashlib.sha256(repr((kernel, key)).encode()).hexdigest()


def test_sample(full: bool) -> None:
    if full:
        REPORT.unlink(missing_ok=True)
        assert mutants.main(["--json", str(REPORT)]) == 0
        return
    known = {e.key for e in EQUIVALENTS}
    made = [
        (rank(subject.name, mutant.key), original, mutant)
        for subject in SUBJECTS
        for original in (Original(subject),)
        for mutant in original.mutants
        if (subject.name, *mutant.key) not in known
    ]
    assert len(made) >= 150
    chosen = sorted(made, key=lambda row: row[0])[:SAMPLE]
    missed = [
        f"{original.subject.name}: {mutant}: {verdict}"
        for _, original, mutant in chosen
        if not (verdict := judge(original, mutant, prove=False)).is_caught
    ]
    assert not missed


@pytest.mark.parametrize("kernel", sorted({e.kernel for e in EQUIVALENTS}))
def test_reasons_are_about_mutants_there_are(kernel: str) -> None:
    original = Original(next(s for s in SUBJECTS if s.name == kernel))
    keys = {(kernel, *mutant.key) for mutant in original.mutants}
    assert not [e for e in EQUIVALENTS if e.kernel == kernel and e.key not in keys]


def test_every_change_is_made_somewhere() -> None:
    """A pattern that the printer no longer writes damages nothing."""
    seen = {m.change.name for subject in SUBJECTS for m in Original(subject).mutants}
    assert seen == {change.name for change in CHANGES}
