"""Text of a kernel as text: nothing in it acts upon a terminal, or hides in a file."""

from __future__ import annotations


def plain(text: str) -> str:
    """Text in which nothing moves a cursor, rings a bell, turns the direction of reading, or cannot
    be written."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else repr(c)[1:-1] for c in text)
