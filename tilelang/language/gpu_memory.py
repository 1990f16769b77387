"""Memory instructions of a stated width, asynchronous copies by hand, and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelang.dtypes import SCALARS, DType
from tilelang.language.catalog import AMPERE, CUDA, HOPPER, LanguageFunction, language_function
from tilelang.language.operands import (
    SHARED,
    IntLike,
    ScalarLike,
    choice,
    declared,
    effect,
    integer,
    intrinsic,
    known,
    require_scope,
    static_bool,
    static_int,
    tile,
    trace_of,
    use_of,
)
from tilelang.program import arith, operators
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.program.context import reject
from tilelang.program.expr import FLOAT32, INT32, Const, Expr, Load
from tilelang.program.indexing import region_of
from tilelang.program.stmt import Allocate
from tilelang_diagnostics import counted

UINT32 = SCALARS["uint32"]
FLOAT64 = SCALARS["float64"]
GENERATORS = ("curandStatePhilox4_32_10_t",)
RNG_WORDS = 16  # of the state of one thread


@language_function("scalar", targets=AMPERE)
def ptx_cp_async(
    dst_access_ptr: Any, src_access_ptr: Any, num_elems: int, predicate: ScalarLike | None = None
) -> None:
    """Starts copying a few elements from global to shared memory (PTX ISA, cp.async).

    Args:
        dst_access_ptr, src_access_ptr: from `T.access_ptr`; num_elems: elements of 4, 8 or 16
        bytes in all; predicate: where false, zeros are written.

    >>> T.ptx_cp_async(T.access_ptr(S[i, 0], "w", 8), T.access_ptr(A[i, 0], "r", 8), 8)
    """
    count = static_int("ptx_cp_async", "num_elems", num_elems, 1, 16)
    pointers = [operators.as_expr(p) for p in (dst_access_ptr, src_access_ptr)]
    guard = () if predicate is None else (operators.as_condition(predicate),)
    effect("ptx_cp_async", (*pointers, *guard), num_elems=count)


@language_function("sync", targets=AMPERE)
def ptx_commit_group() -> None:
    """Closes a group of cp.async (PTX ISA, cp.async.commit_group).

    >>> T.ptx_commit_group()
    """
    effect("ptx_commit_group")


@language_function("sync", targets=AMPERE)
def ptx_wait_group(num: int) -> None:
    """Waits until at most `num` groups of cp.async are in flight (PTX ISA, cp.async.wait_group).

    Args:
        num: a small constant.

    >>> T.ptx_wait_group(0)
    """
    effect("ptx_wait_group", (), num=static_int("ptx_wait_group", "num", num, 0, 63))


@language_function("scalar", targets=HOPPER)
def tma_load(*args: Any) -> None:
    """One bulk tensor load by hand (PTX ISA, cp.async.bulk.tensor); `T.tma_copy` is the tile form.

    Args:
        args: descriptor, mbarrier, destination pointer, then coordinates.

    >>> T.tma_load(desc, full[0], T.access_ptr(S, "w"), 0, 0)
    """
    effect("tma_load", _raw("tma_load", args))


@language_function("scalar", targets=HOPPER)
def tma_store(*args: Any) -> None:
    """One bulk tensor store by hand (PTX ISA, cp.async.bulk.tensor); `T.tma_copy` is the tile form.

    Args:
        args: descriptor, source pointer, then coordinates.

    >>> T.tma_store(desc, T.access_ptr(S, "r"), 0, 0)
    """
    effect("tma_store", _raw("tma_store", args))


@language_function("sync", targets=HOPPER)
def tma_store_arrive() -> None:
    """Closes a group of bulk stores (PTX ISA, cp.async.bulk.commit_group).

    >>> T.tma_store_arrive()
    """
    effect("tma_store_arrive")


@language_function("sync", targets=HOPPER)
def tma_store_wait(count: int = 0, read: bool = True) -> None:
    """Waits until at most `count` groups of bulk stores are in flight (cp.async.bulk.wait_group).

    Args:
        count: a small constant; read: only until their source may be written again.

    >>> T.tma_store_wait(0)
    """
    effect(
        "tma_store_wait", (), count=static_int("tma_store_wait", "count", count, 0, 63),
        read=static_bool("tma_store_wait", "read", read),
    )  # fmt: skip


@language_function("scalar", targets=CUDA)
def rng_init(
    seed: IntLike, seq: IntLike | None = None, off: IntLike = 0, generator: str = GENERATORS[0]
) -> None:
    """Starts the random number generator of this thread (cuRAND, curand_init).

    Args:
        seed, off: integers; seq: sequence number, the global thread number when left out;
        generator: cuRAND state type; Philox is the one there is.

    >>> T.rng_init(seed)
    """
    kind = choice("rng_init", "generator", generator, GENERATORS)
    args = [integer("rng_init", "seed", seed), integer("rng_init", "off", off)]
    if seq is not None:
        args.append(integer("rng_init", "seq", seq))
    trace = trace_of("rng_init")
    state = trace.facts.get("rng")
    if state is None:
        buffer = Buffer(trace.unique("rng"), (RNG_WORDS,), UINT32, "local", trace.span)
        trace.emit(Allocate(buffer, None, **trace.position()))
        state = region_of(buffer)
        trace.facts["rng"] = state
    effect("rng_init", [state, *args], generator=kind)


@language_function("scalar", targets=CUDA)
def rng_rand() -> Expr:
    """32 random bits (cuRAND, curand); uint32.

    >>> bits = T.rng_rand()
    """
    return intrinsic("rng_rand", (_generator("rng_rand"),), UINT32, generator=GENERATORS[0])


@language_function("scalar", targets=CUDA)
def rng_rand_float(bit: int = 32, dist: str = "uniform") -> Expr:
    """A random float (cuRAND, curand_uniform and curand_normal).

    Args:
        bit: 32 or 64, the width of the result; dist: uniform in (0, 1] or normal.

    >>> noise = T.rng_rand_float(dist="normal")
    """
    width = static_int("rng_rand_float", "bit", bit, 32, 64)
    if width not in (32, 64, None):
        reject("TL117", f"`bit={width}` of `T.rng_rand_float` is neither 32 nor 64")
    kind = choice("rng_rand_float", "dist", dist, ("uniform", "normal"))
    result = FLOAT64 if width == 64 else FLOAT32
    state = _generator("rng_rand_float")
    name = f"rng_{kind or 'uniform'}_{result.name}"
    return intrinsic(name, (state,), result, generator=GENERATORS[0])


def _generator(function: str) -> Region:
    """The state of this thread's generator."""
    found = trace_of(function).facts.get("rng")
    if found is None:
        reject(
            "TL188",
            f"`T.{function}` before `T.rng_init`",
            label="this thread has no generator yet",
            help="add `T.rng_init(seed)` at the start of the kernel",
        )
    assert isinstance(found, Region)
    return found


