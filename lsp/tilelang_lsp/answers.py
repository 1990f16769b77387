"""How do the answers of features look in LSP terms? One function for each kind of value."""

from __future__ import annotations

from typing import Any

from lsprotocol import types as lsp

from tilelang_diagnostics import Severity, Span
from tilelang_lsp.addresses import uri_of
from tilelang_lsp.convert import Converter
from tilelang_lsp.features import call_hierarchy, semantic_tokens
from tilelang_lsp.features.code_actions import Action
from tilelang_lsp.features.code_lenses import Lens
from tilelang_lsp.features.diagnostics import EditorDiagnostic
from tilelang_lsp.features.document_links import Link
from tilelang_lsp.features.folding import Fold
from tilelang_lsp.features.hover import Hover
from tilelang_lsp.features.proposal import Completion
from tilelang_lsp.features.rename import Renameable, Renaming
from tilelang_lsp.features.selection_ranges import Nested
from tilelang_lsp.features.semantic_tokens import Token
from tilelang_lsp.features.signature_help import SignatureHelp
from tilelang_lsp.markdown import doc_markdown
from tilelang_lsp.model import Entry, Hint, Outline
from tilelang_lsp.protocol import Plain
from tilelang_lsp.workspace import Defined

SOURCE = "tilelang"
KINDS = (
    lsp.CodeActionKind.QuickFix,
    lsp.CodeActionKind.RefactorRewrite,
    lsp.CodeActionKind.RefactorExtract,
    "source.fixAll.tilelang",
)

OPTIONS: dict[str, Any] = {
    lsp.TEXT_DOCUMENT_COMPLETION: lsp.CompletionOptions(
        trigger_characters=[".", '"', "'", "=", "[", ":"], resolve_provider=True
    ),
    lsp.TEXT_DOCUMENT_SIGNATURE_HELP: lsp.SignatureHelpOptions(
        trigger_characters=["(", ","], retrigger_characters=[")"]
    ),
    lsp.TEXT_DOCUMENT_CODE_ACTION: lsp.CodeActionOptions(code_action_kinds=list(KINDS)),
    lsp.TEXT_DOCUMENT_INLAY_HINT: lsp.InlayHintOptions(resolve_provider=True),
    lsp.TEXT_DOCUMENT_CODE_LENS: lsp.CodeLensOptions(resolve_provider=False),
    lsp.TEXT_DOCUMENT_DOCUMENT_LINK: lsp.DocumentLinkOptions(resolve_provider=False),
    lsp.TEXT_DOCUMENT_RENAME: lsp.RenameOptions(prepare_provider=True),
    lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL: lsp.SemanticTokensLegend(
        list(semantic_tokens.TYPES), list(semantic_tokens.MODIFIERS)
    ),
}

_SEVERITIES = {
    Severity.ERROR: lsp.DiagnosticSeverity.Error,
    Severity.WARNING: lsp.DiagnosticSeverity.Warning,
    Severity.REMARK: lsp.DiagnosticSeverity.Information,
    Severity.HINT: lsp.DiagnosticSeverity.Hint,
}
_KINDS = {
    "keyword": lsp.CompletionItemKind.Field,
    "snippet": lsp.CompletionItemKind.Snippet,
    "dtype": lsp.CompletionItemKind.TypeParameter,
    "type": lsp.CompletionItemKind.Class,
    "value": lsp.CompletionItemKind.Value,
    "call": lsp.CompletionItemKind.Function,
    "module": lsp.CompletionItemKind.Module,
    "class": lsp.CompletionItemKind.Class,
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
    "module": lsp.SymbolKind.Module,
    "buffer": lsp.SymbolKind.Array,
    "parameter": lsp.SymbolKind.Variable,
    "constant": lsp.SymbolKind.Constant,
}
_TOKENS = (lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_RANGE)
_SINGLE_ANSWERS = frozenset(
    {
        lsp.TEXT_DOCUMENT_HOVER, lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.TEXT_DOCUMENT_RENAME,
        lsp.TEXT_DOCUMENT_PREPARE_RENAME, lsp.TEXT_DOCUMENT_PREPARE_CALL_HIERARCHY,
    }
)  # fmt: skip


def empty_answer(method: str) -> Any:
    """The answer that says there is nothing: never an error, which editors show as a popup."""
    if method in _TOKENS:
        return lsp.SemanticTokens([])
    return None if method in _SINGLE_ANSWERS else []


def answer(converter: Converter, method: str, value: Any, eager: bool = False) -> Any:
    """The LSP form of a feature's answer; `eager`: with what is otherwise asked for later."""
    match value:
        case None | ():
            return empty_answer(method)
        case Hover(markdown=markdown, span=span):
            return lsp.Hover(_markdown(markdown), converter.range(span))
        case SignatureHelp():
            return _signature_help(value)
        case Renameable(span=span, name=name):
            return lsp.PrepareRenamePlaceholder(converter.range(span), name)
        case Renaming():
            return _workspace_edit(converter, value.edits)
        case tuple() if method == lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT:
            return [lsp.DocumentHighlight(converter.range(span)) for span in value]
        case tuple() if method in _TOKENS:
            return lsp.SemanticTokens(_token_data(converter, value))
        case tuple() if method == lsp.TEXT_DOCUMENT_COMPLETION:
            return lsp.CompletionList(
                any(one.entry for one in value), [_completion(converter, one) for one in value]
            )
        case tuple() if method == lsp.TEXT_DOCUMENT_INLAY_HINT:
            return Plain(hint(converter, one, eager) for one in value if _is_here(converter, one))
        case tuple():
            return [item(converter, one) for one in value if _is_here(converter, one)]
        case _:
            raise TypeError(f"{method}: no conversion for {type(value).__name__}")


