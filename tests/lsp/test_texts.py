"""Edits come out as the editor has them, which counts in code units and knows three line ends."""

from __future__ import annotations

import random

import pytest
from lsprotocol import types as lsp

from tilelang_lsp.addresses import path_of, uri_of
from tilelang_lsp.texts import edited

ENCODINGS = {"utf-8": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
SIZES = {"utf-8": 1, "utf-16": 2, "utf-32": 4}
PIECES = (
    "a",
    "é",
    "😀",
    "\ud83d",
    "\t",
    "\n",
    "\r\n",
    "\r",
    "\f",
    "\v",
    "\x1c",
    "\x85",
    "\u2028",
    "",
)


def units(text: str, encoding: str) -> list[bytes]:
    data, size = text.encode(ENCODINGS[encoding], "surrogatepass"), SIZES[encoding]
    return [data[n : n + size] for n in range(0, len(data), size)]


def editors_lines(text: str) -> list[str]:
    lines, position = [""], 0
    while position < len(text):
        end = 2 if text.startswith("\r\n", position) else 1
        if text[position] in "\r\n":
            lines[-1] += text[position : position + end]
            lines.append("")
        else:
            end = 1
            lines[-1] += text[position]
        position += end
    return lines


def edited_in_units(text: str, change: lsp.TextDocumentContentChangePartial, encoding: str) -> str:
    def offset(place: lsp.Position) -> int:
        lines = editors_lines(text)
        if place.line >= len(lines):
            return len(units(text, encoding))
        before = "".join(lines[: place.line])
        line = lines[place.line].rstrip("\r\n")
        return len(units(before, encoding)) + min(place.character, len(units(line, encoding)))

    whole = units(text, encoding)
    new = units(change.text, encoding)
    joined = whole[: offset(change.range.start)] + new + whole[offset(change.range.end) :]
    return b"".join(joined).decode(ENCODINGS[encoding], "surrogatepass")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_edits_of_random_texts(encoding: str) -> None:
    chance = random.Random(7)
    for _ in range(400):
        text = "".join(chance.choices(PIECES, k=chance.randrange(12)))
        places = []
        for _ in range(2):
            line = chance.randrange(8)
            lines = editors_lines(text)
            content = lines[line].rstrip("\r\n") if line < len(lines) else ""
            count = chance.randrange(len(content) + 1)  # never inside of a character
            character = len(units(content[:count], encoding))
            places.append((line, chance.choice((character, character, character, 99))))
        first, last = (lsp.Position(*place) for place in sorted(places))
        new = "".join(chance.choices(PIECES, k=chance.randrange(3)))
        change = lsp.TextDocumentContentChangePartial(lsp.Range(first, last), new)
        expected = edited_in_units(text, change, encoding)
        assert edited(text, [change], encoding) == expected, (text, change)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a%20b/%C3%A9.py", "/a b/é.py"),
        ("file:///a%FF.py", "/a\udcff.py"),
        ("file://server/share/x.py", "//server/share/x.py"),
        ("file:///c:/Users/x.py", "c:/Users/x.py"),
        ("file:///a%3Bb%23.py", "/a;b#.py"),
        ("untitled:Untitled-1", "untitled:Untitled-1"),
        ("git:/a.py?%7B%7D", "git:/a.py?%7B%7D"),
        ("http://[", "http://["),
        ("file:///%00", "file:///%00"),
    ],
)
def test_addresses_and_back(uri: str, path: str) -> None:
    assert (path_of(uri), uri_of(path)) == (path, uri)


def test_drives_as_editors_write_them() -> None:
    assert path_of("file:///C%3A/Users/x.py") == path_of("file:///c:/Users/x.py")
    assert uri_of("/half\ud83d.py") == "file:///half%3F.py"
