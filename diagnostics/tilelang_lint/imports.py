"""What do the files say that a checked file imports? Read where they lie, and never imported.

    modules = imported_modules()
    lint_text(text, "kernels/gemm.py", settings, modules=modules)

An import is looked up beside the file and in the folders above it, up to that of its
pyproject.toml (else the current one), as the editor does in the folder that is open.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from tilelang.cli.project import nearest
from tilelang.language.imported_modules import ImportedModules
from tilelang_diagnostics import Diagnostic, SourceMap
from tilelang_lint.module_files import ModuleFiles
from tilelang_lint.suppressions import suppressions_in


def imported_modules() -> ImportedModules:
    """The modules that files on the disk import, each read once for all that are checked."""
    return ImportedModules(_DiskTexts())


class _DiskTexts:
    """The files on the disk, as the front end asks for them."""

    def __init__(self) -> None:
        self._sources = SourceMap()
        self._is_file: dict[str, bool] = {}
        self._projects: dict[str, str] = {}
        self._modules: dict[str, ModuleFiles] = {}  # by the folder of a project

    def find(self, module: str, level: int, path: str) -> str | None:
        """The file that an import means; its path is relative where that of the importer is."""
        importer = os.path.abspath(path)
        project = self._project(os.path.dirname(importer))
        if project not in self._modules:
            self._modules[project] = ModuleFiles([project], self._exists)
        found = self._modules[project].find(module, level, importer)
        return found if found is None or os.path.isabs(path) else os.path.relpath(found)

    def text(self, path: str) -> str | None:
        """What a file says."""
        return self._sources.text(path)

    def _exists(self, path: str) -> bool:
        if path not in self._is_file:
            self._is_file[path] = os.path.isfile(path)
        return self._is_file[path]

    def _project(self, folder: str) -> str:
        """The folder whose files belong together with those of another."""
        if folder not in self._projects:
            file, current = nearest(os.path.join(folder, "any.py")), os.getcwd()
            around = current if folder.startswith(current) else folder
            self._projects[folder] = around if file is None else str(file.parent)
        return self._projects[folder]


def own_findings(
    found: Iterable[Diagnostic], path: str, text_of: Callable[[str], str]
) -> Iterator[Diagnostic]:
    """The findings that a file can show: its own, and those in what it calls of other files.

    What these suppress in their own text is suppressed.
    """
    for diagnostic in found:
        span = diagnostic.span
        if span is None or span.file == path:
            yield diagnostic
        elif any(frame.span.file == path for frame in diagnostic.calls):
            if not suppressions_in(text_of(span.file)).covers(diagnostic, span.file):
                yield diagnostic
