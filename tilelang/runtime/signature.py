"""Which values does a call of a kernel take, which does it return, and who allocates those?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from tilelang.program.arith import structure
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Binary, Cast, Const, Expr, Unary, Var, children, walk
from tilelang.program.stmt import Assume, Block, Function, Launch, Scoped, Stmt
from tilelang.runtime.dims import buffer_vars
from tilelang_diagnostics import failure
from tilelang_diagnostics.model import Span

Parameter: TypeAlias = "Buffer | Var"
OutIdx: TypeAlias = "int | Sequence[int] | None"


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters of a kernel, and which of them the caller leaves to the runtime.

    `out_idx` are positions in `params`, ascending. `outputs` are the returned `T.empty` buffers.
    `promises` are what the author assumed of the arguments (`T.assume`): checked at every call.
    """

    name: str
    params: tuple[Parameter, ...]
    outputs: tuple[Buffer, ...] = ()
    out_idx: tuple[int, ...] = ()
    span: Span | None = None
    promises: tuple[Assume, ...] = ()

    def __post_init__(self) -> None:
        if list(self.out_idx) != sorted(set(self.out_idx)):
            raise ValueError(f"out_idx is not ascending: {self.out_idx}")
        if any(not isinstance(self.params[i], Buffer) for i in self.out_idx):
            raise ValueError(f"out_idx names a scalar: {self.out_idx}")

    @property
    def inputs(self) -> tuple[Parameter, ...]:
        """What the caller passes, in order."""
        return tuple(p for i, p in enumerate(self.params) if i not in self.out_idx)

    @property
    def results(self) -> tuple[Buffer, ...]:
        """What a call returns, in order."""
        allocated = (self.params[i] for i in self.out_idx)
        return (*(p for p in allocated if isinstance(p, Buffer)), *self.outputs)

    @property
    def slots(self) -> tuple[Parameter, ...]:
        """Every parameter of the compiled function, in its order."""
        return (*self.params, *self.outputs)

    @property
    def dims(self) -> tuple[Var, ...]:
        """The runtime dimensions that are no parameters themselves, by first appearance."""
        scalars = {p for p in self.params if isinstance(p, Var)}
        buffers = (p for p in self.slots if isinstance(p, Buffer))
        found = {v: None for buffer in buffers for v in buffer_vars(buffer)}
        return tuple(v for v in found if v not in scalars)


def make_signature(function: Function, out_idx: OutIdx = None) -> Signature:
    """The signature of `function`; TL712 or TL713 for an `out_idx` it cannot have."""
    positions = _positions(function, out_idx)
    if positions and function.outputs:
        names = ", ".join(b.name for b in function.outputs)
        _refuse(
            "TL713",
            f"out_idx={out_idx!r} together with returned T.empty tensors ({names}) of "
            f"{function.name}",
            "drop out_idx: a returned T.empty tensor is allocated already",
            function.span,
        )
    return Signature(
        function.name, function.params, function.outputs, positions, function.span,
        promises_of(function),
    )  # fmt: skip


def promises_of(function: Function) -> tuple[Assume, ...]:
    """Each `T.assume` that holds of the whole call: about its dims and integer scalars alone.

    Inside a loop or branch a promise need not hold where control never comes.
    """
    known: set[Expr] = {p for p in function.params if isinstance(p, Var) and p.dtype.is_integer}
    for buffer in (*function.params, *function.outputs):
        if isinstance(buffer, Buffer):
            known.update(buffer_vars(buffer))
    found: dict[Any, Assume] = {}  # what is promised twice is one promise
    for stmt in _straight_line(function.body):
        if isinstance(stmt, Assume) and _is_about(stmt.condition, known):
            found.setdefault(structure(stmt.condition), stmt)
    return tuple(found.values())


def _straight_line(block: Block) -> Iterator[Stmt]:
    for stmt in block:
        yield stmt
        if isinstance(stmt, (Launch, Scoped)):
            yield from _straight_line(stmt.body)


def _is_about(condition: Expr, known: set[Expr]) -> bool:
    leaves = [node for node in walk(condition) if not children(node)]
    return all(isinstance(n, Const) or n in known for n in leaves) and all(
        isinstance(n, (Const, Var, Binary, Unary, Cast)) for n in walk(condition)
    )


def _positions(function: Function, out_idx: OutIdx) -> tuple[int, ...]:
    if out_idx is None:
        return ()
    given = [out_idx] if isinstance(out_idx, int) else list(out_idx)
    count = len(function.params)
    found: list[int] = []
    for position in given:
        plain = isinstance(position, int) and not isinstance(position, bool)
        if not plain or not -count <= position < count:
            _refuse(
                "TL712",
                f"out_idx {position!r} names no parameter of {function.name}, which has {count}",
                f"use a position from 0 to {count - 1}, or a negative one counted from the end",
                function.span,
            )
        index = position % count
        parameter = function.params[index]
        if index in found:
            _refuse(
                "TL712",
                f"out_idx {out_idx!r} names parameter {parameter.name} of {function.name} twice",
                "name each result once",
                parameter.span or function.span,
            )
        if isinstance(parameter, Var):
            _refuse(
                "TL712",
                f"out_idx {position} is the scalar {parameter.name} of {function.name}",
                "only tensors can be allocated and returned",
                parameter.span or function.span,
            )
        found.append(index)
    return tuple(sorted(set(found)))


def _refuse(code: str, message: str, help: str, span: Span | None) -> NoReturn:
    raise failure(code, message, span=span, help=help)
