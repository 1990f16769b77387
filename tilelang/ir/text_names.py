"""Which name has the variable that is printed as `i0_2`?

In a text every name means one thing, so that the third `i0` of a function is printed as `i0_2`; in
generated code it may be `i0` again. Printer and reader ask `Names.usual`, each in the order in
which names come up; where it is wrong, the head of the file says the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


class Names:
    """The names of variables by those they are printed with; `said` are the unusual ones."""

    def __init__(self, said: Mapping[str, str] | None = None) -> None:
        self._said = said or {}
        self._known: dict[str, str] = {"T": "T"}

    def usual(self, printed: str) -> str:
        """The name of the variable that is printed as `printed`: without its number if there was
        such a name before."""
        found = self._known.get(printed)
        if found is None:
            base, _, number = printed.rpartition("_")
            numbered = number.isdecimal() and base in self._known
            found = self._said.get(printed, base if numbered else printed)
            self._known[printed] = found
        return found


def unusual(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Those of `pairs` (printed, name) that `Names.usual` would not tell."""
    names = Names()
    return tuple((printed, name) for printed, name in pairs if names.usual(printed) != name)


def usual_thread(axis: int) -> str:
    """What the index of a thread is called where no line of the text names it."""
    return f"t{'xyz'[axis]}"
