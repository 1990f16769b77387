"""What does a file of printed IR look like?

    # tilelang IR 1: matmul for cuda:sm_90a, after pipeline_loops
    # after pipeline_loops
    # file gemm.py = '/home/me/gemm.py'
    # attrs {'tl.stage': 'tile'}
    # name i0_2 = 'i0_2'

    import tilelang.language as T


    @T.prim_func  #@ gemm.py:4:1-20:13
    def matmul(A: T.Tensor((64, 64), 'float16')):  #@ gemm.py:4:1-20:13 ~ p1
        …

    # p1 = gemm.py:5:12-5:42

Behind a line stand the place it is from, after ` < ` the calls that led there, after ` ~ ` the
places of what it names, loads and calls, and after ` @ ` keywords that the language does not have.
Whoever edits the file may leave all of that out: a line without a place has that of the one above.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePath
from typing import Final

from tilelang_diagnostics.model import Frame, Span

VERSION: Final = 1
MARK: Final = "#@ "


@dataclass(frozen=True, slots=True)
class Place:
    """A place in Python, and the calls that led there."""

    span: Span | None
    calls: tuple[Frame, ...] = ()


Notes = tuple[tuple[str, str], ...]
Row = tuple[str, Place, Notes, tuple[Place, ...]]


@dataclass(frozen=True, slots=True)
class Document:
    """What is written: the lines, what they belong to, and the attributes of the function."""

    rows: tuple[Row, ...]
    title: str = ""
    after: str = ""
    said: str = "{}"
    operators: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Comments:
    """What the comments of a file say: by line its place, the places of its parts, its keywords."""

    after: str
    said: str
    operators: frozenset[str]
    names: Mapping[str, str]
    places: Mapping[int, Place]
    sites: Mapping[int, tuple[Place, ...]]
    notes: Mapping[int, str]


class FileFormatError(Exception):
    """A comment that cannot be read, at a line."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line, self.message = line, message


def file_text(document: Document) -> str:
    """The file."""
    files = _Files()
    body = []
    for text, place, notes, sites in document.rows:
        behind = files.place(place)
        if sites:
            behind += f" ~ {files.listed(sites)}"
        if notes:
            behind += f" @ {', '.join(f'{key}={value}' for key, value in notes)}"
        body.append(f"{text}  {MARK}{behind.strip()}" if behind else text)
    head = [f"# tilelang IR {VERSION}: {_one_line(document.title)}"]
    if document.after:
        head.append(f"# after {document.after}")
    head += [f"# file {alias} = {name!r}" for name, alias in files.aliases.items()]
    head.append(f"# attrs {document.said}")
    if document.operators:
        head.append(f"# operators {' '.join(document.operators)}")
    head += [f"# name {printed} = {name!r}" for printed, name in document.names]
    tail = [f"# p{number} = {text}" for text, number in files.numbers.items()]
    parts = ["\n".join(head), "\nimport tilelang.language as T\n\n", *body]
    if tail:
        parts += ["", *tail]
    return "\n".join(parts) + "\n"


