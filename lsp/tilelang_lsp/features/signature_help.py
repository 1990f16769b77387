"""textDocument/signatureHelp: the signature of the call being written."""

from __future__ import annotations

from dataclasses import dataclass

from tilelang_lsp.cursor import OpenCall, call_at
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.features.functions import called
from tilelang_lsp.markdown import doc_markdown, parameter_doc
from tilelang_lsp.model import Entry


@dataclass(frozen=True, slots=True)
class SignatureHelp:
    """One signature; `parameters` are its parts as they stand in `label`, `about` what is said of
    each."""

    label: str
    markdown: str
    parameters: tuple[str, ...]
    active: int | None
    about: tuple[str, ...] = ()


def signature_help(request: Request) -> SignatureHelp | None:
    """The signature of the innermost call around the position."""
    call = call_at(request.text, request.line, request.column)
    entry = None if call is None else called(request, call.name)
    if call is None or entry is None or entry.parameters is None:
        return None
    texts = tuple(p.text for p in entry.parameters)
    label = f"{call.name}({', '.join(texts)})"
    about = tuple(parameter_doc(entry.doc, p.name) for p in entry.parameters)
    return SignatureHelp(label, doc_markdown(entry.doc), texts, _active(entry, call), about)


FEATURE = Feature("textDocument/signatureHelp", signature_help, "newest")


def _active(entry: Entry, call: OpenCall) -> int | None:
    """Index of the parameter the cursor is in, None when it fits none."""
    parameters = entry.parameters or ()
    if call.keyword is not None:
        names = [p.name for p in parameters]
        if call.keyword in names:
            return names.index(call.keyword)
        return next((i for i, p in enumerate(parameters) if p.text.startswith("**")), None)
    for index, parameter in enumerate(parameters):
        if parameter.variadic:
            return index if not parameter.text.startswith("**") else None
        if parameter.name == "*":
            return None
        if index == call.argument:
            return index
    return None
