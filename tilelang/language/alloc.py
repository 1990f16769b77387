"""Storage inside a kernel: shared tiles, fragments, locals, variables, reducers, barriers."""

from __future__ import annotations

from typing import Any

from tilelang.dtypes import SCALARS, DType
from tilelang.language.catalog import BLACKWELL, HOPPER, language_function
from tilelang.language.slips import string_fixes
from tilelang.language.types import resolve_dtype, resolve_shape
from tilelang.program import operators
from tilelang.program.buffer import Buffer, Scope
from tilelang.program.context import Trace, active_trace, argument_span, reject
from tilelang.program.expr import INT32, Const, Expr, Load, VarRef, walk
from tilelang.program.stmt import Allocate, Attrs
from tilelang_diagnostics.suggest import did_you_mean

REDUCER_OPS = ("sum", "max", "min", "bitand", "bitor", "bitxor")


@language_function("alloc")
def alloc_shared(shape: Any, dtype: Any = "float32", scope: str = "shared.dyn") -> Buffer:
    """A tile in the memory all threads of a block share.

    Args:
        shape: constant extents; dtype: element type; scope: `shared.dyn` or static `shared`.

    >>> A_shared = T.alloc_shared((block_M, block_K), "float16")
    """
    element = resolve_dtype(dtype)
    if scope not in ("shared", "shared.dyn"):
        reject(
            "TL117",
            f"`{scope}` is not a shared scope",
            span=argument_span("scope"),
            help="use 'shared' or 'shared.dyn'",
        )
    # Dynamic shared memory is one byte arena; bool tiles stay static as users expect.
    chosen: Scope = "shared" if scope == "shared" or element.kind == "bool" else "shared.dyn"
    return _allocate(shape, element, chosen, constant_shape=True)


@language_function("alloc")
def alloc_fragment(shape: Any, dtype: Any = "float32", scope: str = "local.fragment") -> Buffer:
    """A tile in registers, spread over all threads of a block; indexed as one array.

    >>> C_local = T.alloc_fragment((block_M, block_N), "float32")
    """
    return _allocate(shape, resolve_dtype(dtype), "local.fragment", constant_shape=True)


@language_function("alloc")
def alloc_local(shape: Any, dtype: Any = "float32", scope: str = "local") -> Buffer:
    """A private array of each thread.

    >>> vec = T.alloc_local((8,), "float16")
    """
    return _allocate(shape, resolve_dtype(dtype), "local", constant_shape=True)


@language_function("alloc")
def alloc_var(dtype: Any, *args: Any, scope: str = "local.var", init: Any = None) -> VarRef:
    """A mutable scalar of each thread; assigning to its Python name stores.

    Args:
        dtype: element type; init: first value (also as second positional argument).

    >>> count = T.alloc_var("int32", init=0)
    """
    for extra in args:
        if isinstance(extra, str) and extra.startswith("local"):
            continue
        init = extra
    element = resolve_dtype(dtype)
    first = None if init is None else operators.cast(operators.as_expr(init), element)
    buffer = _allocate((1,), element, "local.var", init=first)
    return VarRef(buffer, (Const(0, INT32),), element, buffer.span)


@language_function("alloc")
def alloc_reducer(
    shape: Any, dtype: Any = "float32", op: str = "sum", replication: Any = None
) -> Buffer:
    """A write-only accumulator of logical shape, combined across threads when finalised.

    Args:
        op: one of sum, max, min, bitand, bitor, bitxor (bit ops need integers).

    >>> acc = T.alloc_reducer((block_M,), "float32", op="sum")
    """
    if op not in REDUCER_OPS:
        reject(
            "TL117",
            f"`{op}` is not a reduction{did_you_mean(str(op), REDUCER_OPS)}",
            span=argument_span("op"),
            fixes=string_fixes(argument_span("op"), str(op), REDUCER_OPS),
            help=f"one of {', '.join(REDUCER_OPS)}",
        )
    element = resolve_dtype(dtype)
    if op.startswith("bit") and element.is_float:
        reject(
            "TL236",
            f"`{op}` needs integers, got {element}",
            span=argument_span("dtype"),
            help="use an int or uint dtype, or op='sum', 'max' or 'min'",
        )
    attrs: Attrs = (("op", op), ("replication", replication))
    # With `replication` it is used as a fragment, until `old_reducers` gives each thread a share.
    scope: Scope = "local.reducer" if replication is None else "local.fragment"
    return _allocate(shape, element, scope, constant_shape=True, attrs=attrs)


