"""textDocument/completion: names of the language after `T.`, keywords and values of a call, names
bound above, members of tiles, and whole patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.cursor import OpenCall, call_at, typing_at
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.snippets import SNIPPETS
from tilelang_lsp.markdown import code, doc_markdown
from tilelang_lsp.model import Entry


@dataclass(frozen=True, slots=True)
class Completion:
    """One proposal. `kind` is an entry's or a symbol's kind, or "keyword"; `text` is inserted."""

    label: str
    kind: str
    detail: str = ""
    markdown: str = ""
    text: str = ""
    order: int = 0  # lower comes first


def complete(request: Request) -> tuple[Completion, ...]:
    """What may be written at the position; editors filter by what is there already."""
    typing = typing_at(request.text, request.line, request.column)
    if typing is None:
        return ()
    call = call_at(request.text, request.line, request.column)
    if typing.root in request.analysis.aliases:
        entries = request.catalogue.entries.values()
        wanted = _wanted_kinds(request, call)
        return tuple(_entry(e, wanted) for e in entries if not _is_vector(e, typing.prefix))
    if typing.root:
        return tuple(_members(request, typing.root))
    keywords = () if call is None or call.keyword else tuple(_keywords(request, call))
    values = () if call is None else tuple(_values(request, call))
    patterns = tuple(_snippets(request)) if call is None else ()
    return (*values, *keywords, *_names(request), *patterns)


FEATURE = Feature("textDocument/completion", complete, "newest")


_POLICIES = ("Square", "FullRow", "FullCol")
_MEMBERS = (
    ("shape", "the extents of the tile"), ("dtype", "the type of its elements"),
    ("scope()", "where it lies"), ("ndim", "how many dimensions it has"),
)  # fmt: skip


def _wanted_kinds(request: Request, call: OpenCall | None) -> tuple[str, ...]:
    """Kinds of entries that fit best where the cursor is."""
    line = split_lines(request.text)[request.line - 1][: request.column - 1]
    if line.lstrip().startswith("@"):
        return ("meta",)
    if re.match(r"\s*(?:async\s+)?with\b", line):
        return ("launch",)
    if re.match(r"\s*for\b.*\bin\b", line):
        return ("loop",)
    if call is not None:
        entry = request.catalogue.find(request.analysis, call.name)
        name = call.keyword or _parameter(entry, call.argument)
        return ("dtype",) if name in ("dtype", "accum_dtype", "in_dtype") else ("scalar", "dtype")
    if re.search(r"=\s*[\w.]*$", line):
        return ("alloc", "scalar")
    return ("tile",)


def _parameter(entry: Entry | None, position: int) -> str:
    """The name of the parameter at a position."""
    named = [p.name for p in (entry.parameters or () if entry else ()) if p.name != "*"]
    return named[position] if position < len(named) else ""


def _values(request: Request, call: OpenCall) -> Iterator[Completion]:
    """What an argument is usually given."""
    entry = request.catalogue.find(request.analysis, call.name)
    if entry is None:
        return
    alias = call.name.rpartition(".")[0]
    root = f"{alias}." if alias else ""
    match call.keyword or _parameter(entry, call.argument):
        case "policy":
            for name in _POLICIES:
                label = f"{root}GemmWarpPolicy.{name}"
                yield Completion(label, "value", "how warps share the tile", "", label, -2)
        case "dtype":
            for name in ("float16", "bfloat16", "float32", "int8", "int32"):
                yield Completion(f"{root}{name}", "dtype", "", "", f"{root}{name}", -2)
        case "num_stages":
            for text in ("2", "3", '"auto"'):
                yield Completion(text, "value", "stages of the pipeline", "", text, -2)
        case "threads":
            for text in ("128", "256"):
                yield Completion(text, "value", "threads of a block", "", text, -2)


def _members(request: Request, root: str) -> Iterator[Completion]:
    """After a tile or tensor, its members; after the policies' name, those."""
    if root.rpartition(".")[2] == "GemmWarpPolicy":
        yield from (Completion(name, "constant", "warp policy") for name in _POLICIES)
        return
    around = ("<module>", *request.analysis.functions_around(request.line))
    for symbol in request.analysis.symbols:
        if symbol.name == root and symbol.function in around and symbol.detail.startswith("("):
            yield from (Completion(name, "constant", about) for name, about in _MEMBERS)
            return


def _snippets(request: Request) -> Iterator[Completion]:
    """Patterns that fit the place: definitions at the margin, statements in a function."""
    line = split_lines(request.text)[request.line - 1]
    if line[: request.column - 1].strip() and not line[: request.column - 1].strip().isidentifier():
        return
    at_margin = not line[:1].isspace()
    alias = min(request.analysis.aliases, key=len, default=None)
    for snippet in SNIPPETS if alias is not None else ():
        if (snippet.where == "top") == at_margin:
            text = snippet.text.replace("{T}", alias or "T")
            yield Completion(snippet.name, "snippet", snippet.about, code(_plain(text)), text, 2)


def _plain(text: str) -> str:
    """A snippet as it will read."""
    named = dict(re.findall(r"\$\{(\d+):([^}]*)\}", text))
    text = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", text)
    return re.sub(r"\$(\d+)", lambda m: named.get(m[1], ""), text).rstrip()


def _entry(entry: Entry, wanted: tuple[str, ...] = ()) -> Completion:
    order = 1 if entry.kind in ("dtype", "constant") else 0
    order = -1 if entry.kind in wanted else order
    return Completion(entry.name, entry.kind, entry.signature, doc_markdown(entry.doc), "", order)


def _is_vector(entry: Entry, prefix: str) -> bool:
    """The many vector dtypes (`float16x4`) are proposed only once a width is being typed."""
    return entry.kind == "dtype" and "x" in entry.name and "x" not in prefix


def _keywords(request: Request, call: OpenCall) -> Iterator[Completion]:
    entry = request.catalogue.find(request.analysis, call.name)
    for position, parameter in enumerate(entry.parameters or () if entry else ()):
        taken = parameter.name in call.given or position < call.argument
        if parameter.keyword and not taken:
            label = f"{parameter.name}="
            yield Completion(label, "keyword", parameter.text, "", label, -1)


def _names(request: Request) -> Iterator[Completion]:
    """Names bound above the cursor in the functions around it."""
    around = ("<module>", *request.analysis.functions_around(request.line))
    seen: set[str] = set()
    for symbol in reversed(request.analysis.symbols):
        visible = symbol.function in around and symbol.span.line < request.line
        if visible and symbol.detail and symbol.name not in seen:
            seen.add(symbol.name)
            yield Completion(symbol.name, symbol.kind, symbol.detail)
