"""What may stand as an argument of a language function, and how is a wrong one reported?

Checks only refuse what is certainly wrong: extents and dtypes that are still symbols (an editor
without values, `T.const` before specialisation) pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

from tilelang.dtypes import DType, as_dtype
from tilelang.language.slips import string_fixes
from tilelang.program import arith, indexing, operators
from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Trace, active_trace, argument_span, reject
from tilelang.program.stmt import Evaluate, TileOp
from tilelang.program.text import expr_text, region_text, shape_text
from tilelang.program.tile_ops import SCHEMAS
from tilelang.program.unknown import is_unknown
from tilelang_diagnostics import counted, with_article
from tilelang_diagnostics.model import Label, Span
from tilelang_diagnostics.suggest import did_you_mean

TileLike: TypeAlias = "Buffer | Region | ex.Load"
ScalarLike: TypeAlias = "ex.Expr | int | float | bool"
IntLike: TypeAlias = "ex.Expr | int"

ON_CHIP = (
    "shared", "shared.dyn", "shared.tmem", "local", "local.var", "local.fragment",
)  # fmt: skip
SHARED = ("shared", "shared.dyn")
FRAGMENT = ("local.fragment",)
LOCAL = ("local", "local.var")


def trace_of(function: str) -> Trace:
    """The kernel being traced; language functions with an effect exist only inside one."""
    trace = active_trace()
    if trace is None:
        reject("TL169", f"`T.{function}` is called outside any kernel")
    return trace


# -- tiles ---------------------------------------------------------------------------------------


def tile(function: str, role: str, value: Any) -> Region:
    """`value` as a region of a buffer; rejects what is not a buffer, region or element."""
    region = indexing.region_of(value)
    if region is None:
        reject(
            "TL116",
            f"`{role}` of `T.{function}` is {kind_text(value)}, not a buffer or a region of one",
            span=argument_span(role),
            help="give the kernel a parameter for it: `W: T.Tensor(shape, dtype)`"
            if type(value).__module__.split(".")[0] in ("numpy", "torch")
            else f"pass a buffer `A`, a region `A[i:i + n, :]` or an element `A[i, j]` as `{role}`",
        )
    if isinstance(value, (ex.VarRef, Buffer)):
        region = replace(region, span=argument_span(role))
    if region.buffer.is_reducer:
        _refuse_reducer(function, region)
    if region.buffer.scope_name in ("shared.barrier", "shared.cluster_barrier"):
        wrong_scope(function, role, region, "barriers hold no data", help="pass a tile")
    return region


def place(function: str, role: str, value: Any) -> Region:
    """One element passed by reference: `A[i, j]`, a variable, or a buffer of one element."""
    region = indexing.region_of(value)
    if region is None:
        reject(
            "TL116",
            f"`{role}` of `T.{function}` is {kind_text(value)}, not an element of a buffer",
            span=argument_span(role),
            help=f"pass the element itself, such as `A[i, j]`, as `{role}`",
        )
    sizes = [arith.constant_value(e) for e in region.extents]
    if any(size is not None and size != 1 for size in sizes):
        reject(
            "TL116",
            f"`{role}` of `T.{function}` is `{region_text(region)}`, more than one element",
            span=region.span,
            labels=declared(region),
            help=f"index one element of `{region.buffer.name}`",
        )
    return region


def mbarrier(function: str, role: str, value: Any) -> Region:
    """An mbarrier: `full[i]`, or the first of a barrier buffer."""
    if isinstance(value, Buffer) and value.ndim == 1:
        value = value[0]
    region = place(function, role, value)
    if region.buffer.scope_name not in ("shared.barrier", "shared.cluster_barrier"):
        wrong_scope(
            function, role, region, "an mbarrier is expected here",
            help="allocate it: `full = T.alloc_barrier([arrivals] * stages)`",
        )  # fmt: skip
    return region


def require_scope(
    function: str, role: str, region: Region, scopes: Sequence[str], help: str | None = None
) -> None:
    """Reject a region whose buffer is in a memory the operation cannot use."""
    if region.buffer.scope_name in scopes:
        return
    names = " or ".join(dict.fromkeys(scope_text(s) for s in scopes))
    wrong_scope(function, role, region, f"`T.{function}` takes a {names} tile there", help)


def wrong_scope(
    function: str, role: str, region: Region, why: str, help: str | None = None
) -> NoReturn:
    reject(
        "TL208",
        f"`{role}` of `T.{function}` is `{region.buffer.name}`, "
        f"which is in {scope_text(region.buffer.scope_name)} memory",
        span=region.span,
        label=why,
        labels=declared(region),
        help=help,
    )


def refuse_in_parallel(function: str) -> None:
    """Tile operations use all threads at once; `T.Parallel` runs its body once per element."""
    trace = trace_of(function)
    if not trace.facts.get("parallel_depth", 0):
        return
    loops = [loop for loop in trace.facts.get("loop_stack", ()) if loop.kind == "parallel"]
    span = getattr(loops[0], "span", None) if loops else None
    reject(
        "TL241",
        f"`T.{function}` is a tile operation inside `T.Parallel`",
        label="works on whole tiles, with all threads",
        labels=(Label(span, "the body of this loop runs once per element"),) if span else (),
        help=f"move `T.{function}` out of the loop, or write the elements: `B[i, j] = A[i, j]`",
    )


def emit_tile(name: str, args: Iterable[Region | ex.Expr], attrs: Mapping[str, Any]) -> None:
    """Add tile operation `name` to the program, as `program.tile_ops` declares it."""
    trace, schema, given = trace_of(name), SCHEMAS[name], tuple(args)
    needed = [operand for operand in schema.operands if not operand.startswith("?")]
    if tuple(attrs) != schema.attrs or not len(needed) <= len(given) <= len(schema.operands):
        raise TypeError(f"{name}: {tuple(attrs)} over {len(given)} operands is not {schema}")
    trace.emit(TileOp(name, given, tuple(attrs.items()), **trace.position()))


# -- scalars -------------------------------------------------------------------------------------


def intrinsic(name: str, args: Iterable[Any], dtype: DType, **attrs: Any) -> ex.Intrinsic:
    """A call of scalar operation `name` at the current position."""
    operands = tuple(a if isinstance(a, Region) else operators.as_expr(a) for a in args)
    trace = active_trace()
    span = trace.span if trace else None
    return ex.Intrinsic(name, operands, dtype, span, tuple(attrs.items()))


def effect(name: str, args: Iterable[Any] = (), **attrs: Any) -> None:
    """Evaluate scalar operation `name` for what it does; it has no value."""
    trace = trace_of(name)
    trace.emit(Evaluate(intrinsic(name, args, ex.INT32, **attrs), **trace.position()))


def integer(function: str, role: str, value: Any) -> ex.Expr:
    """`value` as an integer expression."""
    if isinstance(value, (str, float)) or value is None:
        reject(
            "TL116",
            f"`{role}` of `T.{function}` is {kind_text(value)}, not an integer",
            span=argument_span(role),
            help="pass an integer or an integer expression",
        )
    expr = operators.as_expr(value)
    if known(expr.dtype) and not (expr.dtype.is_integer or expr.dtype.kind == "bool"):
        reject(
            "TL236",
            f"`{role}` of `T.{function}` is {expr.dtype}, not an integer",
            span=use_of(expr) or argument_span(role),
            help="cast it: `T.cast(…, 'int32')`",
        )
    return expr


def static_int(function: str, role: str, value: Any, low: int, high: int) -> int | None:
    """A Python integer from `low` to `high`; None while it is an unchosen symbol."""
    number = arith.constant_value(value) if isinstance(value, (int, ex.Expr)) else None
    if number is None:
        if is_symbolic(value):
            return None
        reject(
            "TL152" if isinstance(value, ex.Expr) else "TL116",
            f"`{role}` of `T.{function}` is {kind_text(value)}, not a constant integer",
            span=argument_span(role),
            label="must be known when compiling",
            help=f"pass a constant from {low} to {high}" if high < 1 << 20 else "pass a constant",
        )
    if not low <= number <= high:
        reject(
            "TL117",
            f"`{role}={number}` of `T.{function}` is outside {low} … {high}",
            span=argument_span(role),
            help=f"pass a constant from {low} to {high}",
        )
    return number


def static_bool(function: str, role: str, value: Any) -> bool | None:
    """A Python bool (0 and 1 too); None while it is an unchosen symbol."""
    if is_symbolic(value):
        return None
    number = arith.constant_value(value) if isinstance(value, (int, ex.Expr)) else None
    if number not in (0, 1):
        reject(
            "TL152" if isinstance(value, ex.Expr) else "TL116",
            f"`{role}` of `T.{function}` is {kind_text(value)}, not True or False",
            span=argument_span(role),
            label="must be known when compiling",
            help="pass a constant, or branch on it around the call",
        )
    return bool(number)


def axis_of(function: str, region: Region, dim: Any) -> int | None:
    """`dim` counted from 0."""
    rank = len(region.ranges)
    axis = static_int(function, "dim", dim, -(1 << 31), 1 << 31)
    if axis is None:
        return None
    if not -rank <= axis < rank:
        _refuse_axis(function, region, axis, rank)
    return axis % rank


def _refuse_axis(function: str, region: Region, axis: int, rank: int) -> NoReturn:
    legal = "0 or -1" if rank == 1 else f"0 … {rank - 1}, or -{rank} … -1 from the end"
    reject(
        "TL211",
        f"`dim={axis}` of `T.{function}`: `{region.buffer.name}` has {counted(rank, 'dimension')}",
        span=argument_span("dim"),
        labels=declared(region),
        help=f"possible: {legal}",
    )


def is_true(flag: Any) -> bool:
    """A flag that `static_bool` accepted; a symbol counts as not set."""
    return arith.constant_value(flag) == 1 if isinstance(flag, (int, ex.Expr)) else False


def choice(function: str, role: str, value: Any, allowed: Sequence[str]) -> str:
    """One of a few words."""
    if isinstance(value, str) and value in allowed:
        return value
    text = repr(value) if isinstance(value, str) else kind_text(value)
    hint = did_you_mean(value, allowed) if isinstance(value, str) else ""
    place = argument_span(role)
    reject(
        "TL117",
        f"`{role}={text}` of `T.{function}` is not possible{hint}",
        span=place,
        fixes=string_fixes(place, value, allowed) if isinstance(value, str) else (),
        help=f"one of {', '.join(repr(a) for a in allowed)}",
    )


def optional_choice(function: str, role: str, value: Any, allowed: Sequence[str]) -> str | None:
    return None if value is None else choice(function, role, value, allowed)


def options(function: str, annotations: Any) -> dict[str, Any]:
    """The `annotations` argument as a dict."""
    if annotations is None:
        return {}
    if not isinstance(annotations, Mapping):
        reject(
            "TL116",
            f"`annotations` of `T.{function}` is {kind_text(annotations)}, not a dict",
            span=argument_span("annotations"),
            help='write `annotations={"name": value}`',
        )
    return dict(annotations)


def require_float(function: str, expr: ex.Expr, role: str = "x") -> None:
    if known(expr.dtype) and not expr.dtype.is_float:
        reject(
            "TL236",
            f"`T.{function}` needs a floating-point `{role}`, got {expr.dtype}",
            span=use_of(expr) or argument_span(role),
            help="cast it first: `T.cast(…, 'float32')`",
        )


def use_of(expr: ex.Expr) -> Span | None:
    """Where an operand stands; the span of a variable is its declaration, so the call it is."""
    return None if isinstance(expr, (ex.Var, ex.VarRef)) else expr.span


def known(dtype: Any) -> bool:
    """Whether a dtype is chosen; an editor may only have its name."""
    return not is_unknown(dtype) and getattr(dtype, "kind", "symbol") != "symbol"


def is_symbolic(value: Any) -> bool:
    """Whether `value` is a Python value that nobody has chosen yet (not a device value)."""
    if is_unknown(value):
        return True
    if not isinstance(value, ex.Expr):
        return False
    leaves = list(_leaves(value))
    return bool(leaves) and all(
        isinstance(leaf, ex.Var) and leaf.kind in ("symbol", "const") for leaf in leaves
    )


def _leaves(value: ex.Expr) -> Iterator[ex.Expr]:
    """The variables and elements `value` is computed from, through names bound to expressions."""
    for node in ex.walk(value):
        if isinstance(node, ex.Load) or (isinstance(node, ex.Var) and node.definition is None):
            yield node
        elif isinstance(node, ex.Var) and node.definition is not None:
            yield from _leaves(node.definition)


def dtype_of(function: str, value: Any) -> DType:
    """A dtype argument, symbols included."""
    from tilelang.language.types import resolve_dtype

    if as_dtype(value) is None and not isinstance(value, (str, ex.Var)) and not is_unknown(value):
        reject(
            "TL116",
            f"`dtype` of `T.{function}` is {kind_text(value)}, not a dtype",
            span=argument_span("dtype"),
            help="for example `T.float16` or 'int8'",
        )
    return resolve_dtype(value)


# -- words ---------------------------------------------------------------------------------------


def declared(*tiles: Region | Buffer) -> tuple[Label, ...]:
    """Where the buffers of `tiles` come from, with shape, dtype and memory."""
    buffers = dict.fromkeys(t.buffer if isinstance(t, Region) else t for t in tiles)
    return tuple(
        Label(b.span, f"`{b.name}` is {shape_text(b)}") for b in buffers if b.span is not None
    )


def extents_text(extents: Iterable[Any]) -> str:
    """`(64, 32)`."""
    parts = [expr_text(arith.simplify(e)) for e in extents]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def scope_text(scope: str) -> str:
    """The memory as users call it."""
    return {
        "shared.dyn": "shared", "local.fragment": "fragment", "local.var": "local",
        "shared.tmem": "tensor-memory", "shared.barrier": "barrier",
        "shared.cluster_barrier": "barrier", "local.reducer": "reducer",
    }.get(scope, scope)  # fmt: skip


def kind_text(value: Any) -> str:
    """What an argument is, in a message."""
    if isinstance(value, Buffer):
        return f"buffer `{value.name}`"
    if isinstance(value, Region):
        return f"region `{region_text(value)}`"
    if isinstance(value, ex.Expr):
        return f"`{expr_text(value)}`"
    if isinstance(value, (bool, int, float, str)) or value is None:
        return f"`{value!r}`"
    return with_article(type(value).__name__)


def _refuse_reducer(function: str, region: Region) -> NoReturn:
    reject(
        "TL187",
        f"reducer `{region.buffer.name}` is used in `T.{function}`",
        span=region.span,
        label="a reducer is only initialised, updated and finalised",
        labels=declared(region),
        help="call `T.finalize_reducer(acc, dst)` and use `dst`",
    )
