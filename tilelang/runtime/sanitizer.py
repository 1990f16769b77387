"""How is one call of a kernel run under compute-sanitizer, and what did it find?

The call happens in a process of its own (`sanitizer_child`), whose context a mistake may take down.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import tilelang_diagnostics
from tilelang import options
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.runtime.programs import find_program, run_group
from tilelang.runtime.sanitizer_call import write_call
from tilelang.runtime.sanitizer_child import ADDRESSES, ERROR
from tilelang.runtime.sanitizer_findings import findings
from tilelang.runtime.sanitizer_report import read_report
from tilelang.runtime.sanitizer_tools import Tool
from tilelang.runtime.signature import Signature
from tilelang_diagnostics import failure, from_json
from tilelang_diagnostics.model import Diagnostic

_PROGRAM: Final = "compute-sanitizer"
# More records than this say nothing new: most are the same line of other threads.
_RECORDS: Final = 1000


@dataclass(frozen=True, slots=True)
class Sanitized:
    """What one tool found in one call, and how long that took."""

    tool: Tool
    diagnostics: tuple[Diagnostic, ...]
    seconds: float


def sanitize(
    artifact: CudaArtifact, signature: Signature, inputs: Sequence[Any], tool: Tool
) -> Sanitized:
    """Call the kernel once with `inputs` (arrays and numbers) under a tool of compute-sanitizer.

    Raises CompileError with TL815 where compute-sanitizer is missing or does not work.
    """
    find_sanitizer()
    with tempfile.TemporaryDirectory(prefix="tilelang-sanitize-") as name:
        folder = Path(name)
        write_call(folder, artifact, signature, inputs)
        return watch(folder, artifact, tool, folder / "report.xml")


def watch(folder: Path, artifact: CudaArtifact, tool: Tool, report: Path) -> Sanitized:
    """Make the call that `write_call` stored; compute-sanitizer's own report is left in `report`.

    Raises CompileError with TL815, or with TL733 where it does not end.
    """
    words = command(find_sanitizer(), tool, report.resolve(), folder.resolve())
    started = time.perf_counter()
    limit = options.SANITIZER_TIMEOUT.get()
    try:
        done = run_group(words, limit, folder, options.child_environment(PYTHONPATH=_import_path()))
    except subprocess.TimeoutExpired:
        raise failure(
            "TL733",
            f"`{artifact.name}` did not end within {limit:g} seconds under {tool}",
            help="a thread may wait for what never comes, or the call is a large one for a tool "
            "that watches each access: TILELANG_SANITIZER_SECONDS allows more time, and --set "
            "makes a smaller call",
        ) from None
    seconds = time.perf_counter() - started
    return Sanitized(tool, _found(folder, report, artifact, done), seconds)


def command(program: Path, tool: Tool, report: Path, folder: Path) -> list[str]:
    """What is run: compute-sanitizer with the process that makes the call."""
    return [
        str(program), "--tool", tool, "--xml", "--save", str(report),
        "--log-file", str(report.with_suffix(".txt")), "--print-limit", str(_RECORDS),
        "--target-processes", "application-only", "--show-backtrace", "device",
        *(("--report-api-errors", "no") if tool == "memcheck" else ()),
        sys.executable, "-m", "tilelang.runtime.sanitizer_child", str(folder),
    ]  # fmt: skip


def find_sanitizer() -> Path:
    """compute-sanitizer of `CUDA_HOME`, on the search path, or of a wheel; else TL815."""
    home = options.CUDA_HOME.get()
    candidates = [Path(home) / "bin" / _PROGRAM] if home else []
    on_path = find_program(_PROGRAM)
    candidates += [Path(on_path)] if on_path is not None else []
    candidates += _in_wheels()
    candidates.append(Path("/usr/local/cuda/bin") / _PROGRAM)
    found = next((c for c in candidates if c.is_file()), None)
    if found is None:
        raise failure(
            "TL815",
            "compute-sanitizer is not installed, which looks at what a kernel does on the GPU",
            help="it is part of the CUDA toolkit (set CUDA_HOME, or put its bin folder on PATH), "
            "and a wheel: pip install nvidia-cuda-sanitizer-api",
        )
    return found


def _in_wheels() -> list[Path]:
    """Where the wheel nvidia-cuda-sanitizer-api puts it."""
    spec = importlib.util.find_spec("nvidia")
    places = () if spec is None else spec.submodule_search_locations or ()
    return [found for place in places for found in sorted(Path(place).glob(f"*/bin/{_PROGRAM}"))]


def _found(
    folder: Path, report: Path, artifact: CudaArtifact, done: subprocess.CompletedProcess[str]
) -> tuple[Diagnostic, ...]:
    failed = folder / ERROR
    try:
        records = read_report(report)
    except ValueError:
        if not failed.exists():
            raise _unusable(report, done) from None
        records = ()
    places = folder / ADDRESSES
    report.with_suffix(".out").write_text(done.stdout + done.stderr, encoding="utf-8")
    try:
        addresses = json.loads(places.read_text(encoding="utf-8")) if places.exists() else {}
        known = {name: (row[0], row[1]) for name, row in addresses.items()}
        own = json.loads(failed.read_text(encoding="utf-8")) if failed.exists() else []
        said = tuple(from_json(row) for row in own)
    except ValueError:  # the process ended while it wrote
        raise _unusable(report, done) from None
    found = findings(records, artifact, known, done.stdout + done.stderr)
    if not found and said:
        return said
    if not found and (done.returncode or not places.exists()):
        raise _unusable(report, done)
    return found


def _unusable(report: Path, done: subprocess.CompletedProcess[str]) -> Exception:
    """TL815 for a sanitizer that gave no report, with the last thing anybody said."""
    log = report.with_suffix(".txt")
    texts = [log.read_text(encoding="utf-8", errors="replace") if log.exists() else "",
             done.stdout, done.stderr]  # fmt: skip
    said = [line.lstrip("= ").strip() for text in texts for line in text.splitlines()]
    notes = tuple(line for line in said if line and line != "COMPUTE-SANITIZER")[-4:]
    return failure(
        "TL815",
        f"compute-sanitizer made no report (exit status {done.returncode})",
        notes=notes,
        help="its version has to know the driver and the GPU, and some virtual machines hide what "
        "it needs: try `compute-sanitizer --version`, and a newer toolkit",
    )


def _import_path() -> str:
    """Where the child finds this package, wherever it is started."""
    roots = (Path(__file__).parents[2], Path(tilelang_diagnostics.__file__).parents[1])
    return os.pathsep.join(dict.fromkeys(str(root) for root in roots))
