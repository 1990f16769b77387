"""Which words of a line are keywords, names, numbers, strings, comments? By Pygments, when the page
is made: the browser only paints runs.

A line's colours are a text of runs, a letter and a length each: `k3_1n6` is a keyword of three
characters, one plain, a name of six.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from pygments.lexer import RegexLexer
from pygments.lexers.c_cpp import CppLexer
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Literal, Name, Number, String, Text, _TokenType

_LETTERS: Final[tuple[tuple[_TokenType, str], ...]] = (
    (Comment, "c"), (String, "s"), (Number, "m"), (Literal, "m"), (Keyword, "k"),
    (Name.Builtin, "b"), (Name.Function, "f"), (Name.Decorator, "f"), (Name.Label, "f"),
    (Name.Variable, "v"),
)  # fmt: skip


class _Assembly(RegexLexer):  # type: ignore[misc]  # Pygments has no types
    """PTX and machine code: opcodes, registers, numbers, labels."""

    name = "tilelang assembly"
    tokens: Final = {
        "root": [
            (r"//.*|/\*.*?\*/", Comment),
            (r"\"[^\"\n]*\"", String),
            (r"^\s*\.?[\w$]+:", Name.Label),
            (r"\.[a-z]\w*", Keyword.Type),
            (r"[@!~]*(?:%\w+(?:\.\w+)?|U?R\d+(?:\.\w+)*|U?P\d+|U?RZ|U?PT|SR_\w+)\b", Name.Variable),
            (r"\b[A-Z][A-Z0-9]*(?:\.[A-Z0-9_]+)*\b|\b[a-z]+(?:\.[\w:]+)+", Keyword),
            (r"-?\b0[xXfFdD][0-9a-fA-F]+\b|-?\b\d+(?:\.\d+)?\b", Number),
            (r"\s+", Text),
            (r"\w+|.", Text),
        ]
    }


_LEXERS: Final[dict[str, Any]] = {
    "python": PythonLexer, "cuda": CppLexer, "hip": CppLexer, "metal": CppLexer,
    "ptx": _Assembly, "sass": _Assembly, "llvm": _Assembly,
}  # fmt: skip


def colours(lines: Sequence[str], language: str) -> list[str]:
    """The colours of each line."""
    lexer = _LEXERS.get(language)
    if lexer is None or not lines:
        return [""] * len(lines)
    # A line never holds a line end, so that they can be told apart again afterwards.
    text = "\n".join(line.replace("\n", " ").replace("\r", " ") for line in lines)
    runs: list[list[tuple[str, int]]] = [[]]
    for kind, value in lexer(stripnl=False, ensurenl=False).get_tokens(text):
        letter = _letter(kind)
        for number, part in enumerate(value.split("\n")):
            if number:
                runs.append([])
            if part:
                runs[-1].append((letter, len(part)))
    if len(runs) != len(lines):
        return [""] * len(lines)
    return [_encoded(found, len(line)) for found, line in zip(runs, lines, strict=True)]


def _letter(kind: _TokenType) -> str:
    return next((letter for parent, letter in _LETTERS if kind in parent), "_")


def _encoded(runs: Sequence[tuple[str, int]], length: int) -> str:
    if sum(n for _, n in runs) != length:
        return ""
    joined: list[tuple[str, int]] = []
    for letter, n in runs:
        if joined and joined[-1][0] == letter:
            joined[-1] = letter, joined[-1][1] + n
        else:
            joined.append((letter, n))
    while joined and joined[-1][0] == "_":
        joined.pop()
    return "".join(f"{letter}{n}" for letter, n in joined)
