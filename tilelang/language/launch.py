"""The kernel launch: `with T.Kernel(grid_x, grid_y, threads=128) as (bx, by):`."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelang.language.catalog import CPU, HOPPER, language_function
from tilelang.language.frames import REDUCE_SCOPE, CommReducer, LaunchFrame, ScopeFrame
from tilelang.language.operands import static_int
from tilelang.program import arith, operators
from tilelang.program.context import active_trace, argument_span, current_span, reject
from tilelang.program.expr import Expr
from tilelang_diagnostics.model import Applicability, Edit, Fix, Label

MAX_THREADS = 1024
WARP_GROUP = 128


@language_function("launch")
def Kernel(
    *blocks: Any,
    threads: Any = None,
    prelude: str | None = None,
    cluster_dims: Any = None,
    is_cpu: bool = False,
) -> LaunchFrame:
    """Launches a grid of blocks; `with … as (bx, by)` names the block indices.

    Args:
        blocks: one to three grid extents (may depend on run-time dims);
        threads: threads per block, 1 to 1024, an int or up to three (default 128).

    >>> with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=128) as (bx, by):
    """
    return launch_frame("Kernel", blocks, threads, prelude, cluster_dims)


@language_function("launch", targets=HOPPER)
def ClusterKernel(
    *blocks: Any, cluster_dims: Any, threads: Any = None, prelude: str | None = None
) -> LaunchFrame:
    """As `T.Kernel`, with blocks grouped into clusters of `cluster_dims` (PTX ISA, clusters).

    >>> with T.ClusterKernel(grid, cluster_dims=2, threads=256) as bx:
    """
    return launch_frame("ClusterKernel", blocks, threads, prelude, cluster_dims)


@language_function("launch", targets=("cuda", "hip", "metal"))
def ws(*warp_group_idx: Any) -> ScopeFrame:
    """`with T.ws(0):` the body is for these 128-thread warp groups only.

    Args:
        warp_group_idx: one warp group, or several that are neighbours.

    >>> with T.ws(1):
    """
    found = [static_int("ws", "warp_group_idx", i, 0, MAX_THREADS // WARP_GROUP - 1)
             for i in warp_group_idx]  # fmt: skip
    known = sorted(i for i in found if i is not None)
    if len(known) == len(found):
        _check_warp_groups(known)
    return ScopeFrame("ws", tuple(warp_group_idx if None in found else known), current_span())


def _check_warp_groups(groups: list[int]) -> None:
    """Neighbours, all of which the block has."""
    if not groups:
        reject("TL113", "`T.ws` names no warp group", help="write `with T.ws(0):`")
    if groups != list(range(groups[0], groups[0] + len(groups))):
        named = ", ".join(map(str, groups))
        reject(
            "TL117",
            f"warp groups {named} of `T.ws` are no neighbours",
            help="write one `with` block for each run of neighbours",
        )
    trace = active_trace()
    launch = None if trace is None else trace.launch
    threads = None if launch is None else launch.thread_count
    if launch is not None and threads is not None and threads < (groups[-1] + 1) * WARP_GROUP:
        reject(
            "TL408",
            f"warp group {groups[-1]} of `T.ws` is made of threads "
            f"{groups[-1] * WARP_GROUP} … {(groups[-1] + 1) * WARP_GROUP - 1}, and a block has "
            f"{threads}",
            labels=() if launch.span is None else (Label(launch.span, f"{threads} threads"),),
            help=f"launch {(groups[-1] + 1) * WARP_GROUP} threads",
        )


@language_function("launch", targets=CPU)
def attr(node: Any, key: Any, value: Any) -> ScopeFrame:
    """`with T.attr(node, key, value):` an attribute on the body.

    >>> with T.attr(0, "pragma", 1):
    """
    if key == REDUCE_SCOPE:
        if not isinstance(node, CommReducer):
            reject(
                "TL117",
                f'`T.attr(…, "{REDUCE_SCOPE}", …)` is about no `T.comm_reducer`',
                help="write `T.attr(T.comm_reducer(lambda x, y: x + y, [T.Cast(dtype, 0)]), …)`",
            )
        return ScopeFrame(REDUCE_SCOPE, (node,), current_span())
    return ScopeFrame("attr", (node, key, value), current_span())


def launch_frame(
    name: str, blocks: tuple[Any, ...], threads: Any, prelude: str | None, cluster_dims: Any
) -> LaunchFrame:
    """The checked launch that `T.name` describes."""
    if len(blocks) == 1 and isinstance(blocks[0], (tuple, list)):
        inner = ", ".join(str(b) for b in blocks[0])
        reject(
            "TL163",
            f"the grid of `T.{name}` is given as one tuple",
            span=argument_span("blocks", 0),
            label="a tuple where extents belong",
            help=f"write the extents as separate arguments: T.{name}({inner}, …)",
            fixes=_ungroup(inner),
        )
    if not 1 <= len(blocks) <= 3:
        reject(
            "TL165",
            f"a grid has one to three extents, got {len(blocks)}",
            help="fold axes into one: `T.Kernel(a * b, c)` and `bx // b`, `bx % b`"
            if blocks
            else "say how many blocks to launch: `T.Kernel(T.ceildiv(N, 128))`",
        )
    trace = active_trace()
    if trace is not None and trace.launch is not None:
        outer = getattr(trace.launch, "span", None)
        reject(
            "TL161",
            f"`T.{name}` inside another kernel launch",
            label="nested launch",
            labels=(Label(outer, "inside this one"),) if outer else (),
            help="end the first `with` block before the next launch",
        )
    attrs = (("prelude", prelude), ("cluster_dims", cluster_dims), ("style", name))
    return LaunchFrame(
        tuple(_extent(b, n) for n, b in enumerate(blocks)), _threads(threads), current_span(), attrs
    )


def _ungroup(inner: str) -> tuple[Fix, ...]:
    span = argument_span("blocks", 0)
    if span is None:
        return ()
    return (Fix("write separate extents", (Edit(span, inner),), Applicability.SAFE),)


def _extent(value: Any, position: int) -> Expr:
    if isinstance(value, (str, float, tuple, list)) or value is None:
        _refuse_extent(position, f"a grid extent is an integer, got {value!r}")
    expr = operators.as_expr(value)
    if expr.dtype.is_float:
        _refuse_extent(position, f"a grid extent is an integer, `{value}` is {expr.dtype}")
    number = arith.constant_value(expr)
    if number is not None and number < 0:
        _refuse_extent(position, f"a grid extent of {number} is negative")
    return expr


def _refuse_extent(position: int, problem: str) -> NoReturn:
    reject(
        "TL165",
        problem,
        span=argument_span("blocks", position),
        help="count blocks: `T.ceildiv(N, block_N)`",
    )


def _threads(threads: Any) -> tuple[Expr, ...]:
    given = tuple(threads) if isinstance(threads, (tuple, list)) else (threads,)
    given = (128,) if given == (None,) else given
    if len(given) > 3:
        reject(
            "TL164",
            f"a block has up to three thread axes, got {len(given)}",
            span=argument_span("threads"),
            help="give one to three numbers of threads",
        )
    extents = tuple(_thread_extent(t) for t in given)
    numbers = [arith.constant_value(e) for e in extents]
    total = 1
    for number in numbers:
        total *= number if number is not None else 1
    if total > MAX_THREADS:
        reject(
            "TL164",
            f"{total} threads in a block; 1 to {MAX_THREADS} are possible",
            span=argument_span("threads"),
            help="use fewer threads and let each handle more elements",
        )
    return extents


def _thread_extent(value: Any) -> Expr:
    if isinstance(value, (str, float)) or value is None:
        reject(
            "TL164",
            f"threads is an integer, got {value!r}",
            span=argument_span("threads"),
            help="128 is a good first choice",
        )
    number = arith.constant_value(value)
    if number is not None and number < 1:
        reject(
            "TL164",
            f"threads={number}: a block has 1 to {MAX_THREADS} threads",
            span=argument_span("threads"),
            label="must be positive",
            help="128 is a good first choice",
        )
    return operators.as_expr(value)


FUNCTIONS = (Kernel, ClusterKernel, ws, attr)
