"""What did compute-sanitizer write? Its XML, read into records.

The elements are those of 2025.3 (CUDA 13.0); unknown ones are passed over. An inlined function has
its caller in `deviceStack`, so that every record leads to a line of the kernel itself.
"""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final, Literal
from xml.etree.ElementTree import Element

Kind = Literal["access", "race", "uninitialised", "barrier", "exception"]
Index = tuple[int, int, int]

# Of `kind` in the XML; any other is an exception.
_KINDS: Final[dict[str, Kind]] = {
    "Precise": "access", "Initcheck": "uninitialised", "Analysis": "race", "Hazard": "race",
    "Synccheck": "barrier",
}  # fmt: skip
# Errors of driver calls, which the process reports itself.
_IGNORED: Final = frozenset({"Api"})


@dataclass(frozen=True, slots=True)
class Place:
    """A line of some source file, by its name without folders."""

    function: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Record:
    """One record. `places` lead from where it happened to the kernel, `others` likewise for the
    second access of a race. `text` is the sanitizer's own."""

    kind: Kind
    text: str
    places: tuple[Place, ...]
    others: tuple[Place, ...] = ()
    direction: str = ""
    other_direction: str = ""
    space: str = ""
    error: str = ""
    address: int | None = None
    size: int = 0
    count: int = 1
    thread: Index | None = None
    block: Index | None = None


def read_report(path: Path) -> tuple[Record, ...]:
    """The records of an XML file; ValueError if it is none."""
    try:
        root = ElementTree.parse(path).getroot()
    except (OSError, ElementTree.ParseError) as error:
        raise ValueError(f"{path.name}: {error}") from error
    return parse_report(root)


def parse_report(root: Element) -> tuple[Record, ...]:
    """The records of a document."""
    found = []
    for element in root.iter("record"):
        written = _text(element, "kind")
        kind = _KINDS.get(written, "exception")
        if written not in _IGNORED:
            found.append(_race(element) if kind == "race" else _access(element, kind))
    return tuple(found)


def _access(element: Element, kind: Kind) -> Record:
    what = element.find("what")
    if what is None:
        what = Element("what")
    address = _text(what, "address")
    return Record(
        kind,
        _text(what, "text") or _text(what, "exception") or _text(element, "kind"),
        _places(element),
        direction=_text(what, "direction"),
        space=_text(what, "space").strip("_"),
        error=_text(what, "error") or _text(what, "type"),
        address=int(address, 16) if address else None,
        size=_number(what, "size"),
        thread=_index(element, "who/threadIdx"),
        block=_index(element, "who/blockIdx"),
    )


def _race(element: Element) -> Record:
    ends = [element.find(f"what/{side}") for side in ("source", "destination")]
    first, second = (Element("none") if e is None else e for e in ends)
    return Record(
        "race",
        _text(element, "what/text"),
        _places(first),
        _places(second),
        direction=_text(first, "direction").lower(),
        other_direction=_text(second, "direction").lower(),
        space="shared",
        count=_number(second, "count") or 1,
    )


def _places(element: Element) -> tuple[Place, ...]:
    frames = [*element.findall("where"), *element.findall("deviceStack/frame")]
    return tuple(
        Place(_text(f, "func"), PurePosixPath(_text(f, "path")).name, _number(f, "line"))
        for f in frames
    )


def _index(element: Element, path: str) -> Index | None:
    found = element.find(path)
    if found is None:
        return None
    return _number(found, "x"), _number(found, "y"), _number(found, "z")


def _text(element: Element, path: str) -> str:
    return (element.findtext(path) or "").strip()


def _number(element: Element, path: str) -> int:
    text = _text(element, path)
    return int(text) if text.isdigit() else 0
