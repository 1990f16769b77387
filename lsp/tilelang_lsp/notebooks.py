"""How is a notebook read? As one text, its code cells in order; magics become comments.

A kernel in the third cell then sees the imports of the first, as it does when the cells run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from tilelang_lsp.convert import Cells
from tilelang_lsp.documents import Documents

_MAGIC = re.compile(r"^(\s*)([%!].*)$", re.M)


@dataclass(slots=True)
class _Notebook:
    path: str
    version: int
    cells: list[str] = field(default_factory=list)
    known: Cells = field(default_factory=lambda: Cells((), ()))


class Notebooks:
    """The notebooks that are open; each is a document under its own address."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._open: dict[str, _Notebook] = {}

    def open(
        self, uri: str, path: str, version: int, cells: list[str], text_of: Callable[[str], str]
    ) -> None:
        """A notebook was opened; `text_of` gives the text of a cell."""
        self._open[uri] = _Notebook(path, version, cells)
        self._documents.open(uri, path, version, self._read(uri, text_of))

    def change(
        self, uri: str, version: int, cells: list[str] | None, text_of: Callable[[str], str]
    ) -> None:
        """Cells changed, or (`cells`) there are others now."""
        found = self._open.get(uri)
        if found is not None:
            found.version = version
            if cells is not None:
                found.cells = cells
            self._documents.change(uri, version, self._read(uri, text_of))

    def close(self, uri: str) -> tuple[str, ...]:
        """A notebook was closed; its cells."""
        found = self._open.pop(uri, None)
        self._documents.close(uri)
        return () if found is None else found.known.uris

    def whole(self, uri: str) -> str:
        """The notebook of a cell; any other address is its own."""
        return next((n for n, found in self._open.items() if uri in found.known.uris), uri)

    def cells(self, uri: str) -> Cells | None:
        """The cells of a notebook; None for what is none."""
        found = self._open.get(uri)
        return None if found is None or not found.known.uris else found.known

    def _read(self, uri: str, text_of: Callable[[str], str]) -> str:
        found = self._open[uri]
        parts, starts, line = [], [], 1
        for cell in found.cells:
            text = _MAGIC.sub(r"\1#\2", text_of(cell).replace("\r\n", "\n"))
            text = text if text.endswith("\n") else f"{text}\n"
            parts.append(text)
            starts.append(line)
            line += text.count("\n")
        found.known = Cells(tuple(found.cells), tuple(starts))
        return "".join(parts)
