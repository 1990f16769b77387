"""What does a half-written file mean? The same text with its broken lines made harmless.

    for k in T.Pipelined(            →    for k in globals():
        T.copy(A[k], A_shared)       →        T.copy(A[k], A_shared)
    x = A_shared[                    →    x = globals()

Lines keep their numbers and names stay bound (to unknown values), so that everything around a
line being typed is still understood.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass

from tilelang_lsp.definitions import first_line

MAX_REPAIRS = 25
# A call of a builtin the front end never runs: its value is unknown and raises no complaint.
UNKNOWN = "globals()"

_HEADER = re.compile(
    r"(?P<indent>\s*)(?:async\s+)?"
    r"(?P<word>for|with|if|elif|else|while|def|class|try|except|finally)\b(?P<rest>.*)"
)
_ASSIGNMENT = re.compile(
    r"(?P<indent>\s*)(?P<names>\(?\s*\w+(?:\s*,\s*\w+)*\s*\)?)\s*(?::[^=]+)?=(?!=)"
)
_NEEDS_BODY = re.compile(r"expected an indented block after .* on line (\d+)")


@dataclass(frozen=True, slots=True)
class Recovered:
    """`text` parses as `tree`; `broken` are the lines that were replaced."""

    text: str
    tree: ast.Module
    broken: tuple[int, ...]

    def definitions_broken(self) -> tuple[tuple[int, int], ...]:
        """Line ranges of the top-level statements that hold a broken line."""
        found = []
        for node in self.tree.body:
            first, last = first_line(node), node.end_lineno or node.lineno
            if any(first <= line <= last for line in self.broken):
                found.append((first, last))
        return tuple(found)


def recover(
    text: str, known: SyntaxError | None = None, parse: Callable[[str], ast.Module] = ast.parse
) -> Recovered | None:
    """`text` made parsable; None when a few harmless lines do not make it so.

    `known` is what Python says of the text, if it was asked; `parse` is how it is asked.
    """
    lines = text.split("\n")
    broken: list[int] = []
    for _ in range(MAX_REPAIRS):
        repaired = "\n".join(lines)
        try:
            if known is not None:
                raise known
            return Recovered(repaired, parse(repaired), tuple(sorted(set(broken))))
        except SyntaxError as error:
            line = _repair(lines, error, broken)
        except (ValueError, RecursionError, MemoryError):
            return None
        known = None
        if line is None:
            return None
        broken.append(line)
    return None


def _repair(lines: list[str], error: SyntaxError, broken: list[int]) -> int | None:
    """Make one line harmless in place; its number, or None when nothing more can be done."""
    needs_body = _NEEDS_BODY.search(error.msg)
    if needs_body is not None:
        header = int(needs_body[1])
        lines[header - 1] = _with_body(lines[header - 1])
        return header
    number = min(max(error.lineno or 1, 1), len(lines))
    if number in broken or isinstance(error, IndentationError):
        while number > 1 and not lines[number - 1].strip():
            number -= 1  # the line is blank already: what precedes it must go
        if not lines[number - 1].strip():
            return None
        lines[number - 1] = ""
        return number
    line = lines[number - 1]
    if not line.strip() or _is_import(line):
        return None
    lines[number - 1] = _harmless(line)
    return number


def _with_body(header: str) -> str:
    """`for …:` with a body on the same line; a comment is cut off."""
    code = header.partition("#")[0].rstrip() if "#" in header else header.rstrip()
    return f"{code} pass"


def _is_import(line: str) -> bool:
    """Without its imports a file means nothing, so these are not guessed around."""
    return line.startswith(("import ", "from "))


def _harmless(line: str) -> str:
    """A line that parses, opens a block if `line` does, and binds the names it would bind."""
    header = _HEADER.match(line)
    if header is not None:
        return f"{header['indent']}{_harmless_header(header['word'], header['rest'])}"
    assignment = _ASSIGNMENT.match(line)
    if assignment is not None:
        return f"{assignment['indent']}{assignment['names'].rstrip()} = {UNKNOWN}"
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}pass"


def _harmless_header(word: str, rest: str) -> str:
    match word:
        case "for":
            targets = re.match(r"\s*(\(?\w+(?:\s*,\s*\w+)*,?\s*\)?)", rest)
            return f"for {targets[1].rstrip() if targets else '_'} in {UNKNOWN}:"
        case "with":
            names = re.search(r"\bas\s+(\(?\s*\w+(?:\s*,\s*\w+)*\s*\)?)", rest)
            return f"with {UNKNOWN}{f' as {names[1]}' if names else ''}:"
        case "def" | "class":
            name = re.match(r"\s*(\w+)", rest)
            brackets = "(*_, **__)" if word == "def" else ""
            return f"{word} {name[1] if name else '_'}{brackets}:"
        case "else" | "try" | "finally":
            return f"{word}:"
        case "except":
            return "except Exception:"
        case _:  # if, elif, while
            return f"{'if' if word == 'while' else word} {UNKNOWN}:"
