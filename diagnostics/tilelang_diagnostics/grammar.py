"""How does a message count things, and which article does a noun take?"""

from __future__ import annotations

from typing import Final

_IRREGULAR: Final = {"index": "indices"}
_SIBILANTS: Final = ("s", "x", "ch", "sh")
# Said with another sound than they are written with: "a uint8", "an ndarray".
_CONSONANTS: Final = ("uint", "uni", "use", "one")
_VOWELS: Final = ("ndarray",)


def counted(count: int, noun: str) -> str:
    """`1 index`, `2 indices`; of several words the last is the one that changes."""
    return f"{count} {noun if count == 1 else _plural(noun)}"


def with_article(noun: str) -> str:
    """`a list`, `an int`, `an ndarray`."""
    low = noun.lstrip("_").lower()
    vowel = low.startswith(_VOWELS) or (low[:1] in "aeiou" and not low.startswith(_CONSONANTS))
    return f"{'an' if vowel and low else 'a'} {noun}"


def _plural(noun: str) -> str:
    before, _, last = noun.rpartition(" ")
    if last in _IRREGULAR:
        made = _IRREGULAR[last]
    elif last.endswith(_SIBILANTS):
        made = f"{last}es"
    elif last.endswith("y") and last[-2:-1] not in "aeiou":
        made = f"{last[:-1]}ies"
    else:
        made = f"{last}s"
    return f"{before} {made}" if before else made
