"""What is being written at the cursor? Answers from the text alone, however broken it is."""

from __future__ import annotations

import keyword
import re
from dataclasses import dataclass

from tilelang_diagnostics.sources import split_lines

_NAME = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_OPENERS, _CLOSERS = "([{", ")]}"
# A string, which may lack its end, or a comment.
_NO_CODE = re.compile(
    r"""\'{3}[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*(?:\'{3}|\Z)
    |"{3}[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*(?:"{3}|\Z)
    |'[^'\\\r\n]*(?:\\.[^'\\\r\n]*)*(?:'|(?=[\r\n])|\Z)
    |"[^"\\\r\n]*(?:\\.[^"\\\r\n]*)*(?:"|(?=[\r\n])|\Z)
    |\#[^\r\n]*""",
    re.S | re.X,
)
_IN_BRACES = re.compile(r"\{\{|\}\}|\{(?P<code>[^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Dotted:
    """A dotted name up to and including the part under the cursor, and the columns it takes."""

    name: str
    column: int
    end_column: int


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call whose closing bracket is still ahead of the cursor.

    `argument` counts the commas before the cursor; `keyword` is the name given to the argument at
    the cursor, `given` are all keywords of the call so far.
    """

    name: str
    argument: int
    keyword: str | None
    given: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Typing:
    """The unfinished name before the cursor: `root.prefix`, `root` empty for a plain name."""

    root: str
    prefix: str


@dataclass(frozen=True, slots=True)
class OpenString:
    """A string literal that the cursor stands in: what it says up to there, the call around it, and
    whether it stands in braces, as the key of a dict does. `before` is the line up to its quote."""

    prefix: str
    call: OpenCall | None
    in_braces: bool
    before: str


def dotted_at(text: str, line: int, column: int) -> Dotted | None:
    """The dotted name at a position: on `T.copy` with the cursor in `T`, just `T`."""
    lines = split_lines(text)
    if line > len(lines):
        return None
    for match in _NAME.finditer(lines[line - 1]):
        start, end = match.start() + 1, match.end() + 1
        if start <= column <= end:
            rest = lines[line - 1][column - 1 : match.end()]
            cut = rest.find(".")
            end = end if cut < 0 else column + cut
            return Dotted(lines[line - 1][start - 1 : end - 1], start, end)
    return None


def name_at(text: str, line: int, column: int) -> Dotted | None:
    """The same, but none in a string or a comment."""
    found = dotted_at(text, line, column)
    scan = None if found is None else _scan(text, line, column)
    return None if scan is None or scan.in_string or scan.in_comment else found


def code_only(text: str) -> str:
    """The text with blanks for strings and comments, but for code in the braces of an f-string."""
    return _NO_CODE.sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    several = "\n" in text or "\r" in text
    blank = re.sub(r"[^\r\n]", " ", text) if several else " " * len(text)
    if "{" in text and _is_f_string(match.string, match.start()):
        for braces in _IN_BRACES.finditer(text):
            start, code = braces.start("code"), braces["code"] or ""
            if code:
                blank = blank[:start] + code + blank[start + len(code) :]
    return blank


def typing_at(text: str, line: int, column: int) -> Typing | None:
    """What a completion would continue; None inside strings and comments."""
    scan = _scan(text, line, column)
    if scan.in_string or scan.in_comment:
        return None
    before = _line_before(text, line, column)
    match = re.search(r"((?:[^\W\d]\w*\.)*)((?:[^\W\d]\w*)?)$", before)
    assert match is not None  # both parts may be empty
    if not match[1] and before[: match.start()].endswith("."):
        return None  # after a call or a subscript, whose value is not known here
    if before[: match.start()][-1:].isdigit():
        return None  # the suffix of a number
    return Typing(match[1].removesuffix("."), match[2])


def call_at(text: str, line: int, column: int) -> OpenCall | None:
    """The innermost call around a position, None outside calls."""
    scan = _scan(text, line, column)
    return None if scan.in_comment else _open_call(scan)


def in_code(text: str, line: int, column: int) -> bool:
    """Whether a position is in no string and no comment."""
    scan = _scan(text, line, column)
    return not scan.in_string and not scan.in_comment


def in_subscript(text: str, line: int, column: int) -> bool:
    """Whether an index is written at a position: `A[i, |`."""
    brackets = _scan(text, line, column).brackets
    return bool(brackets) and brackets[-1].opener == "[" and bool(brackets[-1].name)


def in_parentheses(text: str, line: int, column: int) -> bool:
    """Whether a part of a value is written at a position, not an argument: `f((a, |`."""
    brackets = _scan(text, line, column).brackets
    return bool(brackets) and not (brackets[-1].opener == "(" and brackets[-1].name)


def string_at(text: str, line: int, column: int) -> OpenString | None:
    """The string a position is in; None outside strings, and in those of several lines."""
    scan = _scan(text, line, column)
    if scan.string is None or "\n" in scan.string:
        return None
    before = _line_before(text, line, column)
    quoted = len(before) - len(scan.string)
    braces = bool(scan.brackets) and scan.brackets[-1].opener == "{"
    return OpenString(scan.string.lstrip("'\""), _open_call(scan), braces, before[:quoted])


def _open_call(scan: _Scan) -> OpenCall | None:
    for bracket in reversed(scan.brackets):
        # Anything else is a subscript, a literal or a parenthesis inside an argument.
        if bracket.opener == "(" and bracket.name:
            keywords = [_keyword(part) for part in bracket.parts]
            return OpenCall(
                bracket.name, len(bracket.parts) - 1, keywords[-1],
                tuple(k for k in keywords if k is not None),
            )  # fmt: skip
    return None


@dataclass(slots=True)
class _Bracket:
    """An open bracket: what is called, if anything, and the text of its arguments so far."""

    opener: str
    name: str
    parts: list[str]


@dataclass(slots=True)
class _Scan:
    brackets: list[_Bracket]
    in_string: bool
    in_comment: bool
    string: str | None = None  # the open one, with its quote


def _scan(text: str, line: int, column: int) -> _Scan:
    """Reads from the start of the enclosing top-level statement to the cursor."""
    lines = split_lines(text)
    first = min(line, len(lines))
    while first > 1 and not re.match(r"[^\W\d]|@", lines[first - 1]):
        first -= 1
    before = "\n".join((*lines[first - 1 : line - 1], _line_before(text, line, column)))
    brackets: list[_Bracket] = []
    position = 0
    while position < len(before):
        character = before[position]
        if character == "#":
            newline = before.find("\n", position)
            if newline < 0:
                return _Scan(brackets, False, True)
            position = newline
            continue
        if character in "'\"":
            end = _string_end(before, position)
            if end is None:
                inside = _code_in_string(before, position)
                if inside is None:
                    return _Scan(brackets, True, False, before[position:])
                position = inside
                continue
            _append(brackets, before[position:end])
            position = end
            continue
        _bracket(brackets, before, position)
        position += 1
    return _Scan(brackets, False, False)


def _bracket(brackets: list[_Bracket], before: str, position: int) -> None:
    character = before[position]
    if character in _OPENERS:
        called = _called(before[max(0, position - 120) : position])
        brackets.append(_Bracket(character, called, [""]))
    elif character in _CLOSERS:
        if brackets:
            brackets.pop()
            _append(brackets, "()")
    elif character == "," and brackets:
        brackets[-1].parts.append("")
    else:
        _append(brackets, character)


def _called(before: str) -> str:
    """The dotted name right before a bracket, unless it is being defined there."""
    match = re.search(
        r"(?P<define>\b(?:def|class)\s+)?(?P<name>(?:[^\W\d]\w*\.)*[^\W\d]\w*)\s*$", before
    )
    if match is None or match["define"] or keyword.iskeyword(match["name"]):
        return ""
    return match["name"]


def _append(brackets: list[_Bracket], text: str) -> None:
    if brackets:
        brackets[-1].parts[-1] += text


def _string_end(text: str, start: int) -> int | None:
    """Where the string literal at `start` ends; None when it is open at the end of the text."""
    quote = text[start : start + 3] if text[start : start + 3] in ("'''", '"""') else text[start]
    position = start + len(quote)
    while position < len(text):
        if text[position] == "\\":
            position += 2
        elif text.startswith(quote, position):
            return position + len(quote)
        elif text[position] == "\n" and len(quote) == 1:
            return position  # an unfinished string of an earlier line ends with it
        else:
            position += 1
    return None


def _is_f_string(text: str, quote: int) -> bool:
    return bool(re.search(r"(?<!\w)(?:f|rf|fr)$", text[max(0, quote - 3) : quote], re.I))


def _code_in_string(before: str, start: int) -> int | None:
    """Where the code begins that is being written in an f-string; None outside its braces."""
    if not _is_f_string(before, start):
        return None
    opened = None
    for brace in re.finditer(r"\{\{|\}\}|[{}]", before[start:]):
        opened = start + brace.end() if brace[0] == "{" else None
    # What follows a colon is no code, but how a value is written.
    written = opened is None or re.search(r"[:!][^\])]*$", before[opened:])
    return None if written else opened


def _keyword(part: str) -> str | None:
    match = re.match(r"\s*([^\W\d]\w*)\s*=(?!=)", part)
    return match[1] if match else None


def _line_before(text: str, line: int, column: int) -> str:
    lines = split_lines(text)
    return lines[line - 1][: column - 1] if line <= len(lines) else ""
