"""Compile a kernel of a file, run it on random inputs, compare it, time it."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.cli.files import Chosen, choose
from tilelang.cli.output import show, table
from tilelang.cli.reference import Comparison, compare, find_reference, mismatches
from tilelang.cli.specialise import Specialised, specialise
from tilelang.cli.values import Value, parse_settings
from tilelang.program.buffer import Buffer
from tilelang.program.text import expr_text
from tilelang.runtime.build import build
from tilelang.runtime.devices import resolve, resolve_quietly
from tilelang.runtime.effects import pointer_tables
from tilelang.runtime.inputs import TensorSupplyType, make_inputs
from tilelang.runtime.kernel import JITKernel
from tilelang.runtime.profiler import do_bench
from tilelang.runtime.tensors import Family, copy_of
from tilelang.target import Resolved


def run_kernel(
    kernel: str, settings: Sequence[str], target: str | None, seed: int, rep: float, check: bool
) -> int:
    """What `tilelang run` does; returns the exit status."""
    resolve_quietly()  # the target and its reason are in the report
    chosen = choose(kernel)
    special = specialise(chosen, parse_settings(settings), target)
    resolved = resolve(special.target)
    started = time.perf_counter()
    built = build(special.function, resolved.target, special.options)
    seconds = time.perf_counter() - started
    made = JITKernel(special.function, built, special.out_idx, special.options)
    inputs = make_inputs(
        made.signature,
        TensorSupplyType.Auto,
        special.plain_sizes(),
        seed,
        _family(),
        pointer_tables(special.function),
    )
    print(f"{made.name}  {chosen.place}")
    _table(_facts(special, resolved, made, inputs, seconds))
    copies = [copy_of(x) for x in inputs]
    returned = made(*inputs)
    comparisons = _check(chosen, special, made, copies, inputs, returned) if check else []
    milliseconds = do_bench(lambda: made(*inputs), rep=rep, return_mode="median")
    _table([("time", f"{_duration(milliseconds)} (median)")])
    reference = find_reference(chosen.file.module, chosen.name)
    wrong = mismatches(comparisons, reference.__name__ if reference else "the reference")
    show(wrong)
    return 1 if wrong else 0


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
    written = made.written_inputs()
    results = list(returned) if isinstance(returned, list) else [returned]
    named = list(zip((b.name for b in made.signature.results), results, strict=False))
    if not named:
        named = [(made.signature.inputs[i].name, after[i]) for i in written]
    values = {name: v.value for name, v in {**special.values, **special.sizes}.items()}
    found = compare(reference, before, named, values, frozenset(written))
    for c in found:
        _table([("error", f"{c.error:.2g} of {c.name}, relative to {reference.__name__}() in "
                 f"float64; allowed {c.allowed:g}")])  # fmt: skip
    return found


def _family() -> Family:
    """PyTorch tensors for a file that uses PyTorch, NumPy arrays otherwise."""
    return "torch" if "torch" in sys.modules else "numpy"


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
