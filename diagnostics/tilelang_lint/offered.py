"""The findings of a file with every fix there is: those that come with them, and those that can be
read off the text. What an editor offers, `tilelang lint --fix` knows."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tilelang.language.unparsable import PARSE_ERRORS
from tilelang.program.buffer import Buffer
from tilelang_diagnostics import Diagnostic
from tilelang_lint.rules import Subject
from tilelang_lint.text_fixes import has_text_fixes, text_fixes
from tilelang_lint.written import Tile, Written, alias_in


def with_text_fixes(found: Sequence[Diagnostic], subject: Subject) -> list[Diagnostic]:
    """`found`, each finding with the fixes that the text of its file says."""
    if not any(has_text_fixes(d, subject.path) for d in found):
        return list(found)
    try:
        tree = ast.parse(subject.text)
    except PARSE_ERRORS:
        return list(found)
    tiles = tuple(_tiles(subject))
    written = Written(subject.text, subject.path, tree, alias_in(tree), tiles)
    return [replace(d, fixes=(*d.fixes, *text_fixes(written, d))) for d in found]


def _tiles(subject: Subject) -> Iterator[Tile]:
    for parsed in subject.kernels:
        for symbol in parsed.symbols.symbols:
            if isinstance(symbol.value, Buffer) and symbol.span.file == subject.path:
                yield Tile(symbol.name, symbol.span.line, symbol.value.dtype.bits or None)
