"""How does a function read at any stage of lowering, and where did each line come from?

`print_function` writes TIRX in the language of the user wherever a construct has a form in it,
the same from run to run. Every line keeps the span of its statement: `IRText.span_of` answers it.
`saved()` is the text that `ir.read` turns back into the same function: places, and what the
language has no words for, stand behind the lines (`ir.text_file` has the form).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang.dtypes import dtype as named_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.homes import flat_buffer
from tilelang.ir.spans import from_tir
from tilelang.ir.text_expr import VARIABLE, ExprText
from tilelang.ir.text_file import Document, Place, file_text
from tilelang.ir.text_forms import known_names, result_of
from tilelang.ir.text_memory import TextMemory
from tilelang.ir.text_names import unusual, usual_thread
from tilelang.ir.text_values import (
    ALLOC_WORDS,
    LOOP_KINDS,
    LOOP_WORDS,
    SCOPE_OF,
    keywords,
    value_text,
    words_of,
)
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import uses
from tilelang_diagnostics.model import Frame, Span

_INDENT = "    "
_ALLOCATOR_OF = {scope: name for name, scope in SCOPE_OF.items()}
# Attributes of a launch that stand behind its line: they are long, or said by its name.
_BEHIND = ("source", "source_file")
ALIGNMENT = 64  # of what is allocated, in bytes


@dataclass(frozen=True, slots=True)
class IRLine:
    """One printed line and the place in the user's Python it stands for.

    `notes` is what the language has no words for, `sites` are the places of what the line names,
    loads and calls, in its order.
    """

    text: str
    span: Span | None
    calls: tuple[Frame, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    sites: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class IRText:
    """A printed function, line by line; `said` are the attributes of the function, `names` those
    of variables where the printed ones do not tell, `formless` is what no text stands for."""

    lines: tuple[IRLine, ...]
    said: tuple[tuple[str, Any], ...] = field(default=(), compare=False)
    operators: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    formless: tuple[tuple[str, Span | None], ...] = ()

    @property
    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)

    def span_of(self, line: int) -> Span | None:
        """The span of 1-based printed `line`."""
        return self.lines[line - 1].span

    def saved(self, title: str = "", after: str = "") -> str:
        """A file that reads back as the function; `after` names the pass that made it."""
        rows = tuple(
            (line.text, Place(line.span, line.calls), line.notes, line.sites) for line in self.lines
        )
        said = value_text(dict(self.said))
        return file_text(Document(rows, title, after, said, self.operators, self.names))

    def __str__(self) -> str:
        return self.text


def print_function(func: tirx.PrimFunc, memory: TextMemory[IRLine] | None = None) -> IRText:
    """`func` as text with spans; `memory` knows what was printed of it before."""
    printer = _Printer(TextMemory() if memory is None else memory)
    said = printer.function(func)
    unlisted = sorted(printer.operators - known_names())
    return IRText(
        tuple(printer.lines), tuple(said.items()), tuple(unlisted), printer.unusual_names(),
        tuple((what, from_tir(span)) for what, span in printer.formless),
    )  # fmt: skip


class _Printer:
    def __init__(self, memory: TextMemory[IRLine]) -> None:
        self.lines: list[IRLine] = []
        self._memory = memory
        self._text = ExprText()
        self._depth = 0
        self._rules: dict[str, Callable[[Any], None]] = {
            "SeqStmt": self._seq, "For": self._for, "While": self._while,
            "IfThenElse": self._if, "BufferStore": self._store, "Evaluate": self._evaluate,
            "Bind": self._bind, "AllocBuffer": self._alloc, "DeclBuffer": self._decl,
            "AttrStmt": self._attr, "AssertStmt": self._assert, "Break": self._jump,
            "Continue": self._jump, "Return": self._return,
        }  # fmt: skip

    @property
    def operators(self) -> set[str]:
        """What the calls of the text are called."""
        return self._text.operators

    @property
    def formless(self) -> list[tuple[str, Any]]:
        """What the text shows and no reader would read back, with its place."""
        return self._text.formless

    def unusual_names(self) -> tuple[tuple[str, str], ...]:
        """The names of variables that a reader would not guess, by the printed ones."""
        return unusual((name, str(var.name)) for var, name in self._text.named)

    def function(self, func: tirx.PrimFunc) -> dict[str, Any]:
        """Print it; the attributes that its text does not say."""
        said = {} if func.attrs is None else {str(k): v for k, v in dict(func.attrs).items()}
        params = list(func.params)
        count = int(said.pop(attrs.NUM_OUTPUTS, 0))
        inputs, outputs = params[: len(params) - count], params[len(params) - count :]
        name = str(said.get(attrs.GLOBAL_SYMBOL, "main"))
        if name.isidentifier() and attrs.GLOBAL_SYMBOL in said:
            del said[attrs.GLOBAL_SYMBOL]
        shown = name if name.isidentifier() else "main"
        self._line("@T.prim_func", func.span)
        listed = ", ".join(self._param(p) for p in inputs)
        notes = {
            **_alignments([(self._text.name(p), p) for p in inputs if tirx.is_buffer_var(p)]),
            **self._wide_dims(inputs),
        }
        self._line(f"def {shown}({listed}):", func.span, notes)
        self._depth += 1
        for output in outputs:
            made = f"{self._defined(output)} = T.empty"
            shape = self._text.shape(output.shape)
            notes = _alignments([(self._text.name(output), output)])
            self._line(f"{made}({shape}, {_dtype(output)!r})", output.span, notes)
        self._block(func.body)
        if outputs:
            self._line(f"return {', '.join(self._text.name(o) for o in outputs)}", func.span)
        self._depth -= 1
        return said

    def _param(self, param: Any) -> str:
        name = self._defined(param)
        if not tirx.is_buffer_var(param):
            return f"{name}: T.{build.dtype_of(param)}"
        shape = self._text.shape(param.shape)
        if list(param.strides):
            strides = self._text.shape(param.strides)
            return f"{name}: T.StridedTensor({shape}, {strides}, {_dtype(param)!r})"
        return f"{name}: T.Tensor({shape}, {_dtype(param)!r})"

    def _wide_dims(self, params: Sequence[Any]) -> dict[str, Any]:
        """The dtypes of runtime extents that are no int32."""
        found: dict[str, str] = {}
        for param in params:
            if not tirx.is_buffer_var(param):
                continue
            for extent in (*param.shape, *param.strides):
                if isinstance(extent, tirx.Var) and build.dtype_of(extent) != "int32":
                    found[self._text.name(extent)] = build.dtype_of(extent)
        return {"dims": found} if found else {}

    def _defined(self, var: Any) -> str:
        """The name of a variable or buffer where it comes to exist."""
        self._text.sites.append(var.span)
        start = var.elem_offset if tirx.is_buffer_var(var) else None
        if start is not None and not build.is_int(start, 0):
            self._formless(f"the offset of `{var.name}`", var)
        return self._text.name(var)

    def _formless(self, what: str, node: Any) -> None:
        self.formless.append((what, getattr(node, "span", None)))

    def _line(self, text: str, span: Any, notes: dict[str, Any] | None = None) -> None:
        place = self._memory.place
        own = place(span)
        sites = tuple(own if site is None else place(site) for site in self._text.sites)
        self._text.sites.clear()
        if all(site is own or site == own for site in sites):
            sites = ()
        behind = tuple((key, value_text(value)) for key, value in sorted((notes or {}).items()))
        indented = _INDENT * self._depth + text
        self.lines.append(IRLine(indented, own.span, own.calls, behind, sites))

    def _block(self, stmt: Any) -> None:
        before = len(self.lines)
        self.statement(stmt)
        if len(self.lines) == before:
            self._line("pass", stmt.span)

    def _nested(
        self, header: str, body: Any, span: Any, notes: dict[str, Any] | None = None
    ) -> None:
        self._line(header, span, notes)
        self._depth += 1
        self._block(body)
        self._depth -= 1

    def statement(self, s: Any) -> None:
        text = self._text
        found = self._memory.find(s, self._depth, text.name)
        if found is not None:
            self.lines += found.lines
            text.operators |= found.operators
            return
        lines, asked, formless = len(self.lines), len(text.asked), len(self.formless)
        operators, text.operators = text.operators, set()
        self._print(s)
        if len(self.formless) == formless:  # of what has no form it is told each time
            self._memory.keep(
                s, self._depth, self.lines[lines:], text.asked[asked:], text.operators
            )
        text.operators |= operators

    def _print(self, s: Any) -> None:
        rule = self._rules.get(type(s).__name__)
        if rule is None:
            self._formless(f"`{type(s).__name__}`", s)
            self._line(f"# {type(s).__name__}", getattr(s, "span", None))
        else:
            rule(s)

    def _seq(self, s: Any) -> None:
        for stmt in s.seq:
            self.statement(stmt)

    # Storage.

    def _alloc(self, s: Any) -> None:
        buffer = s.buffer
        scope = str(buffer.scope())
        said = {str(key): value for key, value in dict(s.annotations).items()}
        flat = said.pop(attrs.FLAT, None)
        shown, quiet = words_of(said, ALLOC_WORDS, attrs.ALLOC_PREFIX)
        name = self._defined(buffer)
        variable = scope == VARIABLE and [build.int_value(d) for d in buffer.shape] == [1]
        parts = [] if variable else [self._text.shape(buffer.shape)]
        parts += [repr(_dtype(buffer)), *keywords(shown)]
        allocator = _ALLOCATOR_OF.get(scope, "T.alloc_buffer")
        if scope == "shared":
            allocator = "T.alloc_shared"
        if scope == "shared" or scope not in {*_ALLOCATOR_OF, "shared"}:
            parts.append(f"scope={scope!r}")
        if flat is not None:
            name = f"{name}, {self._defined(flat)}"
            usual = flat_buffer(buffer, attrs.unheld(said.get(attrs.TILE_LAYOUT)), s.span)
            quiet |= _home(flat, usual)
        quiet |= _alignments([("", buffer)], ALIGNMENT)
        self._line(f"{name} = {allocator}({', '.join(parts)})", s.span, quiet)

    def _decl(self, s: Any) -> None:
        buffer, data = s.buffer, s.data
        name = self._defined(buffer)
        shape, dtype = self._text.shape(buffer.shape), _dtype(buffer)
        strides = f", {self._text.shape(buffer.strides)}" if list(buffer.strides) else ""
        notes = _alignments([("", buffer)])
        if isinstance(data, tirx.Call) and str(data.op.name) == "tirx.buffer_data":
            source = data.args[0]
            made = f"T.view({self._text.name(source)}, {shape}, {dtype!r}{strides})"
            usual = str(source.scope())
        else:
            inner = data.args[0] if isinstance(data, tirx.Call) and len(data.args) else data
            made = f"T.make_tensor({self._text.expr(inner)}, {shape}, {dtype!r}{strides})"
            usual = "global"
        if str(buffer.scope()) != usual:
            notes["scope"] = str(buffer.scope())
        self._line(f"{name} = {made}", s.span, notes)

    def _bind(self, s: Any) -> None:
        name = self._defined(s.var)
        self._line(f"{name} = {self._text.expr(s.value)}", s.span)

    def _store(self, s: Any) -> None:
        name = self._text.name(s.buffer)
        places = list(s.indices)
        if str(s.buffer.scope()) != VARIABLE or not all(build.is_int(i, 0) for i in places):
            name = f"{name}[{', '.join(self._text.expr(i) for i in places) or '()'}]"
        self._line(f"{name} = {self._text.expr(s.value)}", s.span)

    # Control flow.

    def _for(self, s: Any) -> None:
        nest = _printed_nest(s)
        names = ", ".join(self._defined(loop.loop_var) for loop in nest)
        said = {str(k): v for k, v in dict(s.annotations).items()}
        notes: dict[str, Any] = {}
        place = said.pop(attrs.PARALLEL, None), said.pop(attrs.PARALLEL_RANK, None)
        together = place[0] is not None and _kind(s) == "PARALLEL"
        if place != ((0, len(nest)) if together else (None, None)):
            notes["nest"] = tuple(None if n is None else int(n) for n in place)
        pipelined = bool(said.pop(attrs.PIPELINED, False))
        on_cores = said.pop(attrs.CPU_PARALLEL, False)
        if _kind(s) == "PARALLEL" and not together and not on_cores:
            notes["cpu_parallel"] = False
        shown, quiet = words_of(said, LOOP_WORDS, attrs.LOOP_ATTR_PREFIX)
        if together:
            bounds = [self._text.expr(each.extent) for each in nest]
            kind = "T.Parallel"
        else:
            bounds = self._bounds(s)
            kind = LOOP_KINDS[int(s.kind)]
            if pipelined:
                kind = "T.Pipelined"
                notes |= {} if _kind(s) == "SERIAL" else {"kind": _kind(s)}
        header = f"for {names} in {kind}({', '.join([*bounds, *keywords(shown)])}):"
        self._nested(header, nest[-1].body, s.span, {**notes, **quiet})

    def _bounds(self, loop: Any) -> list[str]:
        text = self._text
        low, extent = loop.min, loop.extent
        dtype = build.dtype_of(extent)
        if build.is_int(low, 0) and build.dtype_of(low) == dtype:
            return [text.expr(extent)]
        if isinstance(low, tirx.IntImm) and isinstance(extent, tirx.IntImm):
            stop = build.const(int(low.value) + int(extent.value), dtype)
            return [text.expr(low), text.expr(stop)]
        if isinstance(extent, tirx.Sub) and tirx.structural_equal(extent.b, low):
            begins = isinstance(extent.a, tirx.Add) and tirx.structural_equal(extent.a.a, low)
            if not begins:
                return [text.expr(low), text.expr(extent.a)]
            return [text.expr(low), f"extent={text.expr(extent)}"]
        first = text.expr(low)
        return [first, f"{text.expr_again(low, 9)} + {text.expr(extent, 10)}"]

    def _while(self, s: Any) -> None:
        self._nested(f"while {self._text.expr(s.condition)}:", s.body, s.span)

    def _if(self, s: Any, word: str = "if") -> None:
        self._nested(f"{word} {self._text.expr(s.condition)}:", s.then_case, s.span)
        orelse = s.else_case
        if orelse is None:
            return
        if isinstance(orelse, tirx.IfThenElse):
            self._if(orelse, "elif")
        else:
            self._nested("else:", orelse, orelse.span)

    def _return(self, s: Any) -> None:
        self._formless("`Return`", s)
        self._line("return", s.span)

    def _jump(self, s: Any) -> None:
        self._line(type(s).__name__.lower(), s.span)

    def _assert(self, s: Any) -> None:
        message = "".join(str(p.value) for p in s.message_parts)
        kind = str(s.error_kind.value)
        notes = {} if kind == "AssertionError" else {"kind": kind}
        self._line(f"assert {self._text.expr(s.condition)}, {message!r}", s.span, notes)

    # Launches and other frames.

    def _attr(self, s: Any) -> None:
        key = str(s.attr_key)
        if key == attrs.THREAD_EXTENT:
            self._launch(s, s, {})
        elif key == attrs.LAUNCH and _is_launch(s.body):
            self._launch(s, s.body, {str(k): v for k, v in dict(s.node).items()})
        elif key.startswith(attrs.SCOPED) and _only_args(s.node):
            args = ", ".join(value_text(a) for a in dict(s.node).get("args", ()))
            self._nested(f"with T.{key.removeprefix(attrs.SCOPED)}({args}):", s.body, s.span)
        else:
            node = s.node
            if isinstance(node, tirx.Var) and tirx.is_buffer_var(node):
                shown = self._text.name(node)
            elif isinstance(node, tirx.Expr):
                shown = self._text.expr(node)
            else:
                shown = value_text(node)
            header = f"with T.attr({shown}, {key!r}, {self._text.expr(s.value)}):"
            self._nested(header, s.body, s.span)

    def _launch(self, outer: Any, s: Any, said: dict[str, Any]) -> None:
        axes, body = _axes(s)
        blocks = [axes[t] for t in attrs.BLOCK_TAGS if t in axes]
        threads = [axes[t] for t in attrs.THREAD_TAGS if t in axes]
        names = [self._defined(a.node.var) for a in blocks]
        parts = [self._text.expr(a.value) for a in blocks]
        if threads:
            sizes = [self._text.expr(a.value) for a in threads]
            parts.append(f"threads={sizes[0] if len(sizes) == 1 else '(' + ', '.join(sizes) + ')'}")
        target = names[0] if len(names) == 1 else f"({', '.join(names)})"
        style = str(said.pop("style", "Kernel"))
        shown = {k: v for k, v in said.items() if k not in _BEHIND}
        notes: dict[str, Any] = {k: v for k, v in said.items() if k in _BEHIND}
        if outer is s:
            notes["bare"] = True
        hidden = [str(a.node.var.name) for a in threads]
        if hidden != [usual_thread(n) for n in range(len(threads))]:
            notes["thread_names"] = hidden
        header = f"T.{style}({', '.join([*parts, *keywords(shown)])})"
        self._line(f"with {header} as {target}:", outer.span, notes)
        self._depth += 1
        for n, axis in enumerate(threads):
            if uses(body, [axis.node.var]):
                name = self._defined(axis.node.var)
                self._line(f"{name} = T.get_thread_binding({n})", axis.span)
        self._block(body)
        self._depth -= 1

    # Operations.

    def _evaluate(self, s: Any) -> None:
        if build.is_nothing(s):
            self._line("pass", s.span)
            return
        if op_of(s.value) == "annotate":
            self._line(self._annotate(s.value), s.span)
            return
        if not isinstance(s.value, tirx.Call):
            self._line(self._text.expr(s.value), s.span)
            return
        text, result = self._text.call(s.value)
        expected = result_of(str(s.value.op.name), list(s.value.args)) or "void"
        self._line(text, s.span, {} if result == expected else {"ret": result})

    def _annotate(self, call: Any) -> str:
        args = list(call.args)
        said = {} if call.attrs is None else {str(k): v for k, v in dict(call.attrs).items()}
        key = str(args[0].value)
        if key == attrs.SAFE_VALUE:
            pairs = zip(args[1::2], args[2::2], strict=True)
            shown = ", ".join(f"{self._text.name(b)}: {self._text.expr(v)}" for b, v in pairs)
            return f"T.annotate_safe_value({{{shown}}})"
        if len(args) > 1:
            values = list(said.get("values", ()))
            shown = ", ".join(
                f"{self._text.name(b)}: {value_text(v)}"
                for b, v in zip(args[1:], values, strict=False)
            )
            return f"T.annotate_{key}({{{shown}}})"
        if key == "swizzle":
            panel, order = said["value"]
            more = "" if str(order) == "row" else f", order={str(order)!r}"
            return f"T.use_swizzle({int(panel)}{more})"
        return f"T.annotate_{key}({', '.join(keywords(said))})"


def _printed_nest(loop: Any) -> list[Any]:
    """The loops that print as one line: perfectly nested loops of one T.Parallel."""
    nest = [loop]
    said = dict(loop.annotations)
    if attrs.PARALLEL not in said or _kind(loop) != "PARALLEL" or not _from_zero(loop):
        return nest
    if int(said[attrs.PARALLEL]) != 0:
        return nest
    while isinstance(nest[-1].body, tirx.For) and _goes_on(nest, nest[-1].body):
        nest.append(nest[-1].body)
    return nest


def _goes_on(nest: Sequence[Any], inner: Any) -> bool:
    """Whether `inner` says what the loops around it say."""
    if _kind(inner) != "PARALLEL" or not _from_zero(inner):
        return False
    said, outer = dict(inner.annotations), dict(nest[0].annotations)
    if int(said.pop(attrs.PARALLEL, -1)) != len(nest) or attrs.LOOP_LAYOUT in said:
        return False
    outer.pop(attrs.LOOP_LAYOUT, None)
    outer.pop(attrs.PARALLEL, None)
    return value_text(said) == value_text(outer)


def _kind(loop: Any) -> str:
    return str(tirx.ForKind(int(loop.kind)).name)


def _from_zero(loop: Any) -> bool:
    return build.is_int(loop.min, 0) and build.dtype_of(loop.min) == build.dtype_of(loop.extent)


def _axes(s: Any) -> tuple[dict[str, Any], Any]:
    """The axes of a launch by tag, and what is inside of them."""
    axes: dict[str, Any] = {}
    while isinstance(s, tirx.AttrStmt) and str(s.attr_key) == attrs.THREAD_EXTENT:
        axes[str(s.node.thread_tag)] = s
        s = s.body
    return axes, s


def _is_launch(s: Any) -> bool:
    return isinstance(s, tirx.AttrStmt) and str(s.attr_key) == attrs.THREAD_EXTENT


def _only_args(node: Any) -> bool:
    return set(dict(node)) <= {"args"}


def _dtype(buffer: Any) -> str:
    return str(buffer.dtype)


def _alignments(buffers: Sequence[tuple[str, Any]], usual: int | None = None) -> dict[str, Any]:
    """The alignments that are not the usual one, which for memory of others is an element's."""
    found = {
        name: int(buffer.ty.data_alignment)
        for name, buffer in buffers
        if int(buffer.ty.data_alignment) != (usual or element_bytes(_dtype(buffer)))
    }
    if not found:
        return {}
    return {"align": found.get("", found)}


def element_bytes(dtype: str) -> int:
    """The bytes of one element of TVM's `dtype`, at least one."""
    return max(1, named_dtype(dtype).scalar.bytes)


def _home(flat: Any, usual: Any) -> dict[str, Any]:
    """What is unusual about the buffer that will hold a tile."""
    found: dict[str, Any] = {}
    extents = [build.int_value(d) for d in flat.shape]
    if extents != [build.int_value(d) for d in usual.shape]:
        found["home_shape"] = tuple(extents)
    for word, get in (("home_dtype", _dtype), ("home_scope", lambda b: str(b.scope())),
                      ("home_align", lambda b: int(b.ty.data_alignment))):  # fmt: skip
        if get(flat) != get(usual):
            found[word] = get(flat)
    return found
