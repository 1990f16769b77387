"""Which function does printed IR stand for, after whichever pass? The inverse of `ir.text`.

`read_function` builds the function that was printed, each statement with its place in Python.
Nothing of the text is executed. What is wrong with an edited text is told at its place in the file.
"""

from __future__ import annotations

import ast
import tokenize
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from tilelang.ir import attrs, tirx
from tilelang.ir.read_error import Mistake, Silent, span_of, unforeseen
from tilelang.ir.read_stmt import StatementReader
from tilelang.ir.text_file import Comments, FileFormatError, comments_of
from tilelang_diagnostics import diagnose, error_for
from tilelang_diagnostics.model import Span


@dataclass(frozen=True, slots=True)
class Read:
    """What a file holds: a function, and the pass after which it was printed."""

    func: tirx.PrimFunc
    after: str = ""

    @property
    def attributes(self) -> Mapping[str, Any]:
        """The attributes of the function."""
        return {str(k): v for k, v in dict(self.func.attrs or {}).items()}


def read_function(text: str, file: str, *, here: bool = False) -> Read:
    """The function in `text`; raises CompileError with all that is wrong with it.

    `here`: its statements have their places in `file` itself, not in Python.
    """
    lines = text.splitlines()
    try:
        tree = ast.parse(text)
        comments = comments_of(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError) as error:
        raise error_for((_syntax(error, file, lines),)) from None
    except FileFormatError as error:
        text_of = lines[error.line - 1] if error.line <= len(lines) else ""
        at = max(text_of.find("#"), 0) + 1
        span = Span(file, error.line, at, error.line, max(len(text_of) + 1, at))
        raise error_for((diagnose("TL101", error.message, span, help=_HELP),)) from None
    found = [s for s in tree.body if isinstance(s, ast.FunctionDef)]
    if len(found) != 1:
        code = "TL105" if found else "TL104"
        message = f"the file holds {len(found)} functions of IR, and not one"
        place = span_of(found[1], file, lines) if found else Span(file, 1, 1, 1, 1)
        raise error_for((diagnose(code, message, place, help="a file of IR is one function"),))
    reader = _Reader(file, lines, comments, here)
    func = reader.function(found[0])
    if reader.found:
        raise error_for(tuple(reader.found))
    return Read(func, comments.after)


def _syntax(error: Exception, file: str, lines: list[str]) -> Any:
    line = getattr(error, "lineno", None) or 1
    column = getattr(error, "offset", None) or 1
    if isinstance(error, tokenize.TokenError) and len(error.args) > 1:
        line, column = error.args[1]
    line = max(1, min(line, len(lines) or 1))
    message = getattr(error, "msg", None) or str(error) or type(error).__name__
    column = max(column, 1)
    same = getattr(error, "end_lineno", None) == line
    end = getattr(error, "end_offset", None) if same else None
    span = Span(file, line, column, line, max(end or 0, column + 1))
    return diagnose("TL101", f"this is no printed IR: {message}", span, help=_HELP)


_HELP: Final = "the text is Python, and what follows `#@` may be left out"


class _Reader(StatementReader):
    """Reads a function; `found` is what is wrong with it."""

    def __init__(self, file: str, lines: list[str], comments: Comments, here: bool) -> None:
        super().__init__(file, lines, comments, here)
        self.operators = comments.operators

    def function(self, node: ast.FunctionDef) -> Any:
        """The function."""
        tirx.load_tvm()
        try:
            return self._function(node)
        except Mistake as mistake:
            self.tell(mistake)
        except Silent:
            pass
        except Exception as error:  # whatever TVM raises for what no rule here has foreseen
            self.tell(unforeseen(error, node))
        return None

    def _function(self, node: ast.FunctionDef) -> Any:
        span = self.line(node)
        notes = self.notes(node)
        said = self._attributes(node)
        params = self.header(node, lambda: self._params(node, notes))
        outputs, rest = self._outputs(node)
        body = self.body(rest, span)
        said.setdefault(attrs.GLOBAL_SYMBOL, node.name)
        said[attrs.NUM_OUTPUTS] = len(outputs)
        if self.found:
            return None
        return tirx.PrimFunc([*params, *outputs], body, span=span).with_attr(said)

    def _attributes(self, node: ast.FunctionDef) -> dict[str, Any]:
        try:
            found = self.value(ast.parse(self.comments.said.strip(), mode="eval").body)
        except (SyntaxError, ValueError, Mistake):
            found = None
        if not isinstance(found, dict):
            raise Mistake("TL101", f"`# attrs {self.comments.said}` is no dict", node)
        return found

    def _params(self, node: ast.FunctionDef, notes: Mapping[str, Any]) -> list[Any]:
        given = node.args
        if given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs or given.defaults:
            raise Mistake("TL130", "parameters of printed IR are plain", node)
        align = notes.get("align", {})
        self.dims = {str(k): str(v) for k, v in notes.get("dims", {}).items()}
        self.accepts_dims = True
        params = [self.parameter(arg, align.get(arg.arg)) for arg in given.args]
        return params

    def _outputs(self, node: ast.FunctionDef) -> tuple[list[Any], list[ast.stmt]]:
        """The tensors that the runtime allocates, and the statements after them."""
        body = list(node.body)
        outputs: list[Any] = []
        while body and self.is_output(body[0]):
            stmt = body.pop(0)
            self.guarded(stmt, lambda stmt=stmt: outputs.append(self.output(stmt)))  # type: ignore[misc]
        self.accepts_dims = False
        if outputs and body and isinstance(body[-1], ast.Return):
            body.pop()
        return outputs, body
