"""How is a notebook read? As one text, its code cells in order; magics become comments.

A kernel in the third cell then sees the imports of the first, as it does when the cells run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.convert import Cells
from tilelang_lsp.documents import Documents
from tilelang_lsp.magics import python_of


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

    def close(self, uri: str) -> None:
        """A notebook was closed."""
        self._open.pop(uri, None)
        self._documents.close(uri)

    def whole(self, uri: str) -> str:
        """The notebook of a cell; any other address is its own."""
        return next((n for n, found in self._open.items() if uri in found.known.uris), uri)

    def cells(self, uri: str) -> Cells | None:
        """The cells of a notebook; None for what is none."""
        found = self._open.get(uri)
        return None if found is None or not found.known.uris else found.known

    def has_text(self, uri: str) -> bool:
        """Whether something is written under an address: a notebook itself has only cells."""
        return uri not in self._open

    def _read(self, uri: str, text_of: Callable[[str], str]) -> str:
        found = self._open[uri]
        parts, starts, line = [], [], 1
        for cell in found.cells:
            # Lines as the editor counts them: text that ends in a line end has an empty last one.
            lines = split_lines(text_of(cell))
            parts.append(python_of("\n".join(lines)))
            starts.append(line)
            line += len(lines)
        found.known = Cells(tuple(found.cells), tuple(starts))
        return "".join(f"{part}\n" for part in parts)