def _raw(function: str, args: tuple[Any, ...]) -> list[Region | Expr]:
    """Operands of an instruction that is called by hand: tiles and barriers by reference."""
    from tilelang.program.indexing import region_of

    return [region_of(a) or operators.as_expr(a) for a in args]


def _load(bits: int) -> LanguageFunction:
    name = f"ldg{bits}"

    def function(src: Any, pred: ScalarLike | None = None) -> Expr:
        region, lanes = _run(name, "src", src, bits)
        require_scope(name, "src", region, ("global",), "it reads global memory; index a tensor")
        guard = () if pred is None else (operators.as_condition(pred),)
        return intrinsic(name, (region, *guard), region.dtype.with_lanes(lanes))

    doc = (
        f"Reads {bits} bits of global memory with one instruction (PTX ISA, ld.global).\n\n"
        f"Args:\n    src: first element; pred: where false, zeros come back;\n"
        f"    gives a vector of {bits} bits in the dtype of `src`.\n\n>>> v = T.{name}(A[i])"
    )
    return _named(name, doc, function)


def _shared_load(bits: int) -> LanguageFunction:
    name = f"lds{bits}"

    def function(src: Any) -> Expr:
        region, lanes = _run(name, "src", src, bits)
        require_scope(name, "src", region, SHARED)
        return intrinsic(name, (region,), region.dtype.with_lanes(lanes))

    doc = (
        f"Reads {bits} bits of shared memory with one instruction (PTX ISA, ld.shared).\n\n"
        f"Args:\n    src: first element; gives a vector of {bits} bits in the dtype of `src`.\n\n"
        f">>> v = T.{name}(S[i])"
    )
    return _named(name, doc, function)


