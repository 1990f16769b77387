"""Which part of a kernel is enough to fail in the same way?

Statements are taken out of the file as long as the same diagnostic stays: of each block first the
halves, then quarters, down to single ones, from its end, since what is used stands before what uses
it. What a loop or a `with` holds may take its place, and parameters may go. What the code that is
left has from the rest of its file, such as imports, stays with it. It ends where nothing more can
go.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_LIMIT: Final = 400  # attempts: each compiles the kernel once
_SAID: Final = re.compile(r"^\s*(# tilelang: .*)$", re.MULTILINE)  # to the command, of the file


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smaller text, and how many attempts it took."""

    text: str
    attempts: int
    statements: int


def reduce_text(text: str, fails: Callable[[str], bool], limit: int = _LIMIT) -> Reduced:
    """The smallest text found for which `fails` holds; ValueError if it does not hold for
    `text`. Formatting is lost, and comments but for those that say something to the command: the
    result is written anew from its syntax tree."""
    if not fails(text):
        raise ValueError("the kernel does not fail")
    tree = ast.parse(text)
    search = _Search(tree, "".join(f"{x}\n" for x in _SAID.findall(text)), fails, limit)
    if not search.holds():  # another comment of it matters
        return Reduced(text, search.attempts + 1, _size(tree))
    while search.round():
        pass
    return Reduced(search.text(), search.attempts + 1, _size(tree))


def _size(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


class _Search:
    """Takes parts out of `tree`, and puts back those without which it does not fail."""

    def __init__(
        self, tree: ast.Module, head: str, fails: Callable[[str], bool], limit: int
    ) -> None:
        self._tree, self._head, self._fails, self._limit = tree, head, fails, limit
        self._bound = _bound(ast.unparse(tree))
        self._tried: set[str] = set()
        self.attempts = 0

    def text(self) -> str:
        """The file as it is now."""
        return f"{self._head}{ast.unparse(ast.fix_missing_locations(self._tree))}\n"

    def holds(self) -> bool:
        """Whether it still fails."""
        text = self.text()
        if self.attempts >= self._limit or text in self._tried or self._misses(text):
            return False
        self._tried.add(text)
        self.attempts += 1
        return self._fails(text)

    def round(self) -> bool:
        """Try everything once; whether something went."""
        before = _size(self._tree)
        gone = self._without_statements(self._tree.body, True)
        hoisted = self._without_frames(self._tree.body)
        fewer = [self._without_parameters(f.args) for f in _functions(self._tree)]
        return (gone or hoisted or any(fewer)) and before > 0 and self.attempts < self._limit

    def _misses(self, text: str) -> bool:
        """Whether code uses a name that the file bound and binds no more."""
        try:
            return bool(_used(text) & (self._bound - _bound(text)))
        except SyntaxError:  # `return` outside of a function, say
            return True

    def _keeps(self, block: list[ast.stmt], before: Sequence[ast.stmt]) -> bool:
        """Whether a block that was changed may stay so; else it is as before."""
        if self.holds():
            return True
        block[:] = before
        return False

    def _without_statements(self, block: list[ast.stmt], needed: bool) -> bool:
        """`needed`: a block that may not be empty."""
        progress = False
        many = len(block)
        while many:
            end = len(block)
            while end > 0:
                first, before = max(0, end - many), block[:]
                if not all(isinstance(stmt, ast.Pass) for stmt in block[first:end]):
                    block[first:end] = []
                    if needed and not block:
                        block.append(ast.Pass())
                    progress |= self._keeps(block, before)
                end = first
            many //= 2
        for stmt in reversed(block):
            for inner, may_not in _blocks(stmt):
                progress |= self._without_statements(inner, may_not)
        return progress

    def _without_frames(self, block: list[ast.stmt]) -> bool:
        progress = False
        for position in reversed(range(len(block))):
            stmt, before = block[position], block[:]
            if isinstance(stmt, ast.For | ast.While | ast.With | ast.If | ast.Try):
                block[position : position + 1] = stmt.body
                if self._keeps(block, before):
                    progress = True
                    continue
            for inner, _ in _blocks(stmt):
                progress |= self._without_frames(inner)
        return progress

    def _without_parameters(self, of: ast.arguments) -> bool:
        progress = False
        for position in reversed(range(len(of.args))):
            args, defaults = of.args[:], of.defaults[:]
            default = position - len(args) + len(defaults)
            del of.args[position]
            if default >= 0:
                del of.defaults[default]
            if self.holds():
                progress = True
            else:
                of.args[:], of.defaults[:] = args, defaults
        return progress


def _blocks(stmt: ast.stmt) -> Iterator[tuple[list[ast.stmt], bool]]:
    """The blocks a statement holds, and whether each has to have a statement."""
    for part in (stmt, *getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(part, field, None)
            if isinstance(block, list) and block:
                yield block, field == "body" or isinstance(stmt, ast.Try)


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    yield from (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def _bound(text: str) -> frozenset[str]:
    """Names that a file binds outside of its functions."""
    return frozenset(
        s.get_name() for s in symtable.symtable(text, "file", "exec").get_symbols()
        if s.is_assigned() or s.is_imported() or s.is_namespace()
    )  # fmt: skip


def _used(text: str) -> frozenset[str]:
    """Names that the code of a file takes from outside of its functions."""
    whole = symtable.symtable(text, "file", "exec")
    found = {s.get_name() for s in whole.get_symbols() if s.is_referenced()}
    waiting = list(whole.get_children())
    while waiting:
        scope = waiting.pop()
        waiting += scope.get_children()
        found |= {s.get_name() for s in scope.get_symbols() if s.is_global() and s.is_referenced()}
    return frozenset(found)
