"""T.wgmma_gemm: a warp group multiplies tiles that the tensor cores read in shared memory.

    T.wgmma_gemm(A_shared, B_shared, C_local)     # 128 x 128, one warp group, float16
    # C_local: thread=i//16%4*32 + i%8*4 + j//2%4         A_shared, B_shared: 128-byte swizzle

The instruction runs on after the statement, so nothing can be moved for it: what does not lie
right, or does not fit, is refused. `T.gemm` takes it where it fits, and waits for it; where not,
`why_not` says why, and the warps multiply by themselves.
"""

from __future__ import annotations

from dataclasses import replace

from tilelang.layout.gemm import NoPartition, WarpGrid
from tilelang.layout.swizzle import SwizzleMode
from tilelang.layout.wgmma import (
    GROUP,
    LINES,
    ROWS,
    TYPES,
    Wgmma,
    find_wgmma,
    partition_groups,
    rows_of,
    sums_of,
    swizzles_of,
)
from tilelang.layouts.addresses import constant_shape, known_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import ByGroups, EngineUse, Product
from tilelang.program import arith
from tilelang.program.accesses import storage
from tilelang.program.buffer import Region
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic, Label


def demand(b: Builder, product: Product) -> None:
    """Fix what lies in registers, and the swizzles of what lies in shared memory."""
    found = plan(b, product)
    if isinstance(found, Diagnostic):
        if not b.machine.nominal:  # targets that need no layouts only show what would be
            b.found.append(found)
        return
    _demand(b, product, found, convertible=False)


def choose(b: Builder, product: Product) -> str:
    """Let warp groups do a `T.gemm`: empty, or why they do not."""
    why = _out_of_reach(b, product)
    if why:
        return why
    found = plan(b, product)
    if isinstance(found, Diagnostic):
        return found.message
    _demand(b, product, found, convertible=True)
    return ""