@language_function("alloc")
def alloc_global(shape: Any, dtype: Any = "float32", scope: str = "global") -> Buffer:
    """Scratch in global memory that lives as long as the launch.

    >>> partial = T.alloc_global((splits, M, N), "float32")
    """
    return _allocate(shape, resolve_dtype(dtype), "global")


@language_function("alloc", targets=HOPPER)
def alloc_barrier(arrive_count: Any) -> Buffer:
    """An array of mbarriers in shared memory, one per listed arrive count (PTX ISA, mbarrier).

    >>> full = T.alloc_barrier([128] * num_stages)
    """
    return _barrier(arrive_count, "shared.barrier")


@language_function("alloc", targets=HOPPER)
def alloc_cluster_barrier(arrive_count: Any) -> Buffer:
    """Like `alloc_barrier`, reachable from the other blocks of the cluster.

    >>> full = T.alloc_cluster_barrier([256])
    """
    return _barrier(arrive_count, "shared.cluster_barrier")


@language_function("alloc", targets=BLACKWELL)
def alloc_tmem(shape: Any, dtype: Any) -> Buffer:
    """A tile in tensor memory (PTX ISA, tcgen05), at most 512 columns a block.

    >>> C_tmem = T.alloc_tmem((128, 256), "float32")
    """
    dims = resolve_shape(shape)
    if len(dims) < 2:
        reject(
            "TL215",
            "a tensor-memory tile has at least two dimensions",
            span=argument_span("shape"),
            help="write (rows, columns)",
        )
    return _allocate(dims, resolve_dtype(dtype), "shared.tmem", constant_shape=True)


def allocate_own(
    trace: Trace, name: str, shape: tuple[int, ...], dtype: DType, scope: Scope
) -> Buffer:
    """Memory that a function of the language needs for itself."""
    outer, trace.target_name = trace.target_name, name
    try:
        return _allocate(shape, dtype, scope)
    finally:
        trace.target_name = outer


def _barrier(arrive_count: Any, scope: Scope) -> Buffer:
    counts = tuple(arrive_count) if isinstance(arrive_count, (list, tuple)) else (arrive_count,)
    for count in counts:
        if isinstance(count, int) and not 1 <= count < 1 << 20:
            reject(
                "TL511",
                f"an arrive count of {count} is outside 1 … {(1 << 20) - 1}",
                span=argument_span("arrive_count"),
                help="give the number of threads that arrive in one phase",
            )
    attrs: Attrs = (("arrive_counts", counts),)
    return _allocate((len(counts),), SCALARS["uint64"], scope, attrs=attrs)


# What a buffer is called that is bound to no name, where its scope is no word.
_NAMELESS = {"shared.dyn": "shared"}


def _allocate(
    shape: Any,
    dtype: Any,
    scope: Scope,
    *,
    constant_shape: bool = False,
    init: Expr | None = None,
    attrs: Attrs = (),
) -> Buffer:
    trace = active_trace()
    assert trace is not None
    dims = resolve_shape(shape)
    if constant_shape:
        for dim in dims:
            _check_constant(dim, trace)
    name = trace.unique(trace.target_name or _NAMELESS.get(scope, scope.split(".")[-1]))
    buffer = Buffer(name, dims, dtype, scope, trace.span, attrs=attrs)
    trace.emit(Allocate(buffer, init, **trace.position()))
    return buffer


def _check_constant(dim: Any, trace: Trace) -> None:
    """On-chip tiles need extents known when compiling; values not chosen yet are fine."""
    if isinstance(dim, int):
        if dim == 0:
            reject(
                "TL215",
                "an on-chip buffer with extent 0 holds nothing",
                span=argument_span("shape"),
                help="give every dimension at least one element",
            )
        return
    for node in walk(dim):
        if isinstance(node, Load) or getattr(node, "kind", None) in (
            "dim", "param", "loop", "block", "thread",
        ):  # fmt: skip
            reject(
                "TL216",
                f"extent `{dim}` is only known when the kernel runs",
                span=argument_span("shape"),
                label="on-chip buffers need constant extents",
                help="allocate the largest tile and guard, or make it a compile-time value",
            )


FUNCTIONS = (
    alloc_shared, alloc_fragment, alloc_local, alloc_var, alloc_reducer, alloc_global,
    alloc_barrier, alloc_cluster_barrier, alloc_tmem,
)  # fmt: skip
__all__ = ["FUNCTIONS", "REDUCER_OPS"]
