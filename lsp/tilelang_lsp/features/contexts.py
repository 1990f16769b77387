"""What fits best where something is written: which kinds of names of the language, which of them
above all, and which calls before the language is named?

    for i in |              T.Parallel(…), T.Pipelined(…)
    with T.|                Kernel, then what else opens a block
    T.gemm(…, policy=T.|    GemmWarpPolicy, then the rest
    A[|                     what counts: loops and blocks before tiles
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.cursor import OpenCall
from tilelang_lsp.features.argument_values import parameter_name, values_of
from tilelang_lsp.features.base import Request
from tilelang_lsp.features.proposal import Completion
from tilelang_lsp.markdown import doc_markdown
from tilelang_lsp.model import Symbol

# Where a line stands: how it begins, the kinds that fit, and what is most often written.
_PLACES: Final = (
    (re.compile(r"\s*@[\w.]*$"), ("meta",), ("prim_func", "macro")),
    (re.compile(r"\s*(?:async\s+)?with\s+(?:.*,\s*)?[\w.]*$"), ("launch",), ("Kernel",)),
    (re.compile(r"\s*for\b.*\bin\s+[\w.]*$"), ("loop",),
     ("Parallel", "Pipelined", "serial", "unroll", "vectorized", "Persistent")),
    (re.compile(r"(?:\s*|\s*def\b.*[(,]\s*)\w+\s*:\s*[\w.]*$"), ("type",),
     ("Tensor", "int32", "float32")),
    (re.compile(r".*[^=!<>]=\s*[\w.]*$"), ("alloc", "scalar"),
     ("alloc_shared", "alloc_fragment", "ceildiv")),
    (re.compile(r"\s*[\w.]*$"), ("tile",), ("copy", "gemm", "clear", "fill")),
)  # fmt: skip
_BEFORE_THE_ALIAS: Final = 4  # of these, so many are proposed as whole calls, too
_HEAD, _COMMON, _COUNTS = -3, -2, ("loop", "block", "dim")


def wanted(request: Request, call: OpenCall | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of names that fit best, and the names among them that do so above all."""
    if call is not None:
        entry = request.catalogue.find(request.analysis, call.name)
        name = call.keyword or parameter_name(entry, call.argument)
        values = () if entry is None else values_of(entry.name, name, request.catalogue)
        texts = (v.text.removeprefix("{T}.") for v in values if v.text.startswith("{T}."))
        above = tuple(dict.fromkeys(re.split(r"[.(]", text)[0] for text in texts))
        return (("dtype",) if name.endswith("dtype") else ("scalar", "dtype")), above
    return next(((kinds, above) for place, kinds, above in _PLACES if place.match(_line(request))),
                (("scalar",), ()))  # fmt: skip


def order(name: str, kind: str, kinds: tuple[str, ...], above: tuple[str, ...]) -> int:
    """Where a name of the language stands among the proposals."""
    if name in above:
        return _COMMON
    if name.startswith("_"):
        return 2
    return -1 if kind in kinds else 1 if kind in ("dtype", "constant") else 0


def heads(request: Request) -> Iterator[Completion]:
    """What a decorator, a loop, a block or an annotation begins with, by the file's names."""
    alias = min(request.analysis.aliases, key=len, default=None)
    if alias is None:
        return
    row = _line(request)
    package = next((a.removesuffix(".language") for a in request.analysis.aliases
                    if a.endswith(".language")), None)  # fmt: skip
    for number, (place, _, above) in enumerate(_PLACES[:_BEFORE_THE_ALIAS]):
        if not place.match(row):
            continue
        if number == 0 and package is not None:
            yield Completion(f"{package}.jit", "meta", order=_HEAD, entry="tilelang.jit")
        for name in above:
            entry = request.catalogue.entries.get(name)
            if entry is not None:
                about = doc_markdown(entry.doc)
                yield Completion(f"{alias}.{name}", entry.kind, entry.signature, about,
                                 order=_HEAD, entry=name)  # fmt: skip
        return


def counts(symbol: Symbol) -> int:
    """Where a name stands among the proposals for an index."""
    numbers = r"= -?\d+|u?int\d*" if symbol.kind not in _COUNTS else ".*"
    return -1 if re.fullmatch(numbers, symbol.detail) else 1


def _line(request: Request) -> str:
    lines = split_lines(request.text)
    row = lines[request.line - 1] if request.line <= len(lines) else ""
    return row[: request.column - 1]
