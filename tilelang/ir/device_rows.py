"""Which operations does every CUDA-like device have: asynchronous copies, warp exchange, barriers,
atomics, named-rounding maths, printing?

Sections of the PTX ISA are named by their instruction.
"""

from __future__ import annotations

from typing import Final

from tilelang.ir.device_op import Constant, DeviceOp, Group, Operand

MEMORY_ORDERS: Final = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
_WIDTHS: Final = (1, 2, 4, 8, 16, 32, 64)


def scalars(*names: str) -> tuple[Operand, ...]:
    """Operands passed by value; a trailing `?` marks an optional one."""
    return tuple(Operand(n.rstrip("?"), "scalar", optional=n.endswith("?")) for n in names)


_COPIES = (
    DeviceOp(
        "cp_async",
        "start copying `bytes` (4, 8, 16) from global to shared memory; where `predicate` is "
        "false nothing is read and zeros are written",
        "cp.async",
        operands=(
            Operand("dst", "shared", "write", asynchronous=True),
            Operand("src", "global", "read", asynchronous=True),
            *scalars("predicate?"),
        ),
        constants=(
            Constant("bytes", (4, 8, 16)),
            # "": through L2 only for 16 bytes, also through L1 for less.
            Constant("cache", ("", "ca", "cg"), ""),
        ),
        min_arch=80, header="copy_async.h", queue="cp_async",
    ),
    DeviceOp(
        "cp_async_commit", "close a group of this thread's cp_async",
        "cp.async.commit_group",
        min_arch=80, header="copy_async.h", closes="cp_async",
    ),
    DeviceOp(
        "cp_async_wait", "wait until at most `groups` groups of this thread's cp_async are pending",
        "cp.async.wait_group",
        constants=(Constant("groups"),), min_arch=80, header="copy_async.h", waits="cp_async",
    ),
)  # fmt: skip


def _matrix_rows(load: bool) -> tuple[DeviceOp, ...]:
    """ldmatrix or stmatrix: 8x8 matrices of 16-bit elements between shared memory and lanes."""
    rows = []
    for matrices in (1, 2, 4):
        for transposed in (False, True):
            suffix = "_trans" if transposed else ""
            how = "transposed, " if transposed else ""
            shared = Operand("row", "shared", "read" if load else "write")
            lanes = Operand("dst" if load else "src", "local", "write" if load else "read")
            rows.append(
                DeviceOp(
                    f"{'ld' if load else 'st'}matrix_x{matrices}{suffix}",
                    f"{'load' if load else 'store'} {matrices} 8x8 matrices of 16-bit elements, "
                    f"{how}one row address per lane; 4*{matrices} bytes of each lane",
                    "ldmatrix" if load else "stmatrix",
                    operands=(lanes, shared) if load else (shared, lanes),
                    group="warp",
                    min_arch=75 if load else 90,
                    header="mma.h",
                )
            )
    return tuple(rows)


_SYNC = (
    DeviceOp(
        "sync_threads",
        "wait for all threads of the block, or for `count` threads at named barrier `id`",
        "bar", operands=scalars("id?", "count?"), group="block", orders="block",
        header="barrier.h",
    ),
    DeviceOp(
        "named_barrier_arrive", "arrive at named barrier `id` of `count` threads without waiting",
        "bar.arrive", operands=scalars("id", "count"), group="warp", header="barrier.h",
    ),
    DeviceOp(
        "sync_warp", "wait for the lanes of `mask` (all) of the warp", "bar.warp.sync",
        operands=scalars("mask?"), group="warp", orders="warp", header="warp.h",
    ),
    DeviceOp(
        "sync_grid", "wait for all threads of all blocks; makes the launch cooperative",
        group="grid", orders="grid", header="grid.h",
    ),
    DeviceOp(
        "fence_block", "order this thread's memory accesses within the block",
        "membar", header="barrier.h",
    ),
    DeviceOp(
        "fence_device", "order this thread's memory accesses within the device",
        "membar", header="barrier.h",
    ),
    *(
        DeviceOp(
            f"syncthreads_{kind}", f"barrier of the block; {what}", f"barrier.red.{red}",
            operands=scalars("predicate"), result="int32", group="block", orders="block",
            header="barrier.h",
        )
        for kind, red, what in (
            ("and", "and", "whether the predicate held in all threads"),
            ("or", "or", "whether the predicate held in any thread"),
            ("count", "popc", "in how many threads the predicate held"),
        )
    ),
)  # fmt: skip

