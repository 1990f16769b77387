"""Single instructions of GPU tensor cores and register files: WGMMA, tcgen05, dp4a, setmaxnreg."""

from __future__ import annotations

from typing import Any

from tilelang.dtypes import SCALARS
from tilelang.language.annotations import registers
from tilelang.language.catalog import (
    BLACKWELL,
    HOPPER_ONLY,
    WARP_GROUPS,
    language_function,
)
from tilelang.language.operands import (
    FRAGMENT,
    LOCAL,
    SHARED,
    IntLike,
    declared,
    dtype_of,
    effect,
    integer,
    known,
    mbarrier,
    require_scope,
    static_bool,
    static_int,
    tile,
    trace_of,
)
from tilelang.program import arith, operators
from tilelang.program.buffer import Buffer, Range, Region
from tilelang.program.context import reject
from tilelang.program.expr import INT32, Const, Expr, Load
from tilelang.program.stmt import Allocate
from tilelang.program.text import region_text

UINT64 = SCALARS["uint64"]
TENSOR_MEMORY = ("shared.tmem",)


@language_function("scalar", targets=("cuda", "hip"))
def dp4a(A: Any, B: Any, C: Any) -> None:
    """Adds the product of two vectors of four int8 to an int32: `C += dot(A, B)` (PTX ISA, dp4a).

    Args:
        A, B: first of 4 int8 elements each; C: int32 element.

    >>> T.dp4a(A_local[0], B_local[0], C_local[0])
    """
    a, b = _four("A", A), _four("B", B)
    c = tile("dp4a", "C", C)
    for role, region, want in (("A", a, "int8"), ("B", b, "int8"), ("C", c, "int32")):
        if known(region.dtype) and region.dtype.name != want:
            reject(
                "TL236",
                f"`{role}` of `T.dp4a` must be {want}, `{region.buffer.name}` is {region.dtype}",
                span=region.span,
                labels=declared(region),
                help="it multiplies int8 by int8 into int32 only",
            )
    effect("dp4a", (a, b, _first(c)))


@language_function("sync", targets=HOPPER_ONLY)
def wait_wgmma(id: int) -> None:
    """Waits until at most `id` groups of WGMMA are in flight (PTX ISA, wgmma.wait_group).

    Args:
        id: 0 to 7.

    >>> T.wait_wgmma(0)
    """
    effect("wait_wgmma", (), id=static_int("wait_wgmma", "id", id, 0, 7))


@language_function("sync", targets=HOPPER_ONLY)
def warpgroup_arrive() -> None:
    """Orders register writes before the next WGMMA (PTX ISA, wgmma.fence).

    >>> T.warpgroup_arrive()
    """
    effect("warpgroup_arrive")


@language_function("sync", targets=HOPPER_ONLY)
def warpgroup_commit_batch() -> None:
    """Closes a group of WGMMA (PTX ISA, wgmma.commit_group).

    >>> T.warpgroup_commit_batch()
    """
    effect("warpgroup_commit_batch")


@language_function("sync", targets=HOPPER_ONLY)
def warpgroup_wait(num_mma: int) -> None:
    """As `T.wait_wgmma`.

    Args:
        num_mma: groups that may stay in flight, 0 to 7.

    >>> T.warpgroup_wait(0)
    """
    effect("wait_wgmma", (), id=static_int("warpgroup_wait", "num_mma", num_mma, 0, 7))


@language_function("sync", targets=HOPPER_ONLY)
def warpgroup_fence_operand(
    buffer_or_ptr: Any, offset: IntLike = 0, num_regs: int | None = None, dtype: Any = None
) -> None:
    """Keeps accumulator registers in place between WGMMAs.

    Args:
        buffer_or_ptr: fragment or local buffer; offset: first register; num_regs: how many,
        all when left out; dtype: element type, that of the buffer when left out.

    >>> T.warpgroup_fence_operand(C_local)
    """
    region = tile("warpgroup_fence_operand", "buffer_or_ptr", buffer_or_ptr)
    require_scope("warpgroup_fence_operand", "buffer_or_ptr", region, (*FRAGMENT, *LOCAL))
    count = num_regs
    if count is not None:
        count = static_int("warpgroup_fence_operand", "num_regs", num_regs, 1, 256)
    element = region.dtype if dtype is None else dtype_of("warpgroup_fence_operand", dtype)
    first = integer("warpgroup_fence_operand", "offset", offset)
    effect("warpgroup_fence_operand", (region, first), num_regs=count, element=element)


