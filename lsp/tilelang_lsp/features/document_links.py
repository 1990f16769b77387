"""textDocument/documentLink: codes in comments lead to their pages, web addresses to themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Span, find_code
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.comments import IGNORE, IGNORE_FILE
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.diagnostics import page_file

_LINK = re.compile(r"(?P<code>\bTL\d{3}\b)|(?P<url>https?://[^\s'\"<>)\]]+)")
_IGNORED = (IGNORE, IGNORE_FILE)


@dataclass(frozen=True, slots=True)
class Link:
    """A place that leads to a file or an address."""

    span: Span
    file: str
    url: str
    tooltip: str


def document_links(request: Request) -> tuple[Link, ...]:
    """All links of a file that mentions the language."""
    path = request.analysis.path
    return tuple(
        link for number, line in enumerate(split_lines(request.text), 1)
        for link in _links(path, number, line)
    )  # fmt: skip


FEATURE = Feature("textDocument/documentLink", document_links, "newest")


def _links(path: str, number: int, line: str) -> Iterator[Link]:
    if "#" not in line and "http" not in line:
        return
    comment = line.find("#")
    for match in _LINK.finditer(line):
        text = match[0].rstrip(".,;")
        span = Span(path, number, match.start() + 1, number, match.start() + 1 + len(text))
        if match["url"]:
            yield Link(span, "", text, "open in the browser")
        elif 0 <= comment < match.start() and (page := page_file(match["code"])):
            yield Link(span, page, "", f"explain {match['code']}")
    for ignored in (match for pattern in _IGNORED for match in pattern.finditer(line)):
        for name in re.finditer(r"[a-z][\w-]+", ignored["selectors"]):
            row = find_code(name[0])
            page = page_file(row.code) if row is not None else ""
            if row is not None and page:
                start = ignored.start("selectors") + name.start() + 1
                span = Span(path, number, start, number, start + len(name[0]))
                yield Link(span, page, "", f"explain {row.code}")
