"""Are the operands of a matrix product matrices of fitting extents, dtypes and memories?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any

from tilelang.dtypes import DType
from tilelang.language.operands import (
    FRAGMENT,
    SHARED,
    declared,
    extents_text,
    is_symbolic,
    known,
    refuse_in_parallel,
    require_scope,
    static_bool,
    tile,
)
from tilelang.program import arith, operators
from tilelang.program.buffer import Dim, Region
from tilelang.program.context import active_trace, argument_span, reject, warn
from tilelang.program.expr import BOOL, Expr, Load
from tilelang.program.text import expr_text
from tilelang_diagnostics import Edit, Fix, Span

TENSOR_MEMORY = ("shared.tmem",)
INPUT_SCOPES = (*SHARED, *FRAGMENT, "local", *TENSOR_MEMORY)
ACCUMULATOR_SCOPES = (*FRAGMENT, "local", *TENSOR_MEMORY)


class GemmWarpPolicy(IntEnum):
    """How the warps of a block divide the M x N tile of a gemm among them."""

    Square = 0  # near-square tiles per warp
    FullRow = 1  # all warps along M
    FullCol = 2  # all warps along N

    def __repr__(self) -> str:
        return f"T.GemmWarpPolicy.{self.name}"


@dataclass(frozen=True, slots=True, eq=False)
class Matrix:
    """One operand as stored; `transposed` when it is given as its transpose."""

    role: str
    region: Region
    transposed: bool | None

    @property
    def rows(self) -> Dim:
        return self._extent(-1 if self.transposed else -2)

    @property
    def columns(self) -> Dim:
        return self._extent(-2 if self.transposed else -1)

    @property
    def name(self) -> str:
        return self.region.buffer.name

    def _extent(self, position: int) -> Dim:
        extent: Dim = arith.simplify(self.region.extents[position])
        return extent


def checked(
    function: str,
    A: Any,
    B: Any,
    C: Any,
    transpose_A: Any,
    transpose_B: Any,
    *,
    half_of_b: bool = False,
) -> tuple[Region, Region, Region]:
    """The three operands, their shapes, dtypes and memories checked against each other.

    With `half_of_b` two blocks share the product and each holds half of B's columns.
    """
    refuse_in_parallel(function)
    a = matrix(function, "A", A, transpose_A)
    b = matrix(function, "B", B, transpose_B)
    c = matrix(function, "C", C, False)
    check_scopes(function, a, b, c)
    if a.transposed is not None and b.transposed is not None:
        if arith.surely_different(a.columns, b.rows):
            _refuse_k(function, a, b, c)
        halves = arith.surely_different(b.columns, c.columns) and arith.same(
            operators.binary("*", b.columns, 2), c.columns
        )
        if not (half_of_b and halves):
            check_product(function, a, b, c)
    _check_dtypes(function, a, b, c)
    return a.region, b.region, c.region


def matrix(function: str, role: str, value: Any, transposed: Any) -> Matrix:
    region = tile(function, role, value)
    extents = region.extents
    surplus = extents[:-2]
    if isinstance(value, Load) or len(extents) < 2 or any(
        arith.surely_different(e, 1) for e in surplus
    ):  # fmt: skip
        lead = ", ".join("i" for _ in surplus) if surplus else ""
        advice = f"`{region.buffer.name}[{lead}, :, :]` in a loop" if lead else "a 2-D tile"
        reject(
            "TL207",
            f"`{role}` of `T.{function}` is `{region.buffer.name}` "
            + ("one element" if isinstance(value, Load) else f"of shape {extents_text(extents)}")
            + ", not a matrix",
            span=region.span,
            labels=declared(region),
            help=f"pass {advice}; leading dimensions of extent 1 are fine",
        )
    flag = f"transpose_{role.removesuffix('_sparse')}"
    return Matrix(role, region, static_bool(function, flag, transposed))


def check_scopes(function: str, a: Matrix, b: Matrix, c: Matrix) -> None:
    for operand in (a, b):
        help = f"copy it to shared memory first: `T.copy({operand.name}[…], {operand.name}_shared)`"
        require_scope(function, operand.role, operand.region, INPUT_SCOPES, help)
    help = "accumulate in registers: `C_local = T.alloc_fragment((M, N), 'float32')`"
    require_scope(function, "C", c.region, ACCUMULATOR_SCOPES, help)


def _refuse_k(function: str, a: Matrix, b: Matrix, c: Matrix) -> None:
    advice, fixes = _fitting(function, a, b, c)
    reject(
        "TL204",
        f"`T.{function}`: K is {expr_text(a.columns)} in `{a.name}` {_stored(a)} "
        f"and {expr_text(b.rows)} in `{b.name}` {_stored(b)}",
        labels=declared(a.region, b.region, c.region),
        help=advice or "the two K extents must be equal",
        fixes=fixes,
    )


def check_product(function: str, a: Matrix, b: Matrix, c: Matrix) -> None:
    wrong = [
        f"{letter} is {expr_text(want)} in `{source.name}` and {expr_text(have)} in `{c.name}`"
        for letter, want, have, source in (
            ("M", a.rows, c.rows, a), ("N", b.columns, c.columns, b),
        )
        if arith.surely_different(want, have)
    ]  # fmt: skip
    if not wrong:
        return
    shape = extents_text((a.rows, b.columns))
    advice, fixes = _fitting(function, a, b, c)
    reject(
        "TL205",
        f"`T.{function}`: {' and '.join(wrong)}",
        span=c.region.span,
        label=f"the product is {shape}, `{c.name}` is {extents_text((c.rows, c.columns))}",
        labels=declared(a.region, b.region, c.region),
        help=advice or f"allocate `{c.name}` with shape {shape}",
        fixes=fixes,
    )


def _fitting(
    function: str, a: Matrix, b: Matrix, c: Matrix
) -> tuple[str | None, tuple[Fix, ...]]:  # fmt: skip
    """How the same operands would agree, and the fix that writes it so."""
    swapped = _swap_advice(function, a, b, c)
    if swapped is not None:
        return swapped, _swap(a, b)
    flags = _flags(a, b, c)
    if not flags:
        return None, ()
    written = " and ".join(f"`{name}={value}`" for name, value in flags)
    edits = [_flag_edit(name, value) for name, value in flags]
    fix = Fix(f"write {written}", tuple(e for e in edits if e is not None))
    return f"the extents agree with {written}", () if None in edits else (fix,)


def _swap_advice(function: str, a: Matrix, b: Matrix, c: Matrix) -> str | None:
    """Whether the two operands, each as it is stored, agree in the other order."""
    left, right = Matrix("A", b.region, False), Matrix("B", a.region, False)
    fits = (
        not a.transposed
        and not b.transposed
        and arith.same(left.columns, right.rows)
        and arith.same(left.rows, c.rows)
        and arith.same(right.columns, c.columns)
    )
    if not fits:
        return None
    return f"the operands fit in the other order: `T.{function}({b.name}, {a.name}, {c.name})`"


def _swap(a: Matrix, b: Matrix) -> tuple[Fix, ...]:
    """The two operands exchanged, where each is written as the name of its buffer."""
    trace = active_trace()
    places = [argument_span(m.role) for m in (a, b)]
    if trace is None or trace.calls or not all(
        place is not None and place.end_column - place.column == len(m.name)
        for place, m in zip(places, (a, b), strict=True)
    ):  # fmt: skip
        return ()
    edits = [Edit(place, m.name) for place, m in zip(places, (b, a), strict=True) if place]
    return (Fix(f"exchange `{a.name}` and `{b.name}`", tuple(edits)),)


def _flag_edit(name: str, value: bool) -> Edit | None:
    """An argument of the call in progress changed, or added after the last."""
    trace = active_trace()
    site = None if trace is None else trace.call_site
    if site is None or not site.positional:
        return None
    given = dict(site.keywords).get(name)
    place = site.names.index(name) if name in site.names else None
    if given is None and place is not None and place < len(site.positional):
        given = site.positional[place]
    if given is not None:
        return Edit(given, str(value))
    last = max((*site.positional, *(span for _, span in site.keywords)), key=_end)
    end = replace(last, line=last.end_line, column=last.end_column)
    return Edit(end, f", {name}={value}")


def _end(span: Span) -> tuple[int, int]:
    return span.end_line, span.end_column


def _flags(a: Matrix, b: Matrix, c: Matrix) -> tuple[tuple[str, bool], ...]:
    """Which flags, flipped, make all three extents agree."""
    for flip_a, flip_b in ((False, True), (True, False), (True, True)):
        left = Matrix("A", a.region, a.transposed != flip_a)
        right = Matrix("B", b.region, b.transposed != flip_b)
        fits = (
            arith.same(left.columns, right.rows)
            and arith.same(left.rows, c.rows)
            and arith.same(right.columns, c.columns)
        )
        if fits:
            return tuple(
                (f"transpose_{m.role}", bool(m.transposed))
                for m, flip in ((left, flip_a), (right, flip_b))
                if flip
            )
    return ()


def _stored(operand: Matrix) -> str:
    """`(M, K) = (64, 32)` as the flag says the operand is stored."""
    letters = {"A": "MK", "A_sparse": "MK", "B": "KN"}[operand.role]
    names = letters[::-1] if operand.transposed else letters
    return f"({names[0]}, {names[1]}) = {extents_text(operand.region.extents[-2:])}"


def _check_dtypes(function: str, a: Matrix, b: Matrix, c: Matrix) -> None:
    left, right, sum_ = a.region.dtype, b.region.dtype, c.region.dtype
    if not (known(left) and known(right) and known(sum_)):
        return
    if left != right and not _mixable(left, right):
        reject(
            "TL206",
            f"`T.{function}` cannot multiply {left} (`{a.name}`) with {right} (`{b.name}`)",
            labels=declared(a.region, b.region),
            help="copy one of them into a tile of the other's dtype",
        )
    if left.is_float != sum_.is_float:
        wide = "float32" if left.is_float else "int32"
        reject(
            "TL206",
            f"`T.{function}` cannot accumulate products of {left} in {sum_} (`{c.name}`)",
            span=c.region.span,
            labels=declared(a.region, c.region),
            help=f"accumulate in {wide} and convert with `T.copy`",
        )
    if left.is_float and left.bits <= 16 and sum_.bits <= 16:
        warn(
            "TL607",
            f"`{c.name}` accumulates in {sum_}, so rounding errors grow with K",
            labels=declared(c.region),
            help="accumulate in float32 and convert once at the end with `T.copy`",
        )


def _mixable(left: DType, right: DType) -> bool:
    """Narrow formats that matrix instructions take in any combination."""
    both_narrow = left.bits <= 8 and right.bits <= 8
    return both_narrow and left.is_float == right.is_float


def warp_policy(function: str, policy: Any) -> GemmWarpPolicy:
    if is_symbolic(policy):
        return GemmWarpPolicy.Square
    if isinstance(policy, int) and policy in tuple(GemmWarpPolicy):
        return GemmWarpPolicy(policy)
    names = ", ".join(f"T.GemmWarpPolicy.{p.name}" for p in GemmWarpPolicy)
    reject(
        "TL117",
        f"`policy` of `T.{function}` is {policy!r}",
        span=argument_span("policy"),
        help=f"one of {names}",
    )


def clear_flag(clear_accum: Any) -> Expr:
    condition = operators.as_condition(clear_accum)
    return operators.as_expr(condition, BOOL)
