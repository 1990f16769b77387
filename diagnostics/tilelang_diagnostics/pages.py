"""What does the page of a code say? Pages are Markdown files of one fixed form.

    # TL204 gemm-k-mismatch

    ## What it means
    prose

    ## A failing kernel            (or: A failing call, A failing command)
    ```python fails=TL204          (or: python call-fails=TL702, console)
    ...
    ```

    ## Fixed
    ```python ok
    ...
    ```

A fence's info string holds words and key=value pairs. `fails=CODE` is a file whose kernel, once
compiled, gives exactly that code; `call-fails=CODE` a script that raises it when run; `ok` gives
nothing (compiled or run, as the failing block is); `target=...` names the target to compile for,
`select=CODE` asks for a remark that is off unless asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

from tilelang_diagnostics.codes import Code, code_of

if TYPE_CHECKING:
    from rich.console import RenderableType

Kind = Literal["kernel", "call", "command"]

MEANING: Final = "What it means"
FAILING: Final[dict[str, Kind]] = {
    "A failing kernel": "kernel",
    "A failing call": "call",
    "A failing command": "command",
}
FIXED: Final = "Fixed"

_FENCE = re.compile(r"^```(?P<info>\S.*)\n(?P<text>(?:.*\n)*?)```$", re.MULTILINE)


class PageError(ValueError):
    """A page that has not the fixed form."""


@dataclass(frozen=True, slots=True)
class Example:
    """A fenced block: its language, its words and key=value pairs, its text."""

    language: str
    options: Mapping[str, str]
    text: str


@dataclass(frozen=True, slots=True)
class Page:
    """One parsed page. `kind` says what fails: a kernel, a call or a command."""

    code: str
    name: str
    kind: Kind
    meaning: str
    failing: Example
    fixed: Example
    markdown: str


def page_text(key: str) -> str:
    """The Markdown of the page of a code or name. Raises KeyError for an unknown code."""
    from importlib import resources  # costs 5 ms, and most runs never explain anything

    file = resources.files(__package__).joinpath("pages", f"{code_of(key).code}.md")
    return file.read_text(encoding="utf-8")


@cache
def page(key: str) -> Page:
    """The parsed page of a code or name."""
    return parse_page(page_text(key))


def explain(key: str) -> str:
    """What `tilelang explain` prints without colour: a header line and the page."""
    row = code_of(key)
    return f"{_header(row)}\n\n{page_text(row.code).rstrip()}\n"


def explain_rich(key: str) -> RenderableType:
    """The same for a rich console."""
    from rich.console import Group
    from rich.markdown import Markdown
    from rich.text import Text

    row = code_of(key)
    # The words for the page test say nothing to a reader, and rich takes them for the language.
    plain = re.sub(r"^```(\w+) .*$", r"```\1", page_text(row.code), flags=re.MULTILINE)
    return Group(Text(_header(row), style="dim"), Markdown(plain))


def _header(row: Code) -> str:
    return f"{row.severity.value} · {row.area} · raised as {row.exception.__name__}"


def parse_page(markdown: str) -> Page:
    """Parse one page, or raise PageError saying what is not as it must be."""
    title = re.match(r"# (TL\d{3}) (\S+)\n", markdown)
    if title is None:
        raise PageError("the first line must be `# TLnnn name`")
    sections = _sections(markdown)
    headings = list(sections)
    if len(headings) != 3 or headings[1] not in FAILING or headings[::2] != [MEANING, FIXED]:
        raise PageError(f"{title[1]}: unexpected headings {headings}")
    return Page(
        code=title[1],
        name=title[2],
        kind=FAILING[headings[1]],
        meaning=sections[MEANING],
        failing=_only_example(title[1], sections[headings[1]]),
        fixed=_only_example(title[1], sections[FIXED]),
        markdown=markdown,
    )


def _sections(markdown: str) -> dict[str, str]:
    """Text by second-level heading. Code in fences may hold lines that begin with #."""
    sections: dict[str, str] = {}
    fenced = False
    heading = ""
    for line in markdown.split("\n"):
        fenced ^= line.startswith("```")
        if line.startswith("## ") and not fenced:
            heading = line.removeprefix("## ").strip()
            sections[heading] = ""
        elif heading:
            sections[heading] += line + "\n"
    return {name: text.strip() for name, text in sections.items()}


def _only_example(code: str, section: str) -> Example:
    found = list(_FENCE.finditer(section))
    if len(found) != 1:
        raise PageError(f"{code}: a section has {len(found)} fenced blocks, not one")
    language, *words = found[0]["info"].split()
    options = dict(word.partition("=")[::2] for word in words)
    return Example(language, MappingProxyType(options), found[0]["text"])
