"""How do our values look in LSP terms? The only file that knows lsprotocol.

LSP positions are 0-based and count UTF-16 units (or what was agreed on); ours are 1-based and
count code points. A `Converter` knows the text of the documents it converts positions of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lsprotocol import types as lsp
from pygls import uris

from tilelang_diagnostics import Severity, Span
from tilelang_lsp.features.code_actions import Action
from tilelang_lsp.features.completion import Completion
from tilelang_lsp.features.diagnostics import EditorDiagnostic
from tilelang_lsp.features.hover import Hover
from tilelang_lsp.features.signature_help import SignatureHelp
from tilelang_lsp.model import Hint, Outline

SOURCE = "tilelang"

OPTIONS: dict[str, Any] = {
    lsp.TEXT_DOCUMENT_COMPLETION: lsp.CompletionOptions(trigger_characters=["."]),
    lsp.TEXT_DOCUMENT_SIGNATURE_HELP: lsp.SignatureHelpOptions(
        trigger_characters=["(", ","], retrigger_characters=[")"]
    ),
    lsp.TEXT_DOCUMENT_CODE_ACTION: lsp.CodeActionOptions(
        code_action_kinds=[lsp.CodeActionKind.QuickFix]
    ),
    lsp.TEXT_DOCUMENT_INLAY_HINT: lsp.InlayHintOptions(resolve_provider=False),
}

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.REMARK: lsp.DiagnosticSeverity.Information,
    Severity.HINT: lsp.DiagnosticSeverity.Hint,
}
_KINDS = {
    "keyword": lsp.CompletionItemKind.Field,
    "dtype": lsp.CompletionItemKind.TypeParameter,
    "type": lsp.CompletionItemKind.Class,
    "constant": lsp.CompletionItemKind.Constant,
    "buffer": lsp.CompletionItemKind.Variable,
    "parameter": lsp.CompletionItemKind.Variable,
    "variable": lsp.CompletionItemKind.Variable,
    "loop": lsp.CompletionItemKind.Variable,
    "block": lsp.CompletionItemKind.Variable,
    "dim": lsp.CompletionItemKind.Constant,
}
_SYMBOLS = {
    "kernel": lsp.SymbolKind.Function,
    "function": lsp.SymbolKind.Function,
    "macro": lsp.SymbolKind.Function,
    "class": lsp.SymbolKind.Class,
    "buffer": lsp.SymbolKind.Array,
    "parameter": lsp.SymbolKind.Variable,
}
_SINGLE_ANSWERS = frozenset({lsp.TEXT_DOCUMENT_HOVER, lsp.TEXT_DOCUMENT_SIGNATURE_HELP})


def empty_answer(method: str) -> Any:
    """The answer that says there is nothing: never an error, which editors show as a popup."""
    return None if method in _SINGLE_ANSWERS else []


def asked_range(params: Any) -> lsp.Range:
    """The place a request is about, whichever of the request types it is."""
    if hasattr(params, "range"):
        found: lsp.Range = params.range
        return found
    if hasattr(params, "position"):
        return lsp.Range(params.position, params.position)
    start = lsp.Position(0, 0)
    return lsp.Range(start, start)


def include_declaration(params: Any) -> bool:
    """Whether a references request wants the binding too."""
    context = getattr(params, "context", None)
    return bool(getattr(context, "include_declaration", True))


@dataclass(frozen=True, slots=True)
class Converter:
    """Converts for one document. `lines_of` gives the lines of any file, empty when unknown."""

    uri: str
    path: str
    version: int
    lines_of: Callable[[str], Sequence[str]]
    encoding: str = "utf-16"

    # From the editor

    def position(self, position: lsp.Position) -> tuple[int, int]:
        """(line, column) of ours; positions behind the end of a line are moved to its end."""
        lines = self.lines_of(self.path)
        if position.line >= len(lines):
            return max(len(lines), 1), len(lines[-1]) + 1 if lines else 1
        units = 0
        for column, character in enumerate(lines[position.line], 1):
            if units >= position.character:
                return position.line + 1, column
            units += _units(character, self.encoding)
        return position.line + 1, len(lines[position.line]) + 1

    # To the editor

    def answer(self, method: str, value: Any) -> Any:
        """The LSP form of a feature's answer."""
        match value:
            case None | ():
                return empty_answer(method)
            case Hover(markdown=markdown, span=span):
                return lsp.Hover(_markdown(markdown), self.range(span))
            case SignatureHelp():
                return _signature_help(value)
            case tuple() if method == lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT:
                return [lsp.DocumentHighlight(self.range(span)) for span in value]
            case tuple():
                return [self._item(item) for item in value]
            case _:
                raise TypeError(f"{method}: no conversion for {type(value).__name__}")

    def _item(self, item: Any) -> Any:
        match item:
            case Hint(line=line, column=column, label=label, tooltip=tooltip):
                place = self.place(self.path, line, column)
                kind = lsp.InlayHintKind.Type
                return lsp.InlayHint(place, label, kind=kind, tooltip=tooltip or None)
            case Completion():
                return _completion(item)
            case Span():
                return self.location(item)
            case Outline():
                return self._outline(item)
            case Action():
                return self._action(item)
            case _:
                raise TypeError(f"no conversion for {type(item).__name__}")

    def place(self, file: str, line: int, column: int) -> lsp.Position:
        """The position of a line and column of a file."""
        lines = self.lines_of(file)
        text = lines[line - 1][: column - 1] if line <= len(lines) else " " * (column - 1)
        if text.isascii():
            return lsp.Position(line - 1, len(text))
        return lsp.Position(line - 1, sum(_units(c, self.encoding) for c in text))

    def range(self, span: Span) -> lsp.Range:
        """The range of a span."""
        return lsp.Range(
            self.place(span.file, span.line, span.column),
            self.place(span.file, span.end_line, span.end_column),
        )

    def location(self, span: Span) -> lsp.Location:
        """The place of a span in any file."""
        uri = self.uri if span.file == self.path else uris.from_fs_path(span.file)
        return lsp.Location(uri or self.uri, self.range(span))

    def diagnostic(self, found: EditorDiagnostic) -> lsp.Diagnostic:
        """One squiggle."""
        page = uris.from_fs_path(found.page) if found.page else None
        return lsp.Diagnostic(
            range=self.range(found.span),
            message=found.message,
            severity=_SEVERITIES[found.severity],
            code=found.code,
            code_description=lsp.CodeDescription(page) if page else None,
            source=SOURCE,
            tags=[lsp.DiagnosticTag.Deprecated] if found.deprecated else None,
            related_information=[
                lsp.DiagnosticRelatedInformation(self.location(r.span), r.text)
                for r in found.related
            ],
        )

    def _outline(self, node: Outline) -> lsp.DocumentSymbol:
        return lsp.DocumentSymbol(
            name=node.name,
            kind=_SYMBOLS[node.kind],
            range=self.range(node.whole),
            selection_range=self.range(node.name_span),
            detail=node.detail or (node.kind if node.kind in ("kernel", "macro") else None),
            children=[self._outline(child) for child in node.children],
        )

    def _action(self, action: Action) -> lsp.CodeAction:
        changes: dict[str, list[lsp.TextEdit]] = {}
        for edit in action.edits:
            place = self.location(edit.span)
            changes.setdefault(place.uri, []).append(lsp.TextEdit(place.range, edit.text))
        return lsp.CodeAction(
            title=action.title,
            kind=lsp.CodeActionKind.QuickFix,
            diagnostics=[self.diagnostic(action.resolves)],
            edit=lsp.WorkspaceEdit(changes=changes),
            is_preferred=action.preferred or None,
        )


