"""textDocument/inlayHint: what a name is where it is bound, and what calls and headers came to.

A_shared⟨: (128, 32) float16 shared⟩⟨ swizzle 64B⟩ = T.alloc_shared((block_M, block_K), dtype)
x⟨: float32⟩ = A_local[i] * scale
rows⟨ = 16⟩ = block_M // 8
with T.Kernel(8, 8, threads=128) as (bx, by):⟨ 64 blocks × 128 threads⟩
for k in T.Pipelined(K // 32, num_stages=3):⟨ 32 iterations⟩⟨ 3 stages, 48 KiB⟩
    T.copy(A[by * 128, k * 32], A_shared)⟨ cp.async 16 B⟩

An editor cuts off what is too long for a line, so the hints of a line share its room.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from math import prod

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.model import HINT_KINDS, Analysis, Fact, Hint, HintKind, Kernel, Launch, Symbol

LONGEST_HEADER = 12  # lines below the first that a header may end on
# VS Code cuts the hints of a line off after this many characters by default.
LONGEST_LABEL = 43
# The first of these get their room first.
_ORDER = {kind: n for n, kind in enumerate(
    ("types", "launch", "instructions", "layouts", "pipelines", "loops", "values"))}  # fmt: skip

_OF_HEADERS = ("loops", "pipelines", "layouts")


def hints(
    analysis: Analysis, facts: Iterable[Fact] = (), kinds: Collection[HintKind] = HINT_KINDS
) -> tuple[Hint, ...]:
    """All hints of a file, in order; `facts` come before those of the analysis itself."""
    lines = split_lines(analysis.text)
    known = (*facts, *analysis.facts)
    return hints_of(lines, analysis.symbols, analysis.kernels, known, kinds)


def hints_of(
    lines: tuple[str, ...], symbols: Iterable[Symbol], kernels: Iterable[Kernel],
    facts: Iterable[Fact], kinds: Collection[HintKind],
) -> tuple[Hint, ...]:  # fmt: skip
    """The hints of some bindings, kernels and facts of a file, in order."""
    found = [h for symbol in symbols if (h := _symbol_hint(symbol, lines)) is not None]
    for kernel in kernels:
        found += [h for launch in kernel.launches if (h := _launch_hint(launch, lines)) is not None]
    told: dict[tuple[object, str], Fact] = {}
    for fact in facts:
        if fact.label:
            told.setdefault((fact.span, fact.kind), fact)
    found += [h for fact in told.values() if (h := _fact_hint(fact, lines)) is not None]
    shown = {h: None for h in found if h.kind in kinds}
    ordered = sorted(shown, key=lambda h: (h.line, h.column, _ORDER[h.kind], h.label))
    return tuple(h for _, row in groupby(ordered, lambda h: h.line) for h in _fitting(list(row)))


def _answer(request: Request) -> tuple[Hint, ...]:
    return tuple(h for h in request.hints if request.line <= h.line <= request.end_line)


FEATURE = Feature("textDocument/inlayHint", _answer, "fresh", settings=False)


def _fitting(row: list[Hint]) -> Iterator[Hint]:
    """The hints of one line in the room there is: the least important are shortened or left out."""
    if sum(len(hint.label) for hint in row) <= LONGEST_LABEL:
        return iter(row)
    room = LONGEST_LABEL
    kept: dict[int, Hint] = {}
    for number, hint in sorted(enumerate(row), key=lambda item: _ORDER[item[1].kind]):
        for label in (hint.label, hint.shorter):
            if label and (len(label) <= room or not kept):
                kept[number] = replace(hint, label=label)
                room -= len(label)
                break
    return (kept[number] for number in sorted(kept))


def _fact_hint(fact: Fact, lines: tuple[str, ...]) -> Hint | None:
    """A fact behind the name, the call or the header it is about."""
    span = fact.span
    if span.end_line > len(lines):
        return None
    place: tuple[int, int] | None = (span.end_line, span.end_column)
    if fact.kind in _OF_HEADERS and lines[span.line - 1].startswith("for ", span.column - 1):
        place = _header_end(span.end_line, lines)
    elif fact.kind == "launch":
        place = _header_end(span.line, lines)
    if place is None:
        return None
    return Hint(*place, fact.label, fact.detail, fact.kind, fact.shorter, fact.cause)


def is_drawn(symbol: Symbol) -> bool:
    """Whether a binding may have a hint, whatever its line says."""
    match symbol.kind:
        case "buffer" | "variable":
            return bool(symbol.detail)
        case "constant":
            return symbol.detail.startswith("= ")
        case _:
            return False


def _symbol_hint(symbol: Symbol, lines: tuple[str, ...]) -> Hint | None:
    """A hint behind the name, where it says more than the line does already."""
    span = symbol.span
    if not is_drawn(symbol) or span.line > len(lines):
        return None
    line = lines[span.line - 1]
    before, behind = line[: span.column - 1], line[span.end_column - 1 :]
    match symbol.kind:
        case "buffer" | "variable" if not re.match(r"\s*:", behind):
            label = f": {symbol.detail}"
        case "constant" if _is_news(symbol, before, behind):
            label = f" {symbol.detail}"
        case _:
            return None
    tooltip = "\n".join((f"{symbol.name}: {symbol.detail}", *symbol.notes))
    kind: HintKind = "values" if symbol.kind == "constant" else "types"
    return Hint(span.line, span.end_column, shorten(label), tooltip, kind)


def _is_news(symbol: Symbol, before: str, behind: str) -> bool:
    """Whether a name is given a value here that the line itself does not spell out."""
    assigned = re.match(r"\s*(?::[^=]*)?=(?!=)\s*(.*)", behind)
    if assigned is None or (before.rstrip().endswith(",") and not _is_open(before)):
        return False  # of several targets none stands before its own value
    value = symbol.detail.removeprefix("= ")
    text = assigned[1].replace('"', "'")
    if re.match(re.escape(value) + r"\s*(?:[,)#].*)?$", text):
        return False
    number = re.match(r"([\w.+-]+)\s*(?:[,)#].*)?$", text)
    return number is None or not _is_same_number(number[1], value)


def _is_open(text: str) -> bool:
    """Whether a bracket is open, as before a parameter."""
    return text.count("(") > text.count(")")


def _is_same_number(text: str, value: str) -> bool:
    """`1e-3` is 0.001, and `1_024` is 1024."""
    try:
        return float(text) == float(value)
    except ValueError:
        return False


def _launch_hint(launch: Launch, lines: tuple[str, ...]) -> Hint | None:
    """Total blocks and threads, when they are numbers, behind the header's colon."""
    sizes = (*launch.grid, *launch.threads)
    if not all(size.isdigit() for size in sizes):
        return None
    place = _header_end(launch.span.line, lines)
    if place is None:
        return None
    blocks, threads = prod(map(int, launch.grid)), prod(map(int, launch.threads))
    label = f" {blocks} block{_s(blocks)} × {threads} thread{_s(threads)}"
    shape = f"grid ({', '.join(launch.grid)}), threads ({', '.join(launch.threads)})"
    said = f"{shape}\n{blocks * threads} threads in all"
    return Hint(place[0], place[1], shorten(label), said, "launch")


