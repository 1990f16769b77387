"""Which names do the files of the workspace give: after `lib.`, after `from lib import`, and alone?

Their macros, kernels, functions, classes and constants, with what these say of themselves.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.crossing import Crossing, Meaning, ModuleFile
from tilelang_lsp.features.base import Request
from tilelang_lsp.features.functions import declared
from tilelang_lsp.features.navigation import crossing
from tilelang_lsp.features.proposal import Completion
from tilelang_lsp.markdown import code, doc_markdown
from tilelang_lsp.names import Origin

_FROM = re.compile(r"\s*from\s+(?P<dots>\.*)(?P<module>[\w.]*)\s+import\s+\(?(?:[\w\s,]*,\s*)?\w*$")
_DEFINED = ("kernel", "macro", "function", "class")


def members_of(request: Request, root: str) -> Iterator[Completion]:
    """After a module, its names."""
    across = crossing(request)
    module = across.named(root, request.line)
    if isinstance(module, ModuleFile):
        yield from _members(across, module)


def import_from(request: Request) -> tuple[Completion, ...] | None:
    """The names that `from module import` may take; None anywhere else."""
    line = split_lines(request.text)[request.line - 1][: request.column - 1]
    match = _FROM.match(line)
    if match is None:
        return None
    across = crossing(request)
    file = across.workspace.modules.find(match["module"], len(match["dots"]), across.path)
    return () if file is None else tuple(_members(across, ModuleFile(file)))


def top_names(request: Request, known: Collection[str]) -> Iterator[Completion]:
    """The definitions of the file, and what it imports of others, but those that are `known`."""
    across = crossing(request)
    names = across.names(across.path)
    if names is None:
        return
    given = [(b.name, across.chain(b)[-1]) for b in names.module.bindings.values()
             if b.kind in _DEFINED or b.origin is not None]  # fmt: skip
    for star in names.stars:
        module = across.origin(names, Origin(star.module, star.level))
        given += across.members(module) if isinstance(module, ModuleFile) else ()
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