_SHUFFLES = tuple(
    DeviceOp(
        name, doc, f"shfl.sync.{mode}",
        operands=scalars("value", lane, "mask"),
        constants=(Constant("width", _WIDTHS, 32, of_warp=True),),
        result="same", group="warp", header="warp.h",
    )
    for name, mode, lane, doc in (
        ("shfl_sync", "idx", "lane", "the value of lane `lane` of the segment"),
        ("shfl_xor", "bfly", "lane_mask", "the value of the lane with these bits flipped"),
        ("shfl_up", "up", "delta", "the value of the lane `delta` below"),
        ("shfl_down", "down", "delta", "the value of the lane `delta` above"),
    )
)  # fmt: skip

_VOTES = (
    *(
        DeviceOp(
            name, doc, section, operands=scalars(*operands), result=result, group="warp",
            header="warp.h",
        )
        for name, doc, section, operands, result in (
            ("any_sync", "whether the predicate holds in any lane", "vote.sync.any",
             ("predicate", "mask"), "int32"),
            ("all_sync", "whether the predicate holds in all lanes", "vote.sync.all",
             ("predicate", "mask"), "int32"),
            ("ballot_sync", "one bit per lane of `mask`", "vote.sync.ballot",
             ("predicate", "mask"), "uint32"),
            ("ballot", "one bit per lane of the warp", "vote.sync.ballot",
             ("predicate",), "uint32"),
            ("activemask", "one bit per lane that executes this", "activemask",
             (), "uint32"),
            ("match_any_sync", "the lanes with the same value", "match.any.sync",
             ("value", "mask"), "uint32"),
            ("match_all_sync", "all lanes if they agree, else 0", "match.all.sync",
             ("value", "mask"), "uint32"),
        )
    ),
    *(
        DeviceOp(
            f"warp_reduce_{kind}", f"{what} over each segment of the warp, known to all its lanes",
            "redux.sync, shfl.sync", operands=scalars("value"),
            constants=(Constant("logical_width", _WIDTHS, 32, of_warp=True),), result="same",
            group="warp", header="warp.h",
        )
        for kind, what in (
            ("sum", "the sum"), ("max", "the largest"), ("min", "the smallest"),
            ("bitand", "bitwise and"), ("bitor", "bitwise or"), ("bitxor", "bitwise xor"),
        )
    ),
    DeviceOp(
        "elect_one", "true in one lane of the warp", "elect.sync", result="bool",
        group="warp", header="warp.h",
    ),
    DeviceOp(
        "shuffle_elect", "true in one thread of each group of `thread_extent`, 0 for the block",
        "elect.sync", constants=(Constant("thread_extent"),), result="bool",
        group="warp", header="warp.h",
    ),
)  # fmt: skip

_POSITIONS = tuple(
    DeviceOp(
        name, doc,
        constants=tuple(
            Constant(c, (), default, of_warp=c == "warp_size") for c, default in constants
        ),
        result="int32", pure=True, header="warp.h",
    )
    for name, doc, constants in (
        ("get_lane_idx", "position of this thread in its warp", (("warp_size", 32),)),
        ("get_warp_idx", "number of this thread's warp", (("warp_size", 32),)),
        ("get_warp_idx_sync", "the same, uniform across the warp", (("warp_size", 32),)),
        ("get_warp_group_idx", "number of this thread's warp group",
         (("warp_size", 32), ("warps_per_group", 4))),
    )
)  # fmt: skip


def _atomic(kind: str, doc: str, section: str, values: tuple[str, ...] = ("value",)) -> DeviceOp:
    return DeviceOp(
        f"atomic_{kind}", doc, section,
        operands=(Operand("dst", "memory", "update"), *scalars(*values)),
        constants=(
            Constant("memory_order", MEMORY_ORDERS, "relaxed"),
            # Whether the caller uses the old value, which the call gives in any case.
            Constant("return_prev", (False, True), False, "ignored"),
        ),
        result="call", header="atomics.h",
    )  # fmt: skip


_ATOMICS = (
    *(
        _atomic(kind, f"{what}; gives the old value", "atom, red")
        for kind, what in (
            ("add", "dst += value"), ("max", "dst = max(dst, value)"),
            ("min", "dst = min(dst, value)"), ("and", "dst &= value"), ("or", "dst |= value"),
            ("xor", "dst ^= value"), ("exch", "exchange"),
        )
    ),
    _atomic("cas", "dst = value if dst == compare", "atom.cas", ("compare", "value")),
    *(
        DeviceOp(
            f"atomic_addx{lanes}", f"add {lanes} neighbouring elements; each is atomic by itself",
            "atom.add.v2, red.add.v4",
            operands=(Operand("dst", "memory", "update", lanes=lanes), *scalars("value")),
            constants=(Constant("return_prev", (False, True), False, "ignored"),),
            result="call", header="atomics.h",
        )
        for lanes in (2, 4)
    ),
    DeviceOp(
        "atomic_load", "read an element that others may be writing", "ld.relaxed",
        operands=(Operand("src", "memory"),),
        constants=(Constant("memory_order", MEMORY_ORDERS, "seq_cst"),), result="call",
        header="atomics.h",
    ),
    DeviceOp(
        "atomic_store", "write an element that others may be reading", "st.relaxed",
        operands=(Operand("dst", "memory", "write"), *scalars("value")),
        constants=(Constant("memory_order", MEMORY_ORDERS, "seq_cst"),), header="atomics.h",
    ),
)  # fmt: skip