def _is_here(converter: Converter, value: Any) -> bool:
    """Whether an item belongs to the cell asked about; what is no item of a place always does."""
    match value:
        case Hint(line=line) | Fold(first=line):
            return converter.is_here(line)
        case Outline(whole=span) | Lens(span=span) | Link(span=span):
            return converter.is_here(span.line)
        case _:
            return True


def item(converter: Converter, value: Any) -> Any:
    """One element of an answer."""
    match value:
        case Span():
            return converter.location(value)
        case Outline():
            return _outline(converter, value)
        case Action():
            return _action(converter, value)
        case Fold():
            return _fold(converter, value)
        case Nested(spans=spans):
            return _nested(converter, spans)
        case Link():
            target = uri_of(value.file) if value.file else value.url
            return lsp.DocumentLink(converter.range(value.span), target, value.tooltip)
        case Lens():
            command = lsp.Command(value.title, value.command, arguments=list(value.arguments))
            return lsp.CodeLens(converter.range(value.span), command)
        case call_hierarchy.Item():
            return hierarchy_item(converter, value)
        case call_hierarchy.Calls():
            return _calls(converter, value)
        case _:
            raise TypeError(f"no conversion for {type(value).__name__}")


def hint(converter: Converter, value: Hint, eager: bool) -> dict[str, Any]:
    """A hint whose tooltip comes when it is resolved, or at once. As JSON has it, since
    a typist waits for these: objects of the protocol would take three times as long."""
    line, character = converter.numbers(converter.path, value.line, value.column)
    found: dict[str, Any] = {
        "position": {"line": line, "character": character},
        "label": value.label,
        "kind": lsp.InlayHintKind.Type.value,
        "data": {"uri": converter.uri, "kind": value.kind, "place": [line, character]},
    }
    if eager and value.tooltip:
        found["tooltip"] = {"kind": lsp.MarkupKind.Markdown.value, "value": value.tooltip}
    if value.target is not None:
        found["label"] = [{"value": value.label, "location": _where(converter, value.target)}]
    return found


def tooltip(value: Hint) -> lsp.MarkupContent | None:
    """What a hint says in full."""
    return _markdown(value.tooltip) if value.tooltip else None


def _where(converter: Converter, span: Span) -> dict[str, Any]:
    """A place in any file, as JSON has it."""
    line, character = converter.numbers(span.file, span.line, span.column)
    end_line, end_character = converter.numbers(span.file, span.end_line, span.end_column)
    return {
        "uri": converter.uri_of(span),
        "range": {
            "start": {"line": line, "character": character},
            "end": {"line": end_line, "character": end_character},
        },
    }


def diagnostic(converter: Converter, found: EditorDiagnostic) -> lsp.Diagnostic:
    """One squiggle."""
    page = uri_of(found.page) if found.page else None
    tags = [lsp.DiagnosticTag.Deprecated] if found.deprecated else []
    tags += [lsp.DiagnosticTag.Unnecessary] if found.unnecessary else []
    return lsp.Diagnostic(
        range=converter.range(found.span),
        message=found.message,
        severity=_SEVERITIES[found.severity],
        code=found.code,
        code_description=lsp.CodeDescription(page) if page else None,
        source=SOURCE,
        tags=tags or None,
        related_information=[
            lsp.DiagnosticRelatedInformation(converter.location(r.span), r.text)
            for r in found.related
        ],
    )


def workspace_symbol(converter: Converter, found: Defined) -> lsp.WorkspaceSymbol:
    """A definition somewhere in the workspace."""
    where = converter.location(found.span)
    kind = _SYMBOLS.get(found.kind, lsp.SymbolKind.Function)
    return lsp.WorkspaceSymbol(where, found.name, kind, container_name=found.container or None)


def hierarchy_item(converter: Converter, value: call_hierarchy.Item) -> lsp.CallHierarchyItem:
    """A function in a call hierarchy."""
    return lsp.CallHierarchyItem(
        name=value.name, kind=_SYMBOLS.get(value.kind, lsp.SymbolKind.Function),
        uri=converter.uri_of(value.name_span), range=converter.range(value.whole),
        selection_range=converter.range(value.name_span), detail=value.kind,
    )  # fmt: skip


def _calls(converter: Converter, value: call_hierarchy.Calls) -> Any:
    ranges = [converter.range(span) for span in value.places]
    other = hierarchy_item(converter, value.other)
    if value.incoming:
        return lsp.CallHierarchyIncomingCall(other, ranges)
    return lsp.CallHierarchyOutgoingCall(other, ranges)


