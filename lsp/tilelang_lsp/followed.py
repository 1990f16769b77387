"""What do the files say that a file is read with? Read once for as long as none of them changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from tilelang.language.imported_modules import ImportedModules
from tilelang_diagnostics import Diagnostic, SourceMap
from tilelang_lint.imports import own_findings as findings_of
from tilelang_lsp.following import Asked, Imports
from tilelang_lsp.lexical import parse
from tilelang_lsp.recovery import recover

MOST_READ = 8  # sets of files kept
MOST_KEPT = 256  # files known to be readable
_read: OrderedDict[Imports, ImportedModules] = OrderedDict()


@dataclass(frozen=True, slots=True)
class _Texts:
    """The given files, as the front end asks for them."""

    links: dict[tuple[str, Asked], str]
    files: dict[str, str | None]

    def find(self, module: str, level: int, path: str) -> str | None:
        """The file that an import means."""
        return self.links.get((path, (module, level)))

    def text(self, path: str) -> str | None:
        """What a file says."""
        if path not in self.files:
            return None
        known = self.files[path]
        return _readable(SourceMap().text(path) or "") if known is None else known


@lru_cache(MOST_KEPT)
def _readable(text: str) -> str:
    """A text, around its broken lines if it has some."""
    if parse(text) is not None:
        return text
    readable = recover(text)
    return text if readable is None else readable.text


def modules_of(imports: Imports) -> ImportedModules | None:
    """The modules of some imports, read once for as long as these stay the same."""
    if not imports.files:
        return None
    found = _read.get(imports)
    if found is None:
        links = {(path, asked): file for path, asked, file in imports.links}
        found = ImportedModules(_Texts(links, {path: text for path, _, text in imports.files}))
        _read[imports] = found
        while len(_read) > MOST_READ:
            _read.popitem(last=False)
    return found


def own_findings(found: Iterable[Diagnostic], path: str, imports: Imports) -> Iterator[Diagnostic]:
    """The findings that a file can show: its own, and those in what it calls of other files."""
    said = {file: text for file, _, text in imports.files}
    return findings_of(found, path, lambda file: said.get(file) or SourceMap().text(file) or "")
