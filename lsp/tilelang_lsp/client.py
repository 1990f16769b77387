"""What can the editor show? Answers are cut to what it said of itself when it started.

Markdown or plain text, patterns with places to fill in or their text, related places beside a
finding or below its message, edits that name the version they are for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lsprotocol import types as lsp

from tilelang_lsp.features.snippets import without_places


class Client:
    """The capabilities of one editor, asked for by what hangs on them."""

    def __init__(self, said: lsp.ClientCapabilities | None = None) -> None:
        self._said = said or lsp.ClientCapabilities()

    def has(self, path: str) -> Any:
        """A capability by its path, such as `text_document.hover`; None where it is missing."""
        found: Any = self._said
        for name in path.split("."):
            found = getattr(found, name, None)
        return found

    @property
    def resolves_hints(self) -> bool:
        """Whether the tooltip of a hint is asked for when it is shown."""
        support = self.has("text_document.inlay_hint.resolve_support.properties")
        return bool(support) and "tooltip" in support

    def adapt(self, method: str, answer: Any, versions: Callable[[str], int | None]) -> Any:
        """The answer to a request, as this editor understands it; `versions` are of open files."""
        match answer:
            case lsp.Hover():
                if not self._reads_markdown("text_document.hover.content_format"):
                    answer.contents = as_plain(answer.contents)
            case lsp.SignatureHelp():
                self._adapt_signatures(answer)
            case lsp.CompletionList():
                for item in answer.items:
                    self.adapt_completion(item)
            case lsp.WorkspaceEdit():
                return self.adapt_edit(answer, versions)
            case list() if method == lsp.TEXT_DOCUMENT_DOCUMENT_LINK:
                if not self.has("text_document.document_link.tooltip_support"):
                    for link in answer:
                        link.tooltip = None
            case list() if method == lsp.TEXT_DOCUMENT_CODE_ACTION:
                for action in answer:
                    if action.edit is not None:
                        action.edit = self.adapt_edit(action.edit, versions)
                    action.diagnostics = action.diagnostics and list(
                        map(self.adapt_diagnostic, action.diagnostics)
                    )
            case _:
                pass
        return answer

    def adapt_completion(self, item: lsp.CompletionItem) -> lsp.CompletionItem:
        """A proposal, before or after its documentation was asked for."""
        about = "text_document.completion.completion_item"
        if not self._reads_markdown(f"{about}.documentation_format"):
            item.documentation = item.documentation and as_plain(item.documentation)
        snippet = item.insert_text_format is lsp.InsertTextFormat.Snippet
        if snippet and not self.has(f"{about}.snippet_support"):
            item.insert_text = without_places(item.insert_text or "")
            item.insert_text_format = None
        if item.tags and not self.has(f"{about}.tag_support"):
            item.tags = None
        return item

    def adapt_diagnostic(self, found: lsp.Diagnostic) -> lsp.Diagnostic:
        """A finding; what the editor has no place for is said in its message."""
        said = self.has("text_document.publish_diagnostics") or self.has("text_document.diagnostic")
        related = found.related_information
        if related and not getattr(said, "related_information", None):
            lines = [f"line {r.location.range.start.line + 1}: {r.message}" for r in related]
            found.message = "\n".join((found.message, *lines))
            found.related_information = None
        if found.tags and not getattr(said, "tag_support", None):
            found.tags = None
        if found.code_description and not getattr(said, "code_description_support", None):
            found.code_description = None
        return found

    def adapt_edit(
        self, edit: lsp.WorkspaceEdit, versions: Callable[[str], int | None]
    ) -> lsp.WorkspaceEdit:
        """Edits with the versions they are for, so that none is made in another text."""
        if not edit.changes or not self.has("workspace.workspace_edit.document_changes"):
            return edit
        changes: list[Any] = [
            lsp.TextDocumentEdit(
                lsp.OptionalVersionedTextDocumentIdentifier(uri, versions(uri)), list(edits)
            )
            for uri, edits in edit.changes.items()
        ]
        return lsp.WorkspaceEdit(document_changes=changes)

    def _adapt_signatures(self, answer: lsp.SignatureHelp) -> None:
        about = "text_document.signature_help.signature_information"
        for signature in answer.signatures:
            if not self._reads_markdown(f"{about}.documentation_format"):
                explained: list[Any] = [signature, *(signature.parameters or ())]
                for one in explained:
                    one.documentation = one.documentation and as_plain(one.documentation)
            if self.has(f"{about}.parameter_information.label_offset_support"):
                continue
            for parameter in signature.parameters or ():
                if not isinstance(parameter.label, str):
                    start, end = parameter.label
                    parameter.label = signature.label[start:end]

    def _reads_markdown(self, path: str) -> bool:
        return lsp.MarkupKind.Markdown in (self.has(path) or ())


def as_plain(text: Any) -> lsp.MarkupContent:
    """Markdown as it reads without a renderer."""
    value = text.value if isinstance(text, lsp.MarkupContent) else str(text)
    return lsp.MarkupContent(lsp.MarkupKind.PlainText, plain_text(value))


def plain_text(markdown: str) -> str:
    """Text without fences, stars, backticks and the double spaces that end lines."""
    out: list[str] = []
    in_code = False
    for line in markdown.split("\n"):
        if line.startswith("```"):
            in_code = not in_code
            continue
        out.append(line if in_code else re.sub(r"\*\*|`", "", line.rstrip()))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()
