"""Indexing and slicing of buffers: loads, stores, regions, and the checks on each."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelang.program import arith, operators, stmt
from tilelang.program import buffer as bf
from tilelang.program import expr as ex
from tilelang.program.context import active_trace, current_span, reject, warn
from tilelang.program.unknown import Unknown, contains_unknown
from tilelang_diagnostics import counted
from tilelang_diagnostics.model import Label, Severity, Span


def getitem(buffer: bf.Buffer, index: Any) -> Any:
    """`buffer[index]`: a Load when every index is a scalar, else a Region."""
    indices = index if isinstance(index, tuple) else (index,)
    if contains_unknown(indices):
        return Unknown(f"{buffer.name}[…]")
    if any(i is Ellipsis for i in indices):
        indices = _expand_ellipsis(buffer, indices)
    if any(isinstance(i, slice) for i in indices):
        return _region(buffer, indices)
    _check_count(buffer, indices)
    checked = tuple(_index(buffer, d, i) for d, i in enumerate(indices))
    return ex.Load(buffer, checked, buffer.dtype, current_span())


def setitem(buffer: bf.Buffer, index: Any, value: Any) -> None:
    """`buffer[index] = value`, cast to the buffer's dtype; slices store elementwise."""
    trace = active_trace()
    if trace is None:
        reject(
            "TL169",
            f"`{buffer.name}` can only be written inside a kernel",
            help="write it in a function decorated with `@T.prim_func` or `@tilelang.jit`",
        )
    target = getitem(buffer, index)
    if isinstance(target, Unknown) or contains_unknown(value):
        return
    if isinstance(target, ex.Load):
        stored = _stored_value(buffer, value)
        trace.emit(stmt.Store(buffer, target.indices, stored, **trace.position()))
        return
    _store_region(trace, target, value)


def region_of(value: Any) -> bf.Region | None:
    """A buffer, region or element as a region; None for anything else."""
    if isinstance(value, bf.Region):
        return value
    if isinstance(value, bf.Buffer):
        zero = ex.Const(0, ex.INT32)
        ranges = tuple(bf.Range(zero, operators.as_expr(d)) for d in value.shape)
        return bf.Region(value, ranges, current_span())
    if isinstance(value, ex.Load):
        one = ex.Const(1, ex.INT32)
        ranges = tuple(bf.Range(i, one, is_point=True) for i in value.indices)
        return bf.Region(value.buffer, ranges, value.span or current_span())
    return None


def region_shape(region: bf.Region) -> tuple[bf.Dim, ...]:
    """Extents of the sliced dimensions, as NumPy's indexing would leave them."""
    return tuple(arith.as_dim(r.extent) for r in region.ranges if not r.is_point)


def is_one_element(value: Any) -> bool:
    """Whether it is a region that can only be a single element, so that it is a scalar too."""
    return isinstance(value, bf.Region) and all(arith.constant_value(e) == 1 for e in value.extents)


def region_value(region: bf.Region) -> ex.Expr:
    """A region used as a scalar operand: only when it is a single element."""
    if is_one_element(region):
        indices = tuple(r.min for r in region.ranges)
        return ex.Load(region.buffer, indices, region.dtype, current_span())
    reject(
        "TL151",
        f"a region of `{region.buffer.name}` with more than one element is used as a scalar",
        help="index single elements inside `T.Parallel`, or use a tile operation",
    )


def region_getitem(region: bf.Region, index: Any) -> Any:
    """Indexing a region: relative to its origin, over its sliced dimensions."""
    indices = index if isinstance(index, tuple) else (index,)
    free = [d for d, r in enumerate(region.ranges) if not r.is_point]
    if len(indices) != len(free):
        reject(
            "TL203",
            f"region of `{region.buffer.name}` has {counted(len(free), 'sliced dimension')}, "
            f"got {counted(len(indices), 'index')}",
            labels=_declared(region.buffer),
            help=f"write exactly {counted(len(free), 'index')}, relative to the region",
        )
    full: list[Any] = [r.min for r in region.ranges]
    for dimension, i in zip(free, indices, strict=True):
        base = region.ranges[dimension].min
        if isinstance(i, slice):
            start = 0 if i.start is None else i.start
            stop = region.ranges[dimension].extent if i.stop is None else i.stop
            full[dimension] = slice(base + start, base + stop, i.step)
        else:
            full[dimension] = base + i
    return getitem(region.buffer, tuple(full))


def length(buffer: bf.Buffer) -> int:
    """`len(buffer)`, when the first extent is a constant."""
    first = buffer.shape[0]
    if isinstance(first, int):
        return first
    reject(
        "TL152",
        f"len({buffer.name}) is `{first}`, only known when the kernel runs",
        help=f"use `{buffer.name}.shape[0]`, which is an expression of the kernel",
    )