def _store(bits: int) -> LanguageFunction:
    name = f"stg{bits}"

    def function(dst: Any, value: Any, pred: ScalarLike | None = None) -> None:
        region, lanes = _run(name, "dst", dst, bits)
        require_scope(name, "dst", region, ("global",), "it writes global memory; index a tensor")
        guard = () if pred is None else (operators.as_condition(pred),)
        effect(name, (region, _lanes(name, value, region.dtype.with_lanes(lanes)), *guard))

    doc = (
        f"Writes {bits} bits of global memory with one instruction (PTX ISA, st.global).\n\n"
        f"Args:\n    dst: first element; value: vector of {bits} bits; "
        f"pred: where false, nothing is written.\n\n>>> T.{name}(B[i], v)"
    )
    return _named(name, doc, function)


def _shared_store(bits: int) -> LanguageFunction:
    name = f"sts{bits}"

    def function(dst: Any, value: Any) -> None:
        region, lanes = _run(name, "dst", dst, bits)
        require_scope(name, "dst", region, SHARED)
        effect(name, (region, _lanes(name, value, region.dtype.with_lanes(lanes))))

    doc = (
        f"Writes {bits} bits of shared memory with one instruction (PTX ISA, st.shared).\n\n"
        f"Args:\n    dst: first element; value: vector of {bits} bits.\n\n>>> T.{name}(S[i], v)"
    )
    return _named(name, doc, function)


def _named(name: str, doc: str, function: Callable[..., Any]) -> LanguageFunction:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return language_function("scalar", targets=("cuda", "hip"))(function)


def _run(function: str, role: str, value: Any, bits: int) -> tuple[Region, int]:
    """The neighbouring elements that `bits` bits cover, from the given one on."""
    region = tile(function, role, value)
    if not known(region.dtype):
        return region, 1
    lanes = bits // region.dtype.bits
    if lanes * region.dtype.bits != bits:
        reject(
            "TL236",
            f"`T.{function}` moves {bits} bits, {region.dtype} (`{region.buffer.name}`) has "
            f"{region.dtype.bits}",
            span=region.span,
            labels=declared(region),
            help="use the width of the dtype or a multiple of it",
        )
    if not isinstance(value, Load):
        return region, lanes
    start = arith.constant_value(region.ranges[-1].min)
    if start is not None and start % lanes:
        reject(
            "TL117",
            f"`{role}` of `T.{function}` starts at element {start}, not a multiple of {lanes}",
            span=region.span,
            labels=declared(region),
            help=f"accesses of {bits} bits must be aligned to {bits} bits",
        )
    last = Range(region.ranges[-1].min, Const(lanes, INT32))
    return Region(region.buffer, (*region.ranges[:-1], last), region.span), lanes


def _lanes(function: str, value: Any, dtype: DType) -> Expr:
    expr = operators.as_expr(value)
    have, want = (d.bits * d.lanes for d in (expr.dtype, dtype))
    if known(expr.dtype) and have == want and expr.dtype != dtype:
        return intrinsic("reinterpret", (expr,), dtype)
    if known(expr.dtype) and expr.dtype.lanes not in (1, dtype.lanes):
        reject(
            "TL239",
            f"`T.{function}` writes {dtype}, the value is {expr.dtype}",
            span=use_of(expr),
            help=f"give it {counted(dtype.lanes, 'lane')}",
        )
    converted: Expr = operators.cast(expr, dtype)
    return converted


FUNCTIONS = (
    ptx_cp_async, ptx_commit_group, ptx_wait_group, tma_load, tma_store, tma_store_arrive,
    tma_store_wait, rng_init, rng_rand, rng_rand_float,
    *(_load(bits) for bits in (32, 64, 128, 256)),
    *(_store(bits) for bits in (32, 64, 128, 256)),
    *(_shared_load(bits) for bits in (32, 64, 128)),
    *(_shared_store(bits) for bits in (32, 64, 128)),
)  # fmt: skip
