"""textDocument/completion: names of the language after `T.`, keywords of a call, local names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_lsp.cursor import OpenCall, call_at, typing_at
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.markdown import doc_markdown
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
    if typing.root in request.analysis.aliases:
        entries = request.catalogue.entries.values()
        return tuple(_entry(e) for e in entries if not _is_vector(e, typing.prefix))
    if typing.root:
        return ()
    call = call_at(request.text, request.line, request.column)
    keywords = () if call is None or call.keyword else tuple(_keywords(request, call))
    return (*keywords, *_names(request))


FEATURE = Feature("textDocument/completion", complete, "newest")


def _entry(entry: Entry) -> Completion:
    order = 1 if entry.kind in ("dtype", "constant") else 0
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
