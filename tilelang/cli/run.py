"""`tilelang run FILE[::KERNEL]`: compile, run on random inputs, compare, time."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Any

import click

from tilelang.cli.arguments import kernel_argument, set_option, target_option
from tilelang.cli.files import Chosen, choose
from tilelang.cli.output import show, table
from tilelang.cli.reference import Comparison, compare, find_reference, mismatches
from tilelang.cli.specialise import Specialised, specialise
from tilelang.cli.values import Value, parse_settings
from tilelang.program.buffer import Buffer
from tilelang.program.text import expr_text
from tilelang.runtime.build import build
from tilelang.runtime.devices import resolve
from tilelang.runtime.inputs import TensorSupplyType, make_inputs
from tilelang.runtime.kernel import JITKernel
from tilelang.runtime.profiler import do_bench
from tilelang.runtime.tensors import Family
from tilelang.target import Resolved


@click.command("run")
@kernel_argument
@set_option
@target_option
@click.option("--seed", default=0, show_default=True, help="Seed of the random inputs.")
@click.option("--rep", default=300.0, show_default=True, metavar="MS", help="How long to measure.")
@click.option("--no-check", is_flag=True, help="Do not compare with the reference function.")
def command(
    kernel: str, settings: tuple[str, ...], target: str | None, seed: int, rep: float,
    no_check: bool,
) -> int:  # fmt: skip
    """Compile a kernel, run it on random inputs, check and time it.

    \b
    FILE is imported, never run as the main program. Values that --set does not give are those of
    the file: its own call of the kernel, its argument parser, its defaults.

    A function of the file called `reference`, `ref_program` or `<kernel>_reference` is given the
    same inputs in float64, and the results are compared.
    """
    chosen = choose(kernel)
    special = specialise(chosen, parse_settings(settings), target)
    resolved = resolve(special.target, announce=False)
    started = time.perf_counter()
    built = build(special.function, resolved.target, special.options)
    seconds = time.perf_counter() - started
    made = JITKernel(special.function, built, special.out_idx, special.options)
    inputs = make_inputs(
        made.signature, TensorSupplyType.Auto, special.plain_sizes(), seed, _family(chosen)
    )
    _describe(chosen, special, resolved, made, inputs, seconds)
    copies = [_copy(x) for x in inputs]
    returned = made(*inputs)
    comparisons = None if no_check else _check(chosen, special, made, copies, inputs, returned)
    milliseconds = do_bench(lambda: made(*inputs), rep=rep, return_mode="median")
    table([("time", f"{_duration(milliseconds)} (median)")])
    return _verdict(chosen, comparisons)


def _describe(
    chosen: Chosen, special: Specialised, resolved: Resolved, made: JITKernel,
    inputs: Sequence[Any], seconds: float,
) -> None:  # fmt: skip
    print(f"{made.name}  {chosen.place}")
    why = f"  (auto: {resolved.reason})" if resolved.reason else ""
    how = "from the cache" if made.from_cache else f"{seconds:.2f} s"
    rows = [("target", f"{resolved.target}{why}")]
    known = {**special.values, **special.sizes}
    if known:
        rows.append(("values", _values_text(known)))
    parameters = zip(made.signature.inputs, inputs, strict=True)
    rows.append(("inputs", "\n".join(_input_text(p, x) for p, x in parameters)))
    if made.signature.results:
        rows.append(("returns", "\n".join(_buffer_text(b) for b in made.signature.results)))
    rows.append(("compile", how))
    table(rows)


def _check(
    chosen: Chosen, special: Specialised, made: JITKernel, before: Sequence[Any],
    after: Sequence[Any], returned: Any,
) -> list[Comparison] | None:  # fmt: skip
    reference = find_reference(chosen.file.module, chosen.name)
    if reference is None:
        table([("check", "no reference function in the file (reference, ref_program, "
                f"{chosen.name}_reference)")])  # fmt: skip
        return None
    written = made.written_inputs()
    results = list(returned) if isinstance(returned, list) else [returned]
    named = list(zip((b.name for b in made.signature.results), results, strict=False))
    if not named:
        named = [(made.signature.inputs[i].name, after[i]) for i in written]
    values = {name: v.value for name, v in {**special.values, **special.sizes}.items()}
    found = compare(reference, before, named, values, frozenset(written))
    for c in found:
        table([("error", f"{c.error:.2g} of {c.name}, relative to {reference.__name__}() in "
                f"float64; allowed {c.allowed:g}")])  # fmt: skip
    return found


def _verdict(chosen: Chosen, comparisons: list[Comparison] | None) -> int:
    if not comparisons:
        return 0
    reference = find_reference(chosen.file.module, chosen.name)
    wrong = mismatches(comparisons, reference.__name__ if reference else "the reference")
    show(wrong)
    return 1 if wrong else 0


def _family(chosen: Chosen) -> Family:
    """PyTorch tensors for a file that uses PyTorch, NumPy arrays otherwise."""
    del chosen
    return "torch" if "torch" in sys.modules else "numpy"


def _values_text(values: dict[str, Value]) -> str:
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


def _copy(value: Any) -> Any:
    if hasattr(value, "clone"):
        return value.clone()
    return value.copy() if hasattr(value, "copy") else value
