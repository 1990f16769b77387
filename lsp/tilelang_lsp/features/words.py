"""What may a string or a comment say at the cursor? Dtypes, targets, options, directives.

T.alloc_shared((64, 64), "flo|")            dtypes
@tilelang.jit(target="cuda:|")              targets
pass_configs={"tl.|": True}                 keys of options
# tilelang: hints ty|                       directives and what they take
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import CATALOGUE, Severity
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.comments import DIRECTIVES
from tilelang_lsp.cursor import string_at
from tilelang_lsp.features.argument_values import parameter_name, strings_of
from tilelang_lsp.features.base import Request
from tilelang_lsp.model import HINT_KINDS

_DIRECTIVE = re.compile(r"#\s*tilelang:\s*(?P<said>[^#]*)$")
_OF_OPTIONS = ("pass_configs", "configs")


@dataclass(frozen=True, slots=True)
class Word:
    """One proposal; `text` is inserted where it differs from the label."""

    label: str
    kind: str
    about: str = ""
    text: str = ""


def words(request: Request) -> Iterator[Word]:
    """All that fit the string or comment at the position, the best first."""
    lines = split_lines(request.text)
    line = lines[request.line - 1] if request.line <= len(lines) else ""
    comment = _DIRECTIVE.search(line[: request.column - 1])
    if comment is not None:
        yield from _of_comment(request, comment["said"])
        return
    string = string_at(request.text, request.line, request.column)
    if string is None or not request.analysis.aliases:
        return
    if re.search(r"\bdtype\s*[!=]=\s*$", string.before):
        yield from _strings(request, "", "dtype", string.prefix)
        return
    if string.call is None:
        return
    entry = request.catalogue.find(request.analysis, string.call.name)
    parameter = string.call.keyword or parameter_name(entry, string.call.argument)
    if string.in_braces and parameter in _OF_OPTIONS:
        if not re.search(r":\s*$", string.before):
            for key, about, values in request.catalogue.options:
                yield _continued(Word(key, "value", f"{about} ({', '.join(values)})"),
                                 string.prefix)  # fmt: skip
    elif entry is not None:
        yield from _strings(request, entry.name, parameter, string.prefix)


def _strings(request: Request, function: str, parameter: str, prefix: str) -> Iterator[Word]:
    for value in strings_of(function, parameter, request.catalogue):
        if value.quoted and ("x" in prefix or not re.search(r"\dx\d+$", value.quoted)):
            yield _continued(Word(value.quoted, value.kind, value.about), prefix)


def _continued(word: Word, prefix: str) -> Word:
    """A word whose insertion goes on after what an editor takes for a word of its own: it counts
    neither dots nor colons in."""
    said = re.search(r"^.*[.:\-]", prefix)
    if said is None or not word.label.startswith(said[0]):
        return word
    return Word(word.label, word.kind, word.about, word.label[len(said[0]) :])


def _of_comment(request: Request, said: str) -> Iterator[Word]:
    what, _, rest = said.partition(" ")
    ignored = re.match(r"ignore(?:-file)?\[[^\]]*$", said)
    if ignored is not None:
        # An error stops the compilation all the same; what is found here comes first.
        found = {d.code for d in (*request.analysis.diagnostics, *request.findings)}
        rows = [row for row in CATALOGUE if row.severity is not Severity.ERROR]
        for row in sorted(rows, key=lambda row: row.code not in found):
            yield Word(row.name, "value", f"{row.code}: {row.summary}")
    elif what == "target" and said != what:
        for name, about in request.catalogue.targets:
            if name != "auto":
                yield _continued(Word(name, "value", about), rest.strip())
    elif what == "hints" and said != what:
        yield from (Word(kind, "value", "hints") for kind in HINT_KINDS if kind not in rest)
    elif what == "set" and said != what:
        names = {n for k in request.analysis.kernels for n in (*k.open_names, *dict(k.values))}
        yield from (Word(f"{n}=", "keyword", "a value for it") for n in sorted(names))
    elif said == what:
        for word, about in DIRECTIVES.items():
            yield Word(f"{word}[]" if word.startswith("ignore") else f"{word} ", "keyword", about)
