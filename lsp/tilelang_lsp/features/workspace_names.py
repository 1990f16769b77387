"""Which names do the files of the workspace give: after `lib.`, after `from lib import`, and alone?

Their macros, kernels, functions, classes and constants, with what these say of themselves.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator

from tilelang_diagnostics.sources import split_lines
from tilelang_lint.module_files import PACKAGE
from tilelang_lsp.crossing import Crossing, Meaning, ModuleFile
from tilelang_lsp.cursor import in_code
from tilelang_lsp.features.base import Request
from tilelang_lsp.features.functions import declared, functions_around
from tilelang_lsp.features.navigation import crossing
from tilelang_lsp.features.proposal import Completion
from tilelang_lsp.markdown import code, doc_markdown
from tilelang_lsp.names import Origin

_FROM = re.compile(r"\s*from\s+(?P<dots>\.*)(?P<module>[\w.]*)\s+import\s+\(?(?:[\w\s,]*,\s*)?\w*$")
_MODULE = re.compile(r"\s*(?:from|import)\s+(?P<dots>\.*)(?P<module>(?:\w+\.)*)\w*$")
_DEFINED = ("kernel", "macro", "function", "class")


def members_of(request: Request, root: str) -> Iterator[Completion]:
    """After a module, its names."""
    across = crossing(request)
    module = across.named(root, request.line)
    if isinstance(module, ModuleFile):
        yield from _members(across, module)


def import_from(request: Request) -> tuple[Completion, ...] | None:
    """The modules that an import may name, and the names of one; None anywhere else."""
    line = split_lines(request.text)[request.line - 1][: request.column - 1]
    if not in_code(request.text, request.line, request.column):
        return None
    module = _MODULE.match(line)
    if module is not None:
        names = _modules(crossing(request), module["module"].rstrip("."), len(module["dots"]))
        return tuple(Completion(name, "module", "module") for name in dict.fromkeys(names))
    match = _FROM.match(line)
    if match is None:
        return None
    across = crossing(request)
    file = across.workspace.modules.find(match["module"], len(match["dots"]), across.path)
    return () if file is None else tuple(_members(across, ModuleFile(file)))


def _modules(across: Crossing, module: str, level: int) -> Iterator[str]:
    """The modules in a package; without one, those that an absolute import finds."""
    modules = across.workspace.modules
    if module or level:
        file = modules.find(module, level, across.path)
        folders = [] if file is None or not file.endswith(PACKAGE) else [os.path.dirname(file)]
    else:
        folders = [*modules.roots(across.path)]
    for folder in folders:
        yield from (name for name in across.modules_in(folder) if not name.startswith("_"))


def top_names(request: Request, known: Collection[str]) -> Iterator[Completion]:
    """The definitions of the file, and what it imports of others, but those that are `known`."""
    across = crossing(request)
    names = across.names(across.path)
    if names is None:
        return
    around = functions_around(request)
    scopes = [s for s in names.scopes if s is names.module or (
        s.kind == "function" and s.name in around and s.lines[0] <= request.line)]  # fmt: skip
    given = [(b.name, across.chain(b)[-1]) for s in scopes for b in s.bindings.values()
             if b.kind in _DEFINED or b.origin is not None]  # fmt: skip
    for star in names.stars:
        module = across.origin(names, Origin(star.module, star.level))
        members = across.members(module) if isinstance(module, ModuleFile) else ()
        given += [(n, meant) for n, meant in members if not isinstance(meant, ModuleFile)]
    for name, meant in given:
        if name not in known:
            yield from _proposal(across, name, meant)


def _members(across: Crossing, module: ModuleFile) -> Iterator[Completion]:
    for name, meant in across.members(module):
        yield from _proposal(across, name, meant)


def _proposal(across: Crossing, name: str, meant: Meaning) -> Iterator[Completion]:
    if isinstance(meant, ModuleFile):
        yield Completion(name, "module", "module", order=1)
        return
    found = declared(across, meant)
    if found is None:  # of another library, or bound several times
        if meant.origin is None:
            yield Completion(name, meant.kind, order=1)
        return
    entry = found.entry
    detail = found.header.partition(" = ")[2] if entry.kind == "constant" else entry.signature
    about = "\n\n".join(t for t in (code(found.header), doc_markdown(entry.doc)) if t)
    shown = f"= {detail}" if entry.kind == "constant" else detail
    yield Completion(name, meant.kind, shown, about, order=0 if meant.kind == "macro" else 1)
