"""T.wgmma_gemm: a warp group multiplies tiles that the tensor cores read in shared memory.

    T.wgmma_gemm(A_shared, B_shared, C_local)     # 128 x 128, one warp group, float16
    # C_local: thread=i//16%4*32 + i%8*4 + j//2%4         A_shared, B_shared: 128-byte swizzle

The instruction runs on after the statement, so nothing can be moved for it: what does not lie
right, or does not fit, is refused.
"""

from __future__ import annotations

from tilelang.layout.gemm import NoPartition
from tilelang.layout.wgmma import (
    GROUP,
    ROWS,
    TYPES,
    Wgmma,
    find_wgmma,
    partition_groups,
    rows_of,
    sums_of,
    swizzles_of,
)
from tilelang.layouts.addresses import known_shape
from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import EngineUse, Product
from tilelang.program.accesses import storage
from tilelang.program.buffer import Region
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic, Label


def demand(b: Builder, product: Product) -> None:
    """Fix what lies in registers, and the swizzles of what lies in shared memory."""
    found = _instruction(b, product)
    if found is None:
        return
    m, n, k = product.m, product.n, product.k
    grid = partition_groups(m, n, b.threads // GROUP, product.policy)
    if isinstance(grid, NoPartition):
        _refuse(b, _no_partition(product, grid))
        return
    if found.width(n // grid.n_warps) is None:
        _refuse(b, _illegal_width(product, found, n // grid.n_warps))
        return
    b.products.append(product)
    b.fix(product.c, sums_of(m, n, grid), product.origin, convertible=False)
    if product.a.buffer.is_fragment:
        rows = rows_of(m, k, grid, found.bits, product.transpose_a)
        b.fix(product.a, rows, product.origin, convertible=False)
    if product.a.buffer.is_shared:
        _read_in_place(b, product, product.a, ROWS if product.transpose_a else None)
    if product.b.buffer.is_shared:
        columns = n // grid.n_warps
        whole = None if product.transpose_b or grid.n_warps == 1 else columns
        _read_in_place(b, product, product.b, whole)


def _instruction(b: Builder, product: Product) -> Wgmma | None:
    """The instructions for the types and sizes, or None with the reason reported."""
    c = product.c.buffer
    found = find_wgmma(product.a.buffer.dtype.name, product.b.buffer.dtype.name, c.dtype.name)
    if found is None:
        _refuse(b, _no_types(product))
        return None
    if b.threads % GROUP:
        _refuse(b, make_diagnostic(
            "TL408",
            f"`T.wgmma_gemm` into `{c.name}` runs on {b.threads} threads, which are no whole "
            f"number of warp groups of {GROUP}",
            span=product.op.span,
            help=f"run it on {GROUP} or {2 * GROUP} threads: in a `with T.ws(0):`, or as the "
            "threads of the kernel",
        ))  # fmt: skip
        return None
    units = (("M", product.m, ROWS), ("N", product.n, 8), ("K", product.k, found.k))
    for letter, size, unit in units:
        if size % unit:
            _refuse(b, _illegal_size(product, letter, size, unit))
            return None
    for name, region, transposed in (
        ("A", product.a, product.transpose_a), ("B", product.b, not product.transpose_b),
    ):  # fmt: skip
        if transposed and region.buffer.is_shared and not found.transposes:
            _refuse(b, _not_along_k(product, name, region))
            return None
    return found


def _read_in_place(b: Builder, product: Product, region: Region, part: int | None) -> None:
    """A shared operand; `part` of its rows is what a warp group starts at multiples of."""
    shape, bits = known_shape(region.buffer), region.buffer.dtype.bits
    if shape is None:
        return
    modes = tuple(
        mode for mode, _ in swizzles_of(shape, bits)
        if part is None or part * bits % mode.row_bits == 0
    )  # fmt: skip
    if not modes:
        _refuse(b, make_diagnostic(
            "TL411",
            f"rows of {shape[-1]} x {region.buffer.dtype} of `{region.buffer.name}` fit no "
            "swizzle that WGMMA reads",
            span=product.op.span,
            labels=_declared(region),
            help=f"make the last extent a multiple of {256 // bits}, which are 32 bytes, and the "
            "one before a multiple of 8",
        ))  # fmt: skip
        return
    b.engine_uses.append(EngineUse(storage(region.buffer), product.origin, modes))


def _refuse(b: Builder, finding: Diagnostic) -> None:
    """Targets that need no layouts only show what would be."""
    if not b.machine.nominal:
        b.found.append(finding)


def _no_types(product: Product) -> Diagnostic:
    a, c = product.a.buffer, product.c.buffer
    legal = "; ".join(f"{', '.join(i)} into {' or '.join(s)}" for i, s, _ in TYPES)
    return make_diagnostic(
        "TL412",
        f"WGMMA cannot multiply {a.dtype} by {product.b.buffer.dtype} into {c.dtype}, as "
        f"`T.wgmma_gemm` into `{c.name}` asks",
        span=product.op.span,
        labels=_declared(product.a, product.b, product.c),
        help=f"it multiplies {legal}; `T.gemm` takes other types",
    )


def _illegal_size(product: Product, letter: str, size: int, unit: int) -> Diagnostic:
    below = size // unit * unit
    legal = " or ".join(str(n) for n in (below, below + unit) if n)
    return make_diagnostic(
        "TL410" if letter == "K" else "TL409",
        f"{letter} = {size} of `T.wgmma_gemm` into `{product.c.buffer.name}` is no multiple of the "
        f"{unit} that one instruction takes",
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


def _declared(*regions: Region) -> tuple[Label, ...]:
    labels = []
    for buffer in dict.fromkeys(r.buffer for r in regions):
        if buffer.span is not None:
            shape = " x ".join(str(d) for d in buffer.shape)
            labels.append(Label(buffer.span, f"`{buffer.name}` is {shape} {buffer.dtype}"))
    return tuple(labels)