def refuse_truth(value: bf.Buffer | bf.Region, span: Span | None = None) -> NoReturn:
    """TL150, also for Python's `bool(buffer)`: without this it would ask for the length."""
    name = value.name if isinstance(value, bf.Buffer) else value.buffer.name
    element = f"{name}[{', '.join('ijklmn'[: _buffer(value).ndim])}]"
    reject(
        "TL150",
        f"buffer `{name}` is used as a condition",
        span=span,
        label="a whole buffer is neither true nor false",
        help=f"test an element (`{element} != 0`), `T.any_of({name})`, or `{name} is not None`",
    )


def refuse_iteration(value: bf.Buffer | bf.Region) -> NoReturn:
    """TL141, also for what Python does with anything that can be indexed: ask for 0, 1, 2, …"""
    buffer = _buffer(value)
    reject(
        "TL141",
        f"`{buffer.name}` cannot be iterated: its elements are only known when the kernel runs",
        help=f"loop over its indices: `for i in T.serial({buffer.shape[0]}):`",
    )


def _buffer(value: bf.Buffer | bf.Region) -> bf.Buffer:
    return value if isinstance(value, bf.Buffer) else value.buffer


def _check_count(buffer: bf.Buffer, indices: tuple[Any, ...]) -> None:
    if len(indices) != buffer.ndim:
        shape = ", ".join(str(d) for d in buffer.shape)
        reject(
            "TL203",
            f"buffer `{buffer.name}` is {buffer.ndim}-dimensional (shape ({shape})), "
            f"got {counted(len(indices), 'index')}",
            label=f"{counted(len(indices), 'index')} here",
            labels=_declared(buffer),
            help=f"write exactly {counted(buffer.ndim, 'index')}",
        )


def _index(buffer: bf.Buffer, dimension: int, index: Any) -> ex.Expr:
    """One scalar index: an integer, negative ones counted from the end, in bounds if known."""
    if isinstance(index, str) or index is None or isinstance(index, (float, list)):
        reject(
            "TL234",
            f"`{index!r}` is not an index of `{buffer.name}`",
            labels=_declared(buffer),
            help="`/` gives a float: write `//`"
            if isinstance(index, float)
            else "index with integers or integer expressions",
        )
    value = operators.as_expr(index)
    if value.dtype.is_float:
        reject(
            "TL234",
            f"index {dimension} of `{buffer.name}` is {value.dtype}, not an integer",
            span=value.span,
            help="cast it: `T.cast(…, 'int32')`",
        )
    if value.dtype.kind == "bool":
        value = operators.cast(value, ex.INT32)
    number = arith.constant_value(value)
    extent = buffer.shape[dimension]
    if number is not None and number < 0:
        if isinstance(extent, int) and number + extent < 0:
            _out_of_bounds(buffer, dimension, number)
        return operators.as_expr(extent + number)
    if number is not None and isinstance(extent, int) and number >= extent and not buffer.is_empty:
        _out_of_bounds(buffer, dimension, number)
    return value


def _out_of_bounds(buffer: bf.Buffer, dimension: int, number: int) -> None:
    reject(
        "TL220",
        f"index {number} is out of bounds for dimension {dimension} of `{buffer.name}` "
        f"(extent {buffer.shape[dimension]})",
        labels=_declared(buffer),
        help=f"use an index below {buffer.shape[dimension]}; -1 is the last element",
    )


def _region(buffer: bf.Buffer, indices: tuple[Any, ...]) -> bf.Region:
    _check_count(buffer, indices)
    ranges: list[bf.Range] = []
    for dimension, index in enumerate(indices):
        if not isinstance(index, slice):
            one = ex.Const(1, ex.INT32)
            ranges.append(bf.Range(_index(buffer, dimension, index), one, is_point=True))
            continue
        if index.step is not None and index.step != 1:
            reject(
                "TL224",
                f"slice of `{buffer.name}` has a step ({index.step})",
                help="copy element by element in `T.Parallel` with `i * step` as the index",
            )
        start = 0 if index.start is None else index.start
        stop = buffer.shape[dimension] if index.stop is None else index.stop
        begin = operators.as_expr(start)
        _refuse_negative_start(buffer, dimension, begin, start)
        extent = operators.as_expr(arith.simplify(stop - start))
        _check_slice(buffer, dimension, begin, extent)
        ranges.append(bf.Range(begin, extent))
    return bf.Region(buffer, tuple(ranges), current_span())


def _refuse_negative_start(buffer: bf.Buffer, dimension: int, begin: ex.Expr, start: Any) -> None:
    """Slices of tiles are regions of memory: their start is not counted from the end."""
    number = arith.constant_value(begin)
    if number is None or number >= 0:
        return
    extent = buffer.shape[dimension]
    counted = f"{extent} - {-number}" if not isinstance(extent, int) else f"{extent + number}"
    reject(
        "TL225",
        f"the slice of `{buffer.name}` starts at {number}, before its first element",
        label="not counted from the end, as Python would",
        labels=_declared(buffer),
        help=f"write the start out: `{counted}`",
    )


