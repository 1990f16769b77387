"""What a kernel's author tells the compiler: layouts, safe values, block order, promises, flags."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from tilelang.language.catalog import language_function
from tilelang.language.operands import (
    IntLike,
    ScalarLike,
    choice,
    declared,
    extents_text,
    is_symbolic,
    kind_text,
    static_bool,
    static_int,
    trace_of,
)
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.program import arith, operators
from tilelang.program.buffer import Buffer
from tilelang.program.context import argument_span, reject, warn
from tilelang.program.expr import Const, Expr, Load
from tilelang.program.stmt import Annotate, Assume
from tilelang.program.unknown import Unknown
from tilelang_diagnostics import counted
from tilelang_diagnostics.model import Label, Severity

SWIZZLE_ORDERS = ("row", "column", "mlx")
REGISTERS = (24, 256)  # PTX ISA, setmaxnreg: a multiple of 8 in this range


@language_function("annotation")
def annotate_layout(layout_map: Any) -> None:
    """Fixes where the elements of buffers lie, instead of letting the compiler choose.

    Args:
        layout_map: `{buffer: layout}` with a `T.Layout` for shared buffers, a `T.Fragment` for
        fragments, or a function of the indices such as `lambda i, j: i * 72 + j`.

    >>> T.annotate_layout({A_shared: T.Layout((64, 64), lambda i, j: (i, j ^ (i % 8 * 8)))})
    """
    trace = trace_of("annotate_layout")
    placed: dict[Buffer, Any] = trace.facts.setdefault("annotated_layouts", {})
    chosen: dict[Buffer, Any] = {}
    for buffer, layout in _buffer_map("annotate_layout", "layout_map", layout_map).items():
        if buffer in placed:
            before = placed[buffer]
            reject(
                "TL312",
                f"`{buffer.name}` is given two layouts",
                labels=(*declared(buffer), *((Label(before, "the first one"),) if before else ())),
                help="annotate each buffer once",
            )
        resolved = _layout_of(buffer, layout)
        if not isinstance(resolved, Unknown):
            chosen[buffer] = resolved
        placed[buffer] = trace.span
    _annotate("layout", chosen)


@language_function("annotation")
def annotate_safe_value(safe_value_map: Any) -> None:
    """Says what reads outside a buffer give, instead of 0.

    Args:
        safe_value_map: `{buffer: number}`.

    >>> T.annotate_safe_value({A: -T.infinity("float32")})
    """
    values = _buffer_map("annotate_safe_value", "safe_value_map", safe_value_map)
    _annotate("safe_value", {b: operators.cast(v, b.dtype) for b, v in values.items()})


@language_function("annotation")
def annotate_l2_hit_ratio(l2_hit_ratio_map: Any) -> None:
    """Asks for a part of the L2 cache to be kept for tensors (CUDA, access policy window).

    Args:
        l2_hit_ratio_map: `{tensor: ratio}` with ratios between 0 and 1.

    >>> T.annotate_l2_hit_ratio({B: 0.5})
    """
    ratios = _buffer_map("annotate_l2_hit_ratio", "l2_hit_ratio_map", l2_hit_ratio_map)
    for buffer, ratio in ratios.items():
        if not buffer.is_global:
            reject(
                "TL208",
                f"`{buffer.name}` is not in global memory, so it has no place in the L2 cache",
                span=argument_span("l2_hit_ratio_map"),
                labels=declared(buffer),
                help="name tensor parameters",
            )
        number = _number(ratio)
        if number is None or not 0 < number <= 1:
            reject(
                "TL117",
                f"the hit ratio {kind_text(ratio)} of `{buffer.name}` is not in (0, 1]",
                span=argument_span("l2_hit_ratio_map"),
                help="give the part of the cache to keep, such as 0.5",
            )
    _annotate("l2_hit_ratio", {b: _number(r) for b, r in ratios.items()})


@language_function("annotation")
def use_swizzle(panel_size: int, order: str = "row", enable: bool = True) -> None:
    """Launches blocks in panels, so that neighbours in time share rows and columns in L2.

    Args:
        panel_size: blocks per panel; order: row, column or mlx; enable: False for no effect.

    >>> T.use_swizzle(10)
    """
    panel = static_int("use_swizzle", "panel_size", panel_size, 0, 1 << 20)
    chosen = choice("use_swizzle", "order", order, SWIZZLE_ORDERS)
    if static_bool("use_swizzle", "enable", enable) and panel is not None:
        if panel == 0:
            reject(
                "TL117",
                "a panel of `T.use_swizzle` has 0 blocks",
                span=argument_span("panel_size"),
                help="say how many; `enable=False` leaves the order of blocks as it is",
            )
        _annotate("swizzle", (panel, chosen))


@language_function("annotation")
def annotate_pass_configs(configs: Any) -> None:
    """Sets compile options of this kernel; options of the caller win.

    Args:
        configs: `{option: value}`, as `pass_configs` of `tilelang.jit`.

    >>> T.annotate_pass_configs({"tl.enable_fast_math": True})
    """
    if not isinstance(configs, Mapping):
        reject(
            "TL116",
            f"`configs` is {kind_text(configs)}, not a dict of options",
            span=argument_span("configs"),
            help='write `{"tl.enable_fast_math": True}`',
        )
    chosen = {str(getattr(key, "value", key)): value for key, value in configs.items()}
    trace_of("annotate_pass_configs").facts.setdefault("pass_configs", {}).update(chosen)


@language_function("annotation")
def annotate_compile_flags(flags: Any) -> None:
    """Adds flags for the device compiler of this kernel; flags of the caller come after.

    Args:
        flags: a string or a list of strings.

    >>> T.annotate_compile_flags(["-lineinfo"])
    """
    given = (flags,) if isinstance(flags, str) else flags
    if not isinstance(given, (tuple, list)) or not all(isinstance(f, str) for f in given):
        reject(
            "TL116",
            f"`flags` is {kind_text(flags)}, not a string or a list of strings",
            span=argument_span("flags"),
            help='write `["-lineinfo"]`',
        )
    facts = trace_of("annotate_compile_flags").facts
    facts["compile_flags"] = (*facts.get("compile_flags", ()), *given)


@language_function("annotation")
def annotate_restrict_buffers(*buffers: Buffer) -> None:
    """Promises that these tensors do not overlap any other in memory.

    Args:
        buffers: tensor parameters.

    >>> T.annotate_restrict_buffers(A, B)
    """
    for position, buffer in enumerate(buffers):
        if not isinstance(buffer, Buffer):
            reject(
                "TL116",
                f"{kind_text(buffer)} is not a tensor",
                span=argument_span("buffers", position),
                help="name tensor parameters",
            )
    _annotate("restrict", dict.fromkeys(buffers, True))


@language_function("annotation")
def assume(cond: ScalarLike | None = None) -> None:
    """Promises a condition to the compiler, which may drop guards because of it.

    Args:
        cond: bool expression over dims and indices.

    >>> T.assume(N % 4 == 0)
    """
    if cond is None:
        return
    test = operators.as_condition(cond)
    if isinstance(test, Const):
        if not test.value:
            warn(
                "TL184",
                "the assumption is always false",
                severity=Severity.WARNING,
                help="promise what holds for every call, or drop the `T.assume`",
            )
        return
    trace = trace_of("assume")
    # A name for a condition (`fits = N % 4 == 0`) promises what it stands for.
    trace.emit(Assume(arith.spelled_out(test), **trace.position()))


@language_function("annotation")
def func_attr(attrs: Any) -> None:
    """Attaches attributes to the kernel function.

    Args:
        attrs: `{name: value}`.

    >>> T.func_attr({"global_symbol": "main"})
    """
    if not isinstance(attrs, Mapping):
        reject(
            "TL116",
            f"`attrs` is {kind_text(attrs)}, not a dict",
            span=argument_span("attrs"),
            help="write `{name: value}`",
        )
    _annotate("func_attr", tuple((str(k), v) for k, v in attrs.items()))


@language_function("annotation")
def annotate_producer_reg_dealloc(reg_count: int = 24) -> None:
    """Registers that producer warp groups keep (PTX ISA, setmaxnreg.dec).

    Args:
        reg_count: a multiple of 8, 24 to 256.

    >>> T.annotate_producer_reg_dealloc(24)
    """
    _annotate("producer_registers", registers("annotate_producer_reg_dealloc", reg_count))


@language_function("annotation")
def annotate_consumer_reg_alloc(reg_count: int = 240) -> None:
    """Registers that consumer warp groups get (PTX ISA, setmaxnreg.inc).

    Args:
        reg_count: a multiple of 8, 24 to 256.

    >>> T.annotate_consumer_reg_alloc(240)
    """
    _annotate("consumer_registers", registers("annotate_consumer_reg_alloc", reg_count))


@language_function("annotation")
def disable_warp_group_reg_alloc() -> None:
    """Leaves the registers of warp groups as the launch gives them.

    >>> T.disable_warp_group_reg_alloc()
    """
    _annotate("no_register_reallocation", True)


@language_function("annotation")
def no_set_max_nreg() -> None:
    """As `T.disable_warp_group_reg_alloc`.

    >>> T.no_set_max_nreg()
    """
    _annotate("no_register_reallocation", True)


def registers(function: str, reg_count: IntLike) -> int | None:
    """A register count that setmaxnreg takes."""
    low, high = REGISTERS
    count = static_int(function, "reg_count", reg_count, 0, high)
    if count and (count % 8 or count < low):
        reject(
            "TL117",
            f"`reg_count={count}` of `T.{function}` is not a multiple of 8 from {low} to {high}",
            help=f"{max(low, (count + 7) // 8 * 8)} is the next possible value",
        )
    return count


def _annotate(key: str, value: Any) -> None:
    trace = trace_of(key)
    trace.emit(Annotate(key, value, **trace.position()))


def _buffer_map(function: str, role: str, value: Any) -> dict[Buffer, Any]:
    if not isinstance(value, Mapping):
        reject(
            "TL116",
            f"`{role}` of `T.{function}` is {kind_text(value)}, not a dict",
            span=argument_span(role),
            help=f"write `T.{function}({{buffer: …}})`",
        )
    for key in value:
        if not isinstance(key, Buffer):
            element = f"; `{key.buffer.name}` itself is meant" if isinstance(key, Load) else ""
            reject(
                "TL116",
                f"{kind_text(key)} is not a buffer{element}",
                span=argument_span(role),
                help="use whole buffers",
            )
    return dict(value)


def _layout_of(buffer: Buffer, layout: Any) -> Any:
    """A layout that fits the buffer; functions of the indices are tabulated."""
    if isinstance(layout, Layout | Fragment):
        return _one_to_one(buffer, _checked(buffer, layout))
    if not callable(layout):
        reject(
            "TL311",
            f"the layout of `{buffer.name}` is {kind_text(layout)}",
            span=argument_span("layout_map"),
            labels=declared(buffer),
            help="use `T.Layout`, `T.Fragment` or a function of the indices",
        )
    if any(is_symbolic(d) for d in buffer.shape):
        return Unknown(f"layout of {buffer.name}")
    if buffer.is_fragment:
        _refuse_layout_on_fragment(buffer)
    count = _parameter_count(layout)
    if count is not None and count != buffer.ndim:
        reject(
            "TL308",
            f"the layout function of `{buffer.name}` takes {counted(count, 'index')}, the buffer "
            f"has {buffer.ndim}",
            span=argument_span("layout_map"),
            labels=declared(buffer),
            help=f"write a function of {counted(buffer.ndim, 'index')}",
        )
    try:
        return _one_to_one(buffer, Layout(buffer.shape, layout))
    except (TypeError, ValueError, ArithmeticError) as error:
        reject(
            "TL311",
            f"the layout function of `{buffer.name}` gives no index: {error}",
            span=argument_span("layout_map"),
            labels=declared(buffer),
            help="return one integer, or a tuple of integers, made of the indices",
        )


def _checked(buffer: Buffer, layout: Layout | Fragment) -> Layout | Fragment:
    if buffer.is_fragment and not isinstance(layout, Fragment):
        _refuse_layout_on_fragment(buffer)
    if arith.shapes_surely_differ(layout.shape, buffer.shape):
        reject(
            "TL308",
            f"a layout for {extents_text(layout.shape)} is given to `{buffer.name}` "
            f"{extents_text(buffer.shape)}",
            span=argument_span("layout_map"),
            labels=declared(buffer),
            help=f"make the layout for the shape {extents_text(buffer.shape)}",
        )
    return layout


def _one_to_one(buffer: Buffer, layout: Layout | Fragment) -> Layout | Fragment:
    """No two elements may share a place; a fragment may hold copies of one."""
    pair = layout.collision() if isinstance(layout, Layout) else layout.clash()
    if pair is None:
        return layout
    first, second = (f"{buffer.name}[{', '.join(map(str, index))}]" for index in pair)
    place = layout(*pair[0])
    shown = place[0] if isinstance(place, tuple) and len(place) == 1 else place
    reject(
        "TL302",
        f"the layout of `{buffer.name}` puts `{first}` and `{second}` in one place ({shown})",
        span=argument_span("layout_map"),
        labels=declared(buffer),
        help="make the index map one to one, for example `i * row_length + j`",
    )


def _refuse_layout_on_fragment(buffer: Buffer) -> None:
    reject(
        "TL303",
        f"fragment `{buffer.name}` is given a layout that names no threads",
        span=argument_span("layout_map"),
        labels=declared(buffer),
        help="use `T.Fragment(shape, lambda i, j: (thread, register))`",
    )


def _parameter_count(function: Any) -> int | None:
    """How many indices a layout function takes; None when it takes any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return sum(p.default is p.empty for p in parameters)


def _number(value: Any) -> float | None:
    if isinstance(value, Expr):
        return float(value.value) if isinstance(value, Const) else None
    return float(value) if isinstance(value, (int, float)) else None


FUNCTIONS = (
    annotate_layout, annotate_safe_value, annotate_l2_hit_ratio, use_swizzle,
    annotate_pass_configs, annotate_compile_flags, annotate_restrict_buffers, assume, func_attr,
    annotate_producer_reg_dealloc, annotate_consumer_reg_alloc, disable_warp_group_reg_alloc,
    no_set_max_nreg,
)  # fmt: skip
