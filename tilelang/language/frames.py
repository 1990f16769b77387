"""Values that statements consume: loops for `for`, launches and scopes for `with`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from tilelang.program.context import reject
from tilelang.program.expr import Expr, Var
from tilelang.program.stmt import Attrs, LoopKind
from tilelang_diagnostics.model import Span


@dataclass(frozen=True, slots=True, eq=False)
class LoopRange:
    """`[start, start + extent * step)`; `step` None for 1."""

    start: Expr
    extent: Expr
    step: Expr | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LoopFrame:
    """What `T.Parallel(…)` and its like return: to be iterated by a `for` of a kernel.

    `nested` marks loops that become one statement per range (`T.grid`); `derive` computes the
    user's targets from the loop variables where they are not the variables themselves
    (`T.Persistent`).
    """

    kind: LoopKind
    ranges: tuple[LoopRange, ...]
    span: Span | None
    attrs: Attrs = ()
    nested: bool = False
    derive: Any = None

    def __iter__(self) -> Iterator[Any]:
        """Iterated by Python itself, in a function that the kernel only calls."""
        _refuse_in_python("loop", self.span)

    def refuse_as_value(self, targets: str = "i") -> NoReturn:
        """Used as a value, or as a statement of its own: nothing iterates it."""
        reject(
            "TL156",
            "a loop is described here, and no `for` statement iterates it",
            span=self.span,
            label="runs nothing by itself",
            help=f"write `for {targets} in …:` and put what it repeats into the body",
        )


@dataclass(slots=True, eq=False)
class LaunchFrame:
    """What `T.Kernel(…)` returns; the variables are filled in when `with` enters it."""

    grid: tuple[Expr, ...]
    block: tuple[Expr, ...]
    span: Span | None
    attrs: Attrs = ()
    blocks: tuple[tuple[Var, Expr], ...] = field(default=())
    threads: tuple[tuple[Var, Expr], ...] = field(default=())

    def __enter__(self) -> NoReturn:
        _refuse_in_python("launch", self.span)

    def __exit__(self, *error: object) -> None:
        return None

    def refuse_as_value(self) -> NoReturn:
        """Used as a value: nothing launches it."""
        reject(
            "TL160",
            "a launch is described here, and no `with` statement makes it",
            span=self.span,
            label="launches nothing by itself",
            help="write `with T.Kernel(…) as (bx, by):` and indent what it runs",
        )

    @property
    def thread_count(self) -> int | None:
        """Threads per block when they are constants."""
        from tilelang.program.arith import constant_value

        total = 1
        for extent in self.block:
            number = constant_value(extent)
            if number is None:
                return None
            total *= number
        return total


@dataclass(frozen=True, slots=True, eq=False)
class ScopeFrame:
    """Any other `with` frame of the language (`T.ws(0)`, `T.attr(…)`)."""

    kind: str
    args: tuple[Any, ...]
    span: Span | None

    def __enter__(self) -> NoReturn:
        _refuse_in_python("scope", self.span)

    def __exit__(self, *error: object) -> None:
        return None


REDUCE_SCOPE: Final = "reduce_scope"


@dataclass(frozen=True, slots=True, eq=False)
class CommReducer:
    """What `T.comm_reducer(…)` returns: how two values are combined, and which changes nothing."""

    combine: Callable[[Any, Any], Any]
    identity: Any


def _refuse_in_python(what: str, span: Span | None) -> NoReturn:
    """A function of Python runs while the kernel is traced: its `for` and `with` are no code."""
    reject(
        "TL156",
        f"a {what} of the language in a function that is no macro",
        span=span,
        label="Python runs this while the kernel is traced",
        help="decorate the function with `@T.macro`: its statements become part of the kernel",
    )
