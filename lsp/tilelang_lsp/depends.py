"""Which texts of a file can change what one of its definitions says?

    BLOCK = 32                       what binds a name that counts, or says one
    import torch                     every other text outside of functions, and all headers
    def double(x): ...               what a kernel calls, and what that calls
    def matmul(A, B): ...            its own
    def main(): matmul(1024)         what calls it, for the values that it is called with
    def reference(a, b): ...         nothing else

Names decide: a function or a binding counts where its name is a word of a text that counts. What
calls a kernel counts with what it says, but not with the other kernels that it calls.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.definitions import first_line

# Who says one of these may hold a kernel of its own.
_KERNELS = frozenset({"Kernel", "prim_func", "jit"})
MAIN = 'if __name__ == "__main__"'
# A text that says one of these may be about any kernel.
_FOR_ALL = ("add_argument", "tilelang:")


@dataclass(frozen=True, slots=True)
class Bound:
    """A statement outside of functions that does nothing but bind names."""

    names: frozenset[str]
    text: str


@dataclass(frozen=True)
class Statements:
    """Where the statements at the top of a file begin, and the text of each function among them.

    The block that only runs as a program counts as a function named MAIN.
    """

    starts: tuple[int, ...]
    functions: Mapping[str, str]  # their text by name
    headers: Mapping[str, str]  # the part of it before their first statement
    bound: tuple[Bound, ...]
    others: tuple[str, ...]  # what is neither; comments between statements, if for us
    lines: tuple[str, ...]
    unique: bool
    firsts: Mapping[str, int]  # lines of functions
    order: tuple[str, ...] = ()  # names of functions, and nothing for what is none

    @staticmethod
    def of(tree: ast.Module, text: str) -> Statements:
        """Of a text that could be read."""
        lines = split_lines(text)
        starts: list[int] = []
        functions: dict[str, str] = {}
        headers: dict[str, str] = {}
        firsts: dict[str, int] = {}
        others: list[str] = []
        bound: list[Bound] = []
        order: list[str] = []
        unique = True
        between = 0
        for node in tree.body:
            first = first_line(node)
            starts.append(first)
            others += _for_us(lines[between : first - 1])
            between = node.end_lineno or first
            own = "\n".join(lines[first - 1 : between])
            name = _name(node)
            order.append(name or "")
            if name is None:
                names = None if _is_for_all(own) else _bound(node)
                if names is None:
                    others.append(own)
                else:
                    bound.append(Bound(names, own))
                continue
            unique = unique and name not in functions
            functions[name], firsts[name] = own, first
            headers[name] = "\n".join(lines[first - 1 : _last_of_header(node)]).rstrip()
        others += _for_us(lines[between:])
        return Statements(
            tuple(starts), functions, headers, tuple(bound), tuple(others), lines, unique, firsts,
            tuple(order),
        )  # fmt: skip

    def range(self, name: str) -> tuple[int, int]:
        """First and last line of a function; of what is none, no line."""
        first = self.firsts.get(name)
        return (0, -1) if first is None else (first, first + self.functions[name].count("\n"))

    @cached_property
    def shared(self) -> tuple[object, ...]:
        """The texts that every definition depends on."""
        for_all = [t for t in self.functions.values() if _is_for_all(t)]
        return self.others, tuple(self.headers.items()), tuple(for_all)

    @cached_property
    def _words(self) -> Mapping[str, frozenset[str]]:
        """What each function says."""
        return {n: _words(text) for n, text in self.functions.items()}

    @cached_property
    def _digests(self) -> Mapping[str, str]:
        """Those of the functions."""
        return {n: _digest(text) for n, text in self.functions.items()}

    @cached_property
    def _around(self) -> tuple[str, str]:
        """What changes with all that every definition depends on, and with what is outside."""
        return _hash(self.shared), _hash((self.others, [s.text for s in self.bound]))

    def digest(self, name: str) -> str:
        """What changes whenever a text does that a definition depends on."""
        own = self.own(name) if name in self.functions else self.lines
        return _hash((self._around[0], *map(_digest, own)))

    def run_digest(self, name: str, kernels: Collection[str]) -> str:
        """What changes whenever running a definition may do something else: host code makes its
        inputs and says what is right. `kernels` are the definitions that hold some."""
        texts = [d for d in self._digests.items() if d[0] == name or d[0] not in kernels]
        return _hash((self._around[1], texts))

    def own(self, name: str) -> tuple[str, ...]:
        """The other texts that a function depends on, itself first."""
        words = self._words
        callers = {n for n, said in words.items() if name in said and n != name}
        found, said, taken = {name: False}, set[str](), dict[Bound, None]()
        found.update(dict.fromkeys(callers, False))  # whether what it says was looked at
        calls = {name, *callers}
        grown = True
        while grown:
            grown = False
            for one in [n for n, is_done in found.items() if not is_done]:
                found[one] = grown = True
                said |= words[one]
                self._follow(words[one], words, found, kernels=one not in callers)
            for statement in self.bound:
                says = _words(statement.text)
                if statement not in taken and (statement.names & said or says & calls):
                    taken[statement], grown = None, True
                    if statement.names & said:  # its value is used
                        said |= says
                        self._follow(says, words, found, kernels=False)
                    else:  # it may call, or give what is called another name
                        calls |= statement.names
        return (*(self.functions[n] for n in found), *sorted(s.text for s in taken))

    def naming(self, before: Statements) -> Iterator[str]:
        """The functions that say a name which a statement now binds otherwise."""
        changed = {*self.bound} ^ {*before.bound}
        names = {name for statement in changed for name in statement.names}
        if names:
            yield from (n for n, text in self.functions.items() if names & _words(text))

    @staticmethod
    def _follow(
        said: Collection[str], words: Mapping[str, frozenset[str]], found: dict[str, bool],
        kernels: bool,
    ) -> None:  # fmt: skip
        """Find the functions that a text names."""
        for name in words:
            if name in said and name not in found and (kernels or not words[name] & _KERNELS):
                found[name] = False


def _hash(value: object) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=16).hexdigest()


@lru_cache(maxsize=4096)
def _digest(text: str) -> str:
    return _hash(text)


@lru_cache(maxsize=4096)
def _is_for_all(text: str) -> bool:
    return any(word in text for word in _FOR_ALL)


def _bound(node: ast.stmt) -> frozenset[str] | None:
    """The names that a statement binds, if it does nothing else to what is bound."""
    match node:
        case ast.Assign(targets=targets):
            parts = [p for t in targets for p in _parts(t)]
        case ast.AnnAssign(target=target):
            parts = [target]
        case _:
            return None
    names = [p.id for p in parts if isinstance(p, ast.Name)]
    return frozenset(names) if len(names) == len(parts) else None


def _parts(target: ast.expr) -> list[ast.expr]:
    if isinstance(target, (ast.Tuple, ast.List)):
        return [p for inner in target.elts for p in _parts(inner)]
    return [target]


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


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text))
