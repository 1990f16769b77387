"""What does each kernel take of each architecture, and does any spill registers?

    python -m benchmarks.spills [--only TEXT …] [--arch sm_90a …] [--fresh | --keep] [--check]

Compiles the kernels under test and the examples for every architecture through NVRTC, and writes
`benchmarks/spills.md`. It fails for a compiler warning, for a kernel that a compiler rejects, and
for a spill in a kernel of the kinds that must have none. What was compiled from the same text of
this repository is remembered in `build/spills.jsonl`, so that an interrupted run goes on where it
stopped; `--keep` also takes what older text gave, and else what the table has, to add kernels to
it. `--check` compares with the table instead of writing it; `--only` prints.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from benchmarks.gpu_cases import lowered
from benchmarks.spill_cases import ROOT, SpillCase, spill_cases
from tilelang.codegen.cuda_binary import CudaBinary
from tilelang.codegen.device_source import DeviceSource, KernelLaunch
from tilelang.options import CompileOptions
from tilelang.runtime.cuda_build import compile_without_spills
from tilelang.target import Target, parse_target
from tilelang_diagnostics import CompileError

ARCHS: Final = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
TABLE: Final = ROOT / "benchmarks" / "spills.md"
STATE: Final = ROOT / "build" / "spills.jsonl"
# Kinds of kernels that must not spill.
_MUST_NOT: Final = re.compile(r"gemm|matmul|mha|gqa|mla|attn|attention|softmax|norm|quickstart")


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel on one architecture; `refused` is the code of the diagnostic that stopped it."""

    case: str
    arch: str
    kernel: str = ""
    registers: int = 0
    spills: int = 0
    stack: int = 0
    static: int = 0
    dynamic: int = 0
    warnings: tuple[str, ...] = ()
    refused: str = ""
    message: str = ""
    small: bool = False

    @property
    def problem(self) -> str | None:
        """Why the table must not be accepted, or None."""
        if self.warnings:
            return self.warnings[0]
        if self.refused.startswith(("TL8", "TL9")):
            return self.message
        if self.spills and _MUST_NOT.search(self.case):
            return f"{self.spills} bytes spilled"
        return None


def measure(case: SpillCase, arch: str) -> list[Row]:
    """Compile one kernel for one architecture: a row for each launch. What needs more shared memory
    than there is, is compiled at the sizes of the tests."""
    for small in (False, True):
        try:
            source = lowered(case.trace(small), arch)
            target = parse_target(f"cuda:{arch}")
            source, binary = _compiled(source, target)
        except CompileError as error:
            first = next(d for d in error.diagnostics if d.is_error)
            refused = Row(case.name, arch, refused=first.code, message=first.message)
            if first.code != "TL406":
                break
        else:
            return [_row(case, arch, launch, binary, small) for launch in source.launches]
    return [refused]


_binaries: dict[tuple[str, str], tuple[DeviceSource, CudaBinary]] = {}


def _compiled(source: DeviceSource, target: Target) -> tuple[DeviceSource, CudaBinary]:
    """Cases that only differ in their inputs have one source."""
    key = source.text, str(target)
    if key not in _binaries:
        _binaries[key] = compile_without_spills(source, target, CompileOptions())
    return _binaries[key]


def _row(
    case: SpillCase, arch: str, launch: KernelLaunch, binary: CudaBinary, small: bool
) -> Row:  # fmt: skip
    used = binary.resources_of(launch.symbol)
    return Row(
        case.name, arch, launch.symbol, used.registers, used.spill_stores + used.spill_loads,
        used.stack, used.shared, launch.dynamic_shared, binary.warnings, small=small,
    )  # fmt: skip


class _State:
    """Rows of earlier runs, by case and architecture, while the repository's text is theirs."""

    def __init__(self, path: Path, digest: str, fresh: bool, keep: bool) -> None:
        self.path, self.digest = path, digest
        self.known: dict[tuple[str, str], list[Row]] = {}
        if keep and TABLE.exists():
            for row in rows_of(TABLE.read_text(encoding="utf-8")):
                self.known.setdefault((row.case, row.arch), []).append(row)
        if fresh or not path.exists():
            return
        for line in path.read_text(encoding="utf-8").splitlines():
            said = json.loads(line)
            if keep or said["digest"] == digest:
                rows = [Row(**{**r, "warnings": tuple(r["warnings"])}) for r in said["rows"]]
                self.known[said["case"], said["arch"]] = rows

    def rows(self, case: SpillCase, arch: str) -> list[Row]:
        found = self.known.get((case.name, arch))
        if found is None:
            found = measure(case, arch)
            said = {"digest": self.digest, "case": case.name, "arch": arch,
                    "rows": [asdict(r) for r in found]}  # fmt: skip
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as out:
                out.write(json.dumps(said) + "\n")
        return found


