"""textDocument/completion: names of the language after `T.`, keywords and values of a call, names
bound above, members of tiles, what a string may say, and whole patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tilelang_diagnostics import Edit, Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.cursor import OpenCall, call_at, in_parentheses, in_subscript, typing_at
from tilelang_lsp.features.argument_values import (
    LAYOUTS,
    POLICIES,
    Value,
    parameter_name,
    values_of,
)
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.contexts import counts, heads, order, wanted
from tilelang_lsp.features.functions import called, functions_around
from tilelang_lsp.features.proposal import Completion
from tilelang_lsp.features.snippets import SNIPPETS, Snippet, without_places
from tilelang_lsp.features.wanted_buffers import wants
from tilelang_lsp.features.words import words
from tilelang_lsp.features.workspace_names import import_from, members_of, top_names
from tilelang_lsp.markdown import code, doc_markdown
from tilelang_lsp.model import MODULES, Entry, Symbol


def complete(request: Request) -> tuple[Completion, ...]:
    """What may be written at the position; editors filter by what is there already."""
    imported = import_from(request)
    if imported is not None:
        return imported
    typing = typing_at(request.text, request.line, request.column)
    if typing is None:
        return tuple(
            Completion(w.label, w.kind, w.about, "", w.text or w.label, n)
            for n, w in enumerate(words(request))
        )
    call = call_at(request.text, request.line, request.column)
    if typing.root in request.analysis.aliases:
        kinds, above = wanted(request, call)
        entries = (e for e in request.catalogue.names() if not _is_vector(e, typing.prefix))
        return tuple(_entry(e, kinds, above=above) for e in entries)
    if typing.root and f"{typing.root}.language" in request.analysis.aliases:
        package = request.catalogue.package.values()
        return tuple(_entry(e, ("meta",), "tilelang.", ("jit",)) for e in package)
    if typing.root:
        return (*_members(request, typing.root), *members_of(request, typing.root))
    place = request.text, request.line, request.column
    asks = call is not None and not in_subscript(*place)
    names_one = asks and call and not call.keyword and not in_parentheses(*place)
    keywords = tuple(_keywords(request, call)) if names_one and call else ()
    values = tuple(_values(request, call)) if asks and call else ()
    patterns = tuple(_snippets(request)) if call is None else ()
    names = tuple(_names(request, call))
    ours = top_names(request, {c.label for c in names})
    first = tuple(heads(request)) if call is None else ()
    return (*first, *values, *keywords, *names, *ours, *patterns)


FEATURE = Feature("textDocument/completion", complete, "newest")


_MEMBERS = (
    ("shape", "the extents of the tile"), ("dtype", "the type of its elements"),
    ("scope()", "where it lies"), ("ndim", "how many dimensions it has"),
)  # fmt: skip


def _values(request: Request, call: OpenCall) -> Iterator[Completion]:
    """What an argument is usually given."""
    entry = request.catalogue.find(request.analysis, call.name)
    if entry is None:
        return
    alias = min(request.analysis.aliases, key=len, default="T")
    parameter = call.keyword or parameter_name(entry, call.argument)
    found: Iterator[Value] = values_of(entry.name, parameter, request.catalogue)
    if entry.name == "annotate_layout" and _after_key(request):
        found = iter(LAYOUTS)
    for value in found:
        text = value.text.replace("{T}", alias)
        label = text.replace("($)", "")
        is_call = label != text
        kind = "call" if is_call else value.kind
        yield Completion(label, kind, value.about, "", text.replace("$", "$0") if is_call else text,
                         -3)  # fmt: skip


def _after_key(request: Request) -> bool:
    """Whether the value of a key of a dict is being written."""
    line = split_lines(request.text)[request.line - 1][: request.column - 1]
    return re.search(r"[{,]\s*\w+\s*:\s*[\w.]*$", line) is not None


def _members(request: Request, root: str) -> Iterator[Completion]:
    """After a tile or tensor, its members; after the policies' name, those."""
    if root.rpartition(".")[2] == "GemmWarpPolicy":
        for name in POLICIES:
            entry = request.catalogue.entries.get(f"GemmWarpPolicy.{name}")
            about = doc_markdown(entry.doc) if entry is not None else ""
            yield Completion(name, "constant", "warp policy", about)
        return
    around = functions_around(request)
    for symbol in request.analysis.symbols:
        if symbol.name == root and symbol.function in around and symbol.detail.startswith("("):
            yield from (Completion(name, "constant", about) for name, about in _MEMBERS)
            return


