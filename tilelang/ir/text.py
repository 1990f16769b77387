"""How does a function read at any stage of lowering, and where did each line come from?

`print_function` writes TIRX in the language of the user wherever a construct has a form in it,
the same from run to run. Every line keeps the span of its statement: `IRText.span_of` answers it,
and `annotated()` writes it as a trailer (`#@ file:line:column-line:column`) so that it survives
in a file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.spans import calls_of, from_tir
from tilelang.ir.text_expr import ExprText, keywords
from tilelang.ir.text_layout import attached
from tilelang.ir.tile_op import op_of
from tilelang.ir.visit import uses
from tilelang_diagnostics.model import Frame, Span

_INDENT = "    "


@dataclass(frozen=True, slots=True)
class IRLine:
    """One printed line and the place in the user's Python it stands for."""

    text: str
    span: Span | None
    calls: tuple[Frame, ...] = ()


@dataclass(frozen=True, slots=True)
class IRText:
    """A printed function, line by line."""

    lines: tuple[IRLine, ...]

    @property
    def text(self) -> str:
        return "".join(f"{line.text}\n" for line in self.lines)

    def span_of(self, line: int) -> Span | None:
        """The span of 1-based printed `line`."""
        return self.lines[line - 1].span

    def annotated(self) -> str:
        """The text with each line's span behind it."""
        return "".join(f"{line.text}{_trailer(line.span)}\n" for line in self.lines)

    def __str__(self) -> str:
        return self.text


def print_function(func: tirx.PrimFunc) -> IRText:
    """`func` as text with spans."""
    printer = _Printer()
    printer.function(func)
    return IRText(tuple(printer.lines))


def _trailer(span: Span | None) -> str:
    if span is None:
        return ""
    place = f"{span.file}:{span.line}:{span.column}-{span.end_line}:{span.end_column}"
    return f"  #@ {place}"


