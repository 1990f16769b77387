"""What may an operation know while it lowers itself for a block of cooperating threads?

It may leave work to `passes.distribute_loops`: a nest of parallel loops over tiles, spread as it
says or as suits the tiles. What a nest cannot say (shuffles, matrix instructions) it writes for
one thread, on the one-dimensional buffers of the tiles' homes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.choices import Choices, Rejected
from tilelang.ir import build, tirx
from tilelang.ir.closed_form import Lifter, lower
from tilelang.ir.homes import Home, Homes, allocate_home
from tilelang.ir.nests import nest, with_layout
from tilelang.ir.spans import from_tir
from tilelang.ir.tile_op import LowerContext, TileRegion
from tilelang.layout.expr import Expr, Var
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout
from tilelang.layouts.machine import Machine
from tilelang.target import Capabilities

STAGE_SCOPE: Final = "shared.dyn"  # where tiles of the compiler's own live


@dataclass(slots=True)
class LaunchNeeds:
    """What operations of a launch ask for outside their own place.

    `params` are the tensors of the kernel. `maps` are the tensor maps to be declared before the
    launch, by what they describe; `stores` says that bulk stores have to be waited for at its end.
    """

    params: tuple[Any, ...] = ()
    maps: dict[tuple[Any, ...], Any] = field(default_factory=dict)
    stores: bool = False


@dataclass(frozen=True, slots=True)
class GpuContext(LowerContext):
    """`threads` run the operation; `thread` is the number of this one among them.

    `layout` is what inference chose for the operation's own loop. `counters` are the sequential
    loops of constant range around, `bindings` the values of names in scope. `leader()` is the
    first thread of those that get here, None where that is only known at run time.
    """

    machine: Machine = field(kw_only=True)
    capabilities: Capabilities = field(kw_only=True)
    threads: int = field(kw_only=True)
    thread: tirx.Expr = field(kw_only=True)
    homes: Homes = field(kw_only=True)
    layout: Fragment | None = field(kw_only=True, default=None)
    counters: Mapping[Any, range] = field(kw_only=True, default_factory=dict)
    bindings: Mapping[Any, Any] = field(kw_only=True, default_factory=dict)
    launch: LaunchNeeds = field(kw_only=True, default_factory=lambda: LaunchNeeds())
    leader: Callable[[], int | None] = field(kw_only=True, default=lambda: 0)
    choices: Choices = field(kw_only=True, default_factory=lambda: Choices())

    def chose(self, kind: str, text: str, why: str = "", rejected: Sequence[Rejected] = ()) -> None:
        """Tell what the operation is lowered to."""
        self.choices.chose(kind, text, from_tir(self.span), why, rejected=tuple(rejected))

    def passed_over(self, kind: str, way: str, why: str) -> None:
        """Tell why it is not lowered to something faster."""
        self.choices.passed_over(kind, way, why, from_tir(self.span))

    def spread(self, stmt: tirx.Stmt) -> tirx.Stmt:
        """`stmt`, loops over elements, as one nest spread over the threads."""
        return with_layout(stmt, self.layout, self.span)

    def fragment(self, region: TileRegion) -> Fragment | None:
        """The layout of a tile in registers that `region` covers whole."""
        if region.buffer in self.homes.views or not is_whole(region):
            return None
        return self.homes.fragment(region.buffer)

    def tile(
        self, name: str, shape: Sequence[int], dtype: str, scope: str,
        layout: Fragment | Layout | None,
    ) -> tuple[tirx.Stmt, Home]:  # fmt: skip
        """The allocation of a tile of the compiler's own, and its home."""
        return allocate_home(name, shape, dtype, scope, layout, self.span)

    def number(self, expr: Expr | int) -> tirx.Expr:
        """An expression over the number of the thread."""
        return lower(expr, [self.thread], self.span)

    @property
    def thread_var(self) -> Var:
        """The number of the thread, for `number`."""
        return Var(0, self.threads)

    def lifter(self) -> Lifter:
        """For index expressions; its first value is the number of the thread."""
        return Lifter({}, [self.thread], self.bindings)

    def nest(
        self, variables: Sequence[tirx.Var], extents: Sequence[Any], body: tirx.Stmt,
        layout: Fragment | None = None, every_copy: bool = False,
    ) -> tirx.Stmt:  # fmt: skip
        """A nest of parallel loops."""
        return nest(variables, extents, body, self.span, layout, every_copy)

    def const(self, value: int) -> tirx.Expr:
        """An index."""
        return build.const(value, "int32", self.span)

    def remainder(self, value: tirx.Expr, unit: int) -> int | None:
        """`value % unit`, where that is known."""
        by = build.const(unit, build.dtype_of(value), self.span)
        return build.int_value(self.simplify(tirx.FloorMod(value, by, self.span)))

    def unrolled(self, var: tirx.Var, extent: int, body: tirx.Stmt) -> tirx.Stmt:
        """A loop that is unrolled; a single iteration is written out."""
        size = build.const(extent, "int32", self.span)
        return build.loop(var, size, body, kind="UNROLLED", span=self.span)

    def var(self, name: str) -> tirx.Var:
        """A fresh loop variable."""
        return tirx.Var(name, "int32", self.span)


def is_whole(region: TileRegion) -> bool:
    """Whether a region is all of its buffer."""
    return all(
        build.is_int(low, 0) and tirx.structural_equal(extent, dim)
        for low, extent, dim in zip(
            region.mins, region.extents, list(region.buffer.shape), strict=True
        )
    )