def _token_data(converter: Converter, tokens: tuple[Token, ...]) -> list[int]:
    """Five numbers a token, each place relative to the one before."""
    data: list[int] = []
    lines = converter.lines_of(converter.path)
    line, character = 0, 0
    for token in tokens:
        if token.line > len(lines) or not converter.is_here(token.line):
            continue
        start = converter.place(converter.path, token.line, token.column)
        name = lines[token.line - 1][token.column - 1 : token.column - 1 + token.length]
        if start.line == line and data and start.character < character:
            continue
        delta = start.character - (character if start.line == line else 0)
        bits = sum(1 << semantic_tokens.MODIFIERS.index(m) for m in token.modifiers)
        data += [start.line - line, delta, converter.units(name),
                 semantic_tokens.TYPES.index(token.kind), bits]  # fmt: skip
        line, character = start.line, start.character
    return data


def _fold(converter: Converter, fold: Fold) -> lsp.FoldingRange:
    end = None if converter.cells is None else converter.cells.lines(converter.uri)[1]
    first = converter.place(converter.path, fold.first, 1).line
    last = first + min(fold.last, end or fold.last) - fold.first
    kind = None if fold.kind is None else lsp.FoldingRangeKind(fold.kind)
    return lsp.FoldingRange(first, last, kind=kind)


def _nested(converter: Converter, spans: tuple[Span, ...]) -> lsp.SelectionRange:
    found: lsp.SelectionRange | None = None
    here = [s for s in spans if converter.is_here(s.line) and converter.is_here(s.end_line)]
    for span in reversed(here or spans[:1]):
        found = lsp.SelectionRange(converter.range(span), found)
    assert found is not None
    return found


def _outline(converter: Converter, node: Outline) -> lsp.DocumentSymbol:
    return lsp.DocumentSymbol(
        name=node.name,
        kind=_SYMBOLS[node.kind],
        range=converter.range(node.whole),
        selection_range=converter.range(node.name_span),
        detail=node.detail or (node.kind if node.kind in ("kernel", "macro") else None),
        children=[_outline(converter, child) for child in node.children],
    )


def _action(converter: Converter, action: Action) -> lsp.CodeAction:
    return lsp.CodeAction(
        title=action.title,
        kind=action.kind,
        diagnostics=[diagnostic(converter, action.resolves)] if action.resolves else None,
        edit=_workspace_edit(converter, action.edits),
        is_preferred=action.preferred or None,
    )


def _workspace_edit(converter: Converter, edits: Any) -> lsp.WorkspaceEdit:
    changes: dict[str, list[lsp.TextEdit]] = {}
    for edit in edits:
        place = converter.location(edit.span)
        changes.setdefault(place.uri, []).append(lsp.TextEdit(place.range, edit.text))
    return lsp.WorkspaceEdit(changes=changes)


def documentation(entry: Entry) -> lsp.MarkupContent:
    """What a proposal says of a name of the language."""
    return _markdown(doc_markdown(entry.doc))


def _markdown(text: str) -> lsp.MarkupContent:
    return lsp.MarkupContent(lsp.MarkupKind.Markdown, text)


def _completion(converter: Converter, value: Completion) -> lsp.CompletionItem:
    """A proposal; the documentation of a name of the language comes when it is asked for."""
    snippet = value.kind in ("snippet", "call")
    edits = [lsp.TextEdit(converter.range(e.span), e.text) for e in value.edits]
    return lsp.CompletionItem(
        label=value.label,
        kind=_KINDS.get(value.kind, lsp.CompletionItemKind.Function),
        detail=value.detail or None,
        documentation=_markdown(value.markdown) if value.markdown and not value.entry else None,
        insert_text=value.text or None,
        insert_text_format=lsp.InsertTextFormat.Snippet if snippet else None,
        sort_text=f"{value.order + 4:02}{value.label}",
        additional_text_edits=edits or None,
        tags=[lsp.CompletionItemTag.Deprecated] if value.deprecated else None,
        data={"entry": value.entry} if value.entry else None,
    )


def _signature_help(value: SignatureHelp) -> lsp.SignatureHelp:
    about = value.about or ("",) * len(value.parameters)
    parameters = [
        lsp.ParameterInformation(offsets, _markdown(said) if said else None)
        for offsets, said in zip(_offsets(value), about, strict=True)
    ]
    # Where no parameter is meant, one that is not there: editors take none for the first.
    active = len(parameters) if value.active is None else value.active
    signature = lsp.SignatureInformation(
        label=value.label,
        documentation=_markdown(value.markdown),
        parameters=parameters,
        active_parameter=active,
    )
    return lsp.SignatureHelp([signature], active_signature=0, active_parameter=active)


def _offsets(value: SignatureHelp) -> list[tuple[int, int]]:
    """Where each parameter stands in the label: the same text may occur twice."""
    out: list[tuple[int, int]] = []
    position = value.label.index("(") + 1
    for text in value.parameters:
        start = value.label.index(text, position)
        position = start + len(text)
        out.append((start, position))
    return out
