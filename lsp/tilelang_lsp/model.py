"""What does the server know about a file? Plain values in editor terms, free of compiler objects.

They are made by `analysis.py` in the worker process and travel to the server, so everything here
pickles. Positions are those of `tilelang_diagnostics`: 1-based, columns in code points, the end
exclusive.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

from tilelang_diagnostics import Diagnostic, Span

SymbolKind = Literal[
    "parameter", "buffer", "variable", "loop", "block", "constant", "dim", "function", "unknown"
]
MODULES = ("StaticModule", "ImportedModule")  # what the front end has for them
MODULE = "<module>"  # the function of what is bound at the top of a file
OutlineKind = Literal["kernel", "function", "macro", "class", "buffer", "parameter"]
# What a kernel is looked into for where no target is set (`tilelang.layouts.machine`).
NOMINAL = "cuda:sm_80"
HintKind = Literal["types", "values", "launch", "loops", "layouts", "pipelines", "instructions"]
HINT_KINDS: tuple[HintKind, ...] = get_args(HintKind)


@dataclass(frozen=True, slots=True)
class Symbol:
    """One binding of a name: `span` is the name where it is bound, `uses` its reads.

    `detail` is the short type a hint shows, empty when unknown; `notes` are lines for a hover.
    """

    name: str
    kind: SymbolKind
    span: Span
    uses: tuple[Span, ...]
    detail: str
    function: str
    notes: tuple[str, ...] = ()

    def at(self, line: int, column: int) -> Span | None:
        """The binding or use that covers a position (its end included), if any."""
        for span in (self.span, *self.uses):
            if span.line == line and span.column <= column <= span.end_column:
                return span
        return None


@dataclass(frozen=True, slots=True)
class Launch:
    """One kernel launch: `span` is the `with` header's frame, extents as Python text."""

    span: Span
    grid: tuple[str, ...]
    threads: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel; `values` are those assumed for what the text leaves open, `open_names` what
    stays open. `owner` is the definition at the top of the file that holds it."""

    name: str
    span: Span
    launches: tuple[Launch, ...]
    values: tuple[tuple[str, str], ...] = ()
    open_names: tuple[str, ...] = ()
    owner: str = ""


@dataclass(frozen=True, slots=True)
class Fact:
    """Something known about a place: the name bound there, a call, or the header of a loop.

    `label` is short, `shorter` what is left of it where there is no room, `detail` all there is to
    say, `cause` the place it comes from.
    """

    span: Span
    kind: HintKind
    label: str
    detail: str = ""
    shorter: str = ""
    cause: Span | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A part of the shared memory: one tile, `stages` times."""

    name: str
    size: int
    stages: int
    span: Span | None