@language_function("alloc", targets=HOPPER_ONLY)
def alloc_wgmma_desc() -> Buffer:
    """A descriptor of a shared tile for `T.ptx_wgmma_ss` (PTX ISA, wgmma matrix descriptor).

    >>> desc = T.alloc_wgmma_desc()
    """
    trace = trace_of("alloc_wgmma_desc")
    name = trace.unique(trace.target_name or "desc")
    buffer = Buffer(name, (1,), UINT64, "local", trace.span)
    trace.emit(Allocate(buffer, **trace.position()))
    return buffer


@language_function("scalar", targets=HOPPER_ONLY)
def initialize_wgmma_descriptor(
    descriptor: Any,
    start_address: Any,
    layout_type_: int = 0,
    leading_byte_offset: IntLike = 0,
    stride_byte_offset: IntLike = 0,
) -> None:
    """Fills a WGMMA matrix descriptor (PTX ISA, wgmma matrix descriptor format).

    Args:
        descriptor: from `T.alloc_wgmma_desc`; start_address: shared tile or pointer to it;
        layout_type_: swizzle mode 0 to 3; leading_byte_offset, stride_byte_offset: in 16 bytes.

    >>> T.initialize_wgmma_descriptor(desc, A_shared, 1, 1, 64)
    """
    name = "initialize_wgmma_descriptor"
    offsets = (
        integer(name, "leading_byte_offset", leading_byte_offset),
        integer(name, "stride_byte_offset", stride_byte_offset),
    )
    effect(
        name,
        (tile(name, "descriptor", descriptor), _address(name, start_address), *offsets),
        layout_type=static_int(name, "layout_type_", layout_type_, 0, 3),
    )


@language_function("scalar", targets=HOPPER_ONLY)
def ptx_wgmma_ss(
    dtype: Any,
    wgmma_prefix: str,
    a_is_k_major: bool,
    b_is_k_major: bool,
    a_dtype_abbrv: str,
    b_dtype_abbrv: str,
    accum_dtype_abbrv: str,
    A_desc: Any,
    A_offset: IntLike,
    B_desc: Any,
    B_offset: IntLike,
    C_data: Any,
    C_offset: IntLike,
    scale_out: Any,
    scale_in_a: IntLike,
    scale_in_b: IntLike,
) -> None:
    """One WGMMA with both operands in shared memory (PTX ISA, wgmma.mma_async).

    Args:
        dtype: of the accumulator; wgmma_prefix: shape such as m64n128k16; a_is_k_major,
        b_is_k_major: K is the fast axis; a_dtype_abbrv, b_dtype_abbrv, accum_dtype_abbrv: such as
        fp16; A_desc, B_desc: descriptors; C_data: accumulator registers; A_offset, B_offset,
        C_offset: where each starts; scale_out: 0 overwrites; scale_in_a, scale_in_b: 1 or -1.

    >>> T.ptx_wgmma_ss("float32", "m64n128k16", True, True, "fp16", "fp16", "fp32",
    ...                a_desc, 0, b_desc, 0, C_local, 0, 1, 1, 1)
    """
    name = "ptx_wgmma_ss"
    args = (
        tile(name, "A_desc", A_desc), integer(name, "A_offset", A_offset),
        tile(name, "B_desc", B_desc), integer(name, "B_offset", B_offset),
        tile(name, "C_data", C_data), integer(name, "C_offset", C_offset),
        operators.as_expr(scale_out), integer(name, "scale_in_a", scale_in_a),
        integer(name, "scale_in_b", scale_in_b),
    )  # fmt: skip
    effect(
        name, args, element=dtype_of(name, dtype), shape=wgmma_prefix,
        a_is_k_major=static_bool(name, "a_is_k_major", a_is_k_major),
        b_is_k_major=static_bool(name, "b_is_k_major", b_is_k_major),
        dtypes=(a_dtype_abbrv, b_dtype_abbrv, accum_dtype_abbrv),
    )  # fmt: skip


@language_function("sync", targets=BLACKWELL)
def tcgen05_mma_arrive(mbar: Any, arrive_2cta: bool = False) -> None:
    """Arrives at an mbarrier when the tcgen05 work so far is done (PTX ISA, tcgen05.commit).

    Args:
        mbar: an mbarrier; arrive_2cta: in both blocks of the pair.

    >>> T.tcgen05_mma_arrive(done[0])
    """
    pair = static_bool("tcgen05_mma_arrive", "arrive_2cta", arrive_2cta)
    effect("tcgen05_mma_arrive", (mbarrier("tcgen05_mma_arrive", "mbar", mbar),), arrive_2cta=pair)


@language_function("sync", targets=BLACKWELL)
def tcgen05_before_thread_sync() -> None:
    """Orders tcgen05 work before the next barrier (PTX ISA, tcgen05.fence::before_thread_sync).

    >>> T.tcgen05_before_thread_sync()
    """
    effect("tcgen05_before_thread_sync")