def digest_of_sources() -> str:
    """Changes whenever the compiler, the device headers, or a kernel does."""
    digest = hashlib.sha256()
    for folder in ("tilelang", "tests/kernels", "examples"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".h"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def table(rows: Sequence[Row], archs: Sequence[str]) -> str:
    """The page: one line a kernel, one column an architecture."""
    lines = [
        "# Registers and spills",
        "",
        "Registers of a thread for each kernel and architecture, as ptxas reports them; bytes of",
        "spilled registers (stores and loads) where there are any; shared memory of a block,",
        "static + dynamic, in bytes, of the first architecture, and beside another's registers",
        "where it differs. `small`: at the sizes of the tests, where those for a GPU need more",
        "shared memory than there is. A code is that of the diagnostic that refuses a kernel.",
        "Written by `python -m benchmarks.spills`: kernels of `tests/kernels` at sizes for a GPU,",
        "and the examples.",
        "",
        f"| kernel | shared | {' | '.join(archs)} |",
        f"|---|---:|{'---:|' * len(archs)}",
    ]  # fmt: skip
    by_place: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        by_place.setdefault((row.case, "" if row.refused else row.kernel), {})[row.arch] = row
    for (case, kernel), found in by_place.items():
        several = len({k for c, k in by_place if c == case}) > 1
        name = f"{case} ({kernel or 'refused'})" if several else case
        first = next(iter(found.values()))
        shared = "" if first.refused else f"{first.static} + {first.dynamic}"
        cells = [_cell(found.get(arch), first) for arch in archs]
        lines.append(f"| {name} | {shared} | {' | '.join(cells)} |")
    spilling = sorted({r.case for r in rows if r.spills})
    lines += ["", f"Kernels that spill: {', '.join(spilling) or 'none'}."]
    return "\n".join(lines) + "\n"


_CELL: Final = re.compile(
    r"(?P<registers>\d+)(?:, (?P<spills>\d+) spilled)?"
    r"(?: \((?P<static>\d+) \+ (?P<dynamic>\d+)\))?(?P<small>, small)?"
)


def rows_of(text: str) -> list[Row]:
    """The rows of a page that `table` has made; warnings, stacks and messages are not in it."""
    head = re.search(r"^\| kernel \| shared \| (.*) \|$", text, re.MULTILINE)
    if head is None:
        return []
    archs, rows = head[1].split(" | "), []
    for name, kernel, static, dynamic, said in re.findall(
        r"^\| ([^\s|]+)(?: \((\w+)\))? \| (?:(\d+) \+ (\d+))? \| (.*) \|$", text, re.MULTILINE
    ):
        for arch, cell in zip(archs, said.split(" | "), strict=True):
            found = _CELL.fullmatch(cell.strip())
            if found is not None:
                rows.append(Row(
                    name, arch, kernel, int(found["registers"]), int(found["spills"] or 0),
                    static=int(found["static"] or static), dynamic=int(found["dynamic"] or dynamic),
                    small=found["small"] is not None,
                ))  # fmt: skip
            elif cell.strip():
                rows.append(Row(name, arch, refused=cell.strip()))
    return rows


def _cell(row: Row | None, first: Row) -> str:
    if row is None:
        return ""
    if row.refused:
        return row.refused
    text = str(row.registers)
    if row.spills:
        text += f", {row.spills} spilled"
    if (row.static, row.dynamic) != (first.static, first.dynamic):
        text += f" ({row.static} + {row.dynamic})"
    return f"{text}, small" if row.small else text


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.spills", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--only", nargs="+", default=(), metavar="TEXT")
    parser.add_argument("--arch", nargs="+", default=ARCHS, metavar="ARCH")
    parser.add_argument("--fresh", action="store_true", help="forget what earlier runs found")
    parser.add_argument("--keep", action="store_true", help="take what older text gave, too")
    parser.add_argument("--check", action="store_true", help="compare with the table on disk")
    given = parser.parse_args(argv)
    state = _State(STATE, digest_of_sources(), given.fresh, given.keep)
    rows: list[Row] = []
    for case in spill_cases():
        if given.only and not any(text in case.name for text in given.only):
            continue
        started = time.perf_counter()
        found = [r for arch in given.arch if case.runs_on(arch) for r in state.rows(case, arch)]
        rows += found
        print(f"{case.name}: {time.perf_counter() - started:.1f} s", file=sys.stderr, flush=True)
    return _finish(rows, given)


def _finish(rows: Sequence[Row], given: Any) -> int:
    status = 0
    for row in rows:
        if row.problem is not None:
            print(f"{row.case} {row.kernel} on {row.arch}: {row.problem}", file=sys.stderr)
            status = 1
    text = table(rows, given.arch)
    if given.only or tuple(given.arch) != ARCHS:
        print(text)
    elif not given.check:
        TABLE.write_text(text, encoding="utf-8")
    elif not TABLE.exists() or TABLE.read_text(encoding="utf-8") != text:
        print(f"{TABLE.relative_to(ROOT)} is out of date: python -m benchmarks.spills",
              file=sys.stderr)  # fmt: skip
        status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