def _check_slice(buffer: bf.Buffer, dimension: int, begin: ex.Expr, extent: ex.Expr) -> None:
    """Reject what is surely empty or outside an on-chip buffer; global edges may be ragged."""
    size, first = arith.constant_value(extent), arith.constant_value(begin)
    if size is not None and size < 0:
        reject(
            "TL226",
            f"slice of `{buffer.name}` ends before it starts (extent {size})",
            labels=_declared(buffer),
            help="exchange the bounds",
        )
    limit = buffer.shape[dimension]
    if size is None or first is None or not isinstance(limit, int):
        return
    if (first + size <= limit and first >= 0) or buffer.is_empty:
        return
    message = (
        f"slice [{first}:{first + size}] exceeds dimension {dimension} of `{buffer.name}` "
        f"(extent {limit})"
    )
    fits = f"[{first}:{limit}]" if first < limit else f"[0:{limit}]"
    found: dict[str, Any] = {
        "label": f"reaches element {first + size - 1}",
        "labels": _declared(buffer),
        "help": f"slice at most `{fits}`",
    }
    if buffer.is_global and 0 <= first < limit:
        # Legal, but a constant that hangs over the edge is rarely meant.
        warn(
            "TL221",
            message,
            severity=Severity.WARNING,
            notes=("elements outside read as 0 and are not written",),
            **found,
        )
        return
    reject("TL221", message, **found)


def _expand_ellipsis(buffer: bf.Buffer, indices: tuple[Any, ...]) -> tuple[Any, ...]:
    at = next(n for n, i in enumerate(indices) if i is Ellipsis)
    missing = buffer.ndim - (len(indices) - 1)
    return indices[:at] + (slice(None),) * missing + indices[at + 1 :]


def _stored_value(buffer: bf.Buffer, value: Any) -> ex.Expr:
    stored = operators.as_expr(value, None) if isinstance(value, ex.Expr) else value
    return operators.as_expr(stored, buffer.dtype)


def _store_region(trace: Any, target: bf.Region, value: Any) -> None:
    """`A[0:4, 0] = v` as a vectorised loop over the sliced elements."""
    free = [r for r in target.ranges if not r.is_point]
    source = region_of(value) if not isinstance(value, ex.Expr) else None
    loop_vars = tuple(
        stmt.LoopVar(
            ex.Var(trace.unique("v"), ex.INT32, trace.span, "loop"),
            ex.Const(0, ex.INT32),
            r.extent,
        )
        for r in free
    )
    variables = iter(v.var for v in loop_vars)
    indices = tuple(r.min if r.is_point else r.min + next(variables) for r in target.ranges)
    with trace.block() as body:
        element = _element(source, value, loop_vars, target)
        stored = operators.cast(element, target.dtype)
        trace.emit(stmt.Store(target.buffer, indices, stored, **trace.position()))
    loop_body = stmt.For("vectorized", loop_vars[-1:], tuple(body), **trace.position())
    for outer in reversed(loop_vars[:-1]):
        loop_body = stmt.For("serial", (outer,), (loop_body,), **trace.position())
    trace.emit(loop_body)


def _element(
    source: bf.Region | None, value: Any, loop_vars: tuple[stmt.LoopVar, ...], target: bf.Region
) -> Any:
    if source is None:
        if isinstance(value, ex.Vector) and len(loop_vars) == 1:
            lanes = value.lanes
            picked: Any = lanes[-1]
            for lane in range(len(lanes) - 2, -1, -1):
                picked = ex.Select(
                    loop_vars[0].var == lane, lanes[lane], picked, False, picked.dtype
                )
            return picked
        return value
    sliced = [n for n, r in enumerate(source.ranges) if not r.is_point]
    if len(sliced) != len(loop_vars):
        reject(
            "TL202",
            f"`{source.buffer.name}` gives {counted(len(sliced), 'dimension')}, "
            f"`{target.buffer.name}` takes {len(loop_vars)}",
            labels=_declared(source.buffer) + _declared(target.buffer),
            help="slice as many dimensions on both sides, or use `T.copy`",
        )
    full = [r.min for r in source.ranges]
    for dimension, loop_var in zip(sliced, loop_vars, strict=True):
        full[dimension] = full[dimension] + loop_var.var
    return ex.Load(source.buffer, tuple(full), source.dtype, current_span())


def _declared(buffer: bf.Buffer) -> tuple[Label, ...]:
    if buffer.span is None:
        return ()
    shape = ", ".join(str(d) for d in buffer.shape)
    return (Label(buffer.span, f"`{buffer.name}` is declared here with shape ({shape})"),)
