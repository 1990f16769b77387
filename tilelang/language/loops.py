"""What a kernel iterates over: `T.Parallel`, `T.Pipelined`, `T.serial` and their like."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelang.dtypes import VECTOR_LANES
from tilelang.language.catalog import language_function
from tilelang.language.frames import LoopFrame, LoopRange
from tilelang.program import arith, operators
from tilelang.program.context import argument_span, current_span, reject, warn
from tilelang.program.expr import INT32, Const, Expr, Var, walk
from tilelang.program.stmt import Attrs, LoopKind
from tilelang_diagnostics import counted


@language_function("loop")
def Parallel(
    *extents: Any,
    coalesced_width: Any = None,
    loop_layout: Any = None,
    prefer_async: Any = None,
    annotations: Any = None,
) -> LoopFrame:
    """An elementwise loop nest, spread over threads and vectorised by the compiler.

    Args:
        extents: one per loop variable; coalesced_width: widest vector in elements;
        loop_layout: a `T.Fragment` that fixes which thread runs which iteration.

    >>> for i, j in T.Parallel(block_M, block_N):
    """
    if not extents:
        reject("TL113", "`T.Parallel` needs at least one extent", help="T.Parallel(64, 64)")
    ranges = tuple(
        LoopRange(Const(0, INT32), _bound(e, "extents", n)) for n, e in enumerate(extents)
    )
    given = {"coalesced_width": coalesced_width, "loop_layout": loop_layout,
             "prefer_async": prefer_async, **(annotations or {})}  # fmt: skip
    if loop_layout is not None and len(getattr(loop_layout, "shape", extents)) != len(extents):
        reject(
            "TL313",
            f"the loop layout has not {counted(len(extents), 'dimension')}",
            span=argument_span("loop_layout"),
            help="give a `T.Fragment` over the extents of the loop",
        )
    return LoopFrame("parallel", ranges, current_span(), _attrs(given))


@language_function("loop")
def serial(start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None) -> LoopFrame:
    """A sequential loop over `[start, stop)`, or `[0, start)`; `range` is the same.

    >>> for k in T.serial(8):
    """
    return _loop("serial", start, stop, step, annotations)


@language_function("loop")
def unroll(
    start: Any,
    stop: Any = None,
    step: Any = None,
    *,
    explicit: bool = False,
    unroll_factor: Any = None,
    annotations: Any = None,
) -> LoopFrame:
    """A loop the target unrolls; `explicit` unrolls before planning.

    >>> for k in T.unroll(4):
    """
    if explicit and unroll_factor is not None:
        reject(
            "TL117",
            "`explicit` and `unroll_factor` exclude each other",
            span=argument_span("unroll_factor"),
            help="leave out one of them",
        )
    given = {"explicit": explicit or None, "unroll_factor": unroll_factor, **(annotations or {})}
    return _loop("unroll", start, stop, step, given)


@language_function("loop")
def vectorized(start: Any, stop: Any = None, *, annotations: Any = None) -> LoopFrame:
    """A loop emitted as one vector operation; the extent is a constant.

    >>> for v in T.vectorized(8):
    """
    loop = _loop("vectorized", start, stop, None, annotations)
    extent = loop.ranges[0].extent
    lanes = arith.constant_value(extent)
    if lanes is not None and lanes not in (1, *VECTOR_LANES):
        _refuse_lanes(f"a vector of {lanes} lanes does not exist", stop)
    if lanes is None and any(
        isinstance(n, Var) and n.kind not in ("symbol", "const", "let") for n in walk(extent)
    ):
        _refuse_lanes(f"the number of lanes `{extent}` is only known when the kernel runs", stop)
    return loop


@language_function("loop")
def Pipelined(
    start: Any,
    stop: Any = None,
    num_stages: Any = 0,
    order: Any = None,
    stage: Any = None,
    sync: Any = None,
    group: Any = None,
    annotations: Any = None,
) -> LoopFrame:
    """A sequential loop whose copies run ahead of the work that uses them.

    Args:
        num_stages: how many tiles of each shared buffer exist (0 or 1: no overlap), or "auto":
            as many as fit into the shared memory of the target;
        stage, order: a manual schedule, one entry per statement.

    >>> for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
    """
    is_number = isinstance(num_stages, int) and 0 <= num_stages <= 64
    if isinstance(num_stages, (int, float, str)) and not is_number and num_stages != "auto":
        reject(
            "TL504",
            f'num_stages={num_stages!r} is neither a small non-negative constant nor "auto"',
            span=argument_span("num_stages"),
            help="2 or 3 stages hide most of the latency; 0 runs the loop in order",
        )
    _check_schedule(order, stage)
    given = {"num_stages": num_stages, "order": order, "stage": stage, "sync": sync,
             "group": group, **(annotations or {})}  # fmt: skip
    return _loop("pipelined", start, stop, None, given)


@language_function("loop")
def parallel(start: Any, stop: Any = None, *, annotations: Any = None) -> LoopFrame:
    """A loop whose iterations are spread over CPU cores; elementwise loops are `T.Parallel`.

    >>> for i in T.parallel(n):
    """
    warn(
        "TL119",
        "`T.parallel` is the CPU-core loop; elementwise loops over a tile are `T.Parallel`",
        help="write `T.Parallel` unless CPU cores are meant",
    )
    return _loop("cpu_parallel", start, stop, None, annotations)


@language_function("loop")
def grid(*extents: Any) -> LoopFrame:
    """Nested sequential loops, one variable per extent.

    >>> for i, j in T.grid(4, 8):
    """
    ranges = tuple(
        LoopRange(Const(0, INT32), _bound(e, "extents", n)) for n, e in enumerate(extents)
    )
    return LoopFrame("serial", ranges, current_span(), nested=True)


@language_function("loop")
def Persistent(
    domain: Any,
    wave_size: Any,
    index: Any,
    group_size: Any = 8,
    num_stages: Any = None,
    annotations: Any = None,
) -> LoopFrame:
    """Tiles of `domain` dealt to `wave_size` resident blocks, grouped for cache reuse.

    Args:
        domain: tiles per dimension; wave_size: number of blocks; index: this block;
        group_size: how many tiles of the last dimension are walked together.

    >>> for m, n in T.Persistent([grid_m, grid_n], num_blocks, block_id):
    """
    dims = [operators.as_expr(d) for d in domain]
    total: Any = 1
    for d in dims:
        total = total * d
    waves = (total + wave_size - 1) // wave_size
    ranges = (LoopRange(Const(0, INT32), operators.as_expr(waves)),)
    grouping = (
        min(group_size, dims[-1])
        if isinstance(group_size, int)
        and isinstance(arith.simplify(dims[-1]), int)
        and isinstance(dims[-1], Const)
        else group_size
    )

    def derive(wave: Expr) -> tuple[tuple[Any, ...], Any]:
        """Tile coordinates of this block in `wave`, and whether the tile exists."""
        tile = wave * wave_size + index
        return _grouped(tile, dims, grouping), tile < total

    return LoopFrame("serial", ranges, current_span(), _attrs({"num_stages": num_stages}),
                     derive=derive)  # fmt: skip


@language_function("loop", targets=("cuda", "hip", "metal"))
def thread_binding(
    start: Any, stop: Any = None, thread: Any = None, *, annotations: Any = None
) -> LoopFrame:
    """A loop whose iterations are the threads of one launch axis.

    >>> for tx in T.thread_binding(128, thread="threadIdx.x"):
    """
    return _loop("serial", start, stop, None, {"thread": thread, **(annotations or {})})


def range_loop(*bounds: Any) -> LoopFrame:
    """Python's `range` over expressions: a sequential loop."""
    start, stop, step = (*bounds, None, None)[:3]
    return _loop("serial", start, stop, step, None)


