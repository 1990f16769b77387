"""What is the tree of a text of which most was parsed before?

    def first(): ...        the same lines as before: the same nodes
    def second(): ...       edited: parsed anew, alone
    def third(): ...        the same lines: the same nodes, moved where lines came or went before

A file is cut where a statement at its top ends. There Python's tokenizer starts from nothing, so a
piece that parses alone parses the same in the whole file, and what precedes a mistake has no say in
the message about it. A tree is good until the next text of its file is parsed, which takes over its
nodes; nobody else changes them.
"""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.definitions import first_line
from tilelang_lsp.edits import common

MOST_FILES = 16  # whose last tree is kept


@dataclass(slots=True, eq=False)
class _Piece:
    """Some lines of a file; `places` are those of all nodes, once they had to be moved."""

    nodes: list[ast.stmt]
    places: list[dict[str, int]] | None = None

    def move(self, by: int) -> None:
        """Follow lines that came or went before this piece."""
        if self.places is None:
            self.places = _places(self.nodes)
        for place in self.places:
            place["lineno"] += by
            place["end_lineno"] += by


@dataclass(frozen=True, slots=True)
class _Version:
    """A text that parsed: `ends` are the lines its pieces end at."""

    lines: tuple[str, ...]
    ends: tuple[int, ...]
    pieces: tuple[_Piece, ...]


class Parser:
    """Parses texts one after another; of a file it knows, only what changed."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Version] = OrderedDict()

    def parse(self, path: str, text: str) -> ast.Module:
        """`ast.parse`, which says what it raises too."""
        known = self._known.get(path)
        lines = split_lines(text)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # Python's own, not about kernels
            found = None if known is None else _pieces(known, lines)
            if found is None:
                found = _cut(lines, ast.parse(text, filename=path).body)
        self._known[path] = _Version(lines, *found)
        self._known.move_to_end(path)
        if len(self._known) > MOST_FILES:
            self._known.popitem(last=False)
        nodes = [node for piece in found[1] for node in piece.nodes]
        return ast.Module(nodes, [])


_Pieces = tuple[tuple[int, ...], tuple[_Piece, ...]]


def _pieces(known: _Version, lines: tuple[str, ...]) -> _Pieces | None:
    """The pieces of `lines`, those of `known` where they are the same; None where all is new.

    Raises what parsing raises.
    """
    old = known.lines
    shorter = min(len(old), len(lines))
    head = common(old, lines, shorter)
    if head == len(old) == len(lines):
        return known.ends, known.pieces
    first = bisect_left(known.ends, head + 1)  # the first piece that an edit touched
    if first == len(known.ends) or head < first_line(known.pieces[first].nodes[0]):
        first -= 1  # what is indented or says `else` belongs to the piece before
    if first < 1:
        return None
    begin = known.ends[first - 1]
    tail = common(old[::-1], lines[::-1], shorter - head)
    last = bisect_left(known.ends, len(old) - tail)  # the last one
    if first <= last < len(known.ends):
        by = len(lines) - len(old)
        stop = known.ends[last] + by
        try:
            found = _cut(lines, _parsed(lines, begin, stop), begin)
        except SyntaxError as error:
            # What follows has a say only in what may go on there.
            if (error.lineno or stop) < stop and "triple-quoted" not in error.msg:
                raise
        except ValueError:
            pass
        else:
            if not found[0] or found[0][-1] == stop:
                behind = known.pieces[last + 1 :]
                if by:
                    for piece in behind:
                        piece.move(by)
                return (
                    (*known.ends[:first], *found[0], *(e + by for e in known.ends[last + 1 :])),
                    (*known.pieces[:first], *found[1], *behind),
                )
    found = _cut(lines, _parsed(lines, begin, len(lines)), begin)
    return (*known.ends[:first], *found[0]), (*known.pieces[:first], *found[1])


def _parsed(lines: tuple[str, ...], begin: int, stop: int) -> list[ast.stmt]:
    """The statements on lines `begin + 1` to `stop`, with the numbers these lines have."""
    more = "\n" if stop < len(lines) else ""
    return ast.parse("\n" * begin + "\n".join(lines[begin:stop]) + more).body


def _cut(lines: tuple[str, ...], body: list[ast.stmt], begin: int = 0) -> _Pieces:
    """Statements in pieces that end with a line; the one after a piece begins on a later line."""
    ends: list[int] = []
    pieces: list[_Piece] = []
    for node in body:
        end = node.end_lineno or node.lineno
        if ends and (first_line(node) <= ends[-1] or lines[ends[-1] - 1].endswith("\\")):
            ends[-1] = end
            pieces[-1].nodes.append(node)
        else:
            ends.append(end)
            pieces.append(_Piece([node]))
    while ends and lines[ends[-1] - 1].endswith("\\"):
        ends.pop()
        pieces[-2:] = [_Piece([n for piece in pieces[-2:] for n in piece.nodes])]
    return tuple(ends), tuple(pieces)


def _places(nodes: Iterable[ast.AST]) -> list[dict[str, int]]:
    """The attributes of nodes, and of all below them, that have a place."""
    found: list[dict[str, int]] = []
    pending = [*nodes]
    while pending:
        fields = vars(pending.pop())
        if "lineno" in fields:
            found.append(fields)
        for value in fields.values():
            if isinstance(value, list):
                pending += [inner for inner in value if isinstance(inner, ast.AST)]
            elif isinstance(value, ast.AST):
                pending.append(value)
    return found
