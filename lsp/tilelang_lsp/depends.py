"""Which texts of a file can change what one of its definitions says?

    BLOCK = 32                       every text outside of functions, and the headers of all
    def double(x): ...               what a kernel calls, and what that calls
    def matmul(A, B): ...            its own
    def main(): matmul(1024)         what calls it, for the values that it is called with
    def reference(a, b): ...         nothing else

Names decide: a function counts where its name is a word of a text that counts.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.definitions import first_line

MAIN = 'if __name__ == "__main__"'
# A text that says one of these may be about any kernel.
_FOR_ALL = ("add_argument", "tilelang:")


@dataclass(frozen=True, slots=True)
class Statements:
    """Where the statements at the top of a file begin, and the text of each function among them.

    The block that only runs as a program counts as a function named MAIN.
    """

    starts: tuple[int, ...]
    functions: Mapping[str, str]  # their text by name
    headers: Mapping[str, str]  # the part of it before their first statement
    others: tuple[str, ...]  # what is no function; comments between statements, if for us
    lines: tuple[str, ...]
    unique: bool
    firsts: Mapping[str, int]  # lines of functions

    @staticmethod
    def of(tree: ast.Module, text: str) -> Statements:
        """Of a text that could be read."""
        lines = split_lines(text)
        starts: list[int] = []
        functions: dict[str, str] = {}
        headers: dict[str, str] = {}
        firsts: dict[str, int] = {}
        others: list[str] = []
        unique = True
        between = 0
        for node in tree.body:
            first = first_line(node)
            starts.append(first)
            others += _for_us(lines[between : first - 1])
            between = node.end_lineno or first
            own = "\n".join(lines[first - 1 : between])
            name = _name(node)
            if name is None:
                others.append(own)
                continue
            unique = unique and name not in functions
            functions[name], firsts[name] = own, first
            headers[name] = "\n".join(lines[first - 1 : _last_of_header(node)]).rstrip()
        others += _for_us(lines[between:])
        return Statements(tuple(starts), functions, headers, tuple(others), lines, unique, firsts)

    def range(self, name: str) -> tuple[int, int]:
        """First and last line of a function; of what is none, no line."""
        first = self.firsts.get(name)
        return (0, -1) if first is None else (first, first + self.functions[name].count("\n"))

    @property
    def shared(self) -> tuple[object, ...]:
        """The texts that every definition depends on."""
        for_all = [t for t in self.functions.values() if any(word in t for word in _FOR_ALL)]
        return self.others, tuple(self.headers.items()), tuple(for_all)

    def digest(self, name: str) -> str:
        """What changes whenever a text does that a definition depends on."""
        own = self.own(name) if name in self.functions else self.lines
        return _hash((self.shared, own))

    def run_digest(self, name: str, kernels: Collection[str]) -> str:
        """What changes whenever running a definition may do something else: host code makes its
        inputs and says what is right. `kernels` are the definitions that hold some."""
        texts = [(n, t) for n, t in self.functions.items() if n == name or n not in kernels]
        return _hash((self.others, texts))

    def own(self, name: str) -> tuple[str, ...]:
        """The other texts that a function depends on, itself first."""
        words = {n: _words(text) for n, text in self.functions.items()}
        found = dict.fromkeys((name,))
        todo = [name, *(n for n, said in words.items() if name in said)]
        while todo:
            one = todo.pop()
            found[one] = None
            todo += [n for n in words[one] & words.keys() if n not in found]
        return tuple(self.functions[n] for n in found)


def _hash(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


def _name(node: ast.stmt) -> str | None:
    """The name of a function, or MAIN; None for anything else."""
    match node:
        case ast.FunctionDef():
            return node.name
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"), ops=[ast.Eq()]), orelse=[]) if (
            not any(isinstance(n, ast.FunctionDef) for n in ast.walk(node))
        ):
            return MAIN
        case _:
            return None


def _last_of_header(node: ast.stmt) -> int:
    """The line before the first statement inside; the statement's own where both share it."""
    body: list[ast.stmt] = node.body  # type: ignore[attr-defined]
    return max(node.lineno, first_line(body[0]) - 1)


def _for_us(lines: tuple[str, ...]) -> list[str]:
    return [line for line in lines if "tilelang" in line]


@lru_cache(maxsize=256)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))
