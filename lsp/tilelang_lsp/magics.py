"""What is a cell of a notebook to Python? The same lines without what only IPython understands.

    %timeit f()          #%timeit f()             !ls \\
    files = !ls          files = globals()#!ls      -l        both become comments
    T.copy?              #T.copy?

IPython looks for these where a statement may begin, not within brackets and strings, and so does
this.
"""

from __future__ import annotations

import re

from tilelang_lsp.recovery import UNKNOWN

# `%%bash`: the whole cell is for another program, unless the magic is one that runs it as Python.
_OTHER_LANGUAGE = re.compile(r"\s*%%(\w+)")
_OF_PYTHON = frozenset({"capture", "debug", "lprun", "memit", "prun", "time", "timeit"})
_COMMAND = re.compile(r"(?P<indent>\s*)(?:[%!]|\?\??\s*[%\w*])")
_ASSIGNED = re.compile(r"(?P<names>\s*[^\W\d][\w.,\s*\[\]'\"()]*=\s*)[%!](?!=)")
_HELP = re.compile(r"(?P<indent>\s*)[^\s#][^#'\"]*?[\w)\]*]\?\??\s*$")
_PIECE = re.compile(r"'{3}|\"{3}|'(?:\\.|[^'\\])*'?|\"(?:\\.|[^\"\\])*\"?|#.*|[()\[\]{}]")
_OPENERS, _CLOSERS = "([{", ")]}"


def python_of(text: str) -> str:
    """The text of a cell as Python; its lines stay where they are, ended by `\\n`."""
    cell = _OTHER_LANGUAGE.match(text)
    if cell is not None and cell[1] not in _OF_PYTHON:
        return re.sub("^", "#", text, flags=re.M)
    out: list[str] = []
    state = _State()
    of_magic = False  # whether a magic goes on in this line
    for line in text.split("\n"):
        read = f"#{line}" if of_magic else _read(line) if state.begins else None
        if read is None:
            state = state.after(line)
        else:
            of_magic = line.endswith("\\")
        out.append(line if read is None else read)
    return "\n".join(out)


def _read(line: str) -> str | None:
    """A line of IPython's as Python; None for one that is Python."""
    command = _COMMAND.match(line) or _HELP.match(line)
    if command is not None:
        # A block of which nothing else is left has to have a statement.
        indent = command["indent"]
        return f"{indent}{'pass' if indent else ''}#{line[len(indent) :]}"
    assigned = _ASSIGNED.match(line)
    if assigned is not None:
        return f"{assigned['names']}{UNKNOWN}#{line[len(assigned['names']) :]}"
    return None


class _State:
    """Where in Python a line begins: in how many brackets, in which string, after a backslash."""

    def __init__(self, depth: int = 0, string: str = "", goes_on: bool = False) -> None:
        self.depth, self.string, self.goes_on = depth, string, goes_on

    @property
    def begins(self) -> bool:
        """Whether a statement may begin there."""
        return not (self.depth or self.string or self.goes_on)

    def after(self, line: str) -> _State:
        """Where the next line begins."""
        depth, string, position = self.depth, self.string, 0
        while True:
            if string:
                end = _end_of(line, string, position)
                if end is None:
                    return _State(depth, string)
                string, position = "", end
            found = _PIECE.search(line, position)
            if found is None:
                return _State(depth, "", line.endswith("\\"))
            position = found.end()
            if found[0] in ("'" * 3, '"' * 3):
                string = found[0]
            elif found[0] in _OPENERS:
                depth += 1
            elif found[0] in _CLOSERS:
                depth = max(0, depth - 1)
            elif found[0].startswith("#"):
                return _State(depth)


def _end_of(line: str, quotes: str, start: int) -> int | None:
    """Behind the quotes that end a string over several lines; None where they do not stand here."""
    match = re.compile(rf"(?:\\.|(?!{quotes}).)*{quotes}").match(line, start)
    return None if match is None else match.end()
