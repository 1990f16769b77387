"""One function being interpreted: its names, its surroundings, and where it is in control flow."""

from __future__ import annotations

import ast
import builtins
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol

from tilelang.language.source import FunctionNode, SourceFile
from tilelang.language.symbols import Symbol, SymbolTable
from tilelang.program.context import Trace
from tilelang.program.unknown import Unknown
from tilelang_diagnostics.model import Span


class Missing:
    """The one value that says a name is not bound."""


MISSING = Missing()


class Environment(Protocol):
    """What names mean outside the function being interpreted."""

    static: bool

    def lookup(self, name: str, span: Span | None = None) -> Any:
        """The value of `name`, or MISSING."""

    def known_names(self) -> Iterator[str]:
        """Names that exist, for "did you mean"."""


@dataclass(frozen=True, slots=True, eq=False)
class Definition:
    """A function of the user that is interpreted rather than called.

    `annotations` and `defaults` are the values Python already evaluated when the function object
    exists; empty for a function known only as text.
    """

    name: str
    source: SourceFile
    node: FunctionNode
    env: Environment
    annotations: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def span(self) -> Span:
        """The `def` line's name."""
        line = self.source.span(self.node)
        column = line.column + len("def ")
        return Span(line.file, line.line, column, line.line, column + len(self.name))


@dataclass(slots=True, eq=False)
class Local:
    """A bound name; `region` is the device branch or loop it was bound in."""

    value: Any
    span: Span
    region: tuple[int, ...]
    symbol: Symbol | None = None
    is_let: bool = False


@dataclass(slots=True, eq=False)
class Frame:
    """The state of interpreting one function body."""

    trace: Trace
    source: SourceFile
    env: Environment
    symbols: SymbolTable
    function: str
    host: bool = False  # plain Python around kernels (static environment only)
    names: dict[str, Local] = field(default_factory=dict)
    expired: dict[str, Local] = field(default_factory=dict)
    region: tuple[int, ...] = ()
    region_count: int = 0
    once: set[int] = field(default_factory=set)  # regions whose body does not run again: no loops
    serial_depth: int = 0  # device loops that take break and continue
    in_condition: bool = False
    is_macro: bool = False
    depth: int = 0
    returned: Any = None
    node: FunctionNode | None = None  # the definition, to know what later lines bind
    on_define: Callable[[Frame, FunctionNode], Any] | None = None
    on_annotate: Callable[[Frame, ast.AnnAssign], bool] | None = None

    @property
    def static(self) -> bool:
        return self.env.static

    @property
    def speculative(self) -> bool:
        """Inside a branch that the text alone does not decide, or called from one."""
        return self.trace.speculative > 0

    def span(self, node: ast.AST) -> Span:
        return self.source.span(node)

    def bind(self, name: str, value: Any, span: Span, *, is_let: bool = False) -> None:
        """Give `name` a value for the rest of the region."""
        symbol = self.symbols.bind(name, span, value, self.function)
        self.names[name] = Local(value, span, self.region, symbol, is_let)
        self.expired.pop(name, None)

    def is_carried(self, name: str) -> bool:
        """Whether `name` is bound outside of a device loop whose body is being read."""
        local = self.names.get(name)
        since = 0 if local is None else len(local.region)
        return any(region not in self.once for region in self.region[since:])

    @property
    def is_helper(self) -> bool:
        """Whether Python runs this function for the kernel that calls it."""
        return self.host and self.depth > 0

    @contextmanager
    def device_region(self, *, once: bool = False) -> Iterator[None]:
        """Names bound inside are values of that branch or loop body, and end with it."""
        before = dict(self.names)
        outer = self.region
        self.region_count += 1
        self.region = (*outer, self.region_count)
        if once:
            self.once.add(self.region_count)
        try:
            yield
        finally:
            self.region = outer
            for name, local in list(self.names.items()):
                if before.get(name) is not local:
                    del self.names[name]
                    self.expired[name] = local

    def bound_at(self, name: str) -> Span | None:
        """Where the text of this function first binds `name`, whether or not it came to that."""
        if self.node is None:
            return None
        rows = enumerate(self.source.lines, 1)
        lines = [n for n, row in rows if name in row or not row.isascii()]  # `ﬁ` is `fi`
        found = [n for n in _own_nodes(self.node, lines) if isinstance(n, ast.Name)
                 and n.id == name and isinstance(n.ctx, ast.Store)]  # fmt: skip
        first = min(found, key=lambda n: (n.lineno, n.col_offset), default=None)
        return None if first is None else self.span(first)

    def lookup(self, name: str, span: Span | None) -> Any:
        """The value of a name, MISSING when bound nowhere. Records the use."""
        local = self.names.get(name)
        if local is not None:
            if local.symbol is not None and span is not None:
                local.symbol.used(span)
            return local.value
        found = self.env.lookup(name, span)
        if found is MISSING:
            return (
                SAFE_BUILTINS.get(name, MISSING)
                if self.static
                else getattr(builtins, name, MISSING)
            )
        return found


