"""Which names a kernel binds, where each is used, and what it is: what editors ask about."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from tilelang.dtypes import DType
from tilelang.program.buffer import Buffer, Region
from tilelang.program.expr import Expr, Var, VarRef
from tilelang.program.text import shape_text
from tilelang.program.unknown import Unknown
from tilelang_diagnostics.model import Span

SymbolKind = Literal[
    "parameter", "buffer", "variable", "loop", "block", "constant", "dim", "function", "unknown"
]


@dataclass(slots=True, eq=False)
class Symbol:
    """One binding of a name: `span` is the name itself; `uses` are its reads, in order."""

    name: str
    span: Span
    kind: SymbolKind
    value: Any
    function: str
    uses: dict[Span, None] = field(default_factory=dict)

    def used(self, span: Span) -> None:
        """Record a read at `span`, once."""
        self.uses[span] = None

    @property
    def detail(self) -> str:
        """A short type for hints: `(64, 32) float16 shared`, `int32`, `= 128`."""
        return describe(self.value)


@dataclass(slots=True, eq=False)
class SymbolTable:
    """All bindings of one traced function, in binding order."""

    symbols: list[Symbol] = field(default_factory=list)
    _at: dict[tuple[str, Span], Symbol] = field(default_factory=dict)

    def bind(
        self, name: str, span: Span, value: Any, function: str, kind: SymbolKind | None = None
    ) -> Symbol:
        """Record a binding; a name bound again at the same place (unrolling) is one symbol."""
        known = self._at.get((name, span))
        if known is not None:
            known.value = value
            return known
        symbol = self._at[name, span] = Symbol(name, span, kind or kind_of(value), value, function)
        self.symbols.append(symbol)
        return symbol

    def at(self, line: int, column: int) -> Symbol | None:
        """The symbol whose binding or use covers a 1-based position."""
        for symbol in self.symbols:
            for span in (symbol.span, *symbol.uses):
                if span.line == line and span.column <= column <= span.end_column:
                    return symbol
        return None


def kind_of(value: Any) -> SymbolKind:
    match value:
        case Unknown():
            return "unknown"
        case Buffer():
            return "parameter" if value.role in ("param", "output") else "buffer"
        case VarRef():
            return "variable"
        case Var(kind="loop"):
            return "loop"
        case Var(kind="block" | "thread"):
            return "block"
        case Var(kind="dim" | "const" | "symbol"):
            return "dim"
        case Var(kind="param"):
            return "parameter"
        case Expr() | Region():
            return "variable"
        case _ if callable(value) and not isinstance(value, DType):
            return "function"
        case _:
            return "constant"


def describe(value: Any) -> str:
    """What a hint says about a value."""
    match value:
        case Unknown():
            return ""
        case Buffer():
            return shape_text(value)
        case VarRef():
            return f"{value.dtype.name} var"
        case Region():
            dims = ", ".join(str(d) for d in value.shape)
            return f"region ({dims}) {value.dtype.name} of {value.buffer.name}"
        case Expr():
            return value.dtype.name
        case DType():
            return value.name
        case bool() | int() | float() | str():
            return f"= {value!r}"
        case tuple() | list():
            return f"{len(value)} values"
        case _ if kind_of(value) == "function":
            return ""  # its definition says more than its class
        case _:
            return type(value).__name__
