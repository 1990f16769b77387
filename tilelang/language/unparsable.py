"""Why does this text not become a tree, and where? The one home of TL101.

Python names a line for what is no syntax. For what only nests more deeply than its parser can
follow it does not, so that the deepest statement is looked for here.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Final

from tilelang.language.source import syntax_error
from tilelang_diagnostics.model import Diagnostic, Severity, Span
from tilelang_diagnostics.sources import split_lines

# All that `ast.parse` and `compile` raise for a text.
PARSE_ERRORS: Final = (SyntaxError, ValueError, RecursionError, MemoryError)
_FEW_TOKENS: Final = 50  # of a statement that cannot be what nests too deeply
_AROUND: Final = 12
_LONGEST_CHAIN: Final = 100  # branches that Python surely takes
_HEADER: Final = re.compile(r"(?:async\s+)?(?:if|elif|while|for|with|def|class|match|case)\b")


def unparsable(path: str, text: str, error: BaseException) -> Diagnostic:
    """TL101 for what `ast.parse` or `compile` raised, one of PARSE_ERRORS, for a text."""
    if isinstance(error, SyntaxError):
        return syntax_error(path, error)
    if not isinstance(error, RecursionError | MemoryError):
        return syntax_error(path, SyntaxError(str(error)))
    return too_deep(path, text)


def refused_by_python(path: str, text: str) -> Diagnostic | None:
    """TL101 for a text that Python does not take, also for what only its compiler refuses.

    Nothing of the text runs.
    """
    try:
        checked_tree(path, text)
    except PARSE_ERRORS as error:
        return unparsable(path, text, error)
    return None


def checked_tree(path: str, text: str) -> ast.Module:
    """The tree of a text that Python's compiler takes; raises PARSE_ERRORS for one it does not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python's own, not about kernels
        tree = ast.parse(text, filename=path)
        compile(tree, path, "exec", dont_inherit=True)
    return tree


def too_deep(path: str, text: str) -> Diagnostic:
    """TL101 at what nests more deeply than Python can follow."""
    line, what, help = _deepest(text)
    row = split_lines(text)[line - 1]
    column = len(row) - len(row.lstrip()) + 1
    return Diagnostic(
        "TL101", Severity.ERROR, f"{what} than Python can read",
        Span(path, line, column, line, max(len(row.rstrip()), column) + 1), help=help,
    )  # fmt: skip


def _deepest(text: str) -> tuple[int, str, str]:
    """A line, what is wrong with it, and what to do."""
    chain = _chain(text)
    statements = sorted(_statements(text), key=lambda found: -found[2])
    for line, statement, tokens in statements:
        if tokens < _FEW_TOKENS:
            break
        if _overwhelms(statement):
            return (line, "this expression nests more deeply",
                    "give a part of it a name, and use that")  # fmt: skip
    if chain is not None:
        return (chain, "this chain of `elif` has more branches",
                "look the value up in a table, or split the chain")  # fmt: skip
    return 1, "the file nests more deeply", "split what nests deepest into functions"


def _overwhelms(statement: str) -> bool:
    """Whether a statement alone is too much, without what belongs to the one around it."""
    lone = statement.strip().removeprefix("@").removeprefix("el")
    if _HEADER.match(statement.strip()):
        lone += " pass"
    # Blocks around it stand for those around the statement, which are not read here.
    around = "".join(f"{' ' * depth}if 1:\n" for depth in range(1, _AROUND))
    try:
        checked_tree("", f"async def f():\n{around}{' ' * _AROUND}{lone}\n")
    except (RecursionError, MemoryError):
        return True
    except (SyntaxError, ValueError):
        return False
    return False


def _statements(text: str) -> Iterator[tuple[int, str, int]]:
    """Line, text and number of tokens of each logical line, as far as there are tokens."""
    rows = text.splitlines(keepends=True)
    first, count = 0, 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                continue
            first = first or token.start[0]
            count += 1
            if token.type == tokenize.NEWLINE:
                yield first, "".join(rows[first - 1 : token.end[0]]), count
                first, count = 0, 0
    except (tokenize.TokenError, SyntaxError):
        return


def _chain(text: str) -> int | None:
    """The first `elif` of the longest chain, if it is long."""
    found = [(m[1], m.start(2)) for m in re.finditer(r"^([ \t]*)(elif)\b", text, re.MULTILINE)]
    for indent, many in Counter(indent for indent, _ in found).most_common(1):
        if many > _LONGEST_CHAIN:
            place = next(start for i, start in found if i == indent)
            return text.count("\n", 0, place) + 1
    return None