def _snippets(request: Request) -> Iterator[Completion]:
    """Patterns that fit the place: definitions at the margin, statements in a function."""
    line = split_lines(request.text)[request.line - 1]
    written = line[: request.column - 1].lstrip()
    if written and not written.isidentifier():
        return
    at_margin = not line[:1].isspace()
    aliases = request.analysis.aliases
    alias = min(aliases, key=len, default=None)
    if alias is None:
        return
    package = next((a.removesuffix(".language") for a in aliases if a.endswith(".language")), None)
    for snippet in SNIPPETS:
        if (snippet.where == "top") == at_margin:
            edits = () if package else _package_import(request, snippet)
            text = snippet.text.replace("{T}", alias).replace("{tilelang}", package or "tilelang")
            yield Completion(
                snippet.name,
                "snippet",
                snippet.about,
                code(without_places(text).rstrip()),
                text,
                2,
                edits,
            )


def _package_import(request: Request, snippet: Snippet) -> tuple[Edit, ...]:
    """`import tilelang` above the import of the language, for a pattern that needs it."""
    if "{tilelang}" not in snippet.text:
        return ()
    for number, line in enumerate(split_lines(request.text), 1):
        if re.match(r"(?:import tilelang\b|from tilelang\b)", line):
            place = Span(request.analysis.path, number, 1, number, 1)
            return (Edit(place, "import tilelang\n"),)
    return ()


def _entry(
    entry: Entry, kinds: tuple[str, ...] = (), root: str = "", above: tuple[str, ...] = ()
) -> Completion:  # fmt: skip
    place = order(entry.name, entry.kind, kinds, above)
    old = "deprecated" in entry.doc.partition("\n\n")[0].lower()
    return Completion(
        entry.name, entry.kind, entry.signature, doc_markdown(entry.doc), "", place, (), old,
        f"{root}{entry.name}",
    )  # fmt: skip


def _is_vector(entry: Entry, prefix: str) -> bool:
    """The many vector dtypes (`float16x4`) are proposed only once a width is being typed."""
    return entry.kind == "dtype" and "x" in entry.name and "x" not in prefix


def _keywords(request: Request, call: OpenCall) -> Iterator[Completion]:
    entry = called(request, call.name)
    for position, parameter in enumerate(entry.parameters or () if entry else ()):
        taken = parameter.name in call.given or position < call.argument
        if parameter.keyword and not taken:
            label = f"{parameter.name}="
            yield Completion(label, "keyword", parameter.text, "", label, -1)


def _names(request: Request, call: OpenCall | None) -> Iterator[Completion]:
    """Names bound above the cursor in the functions around it, what fits the argument first."""
    around = functions_around(request)
    place = request.text, request.line, request.column
    counted = in_subscript(*place) or (call is not None and in_parentheses(*place))
    fits = counts if counted else wants(request, call)
    seen: set[str] = set()
    for symbol in reversed(request.analysis.symbols):
        visible = symbol.function in around and symbol.span.line < request.line
        if visible and symbol.detail and symbol.name not in seen:
            seen.add(symbol.name)
            if symbol.detail in ("module", *MODULES):
                yield Completion(symbol.name, "module", "module")
                continue
            about = "\n\n".join((code(_typed(symbol)), *symbol.notes))
            yield Completion(symbol.name, symbol.kind, symbol.detail, about, "", fits(symbol))


def _typed(symbol: Symbol) -> str:
    joint = " " if symbol.detail.startswith("= ") else ": "
    return f"{symbol.name}{joint}{symbol.detail}"
