"""How are several threads, slots or offsets named in a message?"""

from __future__ import annotations

from collections.abc import Iterable


def places(what: str, numbers: Iterable[int]) -> str:
    """`thread 4`, `threads 0, 64`, `threads 0 to 31`, `slots 0, 3, 9, 12, …`."""
    ordered = sorted(numbers)
    if len(ordered) == 1:
        return f"{what} {ordered[0]}"
    if len(ordered) > 2 and ordered == list(range(ordered[0], ordered[-1] + 1)):
        return f"{what}s {ordered[0]} to {ordered[-1]}"
    shown = ", ".join(map(str, ordered[:4]))
    return f"{what}s {shown}{', …' if len(ordered) > 4 else ''}"
