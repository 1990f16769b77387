"""The mutation test of the emulator: how many damaged kernels does it catch?

    python -m benchmarks.mutants [--only KERNEL] [--json OUT] [--jobs 2]

Each correct kernel of `tests.emulator.subjects` runs checked and unchecked in 20 shuffled orders
and is accused of nothing. Then every line of its generated source that synchronises, guards or
swizzles is removed or weakened, one at a time (`tests.emulator.damage`). A mutant that nothing
catches is equivalent when its output is that of the kernel, bit for bit, on 20 random inputs in 20
shuffled orders, and `tests.emulator.equivalents` says why. OUT keeps the results as they come; a
later run takes from it what is of the same source in the same emulator.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from tests.emulator.damage import Mutant
from tests.emulator.equivalents import EQUIVALENTS, ESCAPES, Known
from tests.emulator.subjects import SUBJECTS, Subject
from tests.emulator.verdicts import (
    CAUGHT,
    INPUTS,
    ORDERS,
    SCHEDULES,
    Original,
    Verdict,
    judge,
)
from tilelang.emulator.toolchain import sources_digest

WANTED: Final = 0.97
COLUMNS: Final = (*CAUGHT, "equivalent", "survived")
# A kernel that runs a thousand times longer than it should does not end.
SECONDS: Final = "20"


@dataclass(frozen=True)
class Outcome:
    """What became of one mutant of one kernel."""

    kernel: str
    mutant: Mutant
    verdict: Verdict
    reason: str | None

    @property
    def column(self) -> str:
        if self.verdict.how == "equal":
            return "survived" if self.reason is None else "equivalent"
        return "survived" if self.verdict.how == "differs" else self.verdict.how

    def to_json(self) -> dict[str, Any]:
        change, line, nth = self.mutant.key
        return {
            "kernel": self.kernel, "kind": self.mutant.change.kind, "change": change,
            "number": self.mutant.number, "line": line, "nth": nth,
            "after": self.mutant.after.strip(), "how": self.verdict.how,
            "said": self.verdict.said, "column": self.column, "reason": self.reason,
            "digest": digest(self.mutant),
        }  # fmt: skip


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; 1 if a kernel is accused, too many mutants escape, or a reason is stale."""
    args = _parser().parse_args(words)
    os.environ.setdefault("TILELANG_EMULATOR_SECONDS", SECONDS)
    subjects = [s for s in SUBJECTS if args.only is None or s.name in args.only]
    known = _known(args.json)
    console = Console(width=max(100, Console().width))
    outcomes: list[Outcome] = []
    accused: list[str] = []
    with Progress(console=console, transient=True) as progress:
        for subject in subjects:
            found, wrong = run_subject(subject, known, args.jobs, progress)
            outcomes += found
            accused += wrong
            counts = Counter(o.column for o in found)
            progress.console.print(f"{subject.name}: {len(found)} mutants, {dict(counts)}")
            if args.json is not None:
                _write(args.json, outcomes, accused, [])
    stale = stale_reasons(outcomes, {subject.name for subject in subjects})
    _print(console, outcomes, accused, stale)
    if args.json is not None:
        _write(args.json, outcomes, accused, stale)
    return int(bool(accused or stale) or share_caught(outcomes) < WANTED)


def run_subject(
    subject: Subject, known: Mapping[str, Verdict], jobs: int, progress: Progress
) -> tuple[list[Outcome], list[str]]:
    """The outcome of each mutant that compiles, and what the kernel itself is accused of."""
    original = Original(subject)
    task = progress.add_task(subject.name, total=len(original.mutants))

    def outcome(mutant: Mutant) -> Outcome:
        verdict = known.get(digest(mutant)) or judge(original, mutant)
        progress.advance(task)
        return Outcome(subject.name, mutant, verdict, reason_of(subject.name, mutant))

    with ThreadPoolExecutor(jobs) as pool:
        accused = [said for said in pool.map(original.accusation, ORDERS) if said is not None]
        outcomes = list(pool.map(outcome, original.mutants))
    progress.remove_task(task)
    return [o for o in outcomes if o.verdict.how != "no code"], accused


def reason_of(kernel: str, mutant: Mutant) -> str | None:
    """Why a mutant is as good as its kernel, if somebody has said so."""
    wanted = (kernel, *mutant.key)
    return next((e.reason for e in EQUIVALENTS if e.key == wanted), None)


def known_escape(outcome: Outcome) -> str | None:
    """Why a mutant that is not equivalent escapes, if somebody has said so."""
    wanted = (outcome.kernel, *outcome.mutant.key)
    return next((e.reason for e in ESCAPES if e.key == wanted), None)


