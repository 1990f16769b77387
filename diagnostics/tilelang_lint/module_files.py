"""Which file of the workspace does an import mean? Looked up as Python would, never imported.

from pkg.ops import double    in /w/app/main.py: app/pkg/ops.py, pkg/ops.py or src/pkg/ops.py
from .ops import double       in /w/pkg/gemm.py: pkg/ops.py
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence

# Never a file of the author's, whatever lies in the workspace.
OURS = "tilelang"
PACKAGE = "__init__.py"
SOURCE_FOLDERS = ("src", "python")
MOST_PARENTS = 32


class ModuleFiles:
    """Finds modules below some folders. `exists` says of any path whether it is a file."""

    def __init__(
        self, folders: Sequence[str] = (), exists: Callable[[str], bool] = os.path.isfile
    ) -> None:
        self.folders = tuple(dict.fromkeys(map(os.path.normpath, folders)))
        self._exists = exists

    def find(self, module: str, level: int, path: str) -> str | None:
        """The file of a module that the file `path` imports; None for one that is elsewhere.

        A folder without `__init__.py` is a package all the same: its file then does not exist.
        """
        parts = [p for p in module.split(".") if p]
        if level:
            base = os.path.dirname(path) if os.path.isabs(path) else None
            for _ in range(level - 1):
                base = None if base is None else os.path.dirname(base)
            return None if base is None else self._in((base,), parts)
        if not parts or parts[0] == OURS or parts[0] in sys.stdlib_module_names:
            return None
        return self._in(tuple(self.roots(path)), parts)

    def submodule(self, package: str, name: str) -> str | None:
        """The file of `package.name`, of the file of a package."""
        if os.path.basename(package) != PACKAGE:
            return None
        return self._in((os.path.dirname(package),), [name])

    def is_ours(self, path: str) -> bool:
        """Whether a file is one of the compiler's own, which no import leads to."""
        before, ours, _ = path.rpartition(f"{os.sep}{OURS}{os.sep}")
        return bool(ours) and self._exists(os.path.join(before, OURS, PACKAGE))

    def roots(self, path: str) -> Iterator[str]:
        """Where absolute imports of a file are looked up, in order."""
        seen: dict[str, None] = {}
        around = self.folder_of(path)
        if os.path.isabs(path):
            own = os.path.dirname(path)
            if self._exists(os.path.join(own, PACKAGE)):
                seen[self._above_package(own)] = None
                seen[own] = None
            else:
                seen[own] = None
            parent = own
            while around is not None and parent != around and len(seen) < MOST_PARENTS:
                parent = os.path.dirname(parent)
                seen[parent] = None
        for folder in ((around,) if around is not None else ()) + self.folders:
            seen[folder] = None
            seen.update((os.path.join(folder, name), None) for name in SOURCE_FOLDERS)
        yield from seen

    def folder_of(self, path: str) -> str | None:
        """The innermost folder that holds a file."""
        held = [f for f in self.folders if path.startswith(f.rstrip(os.sep) + os.sep)]
        return max(held, key=len, default=None)

    def _above_package(self, folder: str) -> str:
        for _ in range(MOST_PARENTS):
            if not self._exists(os.path.join(folder, PACKAGE)):
                break
            folder = os.path.dirname(folder)
        return folder

    def _in(self, roots: Sequence[str], parts: list[str]) -> str | None:
        """A module in one of some folders; a folder of modules only where none has a file."""
        for root in roots:
            place = os.path.normpath(os.path.join(root, *parts))
            package = os.path.join(place, PACKAGE)
            if self._exists(package):
                return package
            if parts and self._exists(f"{place}.py"):
                return f"{place}.py"
        for root in roots:
            place = os.path.normpath(os.path.join(root, *parts))
            if os.path.isdir(place) and (not parts or _holds_modules(place)):
                return os.path.join(place, PACKAGE)
        return None


def _holds_modules(folder: str) -> bool:
    try:
        with os.scandir(folder) as entries:
            return any(e.name.endswith(".py") or e.is_dir() for e in entries)
    except OSError:
        return False