def _loop(kind: LoopKind, start: Any, stop: Any, step: Any, annotations: Any) -> LoopFrame:
    only = "start" if stop is None else None  # what the author gave as the end
    if stop is None:
        start, stop = 0, start
    first, last = _bound(start, "start"), _bound(stop, only or "stop")
    attrs = _attrs(annotations or {})
    if step is None or arith.constant_value(step) == 1:
        # Bounds of different width meet in the wider one, as any arithmetic does.
        extent = operators.as_expr(last - first)
        return LoopFrame(kind, (LoopRange(first, extent),), current_span(), attrs)
    number = arith.constant_value(step)
    if number == 0:
        reject(
            "TL142",
            "a loop with step 0 never ends",
            span=argument_span("step"),
            help="use a non-zero step",
        )
    if number is None:
        warn(
            "TL143",
            f"the step `{step}` is not a constant, so its sign is taken as positive",
            span=argument_span("step"),
            help="use a constant step, or multiply the index inside the loop",
        )
        number = 1
    if number > 0:
        extent = operators.as_expr((last - first + (step - 1)) // step)
    else:
        extent = operators.as_expr((first - last + (-step - 1)) // -step)
    trips = arith.constant_value(extent)
    if trips is not None and trips < 0:
        extent = Const(0, INT32)
    return LoopFrame(
        kind, (LoopRange(first, extent, operators.as_expr(step)),), current_span(), attrs
    )


def _bound(value: Any, role: str, position: int | None = None) -> Expr:
    what = "extent" if role == "extents" else "bound"
    if isinstance(value, (str, tuple, list, dict)) or value is None or isinstance(value, float):
        reject(
            "TL116",
            f"a loop {what} is an integer, got {value!r}",
            span=argument_span(role, position),
            label="not an integer",
            help="pass extents as separate integers: T.Parallel(64, 32)",
        )
    expr = operators.as_expr(value)
    if expr.dtype.is_float:
        reject(
            "TL116",
            f"a loop {what} is an integer, `{value}` is {expr.dtype}",
            span=argument_span(role, position),
            help="cast it: `T.cast(…, 'int32')`",
        )
    return expr


def _refuse_lanes(problem: str, stop: Any) -> NoReturn:
    widths = ", ".join(map(str, VECTOR_LANES))
    reject(
        "TL239",
        problem,
        span=argument_span("start", 0) if stop is None else argument_span("stop", 1),
        help=f"a vector has {widths} lanes; split the loop in two, the inner one of such a width",
    )


def _check_schedule(order: Any, stage: Any) -> None:
    for name, given in (("order", order), ("stage", stage)):
        if given is not None and not isinstance(given, (list, tuple)):
            if isinstance(given, Expr):
                return
            reject("TL501", f"`{name}` is a list with one entry per statement, got {given!r}",
                   span=argument_span(name), help="write `[0, 1]`")  # fmt: skip
    if order is None and stage is None:
        return
    if order is None or stage is None:
        given, missing = ("stage", "order") if order is None else ("order", "stage")
        reject("TL501", f"`{given}` is given without `{missing}`", span=argument_span(given),
               help="a schedule needs both lists")  # fmt: skip
    if len(order) != len(stage):
        reject("TL501", f"`order` has {len(order)} entries, `stage` has {len(stage)}",
               span=argument_span("order"), help="give both one entry per statement")  # fmt: skip
    placed = [o for o in order if isinstance(o, int) and o >= 0]
    if len(set(placed)) != len(placed) or any(o >= len(order) for o in placed):
        last = len(order) - 1
        reject(
            "TL502",
            f"`order` {list(order)} does not hold each number from 0 to {last} once",
            span=argument_span("order"),
            help="say at which place each statement runs",
        )


def _grouped(tile: Expr, dims: list[Expr], group_size: Any) -> tuple[Any, ...]:
    """Walk `group_size` columns of the last dimension together, row by row."""
    if len(dims) == 1:
        return (tile,)
    rows: Any = 1
    for d in dims[:-1]:
        rows = rows * d
    columns = dims[-1]
    per_group = rows * group_size
    group = tile // per_group
    first_column = group * group_size
    width = operators.binary("min", columns - first_column, group_size)
    inside = tile % per_group
    row, column = inside // width, first_column + inside % width
    coordinates: list[Any] = []
    for d in reversed(dims[1:-1]):
        coordinates.insert(0, row % d)
        row = row // d
    return (row, *coordinates, column)


def _attrs(given: dict[str, Any]) -> Attrs:
    return tuple(
        (k, tuple(v) if isinstance(v, list) else v) for k, v in given.items() if v is not None
    )


Serial, Unroll, Vectorized = serial, unroll, vectorized
FUNCTIONS = (
    Parallel, serial, unroll, vectorized, Pipelined, parallel, grid, Persistent, thread_binding,
)  # fmt: skip
