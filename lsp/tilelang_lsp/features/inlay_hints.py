"""textDocument/inlayHint: shape, dtype and scope where a name is bound, and launch sizes.

A_shared⟨: (128, 32) float16 shared⟩ = T.alloc_shared((block_M, block_K), dtype)
x⟨: float32⟩ = A_local[i] * scale
rows⟨ = 16⟩ = block_M // 8
with T.Kernel(8, 8, threads=128) as (bx, by):⟨ 64 blocks × 128 threads⟩
"""

from __future__ import annotations

import re
from math import prod

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.features.base import Feature, Request
from tilelang_lsp.model import Analysis, Hint, Launch, Symbol

# VS Code cuts a label off after this many characters by default.
LONGEST_LABEL = 43


def hints(analysis: Analysis) -> tuple[Hint, ...]:
    """All hints of a file, in order."""
    lines = split_lines(analysis.text)
    found = [h for symbol in analysis.symbols if (h := _symbol_hint(symbol, lines)) is not None]
    for kernel in analysis.kernels:
        found += [h for launch in kernel.launches if (h := _launch_hint(launch, lines)) is not None]
    return tuple(sorted(set(found), key=lambda h: (h.line, h.column, h.label)))


def _answer(request: Request) -> tuple[Hint, ...]:
    return tuple(h for h in request.hints if request.line <= h.line <= request.end_line)


FEATURE = Feature("textDocument/inlayHint", _answer, "newest")


def _symbol_hint(symbol: Symbol, lines: tuple[str, ...]) -> Hint | None:
    """A hint behind the name, where it says more than the line does already."""
    span = symbol.span
    if not symbol.detail or span.line > len(lines):
        return None
    line = lines[span.line - 1]
    before, behind = line[: span.column - 1], line[span.end_column - 1 :]
    match symbol.kind:
        case "buffer" | "variable" if not re.match(r"\s*:", behind):
            label = f": {symbol.detail}"
        case "constant" if symbol.detail.startswith("= ") and _is_news(symbol, before, behind):
            label = f" {symbol.detail}"
        case _:
            return None
    tooltip = "\n".join((f"{symbol.name}: {symbol.detail}", *symbol.notes))
    return Hint(span.line, span.end_column, shorten(label), tooltip)


def _is_news(symbol: Symbol, before: str, behind: str) -> bool:
    """Whether a name is given a value here that the line itself does not spell out."""
    assigned = re.match(r"\s*(?::[^=]*)?=(?!=)\s*(.*)", behind)
    if assigned is None or before.rstrip().endswith(","):
        return False  # of several targets none stands before its own value
    value = symbol.detail.removeprefix("= ")
    text = assigned[1].replace('"', "'")
    return not re.match(re.escape(value) + r"\s*(?:[,)#].*)?$", text)


def _launch_hint(launch: Launch, lines: tuple[str, ...]) -> Hint | None:
    """Total blocks and threads, when they are numbers, behind the header's colon."""
    sizes = (*launch.grid, *launch.threads)
    if not all(size.isdigit() for size in sizes):
        return None
    place = _header_end(launch, lines)
    if place is None:
        return None
    blocks, threads = prod(map(int, launch.grid)), prod(map(int, launch.threads))
    label = f" {blocks} block{_s(blocks)} × {threads} thread{_s(threads)}"
    shape = f"grid ({', '.join(launch.grid)}), threads ({', '.join(launch.threads)})"
    return Hint(place[0], place[1], shorten(label), f"{shape}\n{blocks * threads} threads in all")


def _header_end(launch: Launch, lines: tuple[str, ...]) -> tuple[int, int] | None:
    """Right behind the colon that ends the `with` header; headers may take several lines."""
    for number in range(launch.span.line, min(launch.span.line + 12, len(lines)) + 1):
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
