"""What does a kernel look like when only threads are left, and which operations may it call?

The contract between lowering, which makes thread-level IR, and everything behind it: verifier,
hazard analysis, printers, device headers, emulator.

**A function at stage `device`**

- *Launches.* The body is host statements (`Bind`, `AssertStmt`, `assume`, `AllocBuffer` of scope
  `global` for workspaces, `DeclBuffer` views of global buffers), then one or more launches: nests
  of `AttrStmt thread_extent`, blockIdx z, y, x outside threadIdx z, y, x. Thread extents are
  constants, grid extents expressions over scalar parameters, dims and host bindings. Around a
  launch an `AttrStmt tl.launch` holds its attributes (`cluster_dims`, `prelude`). Each launch
  becomes one kernel. A function without a launch is refused.
- *Registers.* `AllocBuffer` of scope `local`: one dimension, constant extent. An index should be
  constant once loops marked UNROLLED are unrolled, or the array lands in local memory. Scope
  `local.var`: one element, printed as a variable.
- *Shared memory.* Scope `shared` (static) and `shared.dyn` (the dynamic arena): one dimension,
  indexed by the physical offset, swizzles included. `AllocBuffer` may carry `SHARED_OFFSET`, in
  bytes from the start of the arena, and `SHARED_ALIGNMENT`; without an offset the printer appends
  the buffer to the arena. Buffers may overlap. `shared.barrier`: an array of mbarriers (uint64),
  initialised by `mbarrier_init`.
- *Global memory.* Any rank; strides as the buffer says, row-major without. `DeclBuffer` views
  allowed (also of shared and local storage, with another shape or dtype).
- *Loops.* SERIAL, UNROLLED (`#pragma unroll`), VECTORIZED: see `passes/vectorize_accesses`, after
  which each VECTORIZED loop has a constant power-of-two extent and its accesses are provably
  contiguous and aligned, or broadcast. PARALLEL is illegal.
- *Statements.* IfThenElse, While, Bind, BufferStore, Evaluate, AssertStmt (traps), Break,
  Continue, `tl.thread_return`. *Expressions*: all of TIRX's arithmetic, Cast between any two of
  `tilelang.dtypes`, Select (both sides evaluated), `prim.if_then_else` (lazy), TIRX maths.
- *Sub-byte elements* (int4, uint4, float4_e2m1fn) are indexed by element and stored two a byte.
  Scalar stores of them read and write the whole byte: two threads must not share one.

**Device operations** are `tl.<name>` calls: as statements inside `Evaluate`, or as expressions
where they have a result. Operands come in the order of the row. Memory operands are
TensorRegions (buffer, offset, extent) whose extent says exactly what is touched: that is what
hazard analysis reads. Exception: for `ldmatrix_*` and `stmatrix_*` the region is the 16 bytes of
the row *this lane* names. Attrs hold the row's constants and nothing else. `call` builds one and
checks it.

The language's own spelling of some operations stays legal (`ALIASES`).

**Tensor maps.** A host binding `m = tl.tensor_map(region of a global buffer, *box extents)` with
attrs `swizzle` (0, 32, 64, 128 bytes) and `l2_promotion` declares a TMA descriptor; `m` is a Var of
dtype `handle` used as the `map` operand of `tma_load` and `tma_store`, coordinates innermost first.
It becomes a `__grid_constant__` parameter, and its recipe part of the launch's manifest.

**Descriptors of WGMMA** are never values: `wgmma_*` takes the shared regions of its operands and
their layout as constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tilelang.ir import build, tirx
from tilelang.ir.attrs import OP_PREFIX, is_ours, op_name, short_name
from tilelang.ir.device_op import DeviceOp
from tilelang.ir.device_rows import ROWS
from tilelang.ir.device_rows_hopper import ROWS as HOPPER_ROWS
from tilelang.ir.device_rows_metal import ROWS as METAL_ROWS
from tilelang.ir.device_rows_mma import ROWS as MMA_ROWS
from tilelang.ir.device_rows_random import ROWS as RANDOM_ROWS
from tilelang.ir.spans import TirSpan

# Annotations of an AllocBuffer of scope shared.dyn, in bytes.
SHARED_OFFSET: Final = "tl.shared_offset"
SHARED_ALIGNMENT: Final = "tl.shared_alignment"
TENSOR_MAP: Final = "tensor_map"

DEVICE_OPS: Final[Mapping[str, DeviceOp]] = {
    row.name: row for row in (*ROWS, *MMA_ROWS, *HOPPER_ROWS, *RANDOM_ROWS, *METAL_ROWS)
}

# What the language calls some operations, and how it calls their constants.
ALIASES: Final[Mapping[str, tuple[str, Mapping[str, str]]]] = {
    "ptx_commit_group": ("cp_async_commit", {}),
    "ptx_wait_group": ("cp_async_wait", {"num": "groups"}),
    "ptx_arrive_barrier": ("mbarrier_arrive", {}),
    "ptx_init_barrier_thread_count": ("mbarrier_init", {}),
    "ptx_fence_barrier_init": ("fence_mbarrier_init", {}),
    "wait_wgmma": ("wgmma_wait", {"id": "groups"}),
    "warpgroup_arrive": ("wgmma_fence", {}),
    "warpgroup_commit_batch": ("wgmma_commit", {}),
    "tma_store_arrive": ("bulk_commit", {}),
    "tma_store_wait": ("bulk_wait", {"count": "groups"}),
}


def find_op(name: str) -> DeviceOp | None:
    """The operation called `name`, with or without `tl.`, by its own name or an alias."""
    short = name.removeprefix(OP_PREFIX)
    alias = ALIASES.get(short)
    return DEVICE_OPS.get(short if alias is None else alias[0])


def op_of_call(node: Any) -> DeviceOp | None:
    """The operation a call expression calls, or None."""
    name = str(getattr(getattr(node, "op", None), "name", ""))
    return find_op(short_name(name)) if is_ours(name) else None


def constants_of(node: Any) -> dict[str, Any]:
    """The constants of a device call, by the names of its row."""
    name = short_name(str(node.op.name))
    said = {str(k): v for k, v in dict(node.attrs or {}).items()}
    alias = ALIASES.get(name)
    return said if alias is None else {alias[1].get(k, k): v for k, v in said.items()}


def call(
    name: str,
    operands: Sequence[Any],
    *,
    dtype: str = "void",
    span: TirSpan = None,
    **constants: int | str | bool,
) -> Any:
    """A checked call of operation `name`; raises ValueError for one its row does not allow."""
    op = DEVICE_OPS[name]
    problems = op.problems(len(operands), constants)
    for operand, row in zip(operands, op.operands, strict=False):
        if row.by_reference != isinstance(operand, tirx.TensorRegion):
            kind = "a region" if row.by_reference else "a value"
            problems.append(f"operand {row.name} of T.{name} is not {kind}")
    if problems:
        raise ValueError("; ".join(problems))
    tirx.ensure_op(name)
    return build.call(name, operands, dtype, constants, span)


def region(buffer: Any, offset: Any, extent: int, span: TirSpan = None) -> Any:
    """`extent` elements of a one-dimensional buffer from `offset` on."""
    start = build.const(offset, "int32", span) if isinstance(offset, int) else offset
    return build.region(buffer, [(start, build.const(extent, build.dtype_of(start), span))], span)


def tensor_map(
    source: Any,
    box: Sequence[int],
    *,
    swizzle: int = 0,
    l2_promotion: int = 128,
    span: TirSpan = None,
) -> Any:
    """The value of a host binding that describes tiles of `box` elements of a global region."""
    tirx.ensure_op(TENSOR_MAP)
    extents = [build.const(n, "int32", span) for n in box]
    said = {"swizzle": swizzle, "l2_promotion": l2_promotion}
    return build.call(TENSOR_MAP, [source, *extents], "handle", said, span)


def is_tensor_map(expr: Any) -> bool:
    """Whether `expr` describes a tensor map."""
    return str(getattr(getattr(expr, "op", None), "name", "")) == op_name(TENSOR_MAP)
