"""What does a clicked lens do? One command for one kernel, in a process of its own.

Only here is a file of the user's imported and run, because its author clicked for that. The
server gives `Asked` as JSON on the command line; lines of JSON come back, `{"now": …}` while it
goes on and an `Outcome` at the end. What the kernel's file prints goes to the error output. The end
of the standard input means that the server is gone, and ends this process and all it started.
"""

from __future__ import annotations

import dataclasses
import io
import json
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tilelang_diagnostics import CompileError, to_json
from tilelang_diagnostics.model import Diagnostic

_ENDINGS = {"cpu": ".ll", "cuda": ".cu", "hip": ".hip", "metal": ".metal"}
_COMMENTS = {"cpu": ";"}
_NO_COMPILER = "TL807"
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Asked:
    """What to do with `kernel` of `file`, and the folder for what is shown of it."""

    command: str
    file: str
    kernel: str
    target: str | None
    settings: tuple[str, ...]
    folder: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: findings as JSON, facts for people, a file to show."""

    diagnostics: tuple[dict[str, Any], ...] = ()
    facts: tuple[str, ...] = ()
    shown: str | None = None
    failed: bool = False


def main() -> None:
    """Do what the command line asks for."""
    values = json.loads(sys.argv[1])
    asked = Asked(**{**values, "settings": tuple(values["settings"])})
    threading.Thread(target=_end_with_the_server, args=(asked.folder,), daemon=True).start()
    lines = sys.stdout
    with redirect_stdout(sys.stderr):
        outcome = do(asked, lambda what: print(json.dumps({"now": what}), file=lines, flush=True))
    print(json.dumps(dataclasses.asdict(outcome)), file=lines, flush=True)


def do(asked: Asked, say: Say) -> Outcome:
    """Do it; whatever goes wrong is a finding."""
    from tilelang.runtime.crash import internal_error

    run = {"compile": _compile, "emulate": _emulate, "trace": _trace}[asked.command]
    try:
        return _renamed(asked, run(asked, say))
    except CompileError as error:
        return _renamed(asked, _failed(error.diagnostics))
    except Exception as error:
        what = f"running {asked.command} for {asked.kernel}"
        return _failed((internal_error(error, what, files=(asked.file,)),))


def _compile(asked: Asked, say: Say) -> Outcome:
    from tilelang.cli.files import choose
    from tilelang.cli.specialise import specialise
    from tilelang.language.settings import parse_settings
    from tilelang.runtime.build import build
    from tilelang.runtime.devices import resolve

    chosen = choose(f"{asked.file}::{asked.kernel}")
    special = specialise(chosen, parse_settings(asked.settings), asked.target)
    target = resolve(special.target).target
    say(f"compiling for {target}")
    try:
        compiled = build(special.function, target, special.options).compiled
    except CompileError as error:
        source = _source_alone(error, special, target)
        if source is None:
            raise
        facts: tuple[str, ...] = (f"{target}: {error.diagnostics[0].message}",)
        return Outcome(facts=facts, shown=_written(asked, target.kind, facts, source))
    facts = (str(target), *_resources(special, compiled))
    shown = _written(asked, target.kind, facts, str(compiled.artifact.source))
    return Outcome(tuple(map(to_json, compiled.diagnostics)), facts, shown)


def _source_alone(error: CompileError, special: Any, target: Any) -> str | None:
    """The source where only the compiler for it is missing on this machine."""
    from tilelang.compiler import effective_options, lower_function
    from tilelang_trace.columns import source_alone

    if any(d.code != _NO_COMPILER for d in error.diagnostics):
        return None
    options = effective_options(special.function, special.options)
    func = lower_function(special.function, target, options).func
    found = source_alone(func, target, options, "")
    return "\n".join(line.text for line in found[0].lines) if found else None


def _resources(special: Any, compiled: Any) -> tuple[str, ...]:
    """What each kernel takes, where machine code says so."""
    from tilelang.codegen.cuda_artifact import CudaArtifact
    from tilelang.inspection.inspect import inspect_artifact
    from tilelang_lsp.describe_budget import byte_text

    if not isinstance(compiled.artifact, CudaArtifact):
        return ()
    found = inspect_artifact(
        compiled.artifact, special.function, compiled.target, compiled.diagnostics
    )
    parts = []
    for kernel in found.kernels:
        if kernel.registers is not None:
            spills = f"spills {kernel.spills} bytes" if kernel.spills else "no spills"
            parts += [f"{kernel.registers} registers", spills]
        limit = "" if kernel.shared.limit is None else f" of {byte_text(kernel.shared.limit)}"
        parts.append(f"shared {byte_text(kernel.shared.total)}{limit}")
        if kernel.occupancy is not None:
            parts.append(f"{kernel.occupancy.blocks} blocks an SM, "
                         f"{kernel.occupancy.percent} % occupancy")  # fmt: skip
    return tuple(parts)


def _written(asked: Asked, kind: str, facts: Sequence[str], source: str) -> str:
    """The file with the source; what it takes stands on top."""
    start = _COMMENTS.get(kind, "//")
    path = Path(asked.folder, asked.kernel + _ENDINGS[kind])
    head = f"{start} {Path(asked.file).name}::{asked.kernel}: {', '.join(facts)}\n"
    path.write_text(head + source.rstrip() + "\n", encoding="utf-8")
    return str(path)


def _emulate(asked: Asked, say: Say) -> Outcome:
    from tilelang.cli.run_kernel import run_json
    from tilelang.emulator.settings import Emulator

    say(f"running on the emulator as {asked.target}, checked")
    said = io.StringIO()
    with redirect_stdout(said):
        kernel = f"{asked.file}::{asked.kernel}"
        checked = Emulator(True, 0)
        status = run_json(kernel, asked.settings, asked.target, 0, True, checked)
    found = json.loads(said.getvalue())
    return Outcome(tuple(found["diagnostics"]), _run_facts(found), failed=status != 0)


def _run_facts(found: dict[str, Any]) -> tuple[str, ...]:
    """What a checked run says besides its findings."""
    facts = [found["target"]] if found["target"] else []
    if found["seconds"] is not None:
        facts.append(f"{found['seconds']:.2f} s")
        results = [
            f"{r['name']} differs by {r['error']:.2g} from the reference, {r['allowed']:g} allowed"
            for r in found["results"] if r["error"] is not None
        ]  # fmt: skip
        facts += results or ([] if found["results"] else ["no reference to compare with"])
    for space, unit in (("shared", "passes over shared memory"), ("global", "sectors of tensors")):
        row = (found["traffic"] or {}).get(space)
        if row and row["minimum"]:
            times = row["transactions"] / row["minimum"]
            more = "the least" if times == 1 else f"{times:.2f} times the least"
            facts.append(f"{row['transactions']} {unit}, {more}")
    return tuple(facts)


def _trace(asked: Asked, say: Say) -> Outcome:
    from tilelang_trace.command import run
    from tilelang_trace.wanted import Wanted

    page = Path(asked.folder, f"{asked.kernel}.html")
    page.unlink(missing_ok=True)
    say("recording every pass")
    kernel = f"{asked.file}::{asked.kernel}"
    try:
        run(Wanted(kernel, asked.settings, asked.target, html=page))
    except CompileError as error:
        # A compilation that fails has a trace, too: up to where it failed.
        shown = str(page) if page.exists() else None
        return dataclasses.replace(_failed(error.diagnostics), shown=shown)
    return Outcome(facts=(asked.target,) if asked.target else (), shown=str(page))


def _failed(diagnostics: Sequence[Diagnostic]) -> Outcome:
    return Outcome(tuple(map(to_json, diagnostics)), failed=True)


def _renamed(asked: Asked, outcome: Outcome) -> Outcome:
    """Places in the file under the name that the editor has for it."""
    real = os.path.realpath(asked.file)

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: asked.file if k == "file" and os.path.realpath(str(v)) == real else walk(v)
                    for k, v in value.items()}  # fmt: skip
        return [walk(v) for v in value] if isinstance(value, (list, tuple)) else value

    return dataclasses.replace(outcome, diagnostics=tuple(map(walk, outcome.diagnostics)))


def _end_with_the_server(folder: str) -> None:
    # Not by `sys.stdin`: a thread that holds its lock when Python ends is a fatal error.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    shutil.rmtree(folder, ignore_errors=True)  # a server that was killed could not
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
