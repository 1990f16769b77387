"""What does Python code catch? One exception that carries the diagnostics.

The exception is a `CompileError` and also what the catalogue's exception column says for the
first error, so `except CompileError` and `except ValueError` both work:

    try:
        kernel(a, b)
    except ValueError as error:
        print(error.diagnostics[0].code)
"""

from __future__ import annotations

from collections.abc import Iterable

from tilelang_diagnostics.codes import diagnose, find_code
from tilelang_diagnostics.model import Diagnostic, Label, Span
from tilelang_diagnostics.render import render_text
from tilelang_diagnostics.sources import SourceMap

_WIDTH = 100


class CompileError(Exception):
    """Compilation or a call was refused. `str()` is the rendered diagnostics."""

    diagnostics: tuple[Diagnostic, ...]
    sources: SourceMap

    def __init__(
        self, diagnostics: Iterable[Diagnostic] = (), sources: SourceMap | None = None
    ) -> None:
        self.diagnostics = tuple(diagnostics)
        self.sources = sources or SourceMap()
        # A plain string, so that base classes which look at their arguments find nothing odd.
        super().__init__("; ".join(str(d) for d in self.diagnostics))

    def __str__(self) -> str:
        # What stopped it comes first, whatever remarks stand above it in the file.
        ordered = sorted(self.diagnostics, key=lambda d: not d.is_error)
        text = render_text(ordered, self.sources, _WIDTH, summary=len(ordered) > 1)
        return text.rstrip("\n")

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        # The combined classes are made on demand, so a pickle names how to make one.
        return _rebuild, (self.diagnostics, self.sources.known())


def error_for(diagnostics: Iterable[Diagnostic], sources: SourceMap | None = None) -> CompileError:
    """The exception for `diagnostics`; its second base is that of the first error."""
    collected = tuple(diagnostics)
    return _class_for(_exception_of(collected))(collected, sources)


def failure(
    code: str,
    message: str,
    span: Span | None = None,
    *,
    label: str = "",
    labels: tuple[Label, ...] = (),
    notes: tuple[str, ...] = (),
    help: str | None = None,
) -> CompileError:
    """The exception for one diagnostic, to be raised where nothing else can be found out."""
    return error_for(
        (diagnose(code, message, span, label=label, labels=labels, notes=notes, help=help),)
    )


def raise_for(diagnostics: Iterable[Diagnostic], sources: SourceMap | None = None) -> None:
    """Raise if any of `diagnostics` is an error."""
    collected = tuple(diagnostics)
    if any(d.is_error for d in collected):
        raise error_for(collected, sources)


def _exception_of(diagnostics: tuple[Diagnostic, ...]) -> type[Exception]:
    worst = next((d for d in diagnostics if d.is_error), diagnostics[0] if diagnostics else None)
    row = find_code(worst.code) if worst else None
    return row.exception if row else RuntimeError


_CLASSES: dict[type[Exception], type[CompileError]] = {}


def _class_for(base: type[Exception]) -> type[CompileError]:
    """The class that is both `CompileError` and `base`: always the same one for a base."""
    if base not in _CLASSES:
        _CLASSES[base] = _combine(base)
    return _CLASSES[base]


def _combine(base: type[Exception]) -> type[CompileError]:
    # A base with fields of its own has to make the object. Others may not: MemoryError refuses.
    maker = base if base.__basicsize__ > Exception.__basicsize__ else Exception

    def new(cls: type[CompileError], *_: object, **__: object) -> CompileError:
        # OSError.__new__ would read our arguments as errno and strerror.
        return maker.__new__(cls)

    def init(
        self: CompileError,
        diagnostics: Iterable[Diagnostic] = (),
        sources: SourceMap | None = None,
    ) -> None:
        CompileError.__init__(self, diagnostics, sources)

    name = f"Compile{base.__name__}"
    namespace = {"__module__": __name__, "__qualname__": name, "__new__": new, "__init__": init}
    return type(name, (CompileError, base), namespace)


def _rebuild(diagnostics: tuple[Diagnostic, ...], texts: dict[str, str]) -> CompileError:
    return error_for(diagnostics, SourceMap(texts))