def _units(character: str, encoding: str) -> int:
    match encoding:
        case "utf-8":
            return len(character.encode())
        case "utf-32":
            return 1
        case _:
            return 2 if ord(character) > 0xFFFF else 1


def _markdown(text: str) -> lsp.MarkupContent:
    return lsp.MarkupContent(lsp.MarkupKind.Markdown, text)


def _completion(item: Completion) -> lsp.CompletionItem:
    return lsp.CompletionItem(
        label=item.label,
        kind=_KINDS.get(item.kind, lsp.CompletionItemKind.Function),
        detail=item.detail or None,
        documentation=_markdown(item.markdown) if item.markdown else None,
        insert_text=item.text or None,
        sort_text=f"{item.order + 1}{item.label}",
    )


def _signature_help(value: SignatureHelp) -> lsp.SignatureHelp:
    parameters = [lsp.ParameterInformation(offsets) for offsets in _offsets(value)]
    signature = lsp.SignatureInformation(
        label=value.label,
        documentation=_markdown(value.markdown),
        parameters=parameters,
        active_parameter=value.active,
    )
    return lsp.SignatureHelp([signature], active_signature=0, active_parameter=value.active)


def _offsets(value: SignatureHelp) -> list[tuple[int, int]]:
    """Where each parameter stands in the label: the same text may occur twice."""
    out: list[tuple[int, int]] = []
    position = value.label.index("(") + 1
    for text in value.parameters:
        start = value.label.index(text, position)
        position = start + len(text)
        out.append((start, position))
    return out
