"""A text and what it binds, as fixes that are read off the text need it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics.sources import split_lines


@dataclass(frozen=True, slots=True)
class Tile:
    """A buffer of a kernel: its name, the line that binds it, the bits of an element if known."""

    name: str
    line: int
    bits: int | None


@dataclass(frozen=True, slots=True)
class Written:
    """A file that can be parsed; `alias` is its name for `tilelang.language`."""

    text: str
    path: str
    tree: ast.Module
    alias: str = "T"
    tiles: tuple[Tile, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return split_lines(self.text)


def alias_in(tree: ast.Module) -> str:
    """The shortest name that a file gives to `tilelang.language`."""
    return min(_aliases(tree), key=len, default="T")


def _aliases(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found = [n.asname for n in node.names if n.name == "tilelang.language" and n.asname]
            yield from found
        elif isinstance(node, ast.ImportFrom) and node.module == "tilelang":
            yield from (n.asname or n.name for n in node.names if n.name == "language")
