"""What are the names of one text: scopes, bindings, and the imports that lead elsewhere?

Made by `lexical.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from tilelang_diagnostics import Span

BindingKind = Literal[
    "kernel", "macro", "function", "class", "constant", "variable", "parameter", "import"
]
ScopeKind = Literal["module", "function", "class", "comprehension"]


@dataclass(frozen=True, slots=True)
class Origin:
    """What an import binds: a module (`name` is empty), or a name of one."""

    module: str
    level: int = 0
    name: str = ""


@dataclass(slots=True, eq=False)
class Scope:
    """A module, function, class or comprehension: where names are bound."""

    kind: ScopeKind
    name: str
    parent: Scope | None
    start: tuple[int, int]
    lines: tuple[int, int]
    bindings: dict[str, Binding] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)  # `global` and `nonlocal` names

    def find(self, name: str) -> Binding | None:
        """The binding that a name means in this scope."""
        scope: Scope | None = self
        first = True
        while scope is not None:
            if first or scope.kind != "class":
                found = scope.bindings.get(name)
                if found is not None:
                    return found
            first = False
            scope = scope.parent
        return None

    def around(self) -> Iterator[Scope]:
        """This scope and those around it."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent


@dataclass(slots=True, eq=False)
class Binding:
    """One name of one scope: where it is bound and used. `whole` is all of a definition.

    `parameters` are those of a function that may be given by name; `others` are what further
    imports bind it to, as in `try: … except ImportError: …`, and whether those rename it.
    `imported` counts the places of `bound` that are imports.
    """

    name: str
    scope: Scope
    kind: BindingKind = "variable"
    bound: list[Span] = field(default_factory=list)
    uses: list[Span] = field(default_factory=list)
    origin: Origin | None = None
    renamed: bool = False  # by `as`
    others: list[tuple[Origin, bool]] = field(default_factory=list)
    imported: int = 0
    whole: Span | None = None
    parameters: tuple[str, ...] = ()
    inner: Scope | None = None  # of a function

    @property
    def path(self) -> str:
        """The file that binds it."""
        return self.bound[0].file

    @property
    def key(self) -> tuple[str, tuple[int, int], str]:
        """What stays the same when the file is read again."""
        return self.path, self.scope.start, self.name

    @property
    def origins(self) -> Iterator[tuple[Origin, bool]]:
        """All that imports bind it to, and whether by another name than it has there."""
        if self.origin is not None:
            yield self.origin, self.renamed
            yield from self.others

    @property
    def sources(self) -> int:
        """How many things it may be: one for each of its imports, one for all that is no import."""
        return len([*self.origins]) + (len(self.bound) > self.imported)

    @property
    def places(self) -> list[Span]:
        """Bindings and uses in order."""
        return sorted({*self.bound, *self.uses}, key=place)


@dataclass(frozen=True, slots=True)
class Chain:
    """`root.a.b`: the name it begins with, and the place of each attribute."""

    root: Span
    name: str
    attributes: tuple[Span, ...]
    names: tuple[str, ...]
    scope: Scope


@dataclass(frozen=True, slots=True)
class NamedCall:
    """A call of a dotted name: its last part, what that is of, and the arguments given by name."""

    function: Span
    name: str
    owner: Span | None
    keywords: tuple[tuple[str, Span], ...]
    scope: Scope


@dataclass(frozen=True, slots=True)
class Mention:
    """A name in an import statement that binds nothing: `name` of `as`, or a module."""

    span: Span
    text: str
    origin: Origin


@dataclass(eq=False)
class Names:
    """All names of one text."""

    path: str
    module: Scope
    scopes: list[Scope] = field(default_factory=list)
    chains: list[Chain] = field(default_factory=list)
    calls: list[NamedCall] = field(default_factory=list)
    mentions: list[Mention] = field(default_factory=list)
    stars: list[Origin] = field(default_factory=list)
    free: dict[str, list[tuple[Span, Scope]]] = field(default_factory=dict)  # bound nowhere here
    exports: list[tuple[str, Span]] | None = None  # `__all__`
    lists_all: bool = True  # whether `exports` are all of it, as far as the text says
    broken: tuple[int, ...] = ()  # lines that could not be read

    @cached_property
    def by_place(self) -> dict[tuple[int, int], Binding]:
        """The binding of every name by where it begins."""
        return {
            (s.line, s.column): b for scope in self.scopes for b in scope.bindings.values()
            for s in (*b.uses, *b.bound)
        }  # fmt: skip

    @cached_property
    def attributes(self) -> dict[tuple[int, int], tuple[Chain, int]]:
        """The chain of every attribute by where it begins, and which of its attributes it is."""
        return {
            (s.line, s.column): (chain, number) for chain in self.chains
            for number, s in enumerate(chain.attributes)
        }  # fmt: skip

    def of(self, span: Span) -> Binding | None:
        """The binding of the name that begins where a span does."""
        return self.by_place.get((span.line, span.column))

    def at(self, line: int, column: int) -> tuple[Binding, Span] | None:
        """The binding of the name at a position (its end included), and the place of the name."""
        for scope in self.scopes:
            for binding in scope.bindings.values():
                for span in (*binding.bound, *binding.uses):
                    if covers(span, line, column):
                        return binding, span
        return None

    def gives(self, name: str) -> bool:
        """Whether `from … import *` takes a name, if the module has it."""
        if any(name == listed for listed, _ in self.exports or ()):
            return True
        return not name.startswith("_") and (self.exports is None or not self.lists_all)


def place(span: Span) -> tuple[str, int, int]:
    """What spans are put in order by."""
    return span.file, span.line, span.column


def covers(span: Span, line: int, column: int) -> bool:
    """Whether a span of one line covers a position, its end included."""
    return span.line == line and span.column <= column <= span.end_column
