"""Which colours changed since the editor asked last? One run of tokens in place of another.

Places are relative to the token before, so that an edit changes few numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

from lsprotocol import types as lsp

NUMBERS = 5  # of a token


class KeptTokens:
    """The last answer about each document; editors name it when they ask what is other now."""

    def __init__(self) -> None:
        self._last: dict[str, tuple[str, Sequence[int]]] = {}

    def keep(self, uri: str, tokens: lsp.SemanticTokens) -> lsp.SemanticTokens:
        """An answer with its name."""
        name = blake2b(repr(tokens.data).encode(), digest_size=8).hexdigest()
        self._last[uri] = (name, tokens.data)
        tokens.result_id = name
        return tokens

    def known(self, uri: str, name: str) -> Sequence[int] | None:
        """The numbers of an answer; None for one that is not the last."""
        found = self._last.get(uri)
        return found[1] if found is not None and found[0] == name else None

    def forget(self, uri: str) -> None:
        """The document was closed."""
        self._last.pop(uri, None)


def changes(before: Sequence[int], now: lsp.SemanticTokens) -> lsp.SemanticTokensDelta:
    """What makes the tokens of now of those before."""
    data = now.data
    shorter = min(len(before), len(data))
    head = next((n for n in range(shorter) if before[n] != data[n]), shorter)
    head -= head % NUMBERS
    room = shorter - head
    tail = next((n for n in range(room) if before[-n - 1] != data[-n - 1]), room)
    tail -= tail % NUMBERS
    old, new = len(before) - head - tail, list(data[head : len(data) - tail])
    edits = [lsp.SemanticTokensEdit(head, old, new)] if old or new else []
    return lsp.SemanticTokensDelta(edits, now.result_id)
