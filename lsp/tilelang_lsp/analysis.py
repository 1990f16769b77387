"""What does the compiler know about this text? Text in, values out; no editor types, and
of the disk only the files that the text imports.

`analyse` runs the static front end and the lint rules and keeps what an editor may ask for.
Broken text is read around its broken lines (`recovery.py`); a statement that is being typed says
nothing about the definition it stands in, so that definition's other findings wait until it
parses again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from functools import partial

from tilelang.language.source import SourceFile
from tilelang.language.unparsable import PARSE_ERRORS, unparsable
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError, Diagnostic, Span
from tilelang_lint.engine import (
    asked_for,
    internal_error,
    mentions_tilelang,
    read_kernels,
    shown,
)
from tilelang_lint.rules import Subject
from tilelang_lint.selection import Selection
from tilelang_lsp.assembly import Head, Parts, Reading
from tilelang_lsp.depends import Statements
from tilelang_lsp.followed import modules_of, own_findings
from tilelang_lsp.model import Analysis, Part
from tilelang_lsp.moves import Placed
from tilelang_lsp.options import Options
from tilelang_lsp.parsing import Parser
from tilelang_lsp.parts import File, tops_of
from tilelang_lsp.recovery import Recovered, recover

MOST_FILES = 16  # whose last version is kept


def analyse(text: str, path: str, options: Options | None = None) -> Analysis:
    """Everything an editor may ask about one version of a file. Never raises for its text."""
    return Analyser().analyse(text, path, options or Options()).analysis


class Analyser:
    """Analyses texts one after another; of a text it knows, only the kernels that changed."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, File] = OrderedDict()
        self._parser = Parser()

    def analyse(self, text: str, path: str, options: Options) -> Reading:
        """`analyse`, with what is known of the version before."""
        return Reading(path, text, *self.read(text, path, options))

    def read(self, text: str, path: str, options: Options) -> tuple[Head, Parts]:
        """The same in parts: what did not change is the same object as in the version before."""
        if not mentions_tilelang(text):
            return Head(), {}
        try:
            return self._read(text, path, options)
        except Exception as error:  # ours: the editor keeps what it knew and says so
            self._known.pop(path, None)
            return Head((internal_error(path, error),), complete=False), {}

    def _read(self, text: str, path: str, options: Options) -> tuple[Head, Parts]:
        recovered = None
        problems: tuple[Diagnostic, ...] = ()
        try:
            tree = self._parser.parse(path, text)
            source = SourceFile(path, text, tree, text.split("\n"))
        except PARSE_ERRORS as error:
            known_error = error if isinstance(error, SyntaxError) else None
            problems = (unparsable(path, text, error),)
            recovered = recover(text, known_error, partial(self._parser.parse, path))
            if recovered is None:
                return Head(problems, complete=False), {}
            lines = recovered.text.split("\n")
            source = SourceFile(path, recovered.text, recovered.tree, lines)
        statements = Statements.of(source.tree, source.text)
        known = self._known.get(path)
        changed = None if known is None else known.changed(statements, options)
        again: dict[str, Placed[Part]] = {}
        if changed is not None and known is not None:
            again = known.seen_before(statements, changed)
        to_read = None if changed is None else tuple(n for n in changed if n not in again)
        subject = _read(source, options, to_read)
        kept = known.parts if changed is not None and known is not None else ()
        file = File.of(subject, statements, options, source.tree, tuple(kept))
        if changed is not None and known is not None and not subject.failures:
            file = known.updated(file, changed, again)
        file = replace(file, tops=tops_of(source, known.tops if known is not None else {}))
        self._known[path] = file
        self._known.move_to_end(path)
        if len(self._known) > MOST_FILES:
            self._known.popitem(last=False)
        return _head(text, file, recovered, options, problems), file.parts


def _read(source: SourceFile, options: Options, owners: Collection[str] | None = None) -> Subject:
    target = options.target
    if target is not None:
        try:
            parse_target(target)
        except CompileError:
            target = None
    return read_kernels(
        source.text, source.path, options.values, target,
        asked_for(Selection(options.select, options.ignore)), project=options.project,
        with_layouts=False, kernel=None if owners is None else tuple(owners), source=source,
        modules=modules_of(options.imports),
    )  # fmt: skip


def _head(
    text: str, file: File, recovered: Recovered | None, options: Options,
    problems: Iterable[Diagnostic],
) -> Head:  # fmt: skip
    broken = recovered.definitions_broken() if recovered else ()
    own = own_findings(file.diagnostics(), file.path, options.imports)
    found = [d for d in own if not _lies_in(d.span, broken)]
    selection = Selection(options.select, options.ignore)
    tops = [top for _, _, top in file.tops.values()]
    return Head(
        shown((*problems, *found), text, file.path, selection, _closed(file)),
        tuple(node for top in tops for node in top.definitions),
        tuple(dict.fromkeys(alias for top in tops for alias in top.imports.aliases)),
        tuple(dict(pair for top in tops for pair in top.imports.imported).items()),
        file.statements.starts,
        tuple(
            (name, file.statements.digest(name), file.statements.run_digest(name, file.parts))
            for name in file.parts
        ),
    )


def _closed(file: File) -> Iterator[tuple[int, int]]:
    """The lines of the definitions whose kernels have no open sizes."""
    for owner, placed in file.parts.items():
        kernels = placed.what.kernels
        if kernels and not any(kernel.open_names for kernel in kernels):
            yield file.statements.range(owner)


def _lies_in(span: Span | None, ranges: Iterable[tuple[int, int]]) -> bool:
    return span is not None and any(first <= span.line <= last for first, last in ranges)
