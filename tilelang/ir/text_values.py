"""How are attributes written as keywords, and which keyword stands for which attribute?

Printer and reader share the tables here. `words_of` and `attributes_of` are inverses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tilelang.ir import attrs
from tilelang.ir.device_ops import SHARED_ALIGNMENT, SHARED_OFFSET
from tilelang.ir.text_layout import attached

# Attributes of passes by the word that says them. What an author attached has a prefix in the IR
# and none in the text; one that is called like a word of a pass is written in full.
LOOP_WORDS: Final[Mapping[str, str]] = {
    "rounds": attrs.ROUNDS, "every_copy": attrs.EVERY_COPY, "thread_loop": attrs.THREAD_LOOP,
    "reduction": attrs.REDUCTION, "prefetch": attrs.PREFETCH, "layout": attrs.LOOP_LAYOUT,
    "num_stages": attrs.NUM_STAGES, "order": attrs.ORDER, "stage": attrs.LOOP_STAGE,
}  # fmt: skip
ALLOC_WORDS: Final[Mapping[str, str]] = {
    "layout": attrs.TILE_LAYOUT, "view": attrs.VIEW, "versions": attrs.VERSIONS,
    "shared_offset": SHARED_OFFSET, "shared_alignment": SHARED_ALIGNMENT,
}  # fmt: skip
# Words that say how a pass did its work, and not what the program does: behind the line.
QUIET: Final = frozenset({"rounds", "every_copy", "thread_loop", "shared_alignment"})
# Whatever has no word of its own, by its full name.
IN_FULL: Final = "attrs"

SCOPE_OF: Final[Mapping[str, str]] = {
    "T.alloc_fragment": "local.fragment", "T.alloc_local": "local",
    "T.alloc_reducer": "local.reducer", "T.alloc_global": "global",
    "T.alloc_matrices": "local.matrix", "T.alloc_barrier": "shared.barrier",
    "T.alloc_cluster_barrier": "shared.cluster_barrier", "T.alloc_tmem": "shared.tmem",
    "T.alloc_shared": "shared.dyn", "T.alloc_var": "local.var",
}  # fmt: skip
LOOP_KINDS: Final = ("T.serial", "T.parallel", "T.vectorized", "T.unroll", "T.thread_binding")
FOR_KINDS: Final = ("SERIAL", "PARALLEL", "VECTORIZED", "UNROLLED", "THREAD_BINDING")


def words_of(
    said: Mapping[str, Any], table: Mapping[str, str], prefix: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Annotations as keywords: those to show in the line, and those behind it."""
    by_name = {name: word for word, name in table.items()}
    shown: dict[str, Any] = {}
    quiet: dict[str, Any] = {}
    full: dict[str, Any] = {}
    for key, value in said.items():
        own = key.removeprefix(prefix)
        if key in by_name:
            word = by_name[key]
            (quiet if word in QUIET else shown)[word] = value
        elif key.startswith(prefix) and own.isidentifier() and own not in table:
            shown[own] = value
        else:
            full[key] = value
    if full:
        quiet[IN_FULL] = full
    return shown, quiet


def attributes_of(
    words: Mapping[str, Any], table: Mapping[str, str], prefix: str
) -> dict[str, Any]:
    """The annotations that keywords stand for."""
    found: dict[str, Any] = dict(words.get(IN_FULL, {}))
    for word, value in words.items():
        if word != IN_FULL:
            found[table.get(word, prefix + word)] = value
    return found


def keywords(said: Mapping[str, Any]) -> list[str]:
    """Attributes as keyword arguments, in the order of their names."""
    return [f"{key}={value_text(said[key])}" for key in sorted(said)]


def value_text(value: Any) -> str:
    """An attribute as an expression of Python."""
    kind = type(value).__name__
    if kind in ("Array", "List", "tuple", "list"):
        return listed([value_text(v) for v in value])
    if kind in ("Map", "Dict", "dict"):
        pairs = sorted((str(k), value_text(v)) for k, v in value.items())
        return f"{{{', '.join(f'{k!r}: {v}' for k, v in pairs)}}}"
    if isinstance(value, str):
        return repr(str(value))
    if isinstance(value, (bool, int)) or value is None:
        return repr(value)
    if isinstance(value, float):
        plain = value == value and value not in (float("inf"), float("-inf"))
        return repr(value) if plain else f"float({str(value)!r})"
    return attached(value)


def listed(parts: list[str]) -> str:
    """A tuple, with the comma that a single part needs."""
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"