class _Files:
    """Short names of files, and numbers of places."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.numbers: dict[str, int] = {}

    def place(self, place: Place) -> str:
        if place.span is None:
            return ""
        calls = "".join(f" < {_word(f.function)} {self._span(f.span)}" for f in place.calls)
        return self._span(place.span) + calls

    def listed(self, sites: Sequence[Place]) -> str:
        """Numbers of places, with how often each comes in a row."""
        numbers = [self._number(site) for site in sites]
        runs = ((number, len(list(same))) for number, same in groupby(numbers))
        return " ".join(f"p{n}" if count == 1 else f"p{n}*{count}" for n, count in runs)

    def _number(self, site: Place) -> int:
        return self.numbers.setdefault(self.place(site) or "?", len(self.numbers) + 1)

    def _span(self, span: Span) -> str:
        return (
            f"{self._alias(span.file)}:{span.line}:{span.column}-{span.end_line}:{span.end_column}"
        )

    def _alias(self, file: str) -> str:
        found = self.aliases.get(file)
        if found is None:
            base = re.sub(r"[^\w.-]", "_", PurePath(file).name) or "file"
            found, count = base, 1
            while found in self.aliases.values():
                count += 1
                found = f"{base}-{count}"
            self.aliases[file] = found
        return found


def _word(text: str) -> str:
    return re.sub(r"[^\w.<>-]", "_", text).replace("<", "_").replace(">", "_") or "_"


def _one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


_SPAN: Final = re.compile(r"(?P<file>[\w.-]+):(\d+):(\d+)-(\d+):(\d+)")
_FILE: Final = re.compile(r"# file ([\w.-]+) = (.+)")
_NAME: Final = re.compile(r"# name (\w+) = (.+)")
_NUMBER: Final = re.compile(r"# p(\d+) = (.+)")
_RUN: Final = re.compile(r"p(\d+)(?:\*(\d+))?")
_MAX_RUN: Final = 1 << 20


def comments_of(text: str) -> Comments:
    """What the comments say; raises FileFormatError, and what `tokenize` raises."""
    after, said, operators = "", "{}", frozenset[str]()
    aliases: dict[str, str] = {}
    names: dict[str, str] = {}
    numbered: dict[int, tuple[int, str]] = {}
    behind: dict[int, str] = {}
    for line, comment in _comments(text):
        if comment.startswith(MARK):
            behind[line] = comment.removeprefix(MARK)
        elif comment.startswith("# after "):
            after = comment.removeprefix("# after ").strip()
        elif comment.startswith("# attrs "):
            said = comment.removeprefix("# attrs ")
        elif comment.startswith("# operators "):
            operators = frozenset(comment.split()[2:])
        elif match := _FILE.fullmatch(comment):
            aliases[match[1]] = _name(match[2], line)
        elif match := _NAME.fullmatch(comment):
            names[match[1]] = _name(match[2], line)
        elif match := _NUMBER.fullmatch(comment):
            numbered[int(match[1])] = line, match[2]
    reader = _Places(aliases)
    known = {number: reader.place(text, line) for number, (line, text) in numbered.items()}
    places: dict[int, Place] = {}
    sites: dict[int, tuple[Place, ...]] = {}
    notes: dict[int, str] = {}
    for line, whole in behind.items():
        rest, _, said_behind = f" {whole} ".partition(" @ ")
        place, _, listed = rest.partition(" ~ ")
        if place.strip():
            places[line] = reader.place(place.strip(), line)
        if listed.strip():
            sites[line] = tuple(_expanded(listed, known, line))
        if said_behind.strip():
            notes[line] = said_behind.strip()
    return Comments(after, said, operators, names, places, sites, notes)


def _comments(text: str) -> Iterator[tuple[int, str]]:
    if "#" not in text:
        return
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def _name(text: str, line: int) -> str:
    try:
        found = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        found = None
    if not isinstance(found, str):
        raise FileFormatError(line, f"{text} is no name")
    return found


def _expanded(listed: str, known: Mapping[int, Place], line: int) -> Iterator[Place]:
    for word in listed.split():
        match = _RUN.fullmatch(word)
        if match is None or int(match[1]) not in known or int(match[2] or 1) > _MAX_RUN:
            raise FileFormatError(line, f"`{word}` is no place of this file")
        for _ in range(int(match[2] or 1)):
            yield known[int(match[1])]


class _Places:
    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def place(self, text: str, line: int) -> Place:
        """`gemm.py:5:9-5:20 < helper gemm.py:9:1-9:5`."""
        own, *calls = text.split(" < ")
        if own == "?":
            return Place(None)
        frames = []
        for call in calls:
            function, _, where = call.strip().partition(" ")
            frames.append(Frame(function, self._span(where, line)))
        return Place(self._span(own, line), tuple(frames))

    def _span(self, text: str, line: int) -> Span:
        match = _SPAN.fullmatch(text.strip())
        if match is None or match["file"] not in self._aliases:
            raise FileFormatError(
                line, f"`{text.strip()}` is no place: FILE:LINE:COLUMN-LINE:COLUMN"
            )
        numbers = [int(n) for n in match.groups()[1:]]
        try:
            return Span(self._aliases[match["file"]], *numbers)
        except ValueError as error:
            raise FileFormatError(line, str(error)) from None
