"""Which known name did the writer mean? Edit distance that forgives case and swapped letters."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache


def suggest(name: str, known: Iterable[str], limit: int = 3) -> tuple[str, ...]:
    """The names of `known` that `name` is probably a slip of, best first; often empty.

    >>> suggest("alloc_fragmnet", ["alloc_fragment", "alloc_shared"])
    ('alloc_fragment',)
    """
    candidates = frozenset(known)
    return () if name in candidates else _suggested(name, candidates)[:limit]


@lru_cache(maxsize=64)  # a word stays half written for as long as somebody types elsewhere
def _suggested(name: str, candidates: frozenset[str]) -> tuple[str, ...]:
    """All of them, best first."""
    budget = max(1, (len(name) + 1) // 3)
    ranks = {candidate: _rank(name, candidate, budget) for candidate in candidates}
    ranked = sorted((rank, c) for c, rank in ranks.items() if rank is not None)
    # A worse slip only distracts from a better one; of an unfinished word any ending may be meant.
    best = (c for rank, c in ranked if rank == ranked[0][0] or rank[0] == ranked[0][0][0] == 2)
    return tuple(best)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`"; did you mean `x`?"` or the empty string: the tail of a message."""
    found = [f"`{candidate}`" for candidate in suggest(name, known)]
    if not found:
        return ""
    *first, last = found
    return f"; did you mean {', '.join(first)} or {last}?" if first else f"; did you mean {last}?"


def _rank(name: str, candidate: str, budget: int) -> tuple[int, int] | None:
    """How far `candidate` is: (class, distance), or None when it is another word.

    Classes: 0 same letters in another case or spacing, 1 a slip, 2 one begins the other.
    """
    a, b = name.lower(), candidate.lower()
    if a.replace("_", "").replace("-", "") == b.replace("_", "").replace("-", ""):
        return 0, 0
    distance = _distance(a, b, budget)
    if distance <= budget and (distance < len(a) or len(a) > 2):
        return 1, distance
    if len(a) >= 4 and a in b.split("_")[1:]:
        return 1, 1  # `stages` for `num_stages`
    if len(a) >= 3 and (b.startswith(a) or (len(b) >= 3 and a.startswith(b))):
        return 2, abs(len(a) - len(b))
    return None


def _distance(a: str, b: str, budget: int) -> int:
    """Optimal string alignment distance: insert, delete, replace, swap neighbours.

    Where it is more than the budget, anything more than that.
    """
    # Each edit makes up for one letter that the other word does not have, at most.
    if abs(len(a) - len(b)) > budget or len({*a} - {*b}) > budget or len({*b} - {*a}) > budget:
        return budget + 1
    before, row = [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        older, before, row = before, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, older[j - 2] + 1)
            row.append(cost)
        if min(row) > budget and min(before) >= budget:
            return budget + 1  # what follows is made of these two rows
    return row[-1]
