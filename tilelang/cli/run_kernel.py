"""Compile a kernel of a file, run it on random inputs, compare it, time it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from typing import Any

from tilelang.cli.emulated import Outcome, outcome_json, traffic_rows
from tilelang.cli.files import Chosen, choose
from tilelang.cli.output import show, table
from tilelang.cli.reference import (
    TF32_TOLERANCE,
    Comparison,
    compare,
    find_reference,
    leaves_out,
    mismatches,
    replace_inputs,
)
from tilelang.cli.sanitize import require_sanitizer, sanitize_kernel
from tilelang.cli.specialise import Specialised, specialise
from tilelang.emulator.settings import Emulator
from tilelang.language.file_values import Value
from tilelang.language.settings import parse_settings
from tilelang.program.buffer import Buffer, Region
from tilelang.program.stmt import TileOp, walk_statements
from tilelang.program.text import expr_text
from tilelang.runtime.build import build_for
from tilelang.runtime.devices import resolve, resolve_quietly
from tilelang.runtime.effects import pointer_tables, updated_parameters
from tilelang.runtime.inputs import TensorSupplyType, make_inputs, on_device
from tilelang.runtime.kernel import JITKernel
from tilelang.runtime.profiler import do_bench
from tilelang.runtime.tensors import copy_of
from tilelang.target import Resolved
from tilelang_diagnostics import CompileError, exit_status


def run_kernel(
    kernel: str, settings: Sequence[str], target: str | None, seed: int, rep: float, check: bool,
    sanitize: str | None = None, emulator: Emulator | None = None,
) -> int:  # fmt: skip
    """What `tilelang run` does; returns the exit status."""
    ready = _prepare(kernel, settings, target, seed, sanitize, emulator)
    chosen, special, made, inputs = ready.chosen, ready.special, ready.made, ready.inputs
    print(f"{made.name}  {chosen.place}")
    _table(_facts(special, ready.resolved, made, inputs, ready.seconds))
    if sanitize is not None:
        return sanitize_kernel(made, inputs, sanitize)
    copies = [copy_of(x) for x in inputs]
    inputs = _placed(made, inputs)
    started = time.perf_counter()
    returned = made(*inputs)
    seconds = time.perf_counter() - started
    reference = find_reference(chosen.file.module, chosen.name)
    comparisons = _check(chosen, special, made, copies, inputs, returned) if check else []
    if emulator is not None:
        _table(traffic_rows(made.checked) if made.checked is not None else [])
        _table([("call", f"{seconds:.2f} s, emulated{' and checked' * emulator.check}")])
    else:
        milliseconds = do_bench(lambda: made(*inputs), rep=rep, return_mode="median",
                                device=made.device_kind)  # fmt: skip
        _table([("time", f"{_duration(milliseconds)} (median)")])
    wrong = mismatches(comparisons, reference.__name__ if reference else "the reference")
    show(wrong)
    return 1 if wrong else 0


def run_json(
    kernel: str, settings: Sequence[str], target: str | None, seed: int, check: bool,
    emulator: Emulator,
) -> int:  # fmt: skip
    """What `tilelang run --emulate --json` does; returns the exit status.

    What a kernel prints goes to the error output.
    """
    outcome = Outcome(target or "")
    try:
        with redirect_stdout(sys.stderr):
            ready = _prepare(kernel, settings, target, seed, None, emulator)
            noticed = ready.made.diagnostics
            outcome = replace(outcome, target=str(ready.resolved.target), diagnostics=noticed)
            copies = [copy_of(x) for x in ready.inputs]
            started = time.perf_counter()
            returned = ready.made(*ready.inputs)
            seconds = time.perf_counter() - started
            outcome = replace(outcome, seconds=seconds, checked=ready.made.checked)
            reference = find_reference(ready.chosen.file.module, ready.chosen.name)
            if check and reference is not None:
                results = _compared(
                    reference, ready.special, ready.made, copies, ready.inputs, returned
                )
                wrong = mismatches(results, reference.__name__)
                outcome = replace(outcome, results=tuple(results), diagnostics=(*noticed, *wrong))
    except CompileError as error:
        if any(d.is_internal for d in error.diagnostics):
            raise  # a fault of ours has a status of its own
        outcome = replace(outcome, diagnostics=(*outcome.diagnostics, *error.diagnostics))
    status = exit_status(outcome.diagnostics)
    print(outcome_json(kernel, emulator, outcome, status))
    return status


@dataclass(frozen=True, slots=True)
class _Ready:
    """A kernel that can be called, with its inputs; `seconds` is how long the compiler took."""

    chosen: Chosen
    special: Specialised
    resolved: Resolved
    made: JITKernel
    inputs: list[Any]
    seconds: float


def _prepare(
    kernel: str, settings: Sequence[str], target: str | None, seed: int, sanitize: str | None,
    emulator: Emulator | None,
) -> _Ready:  # fmt: skip
    resolve_quietly()  # the target and its reason are in the report
    chosen = choose(kernel)
    special = specialise(chosen, parse_settings(settings), target)
    resolved = resolve(special.target)
    if sanitize is not None:
        require_sanitizer(resolved.target, chosen.name)
    started = time.perf_counter()
    built = build_for(emulator, special.function, resolved.target, special.options)
    seconds = time.perf_counter() - started
    made = JITKernel(special.function, built, special.out_idx, special.options)
    made.require_device()
    reference = find_reference(chosen.file.module, chosen.name)
    inputs = _inputs(chosen, special, made, seed, reference)
    return _Ready(chosen, special, resolved, made, inputs, seconds)


def _inputs(
    chosen: Chosen, special: Specialised, made: JITKernel, seed: int,
    reference: Callable[..., Any] | None,
) -> list[Any]:  # fmt: skip
    """Random inputs, but for those the file makes itself, and sums, which start at zero."""
    inputs = make_inputs(
        made.signature, TensorSupplyType.Auto, special.plain_sizes(), seed,
        "torch" if chosen.file.uses_torch() else "numpy",
        pointer_tables(special.function),
    )  # fmt: skip
    parameters = made.signature.inputs
    values, written = _values(special, made), len(made.written_inputs())
    if reference is not None and leaves_out(reference, len(inputs), written, values):
        updated = updated_parameters(special.function)
        for position, parameter in enumerate(parameters):
            if parameter in updated:
                inputs[position][...] = 0
    known = {name: v.value for name, v in {**special.values, **special.sizes}.items()}
    replace_inputs(chosen.file.module, chosen.name, [p.name for p in parameters], inputs, known)
    return inputs


def _values(special: Specialised, made: JITKernel) -> dict[str, Any]:
    """What the kernel was compiled with, and the sizes, by name; scalar inputs are inputs."""
    inputs = {p.name for p in made.signature.inputs}
    known = {**special.values, **special.sizes}
    return {name: v.value for name, v in known.items() if name not in inputs}


def _uses_tf32(special: Specialised, made: JITKernel) -> bool:
    """Whether matrix instructions multiply float32 operands, which they round to tf32."""
    if made.target.kind == "cpu":
        return False
    return any(
        isinstance(stmt, TileOp)
        and stmt.name == "gemm"
        and any(isinstance(x, Region) and x.dtype.name == "float32" for x in stmt.args[:2])
        for stmt in walk_statements(special.function.body)
    )


def _placed(made: JITKernel, inputs: list[Any]) -> list[Any]:
    """The inputs where the kernel runs; the reference gets those in the memory of the host."""
    if made.device_kind == "cpu":
        return inputs
    return [
        on_device(x, p.dtype, made.device_kind) if isinstance(p, Buffer) else x
        for p, x in zip(made.signature.inputs, inputs, strict=True)
    ]


def _table(rows: Sequence[tuple[str, str]]) -> None:
    table(rows, width=len("compile"))


def _facts(
    special: Specialised, resolved: Resolved, made: JITKernel, inputs: Sequence[Any],
    seconds: float,
) -> list[tuple[str, str]]:  # fmt: skip
    why = f"  (auto: {resolved.reason})" if resolved.reason else ""
    rows = [("target", f"{resolved.target}{why}")]
    known = {**special.values, **special.sizes}
    if known:
        rows.append(("values", _values_text(known)))
    parameters = zip(made.signature.inputs, inputs, strict=True)
    rows.append(("inputs", "\n".join(_input_text(p, x) for p, x in parameters)))
    if made.signature.results:
        rows.append(("returns", "\n".join(_buffer_text(b) for b in made.signature.results)))
    rows.append(("compile", "from the cache" if made.from_cache else f"{seconds:.2f} s"))
    return rows


def _check(
    chosen: Chosen, special: Specialised, made: JITKernel, before: Sequence[Any],
    after: Sequence[Any], returned: Any,
) -> list[Comparison]:  # fmt: skip
    reference = find_reference(chosen.file.module, chosen.name)
    if reference is None:
        _table([("check", f"no function reference, ref_program or {chosen.name}_reference in the "
                 "file")])  # fmt: skip
        return []
    found = _compared(reference, special, made, before, after, returned)
    for c in found:
        if c.instead:
            continue  # what is told instead of a number is the error itself
        _table([("error", f"{c.error:.2g} of {c.name}, relative to {reference.__name__}() in "
                 f"float64; allowed {c.allowed:g}")])  # fmt: skip
    return found


def _compared(
    reference: Callable[..., Any], special: Specialised, made: JITKernel, before: Sequence[Any],
    after: Sequence[Any], returned: Any,
) -> list[Comparison]:  # fmt: skip
    written = made.written_inputs()
    results = list(returned) if isinstance(returned, list) else [returned]
    named = list(zip((b.name for b in made.signature.results), results, strict=False))
    if not named:
        named = [(made.signature.inputs[i].name, after[i]) for i in written]
    least = TF32_TOLERANCE if _uses_tf32(special, made) else 0.0
    return compare(reference, before, named, _values(special, made), frozenset(written), least)


def _values_text(values: Mapping[str, Value]) -> str:
    """One line per origin."""
    lines: dict[str, list[str]] = {}
    for name, v in values.items():
        lines.setdefault(v.origin, []).append(f"{name}={v.value}")
    return "\n".join(f"{', '.join(found)}  ({origin})" for origin, found in lines.items())


def _input_text(parameter: Any, value: Any) -> str:
    if not isinstance(parameter, Buffer):
        return f"{parameter.name} = {value}"
    dtype = str(value.dtype).removeprefix("torch.")
    return f"{parameter.name} {tuple(value.shape)} {dtype}"


def _buffer_text(buffer: Buffer) -> str:
    shape = ", ".join(expr_text(d) for d in buffer.shape)
    return f"{buffer.name} ({shape}{',' if buffer.ndim == 1 else ''}) {buffer.dtype.name}"


def _duration(milliseconds: float) -> str:
    return f"{milliseconds * 1000:.1f} µs" if milliseconds < 1 else f"{milliseconds:.2f} ms"