@dataclass(frozen=True, slots=True)
class Budget:
    """What one block takes of a target. `exact` is false where lowering did not come to an end:
    then `shared` counts every tile, and those that could share a place twice.

    `registers` are those of fragments alive at once: a thread needs more than these.
    """

    target: str
    shared: int
    limit: int | None
    shares: tuple[Share, ...]
    threads: int | None
    registers: int
    registers_limit: int | None
    blocks: int | None = None
    warps: int | None = None
    most_warps: int | None = None
    limited_by: tuple[str, ...] = ()
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Insight:
    """What layout inference and lowering say about one kernel; `line` is where its name stands.

    `assumed` are the values it was specialised with, each with its origin; `nominal` says that no
    GPU was asked for and an ordinary one stands in. `failure` says why there is not more.
    """

    kernel: str
    line: int
    target: str
    nominal: bool
    facts: tuple[Fact, ...] = ()
    budgets: tuple[Budget, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    assumed: tuple[tuple[str, str, str], ...] = ()
    failure: str = ""


@dataclass(frozen=True, slots=True)
class Outline:
    """A definition and what is defined in it; `whole` is all of its text, `name_span` its name."""

    name: str
    kind: OutlineKind
    whole: Span
    name_span: Span
    detail: str = ""
    children: tuple[Outline, ...] = ()

    def walk(self) -> Iterator[Outline]:
        """This definition and all below, outermost first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def down(self, by: int) -> Outline:
        """The same so many lines further down."""
        children = tuple(child.down(by) for child in self.children)
        whole, name = (
            Span(s.file, s.line + by, s.column, s.end_line + by, s.end_column)
            for s in (self.whole, self.name_span)
        )
        return Outline(self.name, self.kind, whole, name, self.detail, children)


@dataclass(frozen=True, slots=True)
class Part:
    """What the kernels of one definition say. `symbols` are bound in it, `shared` elsewhere;
    `contents` is what is defined in each kernel, by the place of its name."""

    kernels: tuple[Kernel, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    shared: tuple[Symbol, ...] = ()
    facts: tuple[Fact, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    contents: tuple[tuple[Span, tuple[Outline, ...]], ...] = ()


@dataclass(frozen=True, slots=True)
class Analysis:
    """Everything known about one version of one file.

    `aliases` are the names the file gives to `tilelang.language`; `imported` maps names it takes
    out of it. `complete` is false when the text could not be read at all: then only
    `diagnostics` mean something and what was known before still serves.
    """

    path: str
    text: str
    diagnostics: tuple[Diagnostic, ...] = ()
    symbols: tuple[Symbol, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    outline: tuple[Outline, ...] = ()
    aliases: tuple[str, ...] = ()
    imported: tuple[tuple[str, str], ...] = ()
    facts: tuple[Fact, ...] = ()
    complete: bool = True

    def symbol_at(self, line: int, column: int) -> Symbol | None:
        """The symbol bound or used at a position; where two meet, the first."""
        found = [s for s in self.symbols if s.at(line, column)]
        return found[0] if found else None


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a language function as its signature writes it."""

    name: str
    text: str
    keyword: bool  # may be given by name
    variadic: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """One name of the language: what completion, hover and signature help say about it."""

    name: str
    kind: str
    doc: str
    parameters: tuple[Parameter, ...] | None = None  # None: no function
    targets: tuple[str, ...] = ()
    file: str = ""
    line: int = 0

    @property
    def signature(self) -> str:
        """`copy(src, dst, *, coalesced_width=None)`; just the name when it is no function."""
        if self.parameters is None:
            return self.name
        return f"{self.name}({', '.join(p.text for p in self.parameters)})"

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return self.doc.partition("\n")[0]


@dataclass(frozen=True, slots=True)
class Catalogue:
    """All names of the language. `package` are those of `tilelang` itself, `options` the keys of
    pass configs with what they do and their values, `targets` what code can be compiled for."""

    entries: dict[str, Entry] = field(default_factory=dict)
    package: dict[str, Entry] = field(default_factory=dict)
    options: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    targets: tuple[tuple[str, str], ...] = ()

    def find(self, analysis: Analysis, dotted: str) -> Entry | None:
        """The entry that `T.copy`, or `copy` imported by name, means in a file; `tilelang.jit` and
        a member such as `T.GemmWarpPolicy.FullRow` too."""
        root, _, name = dotted.rpartition(".")
        if root in analysis.aliases:
            return self.entries.get(name)
        if not root:
            return self.entries.get(dict(analysis.imported).get(name, ""))
        if f"{root}.language" in analysis.aliases:
            return self.package.get(name)
        owner, _, member_of = root.rpartition(".")
        if owner in analysis.aliases:
            return self.entries.get(f"{member_of}.{name}")
        return None

    def names(self) -> Iterator[Entry]:
        """The names of the language, without members of others."""
        return (e for name, e in self.entries.items() if "." not in name)


@dataclass(frozen=True, slots=True)
class Hint:
    """A note drawn into a line at a position; `label` is short, `tooltip` says all.

    `target` is where a click leads, `shorter` the label where the line has no room.
    """

    line: int
    column: int
    label: str
    tooltip: str = ""
    kind: HintKind = "types"
    shorter: str = ""
    target: Span | None = None