def _own_nodes(function: FunctionNode, lines: Sequence[int]) -> Iterator[ast.AST]:
    """The nodes of a function that lie in its own scope, and on one of these lines."""
    pending: list[ast.AST] = list(function.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.stmt):
            at = bisect_left(lines, node.lineno)
            if at == len(lines) or lines[at] > (node.end_lineno or node.lineno):
                continue
        yield node
        if not isinstance(node, _SCOPES):
            pending.extend(ast.iter_child_nodes(node))


_SCOPES = (
    ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp,
    ast.DictComp, ast.GeneratorExp,
)  # fmt: skip


class FrameEnvironment:
    """Names of an enclosing function (static environment)."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame
        self.static = frame.static

    def lookup(self, name: str, span: Span | None = None) -> Any:
        local = self.frame.names.get(name)
        if local is not None:
            if local.symbol is not None and span is not None:
                local.symbol.used(span)
            return local.value
        return self.frame.env.lookup(name, span)

    def known_names(self) -> Iterator[str]:
        yield from self.frame.names
        yield from self.frame.env.known_names()


class LiveEnvironment:
    """The closure, globals and definition-time surroundings of a real function object."""

    static = False

    def __init__(self, function: Callable[..., Any], captured: Mapping[str, Any]) -> None:
        code = function.__code__
        self.cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self.globals = function.__globals__
        self.captured = captured

    def lookup(self, name: str, span: Span | None = None) -> Any:
        cell = self.cells.get(name)
        if cell is not None:
            try:
                return cell.cell_contents
            except ValueError:
                return MISSING  # a name its function binds only later
        if name in self.globals:
            return self.globals[name]
        return self.captured.get(name, MISSING)

    def known_names(self) -> Iterator[str]:
        yield from self.cells
        yield from self.globals


SAFE_BUILTINS: dict[str, Any] = {
    name: getattr(builtins, name)
    for name in (
        "abs", "all", "any", "bool", "dict", "divmod", "enumerate", "filter", "float", "frozenset",
        "getattr", "hasattr", "int", "isinstance", "len", "list", "map", "max", "min", "pow",
        "range", "repr", "reversed", "round", "set", "slice", "sorted", "str", "sum", "tuple",
        "type", "zip", "True", "False", "None", "NotImplemented", "Ellipsis", "ValueError",
        "TypeError", "RuntimeError", "AssertionError", "NotImplementedError", "KeyError",
        "IndexError", "Exception", "object", "callable", "complex", "bytes", "ord", "chr", "hex",
        "bin",
    )
    if hasattr(builtins, name)
}  # fmt: skip
SAFE_BUILTINS["print"] = lambda *_, **__: None
# Builtins that would look at the running process: they exist, and what they give is not known.
_UNKNOWN_BUILTINS = (
    "open", "input", "exec", "eval", "compile", "globals", "locals", "vars", "id", "super",
    "property", "staticmethod", "classmethod", "__import__", "iter", "next", "hash", "format",
    "issubclass", "setattr", "dir", "help", "exit", "quit",
    "__name__", "__file__",
)  # fmt: skip
SAFE_BUILTINS.update((name, Unknown(name)) for name in _UNKNOWN_BUILTINS)
