"""How does an analysis get from the process that reads to the one that answers? In parts.

An edit changes what one definition says; the others stay the same objects, so only that one
travels. Both ends remember the same parts of the same files: they see the same messages in the same
order, and forget together. What arrives is a `Reading`; the whole analysis is put together when
somebody asks for it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeAlias

from tilelang_diagnostics import Diagnostic, Span
from tilelang_lsp.model import MODULE, Analysis, Kernel, Outline, Part, Symbol
from tilelang_lsp.moves import Moves, Placed, Tops

MOST_FILES = 16  # whose parts are remembered


@dataclass(frozen=True, slots=True)
class Head:
    """What an analysis says beside its parts; `outline` is without what is in kernels;
    `digests` are, for each part, those of the texts that what it says and what it does hang on."""

    diagnostics: tuple[Diagnostic, ...] = ()
    outline: tuple[Outline, ...] = ()
    aliases: tuple[str, ...] = ()
    imported: tuple[tuple[str, str], ...] = ()
    tops: Tops = ()
    digests: tuple[tuple[str, str, str], ...] = ()
    complete: bool = True


Parts: TypeAlias = Mapping[str, Placed[Part]]
# A part that the other end has is not sent again.
Message: TypeAlias = tuple[Head, dict[str, Placed[Part] | None]]


@dataclass(frozen=True, eq=False)
class Reading:
    """What was read of one version of a file: its parts are where they were when they were read,
    the same objects as in the version before where nothing changed. Those read last come first."""

    path: str
    text: str
    head: Head = Head()
    parts: Parts = field(default_factory=dict)

    def moved(self, placed: Placed[Part]) -> Part:
        """A part where it is in this version."""
        return Moves(placed.tops, self.head.tops, self.path).part(placed.what)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All kernels, in no order, each where it was when it was read."""
        return tuple(kernel for placed in self.parts.values() for kernel in placed.what.kernels)

    @cached_property
    def analysis(self) -> Analysis:
        """Everything that was read, where it is in this version."""
        head = self.head
        parts = [self.moved(placed) for placed in self.parts.values()]
        contents = {span: inner for part in parts for span, inner in part.contents}
        ranges = [(top.whole.line, top.whole.end_line) for top in head.outline]
        return Analysis(
            self.path,
            self.text,
            head.diagnostics,
            _symbols(parts, ranges),
            tuple(sorted((k for part in parts for k in part.kernels), key=lambda k: k.span)),
            tuple(_filled(node, contents) for node in head.outline),
            head.aliases,
            head.imported,
            tuple(fact for part in parts for fact in part.facts),
            head.complete,
        )


class Memory:
    """One end: the parts that both have. A new process at the other end needs a new one here."""

    def __init__(self) -> None:
        self._parts: OrderedDict[str, Parts] = OrderedDict()

    def pack(self, path: str, head: Head, parts: Parts) -> Message:
        """What to send of an analysis."""
        known = self._parts.get(path, {})
        sent = {name: None if known.get(name) is part else part for name, part in parts.items()}
        self._remember(path, parts)
        return head, sent

    def unpack(self, path: str, text: str, message: Message) -> Reading:
        """What was sent."""
        head, sent = message
        known = self._parts.get(path, {})
        parts = {name: known[name] if part is None else part for name, part in sent.items()}
        self._remember(path, parts)
        return Reading(path, text, head, parts)

    def _remember(self, path: str, parts: Parts) -> None:
        self._parts[path] = parts
        self._parts.move_to_end(path)
        if len(self._parts) > MOST_FILES:
            self._parts.popitem(last=False)


def merged(symbols: Iterable[Symbol]) -> tuple[Symbol, ...]:
    """Each binding once, in order.

    A macro's own names are bound anew by every kernel that inlines it, and a factory's names are
    used by every kernel in it: those are one symbol with all uses.
    """
    found: dict[tuple[str, Span], list[Symbol]] = {}
    for symbol in symbols:
        found.setdefault((symbol.name, symbol.span), []).append(symbol)
    return tuple(sorted(map(_merge, found.values()), key=_place))


def _symbols(parts: Sequence[Part], definitions: Iterable[tuple[int, int]]) -> tuple[Symbol, ...]:
    own = [symbol for part in parts for symbol in part.symbols]
    shared = merged(_current(parts, tuple(definitions)))
    return tuple(sorted([*own, *shared], key=_place))


def _current(
    parts: Sequence[Part], definitions: Sequence[tuple[int, int]]
) -> Iterator[Symbol]:  # fmt: skip
    """What is bound in no part. All know what is at the top of the file: the first knows it best,
    the others only how they use it."""
    newest = {(s.name, s.span) for part in parts[:1] for s in part.shared if s.function == MODULE}
    for number, part in enumerate(parts):
        for symbol in part.shared:
            if number == 0 or symbol.function != MODULE:
                yield symbol
                continue
            uses = tuple(u for u in symbol.uses if any(a <= u.line <= b for a, b in definitions))
            if (symbol.name, symbol.span) in newest:
                yield replace(symbol, uses=uses, detail="", notes=())
            elif uses:
                yield replace(symbol, uses=uses)


def _place(symbol: Symbol) -> tuple[object, ...]:
    span = symbol.span
    return span.file, span.line, span.column, span.end_line, span.end_column


def _merge(same: list[Symbol]) -> Symbol:
    """One symbol out of several for a binding."""
    if len(same) == 1:
        return same[0]
    best = next((s for s in same if s.detail), same[0])
    return replace(best, uses=tuple(dict.fromkeys(u for s in same for u in s.uses)))


def _filled(node: Outline, contents: Mapping[Span, tuple[Outline, ...]]) -> Outline:
    """A definition with the parameters and buffers of the kernels in it."""
    children = tuple(_filled(child, contents) for child in node.children)
    inner = contents.get(node.name_span)
    if inner is not None:
        return replace(node, kind="kernel", children=(*inner, *children))
    return node if children == node.children else replace(node, children=children)
