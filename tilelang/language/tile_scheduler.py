"""A persistent loop over output tiles: each resident block takes every n-th tile.

scheduler = T.PersistentTileScheduler(T.ceildiv(M, 128), T.ceildiv(N, 256), swizzle_size=8)
scheduler.init(bx)
while scheduler.valid():
    …  # works on tile (scheduler.m_idx, scheduler.n_idx)
    scheduler.next_tile()
"""

from __future__ import annotations

from typing import Any

from tilelang.language.operands import static_int, trace_of
from tilelang.program import operators
from tilelang.program.buffer import Buffer
from tilelang.program.context import reject
from tilelang.program.expr import INT32, Const, Expr, VarRef
from tilelang.program.stmt import Allocate

NAME = "PersistentTileScheduler"


class PersistentTileScheduler:
    """Deals tiles to resident blocks, in panels that share operands in the L2 cache.

    Args:
        num_m_tiles, num_n_tiles: tiles of the output; num_workers: resident blocks (clusters),
        the blocks of the launch divided by `cluster_size` when left out; swizzle_size: columns
        (rows when not `column_major`) of a panel; column_major: walk down M first;
        stateful: keep the current tile in a variable (False: only `coord`); name: of that
        variable.

    >>> scheduler = T.PersistentTileScheduler(grid_m, grid_n, swizzle_size=8)
    """

    def __init__(
        self,
        num_m_tiles: Any,
        num_n_tiles: Any,
        num_workers: Any = None,
        swizzle_size: int = 1,
        column_major: bool = True,
        cluster_size: int = 1,
        stateful: bool = True,
        name: str | None = None,
    ) -> None:
        trace_of(NAME)
        self.num_m_tiles = operators.as_expr(num_m_tiles)
        self.num_n_tiles = operators.as_expr(num_n_tiles)
        self.swizzle_size = static_int(NAME, "swizzle_size", swizzle_size, 1, 1 << 16) or 1
        self.cluster_size = static_int(NAME, "cluster_size", cluster_size, 1, 16) or 1
        self.column_major = bool(column_major)
        self._workers = num_workers
        self._state: tuple[VarRef, VarRef] | None = None
        if stateful:
            prefix = name or "tile"
            self._state = (_variable(f"{prefix}_index"), _variable(f"{prefix}_iteration"))

    @property
    def num_tiles(self) -> Any:
        """How many tiles there are."""
        return operators.binary("*", self.num_m_tiles, self.num_n_tiles)

    @property
    def num_workers(self) -> Any:
        """How many blocks (clusters) deal the tiles among themselves."""
        if self._workers is None:
            self._workers = _launched_blocks(self.cluster_size)
        return self._workers

    def init(self, worker: Any) -> None:
        """Start with the first tile of this worker."""
        index, iteration = self._variables("init")
        index.buffer[0] = operators.as_expr(worker)
        iteration.buffer[0] = 0

    def valid(self) -> Any:
        """Whether the current tile exists."""
        return operators.binary("<", self.linear_idx, self.num_tiles)

    def next_tile(self) -> None:
        """Go on to the next tile of this worker."""
        index, iteration = self._variables("next_tile")
        index.buffer[0] = operators.binary("+", self.linear_idx, self.num_workers)
        iteration.buffer[0] = operators.binary("+", self.current_iter, 1)

    @property
    def linear_idx(self) -> Any:
        """The number of the current tile in the order they are dealt."""
        return self._variables("linear_idx")[0].buffer[0]

    @property
    def current_iter(self) -> Any:
        """How many tiles this worker has finished."""
        return self._variables("current_iter")[1].buffer[0]

    @property
    def m_idx(self) -> Any:
        """The row of the current tile."""
        return self.coord(self.linear_idx)[0]

    @property
    def n_idx(self) -> Any:
        """The column of the current tile."""
        return self.coord(self.linear_idx)[1]

    def coord(self, tile_id: Any) -> tuple[Any, Any]:
        """Row and column of tile number `tile_id`."""
        along, across = self.num_m_tiles, self.num_n_tiles
        if not self.column_major:
            along, across = across, along
        major, minor = _panel(operators.as_expr(tile_id), along, across, self.swizzle_size)
        return (major, minor) if self.column_major else (minor, major)

    def _variables(self, what: str) -> tuple[VarRef, VarRef]:
        if self._state is None:
            reject(
                "TL117",
                f"`{what}` of a `T.{NAME}` without state",
                help="leave out `stateful=False`, or use `coord(tile_id)`",
            )
        return self._state


def _panel(tile: Expr, along: Expr, across: Expr, width: int) -> tuple[Any, Any]:
    """(position along, position across): panels of `width` columns, walked row by row."""
    binary = operators.binary
    panel_tiles = binary("*", along, width)
    first = binary("*", binary("//", tile, panel_tiles), width)
    inside = binary("%", tile, panel_tiles)
    columns = binary("min", binary("-", across, first), width) if width > 1 else 1
    return binary("//", inside, columns), binary("+", first, binary("%", inside, columns))


def _variable(name: str) -> VarRef:
    trace = trace_of(NAME)
    buffer = Buffer(trace.unique(name), (1,), INT32, "local.var", trace.span)
    trace.emit(Allocate(buffer, Const(0, INT32), **trace.position()))
    return VarRef(buffer, (Const(0, INT32),), INT32, trace.span)


def _launched_blocks(cluster_size: int) -> Any:
    """One worker per launched block, or per cluster of them."""
    launch = trace_of(NAME).launch
    if launch is None:
        reject(
            "TL113",
            f"`T.{NAME}` needs `num_workers` outside a kernel launch",
            help="create it inside `with T.Kernel(…)`, or pass `num_workers=`",
        )
    blocks: Any = 1
    for extent in launch.grid:
        blocks = operators.binary("*", blocks, extent)
    return operators.binary("//", blocks, cluster_size)