def stale_reasons(outcomes: Sequence[Outcome], kernels: set[str]) -> list[Known]:
    """Those about mutants that are caught, or that there are none of."""
    equal = {(o.kernel, *o.mutant.key) for o in outcomes if o.verdict.how == "equal"}
    escaped = {(o.kernel, *o.mutant.key) for o in outcomes if o.column == "survived"}
    return [e for known, keys in ((EQUIVALENTS, equal), (ESCAPES, escaped)) for e in known
            if e.kernel in kernels and e.key not in keys]  # fmt: skip


def share_caught(outcomes: Sequence[Outcome]) -> float:
    """Of the mutants that are not equivalent, the share that is caught."""
    counts = Counter(o.column for o in outcomes)
    caught = sum(counts[how] for how in CAUGHT)
    return caught / max(1, caught + counts["survived"])


def digest(mutant: Mutant) -> str:
    """Names a mutant in its whole source, and the emulator."""
    text = "\0".join((sources_digest(), mutant.device.text, str(mutant.number)))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    names = [subject.name for subject in SUBJECTS]
    parser.add_argument("--only", metavar="KERNEL", action="append", choices=names,
                        help=f"one of {', '.join(names)}; may be repeated")  # fmt: skip
    parser.add_argument("--json", metavar="OUT", type=Path)
    parser.add_argument("--jobs", type=int, default=2)
    return parser


def _known(path: Path | None) -> dict[str, Verdict]:
    """What an earlier run found."""
    if path is None or not path.exists():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))["mutants"]
    return {r["digest"]: Verdict(r["how"], r["said"]) for r in rows}


def _print(
    console: Console, outcomes: Sequence[Outcome], accused: Sequence[str],
    stale: Sequence[Known],
) -> None:  # fmt: skip
    table = Table("kernel", "change", "mutants", *COLUMNS)
    for number in table.columns[2:]:
        number.justify = "right"
    groups = dict.fromkeys((o.kernel, o.mutant.change.kind) for o in outcomes)
    for kernel, kind in sorted(groups):
        some = [o for o in outcomes if (o.kernel, o.mutant.change.kind) == (kernel, kind)]
        table.add_row(kernel, kind, *_cells(some))
    table.add_section()
    table.add_row("all", "", *_cells(outcomes))
    console.print(table)
    for column in ("equivalent", "survived"):
        for o in (o for o in outcomes if o.column == column):
            change, line, _ = o.mutant.key
            why = o.reason or known_escape(o) or f"{o.verdict.how}: {o.verdict.said}"
            console.print(f"{column}: {o.kernel}:{o.mutant.number} {change}: {line}\n    {why}",
                          markup=False, highlight=False, soft_wrap=True)  # fmt: skip
    for text in accused:
        console.print(f"accused: {text}", markup=False)
    for e in stale:
        console.print(f"stale reason: {e.kernel}, {e.change}: {e.line} ({e.nth})", markup=False)
    console.print(f"{share_caught(outcomes):.1%} of the mutants that are not equivalent are caught")
    console.print(f"{len(accused)} accusations of correct kernels")


def _cells(outcomes: Sequence[Outcome]) -> list[str]:
    counts = Counter(o.column for o in outcomes)
    return [str(len(outcomes)), *(str(counts[column] or "") for column in COLUMNS)]


def _write(
    path: Path, outcomes: Sequence[Outcome], accused: Sequence[str], stale: Sequence[Known]
) -> None:
    report = {
        "commit": _git("rev-parse", "HEAD"),
        "clean": not _git("status", "--porcelain", "--untracked-files=no"),
        "inputs": INPUTS, "schedules": SCHEDULES, "seeds": list(range(1, SCHEDULES + 1)),
        "kernels": len({o.kernel for o in outcomes}), "mutants_made": len(outcomes),
        "counts": Counter(o.column for o in outcomes), "caught": round(share_caught(outcomes), 4),
        "accused": list(accused), "stale": [f"{e.kernel}: {e.change}: {e.line}" for e in stale],
    }  # fmt: skip
    rows = ",\n".join(f"  {json.dumps(o.to_json())}" for o in outcomes)
    text = json.dumps({**report, "mutants": []}, indent=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text.replace('"mutants": []', f'"mutants": [\n{rows}\n ]') + "\n", "utf-8")


def _git(*words: str) -> str:
    found = subprocess.run(["git", *words], capture_output=True, text=True, check=False)
    return found.stdout.strip()


if __name__ == "__main__":
    os.nice(5)
    sys.exit(main())