def _header_end(first: int, lines: tuple[str, ...]) -> tuple[int, int] | None:
    """Right behind the colon that ends a header; headers may take several lines."""
    for number in range(first, min(first + LONGEST_HEADER, len(lines)) + 1):
        header = re.match(r"(.*:)\s*(?:#.*)?$", lines[number - 1])
        if header is not None:
            return number, len(header[1]) + 1
    return None


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def shorten(label: str) -> str:
    """`label` in the length an editor shows: dims in the middle go first, then the end.

    >>> shorten(": (batch, heads, seq_len_q, seq_len_kv, head_dim) float16 shared")
    ': (batch, …, head_dim) float16 shared'
    """
    if len(label) <= LONGEST_LABEL:
        return label
    shape = re.match(r"(: \()(.*)(\) .*)$", label)
    if shape is not None:
        dims = re.split(r", (?![^(]*\))", shape[2])
        if len(dims) > 2:
            shorter = f"{shape[1]}{dims[0]}, …, {dims[-1]}{shape[3]}"
            if len(shorter) <= LONGEST_LABEL:
                return shorter
        shorter = f"{shape[1]}…{shape[3]}"
        room = LONGEST_LABEL - len(shorter)
        if room > 0:
            return f"{shape[1]}{shape[2][:room]}…{shape[3]}"
    return label[: LONGEST_LABEL - 1] + "…"