class _Printer:
    def __init__(self) -> None:
        self.lines: list[IRLine] = []
        self._text = ExprText()
        self._depth = 0
        self._launch_said: dict[str, Any] = {}
        self._rules: dict[str, Callable[[Any], None]] = {
            "SeqStmt": self._seq, "For": self._for, "While": self._while,
            "IfThenElse": self._if, "BufferStore": self._store, "Evaluate": self._evaluate,
            "Bind": self._bind, "AllocBuffer": self._alloc, "DeclBuffer": self._decl,
            "AttrStmt": self._attr, "AssertStmt": self._assert, "Break": self._jump,
            "Continue": self._jump, "Return": self._return,
        }  # fmt: skip

    def function(self, func: tirx.PrimFunc) -> None:
        said = dict(func.attrs) if func.attrs is not None else {}
        params = list(func.params)
        count = int(said.get(attrs.NUM_OUTPUTS, 0))
        inputs, outputs = params[: len(params) - count], params[len(params) - count :]
        listed = ", ".join(self._param(p) for p in inputs)
        name = str(said.get(attrs.GLOBAL_SYMBOL, "main"))
        self._line("@T.prim_func", func.span)
        self._line(f"def {name}({listed}):", func.span)
        self._depth += 1
        for output in outputs:
            shape = self._text.shape(output.shape)
            made = f"{self._text.name(output)} = T.empty({shape}, {_dtype(output)!r})"
            self._line(made, output.span)
        self._block(func.body)
        if outputs:
            self._line(f"return {', '.join(self._text.name(o) for o in outputs)}", func.span)
        self._depth -= 1

    def _param(self, param: Any) -> str:
        name = self._text.name(param)
        if not tirx.is_buffer_var(param):
            return f"{name}: T.{build.dtype_of(param)}"
        shape = self._text.shape(param.shape)
        if list(param.strides):
            strides = self._text.shape(param.strides)
            return f"{name}: T.StridedTensor({shape}, {strides}, {_dtype(param)!r})"
        return f"{name}: T.Tensor({shape}, {_dtype(param)!r})"

    def _line(self, text: str, span: Any) -> None:
        self.lines.append(IRLine(_INDENT * self._depth + text, from_tir(span), calls_of(span)))

    def _block(self, stmt: Any) -> None:
        before = len(self.lines)
        self.statement(stmt)
        if len(self.lines) == before:
            self._line("pass", stmt.span)

    def _nested(self, header: str, body: Any, span: Any) -> None:
        self._line(header, span)
        self._depth += 1
        self._block(body)
        self._depth -= 1

    def statement(self, s: Any) -> None:
        rule = self._rules.get(type(s).__name__)
        if rule is None:
            self._line(f"# {type(s).__name__}", getattr(s, "span", None))
        else:
            rule(s)

    def _seq(self, s: Any) -> None:
        for stmt in s.seq:
            self.statement(stmt)

    # Storage.

    def _alloc(self, s: Any) -> None:
        buffer = s.buffer
        name, scope = self._text.name(buffer), str(buffer.scope())
        if scope == "local.var":
            self._line(f"{name} = T.alloc_var({_dtype(buffer)!r})", s.span)
            return
        allocator = _ALLOCATORS.get(scope, "T.alloc_buffer")
        said = {
            str(key).removeprefix(attrs.ALLOC_PREFIX): value
            for key, value in dict(s.annotations).items()
        }
        parts = [self._text.shape(buffer.shape), repr(_dtype(buffer)), *keywords(said)]
        if scope == "shared":
            parts.append("scope='shared'")
        self._line(f"{name} = {allocator}({', '.join(parts)})", s.span)

    def _decl(self, s: Any) -> None:
        buffer = s.buffer
        shape, dtype = self._text.shape(buffer.shape), _dtype(buffer)
        strides = f", {self._text.shape(buffer.strides)}" if list(buffer.strides) else ""
        data = s.data
        if isinstance(data, tirx.Call) and str(data.op.name) == "tirx.buffer_data":
            source = self._text.name(data.args[0])
            made = f"T.view({source}, {shape}, {dtype!r}{strides})"
        else:
            inner = data.args[0] if isinstance(data, tirx.Call) and len(data.args) else data
            made = f"T.make_tensor({self._text.expr(inner)}, {shape}, {dtype!r}{strides})"
        self._line(f"{self._text.name(buffer)} = {made}", s.span)

    def _bind(self, s: Any) -> None:
        self._line(f"{self._text.name(s.var)} = {self._text.expr(s.value)}", s.span)

    def _store(self, s: Any) -> None:
        name = self._text.name(s.buffer)
        if str(s.buffer.scope()) != "local.var":
            name = f"{name}[{', '.join(self._text.expr(i) for i in s.indices)}]"
        self._line(f"{name} = {self._text.expr(s.value)}", s.span)

    # Control flow.

    def _for(self, s: Any) -> None:
        nest = _printed_nest(s)
        names = ", ".join(self._text.name(loop.loop_var) for loop in nest)
        self._nested(f"for {names} in {self._iterable(nest)}:", nest[-1].body, s.span)

    def _iterable(self, nest: Sequence[Any]) -> str:
        loop = nest[0]
        said = dict(loop.annotations)
        if attrs.PARALLEL in said:
            return f"T.Parallel({', '.join(self._text.expr(each.extent) for each in nest)})"
        bounds = self._bounds(loop)
        rest = {
            str(k).removeprefix(attrs.LOOP_ATTR_PREFIX): v
            for k, v in said.items()
            if str(k).startswith(attrs.LOOP_ATTR_PREFIX)
        }
        if attrs.PIPELINED in said:
            named = {
                "num_stages": attrs.NUM_STAGES,
                "order": attrs.ORDER,
                "stage": attrs.LOOP_STAGE,
            }
            rest.update({k: said[key] for k, key in named.items() if key in said})
            return f"T.Pipelined({', '.join([*bounds, *keywords(rest)])})"
        kind = _LOOPS[int(loop.kind)]
        return f"{kind}({', '.join([*bounds, *keywords(rest)])})"

    def _bounds(self, loop: Any) -> list[str]:
        if build.is_int(loop.min, 0):
            return [self._text.expr(loop.extent)]
        low, extent = build.int_value(loop.min), build.int_value(loop.extent)
        if low is not None and extent is not None:
            return [str(low), str(low + extent)]
        if isinstance(loop.extent, tirx.Sub) and tirx.structural_equal(loop.extent.b, loop.min):
            return [self._text.expr(loop.min), self._text.expr(loop.extent.a)]
        stop = f"{self._text.expr(loop.min, 9)} + {self._text.expr(loop.extent, 10)}"
        return [self._text.expr(loop.min), stop]

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

    def _jump(self, s: Any) -> None:
        self._line(type(s).__name__.lower(), s.span)

    def _return(self, s: Any) -> None:
        self._line("T.thread_return()", s.span)

    def _assert(self, s: Any) -> None:
        message = "".join(str(p.value) for p in s.message_parts)
        self._line(f"assert {self._text.expr(s.condition)}, {message!r}", s.span)

    # Launches and other frames.

    def _attr(self, s: Any) -> None:
        key = str(s.attr_key)
        if key == attrs.THREAD_EXTENT:
            self._launch(s)
        elif key == attrs.LAUNCH:
            self._launch_said = dict(s.node)
            self.statement(s.body)
            self._launch_said = {}
        elif key.startswith(attrs.SCOPED):
            said = dict(s.node).get("args", ())
            args = ", ".join(str(a) for a in said)
            self._nested(f"with T.{key.removeprefix(attrs.SCOPED)}({args}):", s.body, s.span)
        else:
            header = f"with T.attr({key!r}, {self._text.expr(s.value)}):"
            self._nested(header, s.body, s.span)

    def _launch(self, s: Any) -> None:
        axes: dict[str, Any] = {}
        body = s
        while isinstance(body, tirx.AttrStmt) and str(body.attr_key) == attrs.THREAD_EXTENT:
            axes[str(body.node.thread_tag)] = body
            body = body.body
        blocks = [axes[t] for t in attrs.BLOCK_TAGS if t in axes]
        threads = [axes[t] for t in attrs.THREAD_TAGS if t in axes]
        parts = [self._text.expr(a.value) for a in blocks]
        if threads:
            sizes = [self._text.expr(a.value) for a in threads]
            parts.append(f"threads={sizes[0] if len(sizes) == 1 else '(' + ', '.join(sizes) + ')'}")
        names = [self._text.name(a.node.var) for a in blocks]
        target = names[0] if len(names) == 1 else f"({', '.join(names)})"
        hidden = ("style", "source", "source_file")
        said = {k: v for k, v in self._launch_said.items() if k not in hidden}
        style = self._launch_said.get("style", "Kernel")
        header = f"T.{style}({', '.join([*parts, *keywords(said)])})"
        self._line(f"with {header} as {target}:", s.span)
        self._depth += 1
        for n, axis in enumerate(threads):
            if uses(body, [axis.node.var]):
                name = self._text.name(axis.node.var)
                self._line(f"{name} = T.get_thread_binding({n})", axis.span)
        self._block(body)
        self._depth -= 1

    # Operations.

    def _evaluate(self, s: Any) -> None:
        if build.is_nothing(s):
            return
        name = op_of(s.value)
        args = [] if name is None else list(s.value.args)
        said = {} if name is None or s.value.attrs is None else dict(s.value.attrs)
        match name:
            case "fill" if _is_zero(args[1]):
                text = self._call("clear", args[:1], said)
            case "gemm":
                text = self._gemm(args, said)
            case "reduce":
                kind = said.pop("kind")
                if said.pop("clear", True) is False:
                    said["clear"] = "False"
                if said.get("batch") == 1:
                    del said["batch"]
                text = self._call(f"reduce_{kind}", args, said)
            case "scan":
                names = {"sum": "cumsum", "max": "cummax"}
                text = self._call(names.get(said.pop("kind"), "scan"), args, said)
            case "atomic":
                text = self._call(f"atomic_{said.pop('op')}", args, said)
            case "reducer_finalize":
                text = self._call("finalize_reducer", args, said)
            case "annotate":
                text = self._annotate(args, said)
            case _:
                text = self._text.expr(s.value)
        self._line(text, s.span)

    def _call(self, name: str, args: Sequence[Any], said: dict[str, Any]) -> str:
        operands = [self._text.operand(a) for a in args]
        named = [k.replace("'False'", "False") for k in keywords(said)]
        return f"T.{name}({', '.join([*operands, *named])})"

    def _gemm(self, args: Sequence[Any], said: dict[str, Any]) -> str:
        operands = [self._text.operand(a) for a in args[:3]]
        if len(args) > 3 and not build.is_int(args[3], 0):
            operands.append(f"clear_accum={self._text.expr(args[3])}")
        hidden = {"policy": 0, "k_pack": 1}
        said = {k: v for k, v in said.items() if hidden.get(k, object()) != v}
        return f"T.gemm({', '.join([*operands, *keywords(said)])})"

    def _annotate(self, args: Sequence[Any], said: dict[str, Any]) -> str:
        key = str(args[0].value)
        if key == attrs.SAFE_VALUE:
            pairs = zip(args[1::2], args[2::2], strict=True)
            shown = ", ".join(f"{self._text.name(b)}: {self._text.expr(v)}" for b, v in pairs)
            return f"T.annotate_safe_value({{{shown}}})"
        if len(args) > 1:
            values = list(said.get("values", ()))
            shown = ", ".join(
                f"{self._text.name(b)}: {attached(v)}"
                for b, v in zip(args[1:], values, strict=False)
            )
            return f"T.annotate_{key}({{{shown}}})"
        if key == "swizzle":
            panel, order = said["value"]
            more = "" if str(order) == "row" else f", order={str(order)!r}"
            return f"T.use_swizzle({int(panel)}{more})"
        return f"T.annotate_{key}({', '.join(keywords(said))})"


