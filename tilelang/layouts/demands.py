"""What the rules collect beside constraints: loops, uses of memory, writes of single threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tilelang.dtypes import DType
from tilelang.layout.banks import Pattern
from tilelang.layout.constraints import Mode, Origin, Variable
from tilelang.layout.fragment import Fragment
from tilelang.layout.gemm import GemmWarpPolicy
from tilelang.layout.lazy import np
from tilelang.layout.swizzle import SwizzleMode
from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer, Region
from tilelang.program.stmt import TileOp
from tilelang_diagnostics.model import Span

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Nest:
    """A loop nest whose iterations are spread over threads: a T.Parallel, or a tile operation that
    goes element by element."""

    variable: Variable
    dims: Mapping[ex.Var, int]
    kind: Literal["parallel", "operation"]
    text: str
    span: Span | None
    outer: int = 0  # how many sequential loops stand around it

    @property
    def extents(self) -> tuple[int, ...]:
        return self.variable.shape


@dataclass(frozen=True, slots=True, eq=False)
class GlobalUse:
    """Iterations of `nest` touch a tensor, `strides` elements apart along each of its dims.

    `inner` are the strides of the sequential loops inside, `width` the widest aligned vector and
    `because` what allows no wider one.
    """

    nest: Nest
    buffer: Buffer
    strides: tuple[int | None, ...]
    inner: tuple[int | None, ...]
    width: int | None
    origin: Origin
    because: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SharedUse:
    """A use of a shared tile: by the iterations of `nest` (`elements[dim, *extents]`), or by the
    lanes of a warp as the `patterns` say (`count` times each); all of it `times` times.

    `turned` is what a use by patterns becomes, with its two dimensions exchanged, where the tile is
    stored by columns."""

    buffer: Buffer
    origin: Origin
    mode: Mode
    nest: Nest | None = None
    elements: NDArray[np.int64] | None = None
    patterns: tuple[Pattern, ...] = ()
    count: int = 1
    what: str = ""
    times: int = 1
    turned: SharedUse | None = None


@dataclass(frozen=True, slots=True, eq=False)
class EngineUse:
    """A copy engine or the tensor cores touch a shared tile in place: it has to be in one of
    these swizzles (NONE: row-major)."""

    buffer: Buffer
    origin: Origin
    modes: tuple[SwizzleMode, ...]


@dataclass(frozen=True, slots=True, eq=False)
class UniformWrite:
    """All of `threads` write one element of a fragment: its owners must be among them."""

    var: Variable
    element: tuple[int, ...]
    threads: NDArray[np.int64]
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class WidthLimit:
    """`coalesced_width` of a loop or copy, and the widest its accesses allow."""

    given: int
    widest: int
    because: str
    origin: Origin


@dataclass(frozen=True, slots=True, eq=False)
class ByGroups:
    """How warp groups do a product: the registers of C, and of A where it is a fragment; the
    swizzles that each shared operand may have."""

    c: Fragment
    a: Fragment | None
    shared: tuple[tuple[Region, tuple[SwizzleMode, ...]], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Product:
    """One gemm of known sizes, `c[m, n] += a[m, k] @ b[k, n]`.

    `groups` says how warp groups do it, `why_not` why they do not.
    """

    op: TileOp
    origin: Origin
    a: Region
    b: Region
    c: Region
    m: int
    n: int
    k: int
    groups: ByGroups | None = None
    why_not: str = ""

    @property
    def is_async(self) -> bool:
        """Whether its author waits for it."""
        return bool(self.op.attr("instruction") == "wgmma")

    @property
    def transpose_a(self) -> bool:
        return bool(self.op.attr("transpose_A"))

    @property
    def transpose_b(self) -> bool:
        return bool(self.op.attr("transpose_B"))

    @property
    def sizes(self) -> tuple[int, int, int]:
        return self.m, self.n, self.k

    @property
    def policy(self) -> GemmWarpPolicy:
        return GemmWarpPolicy(int(self.op.attr("policy") or 0))

    @property
    def dtype(self) -> DType:
        return self.a.buffer.dtype
