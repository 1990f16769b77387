"""What does a statement of printed IR stand for? The inverse of the printer in `ir.text`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from tilelang.ir import attrs, build, tirx
from tilelang.ir.read_call import CallReader
from tilelang.ir.read_error import Mistake, Silent, unforeseen
from tilelang.ir.read_expr import UNKNOWN, language_name
from tilelang.ir.read_storage import StorageReader
from tilelang.ir.spans import TirSpan
from tilelang.ir.text_expr import VARIABLE
from tilelang.ir.text_forms import dtype_of
from tilelang.ir.text_names import usual_thread
from tilelang.ir.text_values import FOR_KINDS, IN_FULL, LOOP_KINDS, LOOP_WORDS, attributes_of

_T = TypeVar("_T")
_KIND_OF = dict(zip(LOOP_KINDS, FOR_KINDS, strict=True))


class StatementReader(StorageReader, CallReader):
    """Reads statements; what is wrong with one ends it alone."""

    # --- blocks ---

    def body(self, stmts: Sequence[ast.stmt], span: TirSpan) -> Any:
        """Statements in order; what they bind ends with them."""
        outer = dict(self.names)
        made = [s for stmt in stmts for s in self._of(stmt)]
        self.names = outer
        if not made:
            return build.nothing(span)
        return made[0] if len(made) == 1 else tirx.SeqStmt(made, span)

    def _of(self, stmt: ast.stmt) -> list[Any]:
        found: list[Any] = []
        self.guarded(stmt, lambda: found.extend(self._statement(stmt)))
        return found

    def guarded(self, stmt: ast.stmt, read: Callable[[], object]) -> None:
        """Read a statement; what it would have bound is unknown if that fails."""
        try:
            read()
        except Mistake as mistake:
            self.tell(mistake)
        except Silent:
            pass
        except Exception as error:  # whatever TVM raises for what no rule here has foreseen
            self.tell(unforeseen(error, stmt))
        else:
            return
        for target in getattr(stmt, "targets", ()):
            for name in ast.walk(target):
                if isinstance(name, ast.Name) and name.id not in self.names:
                    self.names[name.id] = UNKNOWN

    def header(self, stmt: ast.stmt, read: Callable[[], _T]) -> _T:
        """What the line of a statement says. Places that do not fit the line, which was edited,
        are left out."""
        self.place(self.line(stmt), self.sites(stmt))
        found = read()
        if not self.fits:
            self.place(self.span, None)
            found = read()
        return found

    def _statement(self, stmt: ast.stmt) -> Iterator[Any]:
        span = self.line(stmt)
        match stmt:
            case ast.Pass():
                yield build.nothing(span)
            case ast.Break():
                yield tirx.Break(span)
            case ast.Continue():
                yield tirx.Continue(span)
            case ast.For():
                yield self._for(stmt)
            case ast.While(orelse=[]):
                test = self.header(stmt, lambda: self.condition(stmt.test))
                yield tirx.While(test, self.body(stmt.body, span), span)
            case ast.If():
                yield self._if(stmt)
            case ast.With():
                yield self._with(stmt)
            case ast.Assert():
                yield self._assert(stmt)
            case ast.Assign(targets=[target]):
                made = self._assign(stmt, target)
                if made is not None:
                    yield made
            case ast.AugAssign():
                yield self._store(stmt, stmt.target, self._updated(stmt))
            case ast.Expr():
                yield build.evaluate(self.header(stmt, lambda: self._effect(stmt)), span)
            case _:
                raise Mistake("TL130", f"the IR has no `{type(stmt).__name__.lower()}`", stmt)

    # --- plain statements ---

    def _effect(self, stmt: ast.Expr) -> Any:
        node = stmt.value
        if not isinstance(node, ast.Call):
            return self.expr(node)
        name = language_name(node.func) or ""
        if name == "use_swizzle" or name.startswith("annotate_"):
            return self._annotation(name, node)
        if name == "":
            return self.expr(node)
        notes = self.note_nodes(stmt)
        ret = self.result(notes["ret"]) if "ret" in notes else None
        made = self._form(name, node)
        return self.operator(name, node, ret, statement=True) if made is None else made

    def _annotation(self, name: str, node: ast.Call) -> Any:
        if name == "use_swizzle":
            said = {word.arg: self.value(word.value) for word in node.keywords}
            panel = self.integer(node.args[0]) if node.args else 0
            order = {"value": [panel, said.get("order", "row")]}
            return self._annotate([self._key("swizzle")], order)
        key = name.removeprefix("annotate_")
        if not node.args:
            found = {str(word.arg): self.value(word.value) for word in node.keywords}
            return self._annotate([self._key(key)], found)
        self.count(node, 1)
        table = node.args[0]
        if not isinstance(table, ast.Dict) or None in table.keys:
            raise Mistake("TL116", f"`T.{name}` has a dict of buffers", node)
        operands = [self._key(key)]
        values: list[Any] = []
        for subject, content in zip(table.keys, table.values, strict=True):
            assert subject is not None
            buffer = self.buffer(subject)
            operands.append(buffer)
            if key == attrs.SAFE_VALUE:
                operands.append(self.typed(content, str(buffer.dtype), f"`{buffer.name}`"))
            else:
                values.append(self.value(content))
        return self._annotate(operands, {"values": values} if values else {})

    def _key(self, key: str) -> Any:
        return tirx.StringImm(key, self.span)

    def _annotate(self, operands: Sequence[Any], said: Mapping[str, Any]) -> Any:
        tirx.ensure_op("annotate")
        return build.call("annotate", operands, attrs=said, span=self.site())

    def _assert(self, stmt: ast.Assert) -> Any:
        kind = str(self.notes(stmt).get("kind", "AssertionError"))
        test = self.header(stmt, lambda: self.condition(stmt.test))
        message = "" if stmt.msg is None else self.text(stmt.msg)
        parts = [tirx.StringImm(message, self.span)]
        return build.assertion(tirx.StringImm(kind, self.span), test, parts, self.span)

    def _assign(self, stmt: ast.Assign, target: ast.expr) -> Any:
        if isinstance(stmt.value, ast.Call):
            name = language_name(stmt.value.func) or ""
            if name == "get_thread_binding":
                return None  # the launch has bound it
            if self.allocates(name):
                return self.storage(stmt, target, name)
        if isinstance(target, ast.Name) and not self._is_variable(target.id):
            return self._bind(stmt, target)
        return self._store(stmt, target, stmt.value)

    def _is_variable(self, name: str) -> bool:
        found = self.names.get(name)
        return (
            found is not None and found is not UNKNOWN and bool(tirx.is_buffer_var(found))
            and str(found.scope()) == VARIABLE
        )  # fmt: skip

    def _bind(self, stmt: ast.Assign, target: ast.Name) -> Any:
        self.free(target.id, target)
        site, value = self.header(stmt, lambda: (self.site(), self.expr(stmt.value)))
        if isinstance(value, tirx.StringImm) or tirx.is_buffer_var(value):
            raise Mistake("TL116", f"`{ast.unparse(stmt.value)}` is no value", stmt.value)
        if dtype_of(value) == "void":
            raise Mistake("TL116", f"`{ast.unparse(stmt.value)}` has no value", stmt.value)
        var = self.variable(target.id, value.ty, site)
        self.names[target.id] = var
        return tirx.Bind(var, value, self.span)

    def _updated(self, stmt: ast.AugAssign) -> ast.expr:
        made = ast.BinOp(stmt.target, stmt.op, stmt.value)
        return ast.copy_location(made, stmt)

    def _store(self, stmt: ast.stmt, target: ast.expr, value: ast.expr) -> Any:
        def read() -> tuple[Any, list[Any], Any]:
            if isinstance(target, ast.Name):
                buffer = self.buffer(target)
                places = [build.const(0, "int32", self.span) for _ in buffer.shape]
            elif isinstance(target, ast.Subscript):
                buffer = self.buffer(target.value)
                places = [self.index(i) for i in self.indices(buffer, target)]
            else:
                raise Mistake("TL130", f"`{ast.unparse(target)}` cannot be assigned to", target)
            lanes = max((build.lanes_of(dtype_of(i)) for i in places), default=1)
            dtype = str(buffer.dtype) if lanes == 1 else f"{buffer.dtype}x{lanes}"
            return buffer, places, self.typed(value, dtype, f"`{ast.unparse(target)}`")

        buffer, places, found = self.header(stmt, read)
        return tirx.BufferStore(buffer, found, places, self.span)

    # --- control flow ---

    def _if(self, stmt: ast.If) -> Any:
        test = self.header(stmt, lambda: self.condition(stmt.test))
        span = self.span
        then = self.body(stmt.body, span)
        otherwise = self.body(stmt.orelse, self.other(stmt, span)) if stmt.orelse else None
        return tirx.IfThenElse(test, then, otherwise, span)

    def _for(self, stmt: ast.For) -> Any:
        call = stmt.iter
        name = f"T.{language_name(call.func)}" if isinstance(call, ast.Call) else ""
        if stmt.orelse or name not in (*_KIND_OF, "T.Parallel", "T.Pipelined"):
            raise Mistake("TL130", f"`{ast.unparse(call)}` is no loop of the IR", call)
        assert isinstance(call, ast.Call)
        notes = self.notes(stmt)
        targets = stmt.target.elts if isinstance(stmt.target, ast.Tuple) else [stmt.target]
        for target in targets:
            if not isinstance(target, ast.Name):
                raise Mistake("TL116", f"`{ast.unparse(target)}` is no name", target)
            self.free(target.id, target)
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if name == "T.Parallel":
            sites, bounds, words = self.header(stmt, lambda: self._nest(call, names))
        else:
            sites, bounds, words = self.header(stmt, lambda: self._range_of(call, names))
        said, kind = self._loop_form(name, words, notes)
        return self._loops(stmt, names, sites, bounds, said, kind, notes)

    def _loops(
        self, stmt: ast.For, names: Sequence[str], sites: Sequence[Any],
        bounds: Sequence[tuple[Any, Any]], said: dict[str, Any], kind: str,
        notes: Mapping[str, Any],
    ) -> Any:  # fmt: skip
        span = self.span
        loops = [
            self.variable(name, dtype_of(extent), site)
            for name, site, (_, extent) in zip(names, sites, bounds, strict=True)
        ]
        outer = dict(self.names)
        self.names.update(zip(names, loops, strict=True))
        made = self.body(stmt.body, span)
        self.names = outer
        first, rank = self._place_in_nest(kind, len(names), notes)
        layout = said.pop(attrs.LOOP_LAYOUT, None)
        for position in reversed(range(len(names))):
            found = dict(said)
            if first is not None:
                found[attrs.PARALLEL] = first + position
            if rank is not None:
                found[attrs.PARALLEL_RANK] = rank
            if layout is not None and position == 0:
                found[attrs.LOOP_LAYOUT] = layout
            low, extent = bounds[position]
            made = build.loop(
                loops[position], extent, made, kind=kind.removeprefix("T."), low=low,
                annotations=found, span=span,
            )  # fmt: skip
        return made

    def _place_in_nest(
        self, kind: str, loops: int, notes: Mapping[str, Any]
    ) -> tuple[int | None, int | None]:
        if "nest" in notes:
            first, rank = notes["nest"]
            return first, rank
        return (0, loops) if kind == "T.PARALLEL" else (None, None)

    def _nest(self, call: ast.Call, names: Sequence[str]) -> tuple[Any, Any, dict[str, Any]]:
        sites = [self.site() for _ in names]
        if len(call.args) != len(names):
            raise Mistake("TL113" if len(call.args) < len(names) else "TL114",
                          f"{len(names)} names for {len(call.args)} extents", call)  # fmt: skip
        extents = [self.index(arg) for arg in call.args]
        zeros = [build.const(0, dtype_of(extent), self.span) for extent in extents]
        words = {str(word.arg): self.value(word.value) for word in call.keywords}
        return sites, list(zip(zeros, extents, strict=True)), words

    def _range_of(self, call: ast.Call, names: Sequence[str]) -> tuple[Any, Any, dict[str, Any]]:
        sites = [self.site() for _ in names]
        by_name = {word.arg: word.value for word in call.keywords}
        extent_node = by_name.get("extent")
        if len(names) != 1 or not 1 <= len(call.args) <= 2 or (extent_node and len(call.args) > 1):
            raise Mistake("TL114" if len(call.args) > 2 else "TL113",
                          f"`{ast.unparse(call.func)}` has a stop, or a start and a stop, and one "
                          "variable", call)  # fmt: skip
        if extent_node is not None:
            low, extent = self.index(call.args[0]), self.index(extent_node)
        elif len(call.args) == 1:
            extent = self.index(call.args[0])
            low = build.const(0, dtype_of(extent), self.span)
        else:
            low = self.index(call.args[0])
            extent = self.extent(call.args[0], low, call.args[1])
        if dtype_of(low) != dtype_of(extent):
            raise Mistake("TL233", f"bounds of {dtype_of(low)} and {dtype_of(extent)}", call)
        words = {
            str(word.arg): self.value(word.value) for word in call.keywords if word.arg != "extent"
        }
        return sites, [(low, extent)], words

    def _loop_form(
        self, name: str, words: dict[str, Any], notes: Mapping[str, Any]
    ) -> tuple[dict[str, Any], str]:
        """The annotations of a loop, and its kind; `T.PARALLEL` is that of a nest."""
        quiet = {word: v for word, v in notes.items() if word in LOOP_WORDS or word == IN_FULL}
        said = attributes_of({**words, **quiet}, LOOP_WORDS, attrs.LOOP_ATTR_PREFIX)
        if name == "T.Parallel":
            return said, "T.PARALLEL"
        if name == "T.Pipelined":
            return {attrs.PIPELINED: True, **said}, str(notes.get("kind", "SERIAL"))
        if name == "T.parallel" and notes.get("cpu_parallel", True):
            said[attrs.CPU_PARALLEL] = True
        return said, _KIND_OF[name]

    # --- frames ---

    def _with(self, stmt: ast.With) -> Any:
        item = stmt.items[0]
        call = item.context_expr
        name = language_name(call.func) if isinstance(call, ast.Call) else None
        if len(stmt.items) != 1 or name is None:
            raise Mistake("TL130", f"`{ast.unparse(call)}` is no frame of the IR", call)
        assert isinstance(call, ast.Call)
        if item.optional_vars is not None or "Kernel" in name:
            return self._launch(stmt, call, name, item.optional_vars)
        if name == "attr" and self._is_mark(call):
            return self._mark(stmt, call)
        if call.keywords:
            raise Mistake("TL112", f"`T.{name}` takes no keywords", call)
        said = {"args": [self.value(arg) for arg in call.args]}
        span = self.line(stmt)
        body = self.body(stmt.body, span)
        return tirx.AttrStmt(said, attrs.SCOPED + name, build.const(0, "int32", span), body, span)

    def _is_mark(self, call: ast.Call) -> bool:
        if len(call.args) != 3 or not isinstance(call.args[1], ast.Constant):
            return False
        return str(call.args[1].value).startswith(attrs.OP_PREFIX)

    def _mark(self, stmt: ast.With, call: ast.Call) -> Any:
        subject, key, value = call.args

        def read() -> tuple[Any, Any]:
            if isinstance(subject, ast.Call | ast.Dict):
                node = self.value(subject)
            elif isinstance(subject, ast.Name) and tirx.is_buffer_var(
                self.lookup(subject.id, subject)
            ):
                node = self.buffer(subject)
            else:
                node = self.expr(subject)
            return node, self.expr(value)

        node, found = self.header(stmt, read)
        span = self.span
        return tirx.AttrStmt(node, self.text(key), found, self.body(stmt.body, span), span)

    def _launch(self, stmt: ast.With, call: ast.Call, style: str, target: Any) -> Any:
        names = target.elts if isinstance(target, ast.Tuple) else [target] if target else []
        notes = self.notes(stmt)
        by_name = {word.arg: word.value for word in call.keywords}
        threads = by_name.pop("threads", None)
        sizes = threads.elts if isinstance(threads, ast.Tuple) else [threads] if threads else []
        if len(names) != len(call.args) or len(call.args) > 3 or len(sizes) > 3:
            raise Mistake("TL114", f"{len(names)} names for {len(call.args)} extents", call)

        def read() -> tuple[list[Any], list[Any]]:
            sites = [self.site() for _ in names]
            return sites, [self.index(node) for node in (*call.args, *sizes)]

        sites, extents = self.header(stmt, read)
        span = self.span
        said = {str(word): self.value(node) for word, node in by_name.items()}
        said |= {k: v for k, v in notes.items() if k in ("source", "source_file")}
        if notes.get("style", style) is not None:
            said["style"] = style
        outer = dict(self.names)
        axes = self._axes(stmt, names, sites, extents, len(call.args))
        body = self.body(stmt.body, span)
        self.names = outer
        for var, extent, tag in reversed(axes):
            domain = tirx.Range.from_min_extent(build.const(0, dtype_of(var)), extent)
            axis = tirx.IterVar(domain, var, tirx.IterVar.ThreadIndex, tag, span)
            body = tirx.AttrStmt(axis, attrs.THREAD_EXTENT, extent, body, span)
        if notes.get("bare"):
            return body
        return tirx.AttrStmt(said, attrs.LAUNCH, build.const(0, "int32", span), body, span)

    def _axes(
        self, stmt: ast.With, names: Sequence[Any], sites: Sequence[Any], extents: Sequence[Any],
        blocks: int,
    ) -> list[tuple[Any, Any, str]]:  # fmt: skip
        """Variable, extent and tag of each axis, outermost first; their names are bound."""
        found: list[tuple[Any, Any, str]] = []
        for name, site, extent, tag in zip(names, sites, extents, attrs.BLOCK_TAGS, strict=False):
            if not isinstance(name, ast.Name):
                raise Mistake("TL116", f"`{ast.unparse(name)}` is no name", name)
            self.free(name.id, name)
            var = self.variable(name.id, dtype_of(extent), site)
            self.names[name.id] = var
            found.append((var, extent, tag))
        bindings = dict(self._thread_names(stmt))
        hidden = dict(enumerate(self.notes(stmt).get("thread_names", ())))
        threads: list[tuple[Any, Any, str]] = []
        sized = zip(extents[blocks:], attrs.THREAD_TAGS, strict=False)
        for n, (extent, tag) in enumerate(sized):
            assigned = bindings.pop(n, None)
            name = hidden.get(n, usual_thread(n)) if assigned is None else assigned[0]
            site = self.span if assigned is None else assigned[1]
            if assigned is None:  # printed nowhere: a variable of this launch alone
                var = tirx.Var(name, dtype_of(extent), site)
            else:
                var = self.names[name] = self.variable(name, dtype_of(extent), site)
            threads.append((var, extent, tag))
        for _, _, node in bindings.values():
            raise Mistake("TL117", f"the launch has {len(threads)} axes of threads", node)
        return [*reversed(found), *reversed(threads)]

    def _thread_names(self, stmt: ast.With) -> Iterator[tuple[int, tuple[str, Any, ast.AST]]]:
        """The axis, name and place of each `tx = T.get_thread_binding(0)`."""
        for inner in stmt.body:
            match inner:
                case ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Call(func=ast.Attribute(attr="get_thread_binding")) as call,
                ):
                    self.free(name, inner)
                    axis = self.integer(call.args[0]) if call.args else 0
                    sites = self.sites(inner)
                    yield axis, (name, sites[0] if sites else self.line(inner), inner)
