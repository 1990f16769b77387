"""T.gemm: the matrix instruction dictates the registers of C, and of A and B where they are
fragments; operands in shared memory are read by `ldmatrix`, or element by element.

    T.gemm(Q, K, scores, transpose_B=True, policy=T.GemmWarpPolicy.FullRow)   # 64 x 64, 128 threads
    # scores: thread=i//16*32 + i%8*4 + j//2%4        (4x1 warps, mma.sync m16n8k16)

Where warp groups can do it, they do (`rules/wgmma.py`). A gemm that matrix instructions cannot do
on the target is refused here, with what would be legal; for a target that needs no layouts its
fragments are laid out freely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tilelang.layout.atoms import Atom
from tilelang.layout.banks import Pattern, fragment_access, ldmatrix_rows
from tilelang.layout.constraints import Mode
from tilelang.layout.fragment import Fragment
from tilelang.layout.gemm import NoPartition, accumulator, operand_a, operand_b
from tilelang.layout.instructions import (
    MMA_SYNC,
    Chosen,
    Family,
    Unsuitable,
    choose_instruction,
    instructions,
)
from tilelang.layouts.addresses import constant_shape, known_shape, storage_elements
from tilelang.layouts.builder import Builder
from tilelang.layouts.demands import Product, SharedUse
from tilelang.layouts.rules import wgmma
from tilelang.layouts.rules.naming import origin_of
from tilelang.program import arith
from tilelang.program.accesses import storage
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import TileOp
from tilelang.target import ARCHS, Target
from tilelang_diagnostics.model import Diagnostic, Label

OPS = ("gemm",)

# Compute capability 7.0 multiplies float16 with an instruction whose fragments are not tabulated.
VOLTA, VOLTA_TYPES = range(70, 75), ("float16",)


def demand(b: Builder, op: TileOp) -> None:
    """Fix the fragments, and say how shared operands are read."""
    product = _product(op)
    if product is None:
        _leave_open(b, op, "the sizes or types of its gemm are not known here")
        return
    if product.is_async:
        wgmma.demand(b, product)
        return
    why_not = wgmma.choose(b, product)
    if not why_not:
        return
    chosen = _instruction(b, product)
    if chosen is None:
        return
    atom, grid = chosen.atom, chosen.grid
    b.products.append(replace(product, why_not=why_not))
    m, n, k = product.m, product.n, product.k
    a = operand_a(m, k, grid, atom, product.transpose_a)
    right = operand_b(k, n, grid, atom, product.transpose_b)
    for region, layout in (
        (product.c, accumulator(m, n, grid, atom)), (product.a, a), (product.b, right),
    ):  # fmt: skip
        if region.buffer.is_fragment:
            b.fix(region, layout, product.origin)
    if product.a.buffer.is_shared:
        _read(b, product, product.a, atom.a, not product.transpose_a, grid.n_warps)
    if product.b.buffer.is_shared:
        _read(b, product, product.b, atom.b, product.transpose_b, grid.m_warps)


def _product(op: TileOp) -> Product | None:
    a, b, c = op.args[:3]
    assert isinstance(a, Region) and isinstance(b, Region) and isinstance(c, Region)
    sizes = (c.extents[-2], c.extents[-1], a.extents[-2 if op.attr("transpose_A") else -1])
    known = tuple(n for n in map(arith.constant_value, sizes) if n is not None and n > 0)
    if len(known) != len(sizes) or not all(r.dtype.bits for r in (a, b, c)):
        return None
    m, n, k = known
    return Product(op, origin_of(op), a, b, c, m, n, k)


def _instruction(b: Builder, product: Product) -> Chosen | None:
    """The matrix instruction and the grid of warps, or None with the reason reported."""
    arch, warp, family = b.machine.arch, b.machine.warp, b.machine.family
    if b.threads % warp and family is None:
        _refuse(b, _no_warps(b, product))
        return None
    a, right = (r.dtype.name for r in (product.a, product.b))
    if arch is None or family is None or (_is_volta(family, arch) and a in VOLTA_TYPES):
        why = f"the matrix fragments of {b.machine} are not tabulated"
        _leave_open(b, product.op, why)
        return None
    usable = instructions(a, right, product.c.buffer.dtype.name, arch, family)
    if not usable:
        newer = _newer(family, a, product.c.buffer.dtype.name, arch)
        narrow = product.dtype.is_float and product.dtype.bits <= 8
        _refuse(b, _no_arithmetic(b, product, newer) if narrow and (newer or family.kind != "cuda")
                else _without_mma(b, product, family, arch))  # fmt: skip
        return None
    warps, rest = divmod(b.threads, family.lanes)
    found = choose_instruction(usable, *product.sizes, max(1, warps), product.policy)
    match found:
        case Unsuitable(what="k"):
            _refuse(b, _too_shallow(b, product, found, usable))
        case Unsuitable():
            _refuse(b, _illegal_tile(product, found))
        case _ if rest or not warps:
            _refuse(b, _no_warps(b, product))
        case NoPartition():
            _refuse(b, _no_partition(product, found, family.lanes))
        case Chosen():
            return found
    return None


def _read(
    b: Builder, product: Product, region: Region, atom: Fragment, k_major: bool, times: int
) -> None:
    """How a warp takes an operand from shared memory; the `times` warps that need it do alike."""
    extents = constant_shape(region.extents)
    if known_shape(region.buffer) is None or extents is None:
        return
    is_a = region is product.a

    def use(turned: bool) -> SharedUse | None:
        sizes = (extents[-1], extents[-2]) if turned else (extents[-2], extents[-1])
        bits = region.buffer.dtype.bits
        found, count, what = _reads(b, bits, sizes, atom, k_major != turned, is_a)
        placed = [q for q in (_placed(region, pattern, turned) for pattern in found) if q]
        if not placed:
            return None
        return SharedUse(
            storage(region.buffer), product.origin, Mode.READ, patterns=tuple(placed), what=what,
            count=max(1, count * times // len(placed)), times=b.times,
        )  # fmt: skip

    found = use(False)
    if found is not None:
        turned = use(True) if len(region.buffer.shape) == 2 else None
        b.shared_uses.append(replace(found, turned=turned))


def _reads(
    b: Builder, bits: int, sizes: tuple[int, int], atom: Fragment, k_major: bool, is_a: bool
) -> tuple[list[Pattern], int, str]:
    """The patterns of a tile of `sizes`, how often they come, and by what."""
    # ldmatrix hands out rows of 16 bytes, transposed only for 16-bit elements.
    by_rows = b.machine.has_ldmatrix and (bits == 16 or (k_major and bits < 64))
    wide, (rows, columns) = 128 // bits, sizes
    if by_rows and columns % wide == 0 and rows % 8 == 0:
        starts = [c for c in (0, 2 * wide) if c < columns]
        matrices = 4 if rows >= 16 and columns >= 2 * wide else 1
        found = [ldmatrix_rows(bits, 0, c, matrices) for c in starts]
        what = "ldmatrix" if k_major else "ldmatrix.trans"
        return found, max(1, rows * columns // (8 * matrices * wide)), what
    # The rows and columns of the operand are those of the tile as it is stored: A is (m, k) and B
    # is (k, n), unless transposed.
    held = atom if k_major == is_a else atom.permute((1, 0))
    found = list(fragment_access(held, width=held.vector_width(limit=wide)))
    return found, max(1, rows * columns // (held.shape[0] * held.shape[1])), "element by element"


def _placed(region: Region, pattern: Pattern, turned: bool) -> Pattern | None:
    """A pattern on the last two dimensions of a region, as elements of the stored buffer; of a
    `turned` one both are exchanged."""
    from tilelang.layout.lazy import np

    start = [arith.constant_value(r.min) or 0 for r in region.ranges]
    order = -1 if turned else 1
    lanes = np.array(pattern.lanes, dtype=np.int64).T[::order]
    places = np.zeros((len(start), lanes.shape[1]), dtype=np.int64)
    places[-2:] = lanes
    places += np.array(start, dtype=np.int64)[:, None]
    stored = storage_elements(region.buffer, places)
    if stored is None:
        return None
    elements = tuple(map(tuple, stored[::order].T.tolist()))
    return Pattern(pattern.name, elements, pattern.width)


def _leave_open(b: Builder, op: TileOp, why: str) -> None:
    for arg in op.args[:3]:
        if isinstance(arg, Region) and arg.buffer.is_fragment:
            b.unknown.setdefault(arg.buffer, why)


def _refuse(b: Builder, finding: Diagnostic) -> None:
    """Targets that need no layouts take any tile."""
    if not b.machine.nominal:
        b.found.append(finding)


def _is_volta(family: Family, arch: int) -> bool:
    return family is MMA_SYNC and arch in VOLTA


def _newer(family: Family, dtype: str, accumulator: str, arch: int) -> str | None:
    """The first architecture after `arch` that multiplies a type."""
    wanted = family.seen_as(dtype)
    later = [
        atom.min_arch
        for atom in family.atoms
        if wanted in atom.inputs and accumulator in atom.accumulators and atom.min_arch > arch
    ]
    archs = [Target(family.kind, name) for name in ARCHS[family.kind]]
    found = [t for t in archs if t.number == min(later, default=None)]
    return str(found[0]) if found else None


def _no_arithmetic(b: Builder, product: Product, newer: str | None) -> Diagnostic:
    """Types that only matrix instructions compute with."""
    first = "" if newer is None else f"compile for {newer} or later, or "
    return make_diagnostic(
        "TL412",
        f"{b.machine} cannot multiply {product.dtype}, as `T.gemm` into "
        f"`{product.c.buffer.name}` asks",
        span=product.op.span,
        label="this version has no instruction for it" if newer is None else f"needs {newer}",
        labels=_declared(product.a.buffer, product.b.buffer),
        help=f"{first}convert the operands to float16 first",
    )


def _without_mma(b: Builder, product: Product, family: Family, arch: int) -> Diagnostic:
    have = {name for atom in family.atoms if atom.min_arch <= arch for name in atom.inputs}
    if _is_volta(family, arch):
        have |= set(VOLTA_TYPES)
    return make_diagnostic(
        "TL606",
        f"{b.machine} has no matrix instruction for {product.dtype} with "
        f"{product.c.buffer.dtype} sums, so `T.gemm` into `{product.c.buffer.name}` runs on the "
        "ordinary units",
        span=product.op.span,
        labels=_declared(product.a.buffer, product.c.buffer),
        help=f"matrix instructions multiply {', '.join(sorted(have))}",
    )


def _too_shallow(
    b: Builder, product: Product, unit: Unsuitable, usable: Sequence[Atom]
) -> Diagnostic:
    below = product.k < unit.k
    what = "below" if below else "no multiple of"
    lower = product.k // unit.k * unit.k
    many = "the shallowest matrix instruction takes" if len(usable) > 1 else (
        "the matrix instruction takes")  # fmt: skip
    return make_diagnostic(
        "TL410",
        f"K = {product.k} of `T.gemm` into `{product.c.buffer.name}` is {what} the "
        f"{unit.k} elements of {product.dtype} that {many}",
        span=product.op.span,
        label=f"{b.machine} has {' and '.join(atom.shape for atom in usable)}",
        labels=_declared(product.a.buffer, product.b.buffer),
        help=f"make K {unit.k}, or a multiple of it"
        if below
        else f"make K a multiple of {unit.k}: {lower} or {lower + unit.k}",
    )


def _no_warps(b: Builder, product: Product) -> Diagnostic:
    warp = b.machine.warp
    return make_diagnostic(
        "TL408",
        f"`T.gemm` into `{product.c.buffer.name}` runs on {b.threads} threads, which are no "
        f"whole number of warps of {warp}",
        span=product.op.span,
        label="" if b.machine.nominal else f"a warp of {b.machine} has {warp} threads",
        help=f"use {max(1, b.threads // warp) * warp} threads",
    )


def _illegal_tile(product: Product, least: Unsuitable) -> Diagnostic:
    wrong, legal = [], []
    for letter, size, unit in (("M", product.m, least.m), ("N", product.n, least.n)):
        if size % unit:
            near = sorted({max(unit, size // unit * unit), (size // unit + 1) * unit})
            wrong.append(f"{letter} = {size}")
            legal.append(f"{letter} {' or '.join(map(str, near))}")
    verb = "is no multiple" if len(wrong) == 1 else "are no multiples"
    return make_diagnostic(
        "TL409",
        f"{' and '.join(wrong)} of `T.gemm` into `{product.c.buffer.name}` {verb} of the "
        f"{least.m}x{least.n} matrix instruction for {product.dtype}",
        span=product.op.span,
        labels=_declared(product.c.buffer),
        help=f"the nearest legal sizes are {' and '.join(legal)}",
    )


def _no_partition(product: Product, grid: NoPartition, lanes: int) -> Diagnostic:
    return make_diagnostic(
        "TL314",
        f"no grid of {grid.warps} warps covers the {product.m}x{product.n} tile "
        f"`{product.c.buffer.name}` with whole {grid.unit_m}x{grid.unit_n} instructions",
        span=product.op.span,
        label=f"{grid.warps * lanes} threads are {grid.warps} warps",
        labels=_declared(product.c.buffer),
        help=grid.help_for(lanes),
    )


def _declared(*buffers: Buffer) -> tuple[Label, ...]:
    labels = []
    for buffer in dict.fromkeys(buffers):
        if buffer.span is not None:
            shape = " x ".join(str(d) for d in buffer.shape)
            labels.append(Label(buffer.span, f"`{buffer.name}` is {shape} {buffer.dtype}"))
    return tuple(labels)
