"""Which part of a kernel is enough to fail in the same way?

Statements are taken out of the file, large ones first, as long as the same diagnostic stays; what
a loop or a `with` holds may take its place. It ends where nothing more can go.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_LIMIT = 400  # attempts: each compiles the kernel once


@dataclass(frozen=True, slots=True)
class Reduced:
    """The smaller text, and how many attempts it took."""

    text: str
    attempts: int
    statements: int


def reduce_text(text: str, fails: Callable[[str], bool], limit: int = _LIMIT) -> Reduced:
    """The smallest text found for which `fails` holds; ValueError if it does not hold for
    `text`. Comments and formatting are lost: the result is written anew from its syntax tree."""
    if not fails(text):
        raise ValueError("the kernel does not fail")
    tree = ast.parse(text)
    attempts = 1
    if not fails(ast.unparse(tree)):  # its comments matter, such as values for `tilelang run`
        return Reduced(text, attempts + 1, _size(tree))
    progress = True
    while progress and attempts < limit:
        progress = False
        for smaller in _smaller(tree):
            attempts += 1
            if fails(ast.unparse(smaller)):
                tree, progress = smaller, True
                break
            if attempts >= limit:
                break
    return Reduced(ast.unparse(tree) + "\n", attempts, _size(tree))


def _size(tree: ast.AST) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(tree))


def _smaller(tree: ast.Module) -> Iterator[ast.Module]:
    """The tree without one of its statements, or with what a statement holds in its place."""
    places = sorted(_places(tree), key=lambda place: -place[2])
    for path, position, _ in places:
        yield _changed(tree, path, position, ())
    for path, position, _ in places:
        held = getattr(_block(tree, path)[position], "body", None)
        is_scope = isinstance(_block(tree, path)[position], (ast.FunctionDef, ast.ClassDef))
        if isinstance(held, list) and held and not is_scope:
            yield _changed(tree, path, position, tuple(held))


_Path = tuple[tuple[str, int], ...]


def _places(
    node: ast.AST, path: _Path = ()
) -> Iterator[tuple[tuple[_Path, str], int, int]]:  # fmt: skip
    """Every statement: the block that holds it, its position in it, and its size."""
    for field in ("body", "orelse"):
        block = getattr(node, field, None)
        if not isinstance(block, list):
            continue
        for position, stmt in enumerate(block):
            if not isinstance(stmt, ast.stmt):
                continue
            if not isinstance(stmt, ast.Pass):
                yield (path, field), position, _size(stmt)
            yield from _places(stmt, (*path, (field, position)))


def _block(tree: ast.Module, place: tuple[_Path, str]) -> list[ast.stmt]:
    node: ast.AST = tree
    path, last = place
    for field, position in path:
        node = getattr(node, field)[position]
    block: list[ast.stmt] = getattr(node, last)
    return block


def _changed(
    tree: ast.Module, place: tuple[_Path, str], position: int, instead: tuple[ast.stmt, ...]
) -> ast.Module:
    made = copy.deepcopy(tree)
    block = _block(made, place)
    block[position : position + 1] = copy.deepcopy(instead)
    if not block and place[1] == "body":
        block.append(ast.Pass())
    return ast.fix_missing_locations(made)
