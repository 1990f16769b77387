"""Read-modify-write that no other thread can interrupt: elements, vectors and whole tiles."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelang.dtypes import DType
from tilelang.language.catalog import NOT_METAL, language_function
from tilelang.language.operands import (
    SHARED,
    ScalarLike,
    TileLike,
    choice,
    declared,
    effect,
    emit_tile,
    intrinsic,
    is_true,
    known,
    options,
    place,
    refuse_in_parallel,
    require_scope,
    static_bool,
    tile,
    trace_of,
)
from tilelang.language.tile_extents import match_extents, side
from tilelang.program import arith, indexing, operators
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.program.context import reject
from tilelang.program.expr import INT32, Const, Expr, Load
from tilelang.program.text import region_text

MEMORY_ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
# What a load cannot promise, and what a store cannot.
LOAD_ORDERS = ("relaxed", "consume", "acquire", "seq_cst")
STORE_ORDERS = ("relaxed", "release", "seq_cst")
SHAREABLE = ("global", *SHARED)
VECTOR_DTYPES = ("float16", "bfloat16", "float32")


@language_function("scalar")
def atomic_add(
    dst: TileLike,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    use_tma: bool = False,
    annotations: Any = None,
) -> Expr | None:
    """Adds to an element, or a tile to a tile, atomically.

    Args:
        dst: element, region or buffer in global or shared memory; value: number, expression or
        tile; memory_order: relaxed (default), consume, acquire, release, acq_rel or seq_cst;
        return_prev: give the old value (elements only); use_tma: bulk reduction (PTX ISA,
        cp.reduce.async.bulk; sm_90).

    >>> T.atomic_add(C[by * block_M, bx * block_N], C_shared)
    """
    given = {"use_tma": use_tma, **options("atomic_add", annotations)}
    return _atomic("add", dst, value, memory_order, return_prev, given["use_tma"])


@language_function("scalar")
def atomic_max(
    dst: TileLike,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    annotations: Any = None,
) -> Expr | None:
    """Keeps the larger of an element and `value`, atomically; tiles elementwise.

    Args:
        dst, value, memory_order, return_prev: as `T.atomic_add`.

    >>> T.atomic_max(peak[0], score)
    """
    options("atomic_max", annotations)
    return _atomic("max", dst, value, memory_order, return_prev, False)


@language_function("scalar")
def atomic_min(
    dst: TileLike,
    value: Any,
    memory_order: str | None = None,
    return_prev: bool = False,
    annotations: Any = None,
) -> Expr | None:
    """Keeps the smaller of an element and `value`, atomically; tiles elementwise.

    Args:
        dst, value, memory_order, return_prev: as `T.atomic_add`.

    >>> T.atomic_min(first[0], index)
    """
    options("atomic_min", annotations)
    return _atomic("min", dst, value, memory_order, return_prev, False)


@language_function("scalar")
def atomic_or(
    dst: TileLike, value: Any, memory_order: str | None = None, return_prev: bool = False
) -> Expr | None:
    """Sets bits of an integer element, atomically.

    Args:
        dst, value, memory_order, return_prev: as `T.atomic_add`; integers only.

    >>> T.atomic_or(flags[word], 1 << bit)
    """
    return _atomic("or", dst, value, memory_order, return_prev, False)


@language_function("scalar")
def atomic_and(
    dst: TileLike, value: Any, memory_order: str | None = None, return_prev: bool = False
) -> Expr | None:
    """Clears bits of an integer element, atomically.

    Args:
        dst, value, memory_order, return_prev: as `T.atomic_add`; integers only.

    >>> T.atomic_and(flags[word], ~(1 << bit))
    """
    return _atomic("and", dst, value, memory_order, return_prev, False)


@language_function("scalar")
def atomic_xor(
    dst: TileLike, value: Any, memory_order: str | None = None, return_prev: bool = False
) -> Expr | None:
    """Flips bits of an integer element, atomically.

    Args:
        dst, value, memory_order, return_prev: as `T.atomic_add`; integers only.

    >>> T.atomic_xor(flags[word], 1 << bit)
    """
    return _atomic("xor", dst, value, memory_order, return_prev, False)


@language_function("scalar")
def atomic_addx2(dst: TileLike, value: Any, return_prev: bool = False) -> Expr | None:
    """Adds two neighbouring elements at once, atomically.

    Args:
        dst: first of 2 elements in global or shared memory, float16, bfloat16 or float32;
        value: first of 2 elements, or a vector of 2 lanes; return_prev: give the old pair.

    >>> T.atomic_addx2(C[i, j], C_local[i, j])
    """
    return _vector_add(2, dst, value, return_prev)


@language_function("scalar")
def atomic_addx4(dst: TileLike, value: Any, return_prev: bool = False) -> Expr | None:
    """Adds four neighbouring elements at once, atomically.

    Args:
        dst: first of 4 elements in global or shared memory, float16, bfloat16 or float32;
        value: first of 4 elements, or a vector of 4 lanes; return_prev: give the old four.

    >>> T.atomic_addx4(C[i, j], C_local[i, j])
    """
    return _vector_add(4, dst, value, return_prev)


@language_function("scalar", targets=NOT_METAL)
def atomic_load(src: TileLike, memory_order: str = "seq_cst") -> Expr:
    """Reads an element that other threads may be writing.

    Args:
        src: element in global or shared memory; memory_order: relaxed, consume, acquire or seq_cst.

    >>> ready = T.atomic_load(flag[0], "acquire")
    """
    region = place("atomic_load", "src", src)
    require_scope("atomic_load", "src", region, SHAREABLE, _NOT_SHARED)
    order = _order("atomic_load", memory_order, LOAD_ORDERS)
    return intrinsic("atomic_load", (region,), region.dtype, memory_order=order)


@language_function("scalar", targets=NOT_METAL)
def atomic_store(dst: TileLike, src: ScalarLike, memory_order: str = "seq_cst") -> None:
    """Writes an element that other threads may be reading.

    Args:
        dst: element in global or shared memory; src: value; memory_order: relaxed, release or
        seq_cst.

    >>> T.atomic_store(flag[0], 1, "release")
    """
    region = place("atomic_store", "dst", dst)
    require_scope("atomic_store", "dst", region, SHAREABLE, _NOT_SHARED)
    order = _order("atomic_store", memory_order, STORE_ORDERS)
    effect("atomic_store", (region, operators.cast(src, region.dtype)), memory_order=order)


_NOT_SHARED = "only global and shared memory is seen by other threads; write `A[i] += v` instead"


def _atomic(
    op: str, dst: Any, value: Any, memory_order: Any, return_prev: Any, use_tma: Any
) -> Expr | None:
    function = f"atomic_{op}"
    region = tile(function, "dst", dst)
    require_scope(function, "dst", region, SHAREABLE, _NOT_SHARED)
    order = _order(function, memory_order or "relaxed", MEMORY_ORDERS)
    wants_old = is_true(static_bool(function, "return_prev", return_prev))
    tma = is_true(static_bool(function, "use_tma", use_tma))
    if known(region.dtype):
        _check_dtype(function, op, region)
    if tma:
        _check_tma(function)
    is_tile = isinstance(value, (Buffer, Region))
    is_element = isinstance(dst, Load) or _holds_one_element(dst)
    if is_tile and is_element and _holds_one_element(value):
        value, is_tile = _only_element(value), False
    if not is_tile and is_element:
        if tma:
            reject("TL117", f"`use_tma` of `T.{function}` moves tiles, not one element")
        target = place(function, "dst", _only_element(dst))
        return _element(function, target, operators.cast(value, region.dtype), order, wants_old)
    refuse_in_parallel(function)
    if wants_old:
        reject(
            "TL117",
            f"`return_prev` of `T.{function}` gives one old value, not those of a tile",
            span=region.span,
            labels=declared(region),
            help="index one element, or leave out `return_prev`",
        )
    operand: Region | Expr
    if is_tile:
        whole, operand = match_extents(
            function, side(function, "dst", dst), side(function, "value", value)
        )
    else:
        if isinstance(dst, Buffer):
            _refuse_missing_index(function, dst, region)
        whole, operand = region, operators.cast(value, region.dtype)
    emit_tile("atomic", (whole, operand), {"op": op, "memory_order": order, "use_tma": tma})
    return None


def _refuse_missing_index(function: str, dst: Buffer, region: Region) -> NoReturn:
    """One value for a whole buffer is hardly ever meant for each of its elements."""
    reject(
        "TL203",
        f"`T.{function}` is given one value and no element of `{dst.name}`",
        span=region.span,
        labels=declared(region),
        help=f"index it: `{dst.name}[{', '.join('…' for _ in dst.shape)}]`; all of its elements "
        f"are `{dst.name}[{', '.join(':' for _ in dst.shape)}]`",
    )


def _element(
    function: str, region: Region, value: Expr, order: str, wants_old: bool
) -> Expr | None:
    if wants_old:
        return intrinsic(
            function, (region, value), region.dtype, memory_order=order, return_prev=True
        )
    trace_of(function)
    effect(function, (region, value), memory_order=order)
    return None


def _vector_add(lanes: int, dst: Any, value: Any, return_prev: Any) -> Expr | None:
    function = f"atomic_addx{lanes}"
    target = _vector_place(function, "dst", dst, lanes)
    require_scope(function, "dst", target, SHAREABLE, _NOT_SHARED)
    if known(target.dtype) and target.dtype.name not in VECTOR_DTYPES:
        reject(
            "TL236",
            f"`T.{function}` adds {', '.join(VECTOR_DTYPES)}; "
            f"`{target.buffer.name}` is {target.dtype}",
            span=target.span,
            labels=declared(target),
            help="use `T.atomic_add` on single elements",
        )
    source = _vector_value(function, value, target.dtype, lanes)
    if is_true(static_bool(function, "return_prev", return_prev)):
        vector = target.dtype.with_lanes(lanes)
        return intrinsic(function, (target, source), vector, return_prev=True)
    effect(function, (target, source))
    return None


def _vector_value(function: str, value: Any, dtype: DType, lanes: int) -> Region | Expr:
    """The lanes to add: an element names the first of several neighbours."""
    if isinstance(value, (Buffer, Region, Load)) and getattr(value.dtype, "lanes", 1) == 1:
        region = _vector_place(function, "value", value, lanes)
        if known(dtype) and known(region.dtype) and region.dtype != dtype:
            reject(
                "TL236",
                f"`T.{function}` adds {region.dtype} (`{region.buffer.name}`) to {dtype}",
                span=region.span,
                labels=declared(region),
                help=f"convert the tile to {dtype} first",
            )
        return region
    converted: Expr = operators.cast(value, dtype.with_lanes(lanes))
    return converted


def _vector_place(function: str, role: str, value: Any, lanes: int) -> Region:
    """`lanes` neighbouring elements from `A[i, j]` on, or exactly the given region."""
    region = tile(function, role, value)
    last = region.ranges[-1]
    if isinstance(value, Load):
        start = arith.constant_value(last.min)
        limit = arith.constant_value(region.buffer.shape[-1])
        if start is not None and limit is not None and start + lanes > limit:
            reject(
                "TL221",
                f"`T.{function}` takes {lanes} elements from `{region_text(region)}` on, "
                f"`{region.buffer.name}` ends at {limit}",
                span=region.span,
                labels=declared(region),
                help=f"start at most at element {limit - lanes} of the last dimension",
            )
        wide = Range(last.min, Const(lanes, INT32))
        return Region(region.buffer, (*region.ranges[:-1], wide), region.span)
    count: Any = 1
    for extent in region.extents:
        count = operators.binary("*", count, extent)
    if arith.surely_different(count, lanes):
        reject(
            "TL202",
            f"`{role}` of `T.{function}` is `{region_text(region)}`, not {lanes} elements",
            span=region.span,
            labels=declared(region),
            help=f"name the first element: `{region.buffer.name}[…]`",
        )
    return region


def _check_dtype(function: str, op: str, region: Region) -> None:
    dtype = region.dtype
    if op in ("or", "and", "xor") and not dtype.is_integer:
        reject(
            "TL236",
            f"`T.{function}` needs integers, `{region.buffer.name}` is {dtype}",
            span=region.span,
            labels=declared(region),
            help="keep bits in an integer tensor, such as int32 or uint32",
        )
    if dtype.is_packed or dtype.kind == "handle" or (dtype.is_float and dtype.bits < 16):
        reject(
            "TL236",
            f"no atomic operation exists for {dtype} (`{region.buffer.name}`)",
            span=region.span,
            labels=declared(region),
            help="accumulate in a wider dtype, such as float32 or int32",
        )


def _check_tma(function: str) -> None:
    trace = trace_of(function)
    if trace.target is not None and not trace.target.startswith("cuda"):
        reject(
            "TL401",
            f"`use_tma` of `T.{function}` is not available on target `{trace.target}`",
            label="needs cuda:sm_90",
            help="leave it out; the tile is then added element by element",
        )


def _order(function: str, value: Any, allowed: tuple[str, ...]) -> str:
    return choice(function, "memory_order", value, allowed)


def _holds_one_element(value: Buffer | Region) -> bool:
    shape = value.shape if isinstance(value, Buffer) else value.extents
    return all(arith.constant_value(e) == 1 for e in shape)


def _only_element(value: Buffer | Region | Load) -> Any:
    if isinstance(value, Buffer):
        return value[(0,) * value.ndim]
    return indexing.region_value(value) if isinstance(value, Region) else value


FUNCTIONS = (
    atomic_add, atomic_max, atomic_min, atomic_or, atomic_and, atomic_xor, atomic_addx2,
    atomic_addx4, atomic_load, atomic_store,
)  # fmt: skip