def _wide(kind: str, space: str, bits: int) -> DeviceOp:
    """A memory instruction of a stated width, from `T.ldg128` and its like."""
    place, load = ("global" if space == "g" else "shared"), kind == "ld"
    guard = scalars("predicate?") if space == "g" else ()
    operand = Operand("src" if load else "dst", "global" if space == "g" else "shared",
                      "read" if load else "write")  # fmt: skip
    verb = "read" if load else "write"
    return DeviceOp(
        f"{kind}{space}{bits}", f"{verb} {bits} bits of {place} memory with one instruction",
        "ld" if load else "st",
        operands=(operand, *(() if load else scalars("value")), *guard),
        result="call" if load else None, symbol=f"{kind}{space}<{bits}>", header="memory.h",
    )  # fmt: skip


_WIDE = tuple(
    _wide(kind, space, bits)
    for space, widths in (("g", (32, 64, 128, 256)), ("s", (32, 64, 128)))
    for kind in ("ld", "st")
    for bits in widths
)

_ROUNDED = tuple(
    DeviceOp(
        f"ieee_{name}_{mode}", f"{what}, rounded {word}", section, operands=scalars(*operands),
        result="same", pure=True, header="math.h",
    )
    for name, what, section, operands in (
        ("add", "x + y", "add", ("x", "y")),
        ("sub", "x - y", "sub", ("x", "y")),
        ("mul", "x * y", "mul", ("x", "y")),
        ("fmaf", "x * y + z", "fma", ("x", "y", "z")),
        ("fdiv", "x / y", "div", ("x", "y")),
        ("frcp", "1 / x", "rcp", ("x",)),
        ("fsqrt", "square root", "sqrt", ("x",)),
    )
    for mode, word in (("rz", "toward zero"), ("ru", "up"), ("rd", "down"))
)  # fmt: skip

_MATHS = (
    DeviceOp(
        "to_tf32", "a float32 rounded to the nearest tf32 value, in a float32", "cvt.rna",
        operands=scalars("x"), result="float32", pure=True, min_arch=80, header="math.h",
    ),
    DeviceOp(
        "dp4a", "c += the product of two vectors of four int8", "dp4a",
        operands=(
            Operand("a", "any", lanes=4, dtype="int8"), Operand("b", "any", lanes=4, dtype="int8"),
            Operand("c", "any", "update", lanes=1, dtype="int32"),
        ),
        header="math.h",
    ),
    DeviceOp(
        "bfe", "bits [start, start + length) of an integer", "bfe",
        operands=scalars("x", "start", "length"), result="same", pure=True, header="math.h",
    ),
    *(
        DeviceOp(
            name, doc, "floating-point instructions", operands=scalars("x"), result="same",
            pure=True, header="math.h",
        )
        for name, doc in (("expm1", "exp(x) - 1"), ("erfc", "1 - erf(x)"))
    ),
)  # fmt: skip

_DEBUG = (
    DeviceOp(
        "print", "print `msg` and a value", operands=scalars("value?"),
        constants=(Constant("msg", (), "", "argument"),), header="debug.h",
    ),
    DeviceOp(
        "print_buffer", "print the elements of a buffer, by one thread",
        operands=(Operand("buffer", "any"),),
        constants=(
            Constant("msg", (), "", "argument"), Constant("warp_group_id", (), 0, "ignored"),
            Constant("warp_id", (), 0, "ignored"),
        ),
        header="debug.h",
    ),
    DeviceOp(
        "device_assert", "trap with `msg` and the Python position if `condition` is false",
        operands=scalars("condition"), constants=(Constant("msg", (), "", "argument"),),
        header="debug.h",
    ),
)  # fmt: skip

ROWS: Final[tuple[DeviceOp, ...]] = (
    *_COPIES, *_matrix_rows(True), *_matrix_rows(False), *_SYNC, *_SHUFFLES, *_VOTES, *_POSITIONS,
    *_ATOMICS, *_WIDE, *_ROUNDED, *_MATHS, *_DEBUG,
)  # fmt: skip
__all__ = ["MEMORY_ORDERS", "ROWS", "Group", "scalars"]