def plan(b: Builder, product: Product) -> ByGroups | Diagnostic:
    """How warp groups share the product, or what does not fit."""
    found = _instruction(b, product)
    if isinstance(found, Diagnostic):
        return found
    m, n, k = product.m, product.n, product.k
    grid = partition_groups(m, n, b.threads // GROUP, product.policy)
    if isinstance(grid, NoPartition):
        return _no_partition(product, grid)
    columns = n // grid.n_warps
    if found.width(columns) is None:
        return _illegal_width(product, found, columns)
    rows = None
    if product.a.buffer.is_fragment:
        rows = rows_of(m, k, grid, found.bits, product.transpose_a)
    shared = []
    for region, part in _in_place(product, grid):
        modes = _modes(product, region, part)
        if isinstance(modes, Diagnostic):
            return modes
        shared.append((region, modes))
    return ByGroups(sums_of(m, n, grid), rows, tuple(shared))


def _in_place(product: Product, grid: WarpGrid) -> list[tuple[Region, int | None]]:
    """The shared operands of known shape, and at multiples of how many rows a warp group starts."""
    columns = product.n // grid.n_warps
    whole = None if product.transpose_b or grid.n_warps == 1 else columns
    found = ((product.a, ROWS if product.transpose_a else None), (product.b, whole))
    return [(r, p) for r, p in found if r.buffer.is_shared and known_shape(r.buffer) is not None]


def _demand(b: Builder, product: Product, found: ByGroups, convertible: bool) -> None:
    b.products.append(replace(product, groups=found))
    b.fix(product.c, found.c, product.origin, convertible=convertible)
    if found.a is not None:
        b.fix(product.a, found.a, product.origin, convertible=convertible)
    for region, modes in found.shared:
        b.engine_uses.append(EngineUse(storage(region.buffer), product.origin, modes))


def _out_of_reach(b: Builder, product: Product) -> str:
    """What `T.wgmma_gemm` would refuse while it is lowered, or what WGMMA computes otherwise."""
    a, right, c = product.a.buffer, product.b.buffer, product.c.buffer
    if not b.machine.has_wgmma:
        return "`tl.disable_wgmma` is set"  # nobody asks a machine that has none
    if id(product.op) in b.plain:
        return "its tiles cannot lie as it needs them"
    if a.dtype.bits > 16:
        return f"it would round {a.dtype} without care"
    if not right.is_shared:
        return f"`{right.name}` is not in shared memory"
    if not (a.is_shared or a.is_fragment) or not c.is_fragment:
        return f"`{c.name if a.is_shared else a.name}` is not in registers"
    for region in (product.a, product.b, product.c):
        name = region.buffer.name
        if region.buffer.source is not None:
            return f"`{name}` is a view"
        if region.buffer.is_fragment and not _is_whole(region):
            return f"only a part of `{name}` is used"
        if region.buffer.is_shared and not _starts_a_block(region):
            return f"the part of `{name}` may start within a swizzled block"
    return ""


def _is_whole(region: Region) -> bool:
    shape, extents = known_shape(region.buffer), constant_shape(region.extents)
    starts = [arith.constant_value(r.min) for r in region.ranges]
    return shape is not None and shape == extents and not any(starts)


def _starts_a_block(region: Region) -> bool:
    """Whether the last two dimensions start at a multiple of the largest swizzled block."""
    units = (LINES, SwizzleMode.FULL_BANK.row_bits // region.buffer.dtype.bits)
    starts = [arith.constant_value(r.min) for r in region.ranges[-2:]]
    return all(s is not None and s % unit == 0 for s, unit in zip(starts, units, strict=True))


def _instruction(b: Builder, product: Product) -> Wgmma | Diagnostic:
    """The instructions for the types and sizes."""
    c = product.c.buffer
    found = find_wgmma(product.a.buffer.dtype.name, product.b.buffer.dtype.name, c.dtype.name)
    if found is None:
        return _no_types(product)
    if b.threads % GROUP:
        return make_diagnostic(
            "TL408",
            f"{_called(product)} into `{c.name}` runs on {b.threads} threads, which are no whole "
            f"number of warp groups of {GROUP}",
            span=product.op.span,
            help=f"run it on {GROUP} or {2 * GROUP} threads: in a `with T.ws(0):`, or as the "
            "threads of the kernel",
        )
    units = (("M", product.m, ROWS), ("N", product.n, 8), ("K", product.k, found.k))
    for letter, size, unit in units:
        if size % unit:
            return _illegal_size(product, letter, size, unit)
    for name, region, transposed in (
        ("A", product.a, product.transpose_a), ("B", product.b, not product.transpose_b),
    ):  # fmt: skip
        if transposed and region.buffer.is_shared and not found.transposes:
            return _not_along_k(product, name, region)
    return found


def _modes(
    product: Product, region: Region, part: int | None
) -> tuple[SwizzleMode, ...] | Diagnostic:
    """The swizzles of a shared operand; `part` of its rows is what a warp group starts at
    multiples of."""
    shape, bits = known_shape(region.buffer), region.buffer.dtype.bits
    assert shape is not None
    modes = tuple(
        mode for mode, _ in swizzles_of(shape, bits)
        if part is None or part * bits % mode.row_bits == 0
    )  # fmt: skip
    if modes:
        return modes
    return make_diagnostic(
        "TL411",
        f"rows of {shape[-1]} x {region.buffer.dtype} of `{region.buffer.name}` fit no "
        "swizzle that WGMMA reads",
        span=product.op.span,
        labels=_declared(region),
        help=f"make the last extent a multiple of {256 // bits}, which are 32 bytes, and the "
        "one before a multiple of 8",
    )


def _no_types(product: Product) -> Diagnostic:
    a, c = product.a.buffer, product.c.buffer
    legal = "; ".join(f"{', '.join(i)} into {' or '.join(s)}" for i, s, _ in TYPES)
    return make_diagnostic(
        "TL412",
        f"WGMMA cannot multiply {a.dtype} by {product.b.buffer.dtype} into {c.dtype}, as "
        f"{_called(product)} into `{c.name}` asks",
        span=product.op.span,
        labels=_declared(product.a, product.b, product.c),
        help=f"it multiplies {legal}; `T.gemm` takes other types",
    )


def _illegal_size(product: Product, letter: str, size: int, unit: int) -> Diagnostic:
    below = size // unit * unit
    legal = " or ".join(str(n) for n in (below, below + unit) if n)
    return make_diagnostic(
        "TL410" if letter == "K" else "TL409",
        f"{letter} = {size} of {_called(product)} into `{product.c.buffer.name}` is no multiple of "
        f"the {unit} that one instruction takes",
        span=product.op.span,
        labels=_declared(product.a, product.b, product.c),
        help=f"the nearest legal sizes are {legal}, or use `T.gemm`",
    )


def _illegal_width(product: Product, found: Wgmma, columns: int) -> Diagnostic:
    return make_diagnostic(
        "TL409",
        f"no WGMMA for {found.a} makes the {columns} columns of `{product.c.buffer.name}` that a "
        "warp group has",
        span=product.op.span,
        labels=_declared(product.c),
        help=f"legal widths are multiples of {16 if found.sum == 'int32' else 8}",
    )


def _not_along_k(product: Product, name: str, region: Region) -> Diagnostic:
    flag, wanted = ("transpose_A=False", "M x K") if name == "A" else ("transpose_B=True", "N x K")
    return make_diagnostic(
        "TL411",
        f"WGMMA reads {region.buffer.dtype} only along K, and `{region.buffer.name}` is stored the "
        "other way round",
        span=product.op.span,
        labels=_declared(region),
        help=f"store it as {wanted} and pass {flag}; only 16-bit types are transposed on the way",
    )


def _no_partition(product: Product, grid: NoPartition) -> Diagnostic:
    return make_diagnostic(
        "TL314",
        f"no arrangement of {grid.warps} warp groups covers the {product.m}x{product.n} tile "
        f"`{product.c.buffer.name}` with whole 64x8 instructions",
        span=product.op.span,
        labels=_declared(product.c),
        help=f"make M a multiple of {ROWS * grid.warps}, or use fewer warp groups",
    )


def _called(product: Product) -> str:
    return "`T.wgmma_gemm`" if product.is_async else "`T.gemm`"


def _declared(*regions: Region) -> tuple[Label, ...]:
    labels = []
    for buffer in dict.fromkeys(r.buffer for r in regions):
        if buffer.span is not None:
            shape = " x ".join(str(d) for d in buffer.shape)
            labels.append(Label(buffer.span, f"`{buffer.name}` is {shape} {buffer.dtype}"))
    return tuple(labels)