@language_function("sync", targets=BLACKWELL)
def tcgen05_after_thread_sync() -> None:
    """Orders tcgen05 work after the last barrier (PTX ISA, tcgen05.fence::after_thread_sync).

    >>> T.tcgen05_after_thread_sync()
    """
    effect("tcgen05_after_thread_sync")


@language_function("scalar", targets=BLACKWELL)
def tcgen05_cp_warpx4(
    smem_src: Any, tmem_dst: Any, tmem_col_offset: IntLike = 0, *, use_2cta: bool = False
) -> None:
    """Copies scale factors to tensor memory, for all four warps (PTX ISA, tcgen05.cp .warpx4).

    Args:
        smem_src: shared tile; tmem_dst: tensor-memory tile; tmem_col_offset: first column.

    >>> T.tcgen05_cp_warpx4(SFA_shared, SFA_tmem)
    """
    name = "tcgen05_cp_warpx4"
    source, target = tile(name, "smem_src", smem_src), tile(name, "tmem_dst", tmem_dst)
    require_scope(name, "smem_src", source, SHARED)
    require_scope(name, "tmem_dst", target, TENSOR_MEMORY, "allocate it with `T.alloc_tmem`")
    column = integer(name, "tmem_col_offset", tmem_col_offset)
    effect(name, (source, target, column), use_2cta=static_bool(name, "use_2cta", use_2cta))


@language_function("scalar", targets=BLACKWELL)
def tcgen05_sf_warp_transpose(smem_src: Any) -> None:
    """Reorders scale factors in shared memory into the order tcgen05.cp expects.

    Args:
        smem_src: shared tile, changed in place.

    >>> T.tcgen05_sf_warp_transpose(SFA_shared)
    """
    source = tile("tcgen05_sf_warp_transpose", "smem_src", smem_src)
    require_scope("tcgen05_sf_warp_transpose", "smem_src", source, SHARED)
    effect("tcgen05_sf_warp_transpose", (source,))


@language_function("alloc", targets=BLACKWELL)
def deallocate_tmem(tmem: Any) -> None:
    """Frees a tensor-memory tile now instead of at the end of the block (PTX ISA, tcgen05.dealloc).

    Args:
        tmem: from `T.alloc_tmem`.

    >>> T.deallocate_tmem(C_tmem)
    """
    region = tile("deallocate_tmem", "tmem", tmem)
    require_scope("deallocate_tmem", "tmem", region, TENSOR_MEMORY)
    effect("deallocate_tmem", (region,))


@language_function("sync", targets=WARP_GROUPS)
def set_max_nreg(reg_count: int, is_inc: int) -> None:
    """Changes how many registers this warp group has (PTX ISA, setmaxnreg).

    Args:
        reg_count: a multiple of 8, 24 to 256; is_inc: 1 to raise, 0 to lower.

    >>> T.set_max_nreg(240, 1)
    """
    count = registers("set_max_nreg", reg_count)
    raises = static_bool("set_max_nreg", "is_inc", is_inc)
    effect("set_max_nreg", (), reg_count=count, is_inc=raises)


def _four(role: str, value: Any) -> Region:
    """Four neighbouring elements: `A[i]` names the first of them."""
    region = tile("dp4a", role, value)
    if isinstance(value, Load):
        last = Range(region.ranges[-1].min, Const(4, INT32))
        return Region(region.buffer, (*region.ranges[:-1], last), region.span)
    count: Any = 1
    for extent in region.extents:
        count = operators.binary("*", count, extent)
    if arith.surely_different(count, 4):
        reject(
            "TL202",
            f"`{role}` of `T.dp4a` is `{region_text(region)}`, not 4 elements",
            span=region.span,
            labels=declared(region),
            help="name the first element, or a region of 4",
        )
    return region


def _first(region: Region) -> Region:
    one = Const(1, INT32)
    ranges = tuple(Range(r.min, one, is_point=True) for r in region.ranges)
    return Region(region.buffer, ranges, region.span)


def _address(function: str, value: Any) -> Region | Expr:
    if isinstance(value, Expr) and not isinstance(value, Load):
        return value
    return tile(function, "start_address", value)


FUNCTIONS = (
    dp4a, wait_wgmma, warpgroup_arrive, warpgroup_commit_batch, warpgroup_wait,
    warpgroup_fence_operand, alloc_wgmma_desc, initialize_wgmma_descriptor, ptx_wgmma_ss,
    tcgen05_mma_arrive, tcgen05_before_thread_sync, tcgen05_after_thread_sync, tcgen05_cp_warpx4,
    tcgen05_sf_warp_transpose, deallocate_tmem, set_max_nreg,
)  # fmt: skip
