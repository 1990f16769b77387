"""Which buffers does printed IR declare, and what do comments say of its lines?"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from tilelang.ir import attrs, build, tirx
from tilelang.ir.homes import flat_buffer
from tilelang.ir.read_error import Mistake, meant, span_of
from tilelang.ir.read_expr import ExprReader, is_dtype, language_name
from tilelang.ir.spans import TirSpan, to_tir
from tilelang.ir.text import ALIGNMENT, element_bytes
from tilelang.ir.text_expr import VARIABLE
from tilelang.ir.text_file import Comments
from tilelang.ir.text_names import Names
from tilelang.ir.text_values import ALLOC_WORDS, IN_FULL, SCOPE_OF, attributes_of
from tilelang.ir.verify import SCOPES
from tilelang_diagnostics.model import Diagnostic

_T = TypeVar("_T")
_ALLOCATORS = frozenset({*SCOPE_OF, "T.alloc_buffer"})
_VIEWS = ("view", "make_tensor")


class StorageReader(ExprReader):
    """Knows the comments of a file, and reads what declares buffers."""

    def __init__(self, file: str, lines: list[str], comments: Comments, here: bool) -> None:
        super().__init__()
        self.found: list[Diagnostic] = []
        self.comments = comments
        self.dims: dict[str, str] = {}
        self.accepts_dims = False
        self._file, self._lines, self._here = file, lines, here
        self._last: TirSpan = None
        self._variables: dict[tuple[str, str], Any] = {}
        self._buffers: dict[str, Any] = {}
        self._names = Names(comments.names)

    def header(self, stmt: ast.stmt, read: Callable[[], _T]) -> _T:
        """What the line of a statement says."""
        raise NotImplementedError

    # --- comments ---

    def tell(self, mistake: Mistake) -> None:
        """Remember what is wrong."""
        self.found.append(mistake.diagnostic(self._file, self._lines))

    def line(self, stmt: ast.stmt) -> TirSpan:
        """The place of a statement; one without has that of the statement above."""
        if self._here:
            return to_tir(span_of(stmt, self._file, self._lines))
        for number in _rows(stmt):
            place = self.comments.places.get(number)
            if place is not None and place.span is not None:
                self._last = to_tir(place.span, place.calls)
        return self._last or to_tir(span_of(stmt, self._file, self._lines))

    def other(self, stmt: ast.If, span: TirSpan) -> TirSpan:
        """The place of the `else` of a condition."""
        last = stmt.body[-1].end_lineno or stmt.lineno
        for number in range(last + 1, stmt.orelse[0].lineno):
            place = self.comments.places.get(number)
            if place is not None and place.span is not None and not self._here:
                return to_tir(place.span, place.calls)
        return span

    def sites(self, stmt: ast.stmt) -> list[TirSpan] | None:
        """The places of what a line names, loads and calls; None for those of its statement."""
        if self._here:
            return None
        for number in _rows(stmt):
            found = self.comments.sites.get(number)
            if found is not None:
                return [to_tir(place.span, place.calls) for place in found]
        return None

    def note_nodes(self, stmt: ast.stmt) -> dict[str, ast.expr]:
        """The keywords behind a line, as they are written."""
        for number in _rows(stmt):
            found = self.comments.notes.get(number)
            if found is None:
                continue
            try:
                call = ast.parse(f"n({found})", mode="eval").body
            except (SyntaxError, ValueError):
                call = None
            if not isinstance(call, ast.Call) or call.args:
                raise Mistake("TL101", f"`{found}` are no keywords", stmt)
            return {str(word.arg): _moved(word.value, stmt) for word in call.keywords}
        return {}

    def notes(self, stmt: ast.stmt) -> dict[str, Any]:
        """The keywords behind a line."""
        return {word: self.value(node) for word, node in self.note_nodes(stmt).items()}

    # --- names ---

    def free(self, name: str, node: ast.AST) -> None:
        """Check that a name is not taken."""
        if name in self.names or name == "T":
            raise Mistake("TL135", f"`{name}` is bound above", node,
                          help="every name of the IR is bound once: choose another")  # fmt: skip

    def variable(self, name: str, dtype: Any, site: TirSpan) -> Any:
        """The variable a statement binds: a name means one variable, in each copy of a loop."""
        made = tirx.Var(self._names.usual(name), dtype, site)
        return self._variables.setdefault((name, str(dtype)), made)

    def _one(self, name: str, buffer: Any) -> Any:
        """The buffer a statement declares: the same one in each copy of a statement."""
        known = self._buffers.setdefault(name, buffer)
        return known if tirx.structural_equal(known.ty, buffer.ty) else buffer

    def lookup(self, name: str, node: ast.AST) -> Any:
        """What a name stands for; a new one in the shape of a parameter is a runtime extent."""
        if self.accepts_dims and name not in self.names:
            dtype = self.dims.get(name, "int32")
            self.names[name] = tirx.Var(self._names.usual(name), dtype, self.span)
        return super().lookup(name, node)

    # --- declarations ---

    def parameter(self, arg: ast.arg, align: int | None) -> Any:
        """A parameter of the function."""
        site = self.site()
        call = arg.annotation
        if isinstance(call, ast.Attribute) and (name := language_name(call)) and is_dtype(name):
            made = tirx.Var(self._names.usual(arg.arg), name, site)
        elif isinstance(call, ast.Call) and language_name(call.func) in (
            "Tensor", "StridedTensor"
        ):  # fmt: skip
            strided = language_name(call.func) == "StridedTensor"
            self.count(call, 3 if strided else 2)
            shape = self._shape(call.args[0])
            strides = self._shape(call.args[1]) if strided else None
            dtype = self.dtype(call.args[-1])
            made = self._buffer(arg.arg, shape, dtype, "global", align, site, strides)
        else:
            raise Mistake("TL116", f"`{arg.arg}` is no tensor and no scalar", arg)
        self.names[arg.arg] = made
        return made

    def is_output(self, stmt: ast.stmt) -> bool:
        """Whether a statement declares a tensor that the runtime allocates."""
        return (
            isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Call)
            and language_name(stmt.value.func) == "empty"
        )  # fmt: skip

    def output(self, stmt: ast.stmt) -> Any:
        """Such a tensor."""
        assert isinstance(stmt, ast.Assign) and isinstance(stmt.value, ast.Call)
        call = stmt.value
        name = self._name_of(stmt.targets[0])

        def read() -> Any:
            site = self.site()
            self.count(call, 2)
            shape = self._shape(call.args[0])
            align = self.notes(stmt).get("align")
            align = align.get(name) if isinstance(align, dict) else align
            return self._buffer(name, shape, self.dtype(call.args[1]), "global", align, site)

        made = self.header(stmt, read)
        self.names[name] = made
        return made

    def allocates(self, name: str) -> bool:
        """Whether `T.name(…)` declares a buffer."""
        return f"T.{name}" in _ALLOCATORS or name in _VIEWS

    def storage(self, stmt: ast.Assign, target: ast.expr, name: str) -> Any:
        """A statement that declares a buffer."""
        call = stmt.value
        assert isinstance(call, ast.Call)
        notes = self.notes(stmt)
        if name in _VIEWS:
            return self._view(stmt, call, name, self._name_of(target), notes)
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if len(names) > 2:
            raise Mistake("TL116", "a tile and the buffer that holds it are two names", target)
        own, *home = [self._name_of(n) for n in names]

        def read() -> tuple[Any, Any, dict[str, Any]]:
            return self._allocation(call, name, own, home, notes)

        buffer, flat, said = self.header(stmt, read)
        buffer = self.names[own] = self._one(own, buffer)
        if flat is not None:
            said[attrs.FLAT] = self.names[home[0]] = self._one(home[0], flat)
        return tirx.AllocBuffer(buffer, said or None, self.span)

    def _allocation(
        self, call: ast.Call, name: str, own: str, home: list[str], notes: Mapping[str, Any]
    ) -> tuple[Any, Any, dict[str, Any]]:
        site = self.site()
        words = {str(word.arg): self.value(word.value) for word in call.keywords}
        scope = str(words.pop("scope", SCOPE_OF.get(f"T.{name}", "global")))
        if scope not in SCOPES:
            node = next((k.value for k in call.keywords if k.arg == "scope"), call)
            hint = meant(scope, sorted(SCOPES))
            raise Mistake("TL208", f"there is no scope {scope!r}", node, help=hint)
        variable = scope == VARIABLE and len(call.args) == 1
        if len(call.args) != 2 and not variable:
            raise Mistake("TL113" if len(call.args) < 2 else "TL114",
                          f"`T.{name}` has a shape and a dtype", call)  # fmt: skip
        one = [build.const(1, "int32", self.span)]
        shape = one if variable else self._shape(call.args[0])
        dtype = self.dtype(call.args[-1])
        buffer = self._buffer(own, shape, dtype, scope, notes.get("align", ALIGNMENT), site)
        quiet = {word: v for word, v in notes.items() if word in ALLOC_WORDS or word == IN_FULL}
        said = attributes_of({**words, **quiet}, ALLOC_WORDS, attrs.ALLOC_PREFIX)
        layout = attrs.unheld(said.get(attrs.TILE_LAYOUT))
        if layout is not None:
            self._check_layout(layout, buffer, call)
        return buffer, self._home(home, buffer, layout, notes, call) if home else None, said

    def _check_layout(self, layout: Any, buffer: Any, call: ast.Call) -> None:
        shape = tuple(build.int_value(d) for d in buffer.shape)
        if getattr(layout, "shape", None) != shape:
            raise Mistake(
                "TL117",
                f"the layout of `{buffer.name}` is one of {getattr(layout, 'shape', '?')}, and the "
                f"tile of {shape}",
                call,
            )

    def _home(
        self, home: list[str], buffer: Any, layout: Any, notes: Mapping[str, Any], call: ast.Call
    ) -> Any:
        site = self.site()
        try:
            usual = flat_buffer(buffer, layout, site)
        except ValueError as error:
            raise Mistake("TL216", str(error), call) from None
        shape = [build.const(int(n), "int32", self.span) for n in notes.get("home_shape", ())]
        return self._buffer(
            home[0], shape or list(usual.shape), str(notes.get("home_dtype", usual.dtype)),
            str(notes.get("home_scope", usual.scope())), notes.get("home_align", ALIGNMENT), site,
        )  # fmt: skip

    def _view(
        self, stmt: ast.Assign, call: ast.Call, name: str, own: str, notes: Mapping[str, Any]
    ) -> Any:
        def read() -> tuple[Any, Any]:
            site = self.site()
            if not 3 <= len(call.args) <= 4 or call.keywords:
                code = "TL113" if len(call.args) < 3 else "TL114"
                raise Mistake(code, f"`T.{name}` has a source, a shape and a dtype", call)
            shape, dtype = self._shape(call.args[1]), self.dtype(call.args[2])
            strides = self._shape(call.args[3]) if len(call.args) > 3 else None
            source = self.buffer(call.args[0]) if name == "view" else None
            scope = str(notes.get("scope", "global" if source is None else source.scope()))
            buffer = self._buffer(own, shape, dtype, scope, notes.get("align"), site, strides)
            if source is not None:
                return buffer, build.data_of(source, self.span)
            address = self.expr(call.args[0])
            pointer = tirx.PointerType(tirx.PrimType(dtype), scope)
            made = tirx.Call("tirx.reinterpret", [address], ret_ty=pointer, span=self.span)
            return buffer, made

        buffer, data = self.header(stmt, read)
        buffer = self.names[own] = self._one(own, buffer)
        return build.declare(buffer, data, self.span)

    def _buffer(
        self, name: str, shape: list[Any], dtype: str, scope: str, align: Any, site: TirSpan,
        strides: list[Any] | None = None,
    ) -> Any:  # fmt: skip
        return tirx.decl_buffer(
            shape, dtype, name=self._names.usual(name), strides=strides, scope=scope,
            data_alignment=int(align or element_bytes(dtype)), span=site, layout=None,
        )  # fmt: skip

    def _shape(self, node: ast.expr) -> list[Any]:
        if not isinstance(node, ast.Tuple):
            raise Mistake("TL215", f"`{ast.unparse(node)}` is no tuple of extents", node)
        found = [self.index(part) for part in node.elts]
        for part, extent in zip(node.elts, found, strict=True):
            if (size := build.int_value(extent)) is not None and size < 1:
                raise Mistake("TL215", f"an extent is positive, and this one {size}", part)
        return found

    def _name_of(self, target: ast.expr) -> str:
        if not isinstance(target, ast.Name):
            raise Mistake("TL116", f"`{ast.unparse(target)}` is no name", target)
        self.free(target.id, target)
        return target.id


def _rows(stmt: ast.stmt) -> range:
    """The lines of a statement itself, without those of its body."""
    body = getattr(stmt, "body", None)
    end = stmt.end_lineno or stmt.lineno
    if isinstance(body, list) and body:
        end = max(stmt.lineno, body[0].lineno - 1)
    return range(stmt.lineno, end + 1)


def _moved(node: ast.expr, stmt: ast.stmt) -> ast.expr:
    """`node` of a comment, at the place of its statement."""
    for part in ast.walk(node):
        if hasattr(part, "lineno"):
            ast.copy_location(part, stmt)
    return node