_ALLOCATORS = {
    "shared": "T.alloc_shared", "shared.dyn": "T.alloc_shared",
    "local.fragment": "T.alloc_fragment", "local": "T.alloc_local",
    "local.reducer": "T.alloc_reducer", "global": "T.alloc_global",
    "local.matrix": "T.alloc_matrices",
    "shared.barrier": "T.alloc_barrier", "shared.cluster_barrier": "T.alloc_cluster_barrier",
    "shared.tmem": "T.alloc_tmem",
}  # fmt: skip
_LOOPS = ("T.serial", "T.parallel", "T.vectorized", "T.unroll", "T.thread_binding")


def _printed_nest(loop: Any) -> list[Any]:
    """The loops that print as one line: perfectly nested loops of one T.Parallel."""
    nest = [loop]
    if attrs.PARALLEL not in loop.annotations:
        return nest
    while isinstance(nest[-1].body, tirx.For):
        inner = nest[-1].body
        last = int(nest[-1].annotations[attrs.PARALLEL])
        if attrs.PARALLEL not in inner.annotations:
            break
        if int(inner.annotations[attrs.PARALLEL]) != last + 1:
            break
        nest.append(inner)
    return nest


def _dtype(buffer: Any) -> str:
    return str(buffer.dtype)


def _is_zero(expr: Any) -> bool:
    return isinstance(expr, (tirx.IntImm, tirx.FloatImm)) and float(expr.value) == 0
