"""How is a lowered kernel written in the source language of a device?

    PrimFunc at stage `device`  ->  one kernel function per launch, and a manifest

The words come from a `Dialect`, statements and expressions from `c_printer`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilelang.codegen.c_printer import CPrinter, spans_of, storage_of
from tilelang.codegen.c_text import Unsupported
from tilelang.codegen.cuda_foreign import (
    cluster_of,
    foreign_launch,
    foreign_lines,
    is_foreign,
    source_lines,
)
from tilelang.codegen.device_launch import (
    Launch,
    constant_extents,
    free_dims,
    slots_of,
    split_launches,
)
from tilelang.codegen.device_source import DeviceSource, KernelLaunch, KernelParam
from tilelang.codegen.dialect import Dialect, parse
from tilelang.codegen.source_map import Line, SourceMap, with_line_directives
from tilelang.ir import attrs, build, tirx
from tilelang.ir.spans import calls_of, from_tir
from tilelang.ir.visit import collect
from tilelang_diagnostics import code_of
from tilelang_diagnostics.model import Diagnostic


class PrintError(Exception):
    """The kernel cannot be written in the dialect; `diagnostics` say why and where."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = tuple(diagnostics)


def print_device(
    func: Any,
    dialect: Dialect,
    *,
    line_directives: bool = False,
    index_bits: int = 32,
    noalias: bool = True,
) -> DeviceSource:
    """The source of `func`, which is at stage `device`, in `dialect`; raises `PrintError`.

    `noalias`: no two buffer parameters overlap.
    """
    try:
        return _Printer(func, dialect, index_bits, noalias).run(line_directives)
    except Unsupported as refused:
        raise PrintError([refusal(refused, dialect.language)]) from refused


class _Printer:
    """Prints one function: the kernels of its launches behind the includes they need."""

    def __init__(self, func: Any, dialect: Dialect, index_bits: int, noalias: bool) -> None:
        self.func = func
        self.dialect = dialect
        self.index_bits = index_bits
        self.restrict = f"{dialect.restrict} " if noalias and dialect.restrict else ""
        self.name = legal_symbol(func)
        self.host, self.launches = split_launches(func)
        if not self.launches:
            raise Unsupported("a function without a kernel launch", func)
        self.headers: dict[str, None] = {"common.h": None}
        self.defines: dict[str, None] = {}

    def run(self, line_directives: bool) -> DeviceSource:
        bodies: list[Line] = []
        kernels = []
        for number, launch in enumerate(self.launches):
            if is_foreign(launch):
                if not self.dialect.foreign:
                    raise Unsupported("source of the author's own", launch.node)
                bodies += [Line(""), *source_lines(launch)]
                kernels.append(foreign_launch(self.func, self.host, launch))
                continue
            symbol = f"{self.name}_kernel" + (f"_{number}" if len(self.launches) > 1 else "")
            kernel = _Kernel(self, launch, symbol)
            printed = kernel.lines()
            bodies += [Line(""), *printed]
            kernels.append(kernel.launched())
        lines = [*self._head(), *bodies]
        if line_directives:
            lines = with_line_directives(lines)
        return DeviceSource(
            self.name, self.dialect.name, SourceMap(tuple(lines)), tuple(slots_of(self.func)),
            tuple(kernels), tuple(self.host.workspaces), tuple(self.host.maps),
            tuple(self.host.checks),
        )  # fmt: skip

    def _head(self) -> list[Line]:
        order = {name: n for n, name in enumerate(_HEADER_ORDER)}
        found = sorted(self.headers, key=lambda h: (order.get(h, len(order)), h))
        lines = [Line(f"#define {name}") for name in sorted(self.defines)]
        lines += [Line(self.dialect.include.format(header=h)) for h in found]
        if all(is_foreign(x) for x in self.launches):
            lines = []  # the author's code needs nothing of ours
        preludes = dict(self.host.preludes)
        for launch in self.launches:
            if launch.said.get("prelude"):
                preludes.setdefault(str(launch.said["prelude"]), launch.node)
        for text, node in preludes.items():
            lines += [Line(""), *foreign_lines(text, node)]
        return lines


_HEADER_ORDER = ("common.h", "float16.h", "bfloat16.h", "float8.h", "minifloat.h", "packed.h")


class _Kernel:
    """One launch: its body is printed first, which tells the parameters it needs."""

    def __init__(self, owner: _Printer, launch: Launch, symbol: str) -> None:
        self.owner, self.launch, self.symbol = owner, launch, symbol
        self.dialect = owner.dialect
        self.block = constant_extents(launch, attrs.THREAD_TAGS)
        self.printer = CPrinter(owner.dialect, owner.index_bits)
        self.printer.x.calls.threads = self.block[0] * self.block[1] * self.block[2]
        self.printer.names.fresh(symbol)
        self.params: list[tuple[KernelParam, Any]] = []

    def lines(self) -> list[Line]:
        """The whole function."""
        printer, host = self.printer, self.owner.host
        for var in [*self.owner.func.params, *host.workspace_vars, *host.map_vars]:
            printer.names.reserve(var)
        self._facts()
        prologue = self._indices()
        printer.statement(self.launch.body)
        self._preamble(prologue)
        self.params = self._parameters()
        most = self.dialect.most_params
        if most is not None and len(self.params) > most:
            what = f"a kernel with {len(self.params)} tensors and numbers, more than {most},"
            raise Unsupported(what, self.launch.node)
        declared = [self._declaration(n, p, var) for n, (p, var) in enumerate(self.params)]
        text = ", ".join([*declared, *self.dialect.launch_params])
        self.owner.headers.update(printer.x.headers)
        self.owner.defines.update(printer.x.defines)
        threads = self.block[0] * self.block[1] * self.block[2]
        # Registers are handed over only where it is known with how many a block starts.
        bounds = f"{threads}, 1" if _reallocates(self.launch.body) else str(threads)
        head = self.dialect.kernel.format(name=self.symbol, threads=bounds, params=text)
        span = _span_line(head, self.launch.node)
        return [span, *printer.lines, Line("}", span.spans, span.calls)]

    def _facts(self) -> None:
        """What is known of the values a kernel starts with."""
        analyzer = self.printer.x.analyzer
        for var in free_dims(self.owner.func):
            limit = tirx.Range.from_min_extent(
                build.const(0, build.dtype_of(var)), build.const((1 << 31) - 1, build.dtype_of(var))
            )
            analyzer.bind(var, limit, allow_override=True)
        for axis in self.launch.axes:
            zero = build.const(0, build.dtype_of(axis.var))
            limits = tirx.Range.from_min_extent(zero, axis.extent)
            analyzer.bind(axis.var, limits, allow_override=True)

    def _indices(self) -> list[tuple[Any, str]]:
        """Declare block and thread indices; those the body turns out to use get a line."""
        found = []
        for axis in self.launch.axes:
            type_ = self.printer.x.type_name(parse(build.dtype_of(axis.var)), self.launch.node)
            source = self.dialect.indices[axis.tag]
            name = self.printer.names.reserve(axis.var)
            found.append((axis.var, f"const {type_} {name} = {type_}({source});"))
        return found

    def _preamble(self, indices: list[tuple[Any, str]]) -> None:
        """Lines before the body: indices, host bindings and views that the body uses."""
        printer, names = self.printer, self.printer.names
        body, printer.lines = printer.lines, []
        used: list[list[Line]] = []
        for stmt in reversed([*self.owner.host.binds, *self.owner.host.views]):
            defined = stmt.var if isinstance(stmt, tirx.Bind) else stmt.buffer
            if defined in names.outer:
                printer.lines = []
                printer.statement(stmt)
                used.append(printer.lines)
        printer.lines = []
        for var, text in indices:
            if var in names.outer:
                printer.line(text, self.launch.node)
                names.declare(var)
        if printer.arena:
            arena = self.dialect.arena.format(name=printer.arena, bytes=printer.arena_bytes)
            printer.line(arena, self.launch.node)
        for lines in reversed(used):
            printer.lines += lines
        printer.lines += body

    def _parameters(self) -> list[tuple[KernelParam, Any]]:
        owner, printer = self.owner, self.printer
        outer = printer.names.outer
        ordered: list[tuple[str, Any]] = []
        for param in owner.func.params:
            ordered.append(("buffer" if tirx.is_buffer_var(param) else "scalar", param))
        ordered += [("workspace", v) for v in owner.host.workspace_vars]
        ordered += [("map", v) for v in owner.host.map_vars]
        ordered += [("dim", v) for v in free_dims(owner.func)]
        found = [self._parameter(kind, var) for kind, var in ordered if var in outer]
        missing = set(outer) - {var for _, var in ordered}
        if missing:
            names = ", ".join(sorted(str(v.name) for v in missing))
            raise Unsupported(f"the use of {names} outside its scope", self.launch.node)
        return found

    def _parameter(self, kind: Any, var: Any) -> tuple[KernelParam, Any]:
        if kind in ("buffer", "workspace"):
            x = self.printer.x
            written = var in x.written or self._viewed(var)
            alignment = x.alignment.get(var, 1)
            row = KernelParam(kind, self._source(var), str(var.dtype), alignment, written)
        else:
            dtype = "handle" if kind == "map" else build.dtype_of(var)
            row = KernelParam(kind, self._source(var), dtype)
        return row, var

    def _source(self, var: Any) -> str:
        """What the host calls `var`."""
        return str(self.owner.host.values.get(var, var.name))

    def _viewed(self, buffer: Any) -> bool:
        """Whether a view, through which it may be written, exists."""
        views = [*self.owner.host.views, *_views(self.launch.body)]
        return any(source is not None and source.same_as(buffer)
                   for source in map(storage_of, views))  # fmt: skip

    def _declaration(self, number: int, row: KernelParam, var: Any) -> str:
        x, dialect = self.printer.x, self.dialect
        name = self.printer.names.use(var)
        if row.kind == "map":
            self.owner.headers["tma.h"] = None
            return dialect.map_param.format(name=name, number=number)
        if row.kind in ("buffer", "workspace"):
            constant = "" if row.written else "const "
            element = x.memory_type(parse(row.dtype), var)
            return dialect.buffer_param.format(
                constant=constant, type=element, restrict=self.owner.restrict, name=name,
                number=number,
            )  # fmt: skip
        type_ = x.type_name(parse(row.dtype), var)
        return dialect.value_param.format(type=type_, name=name, number=number)

    def launched(self) -> KernelLaunch:
        """How the kernel is launched; after `lines`."""
        host, launch = self.owner.host, self.launch
        grid = [launch.extent(tag) for tag in attrs.BLOCK_TAGS]
        x, y, z = (1 if e is None else host.expr(e) for e in grid)
        bx, by, bz = self.block
        return KernelLaunch(
            self.symbol, tuple(p for p, _ in self.params), (x, y, z), (bx, by, bz),
            self.printer.arena_bytes, self.printer.static_bytes,
            self.printer.x.calls.cooperative, cluster_of(launch),
        )  # fmt: skip


def legal_symbol(func: Any) -> str:
    """The name of a function as a C identifier."""
    said = dict(func.attrs) if func.attrs is not None else {}
    name = str(said.get(attrs.GLOBAL_SYMBOL, "kernel"))
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)


def refusal(refused: Unsupported, language: str) -> Diagnostic:
    """TL401 for what cannot be printed."""
    node = refused.node
    return Diagnostic(
        code="TL401",
        severity=code_of("TL401").severity,
        message=f"{refused.what} cannot be compiled for {language}",
        span=from_tir(getattr(node, "span", None)),
        label=f"the {language} backend has no meaning for this",
        calls=calls_of(getattr(node, "span", None)),
    )


def _reallocates(body: Any) -> bool:
    """Whether warp groups change how many registers they have."""
    names = (str(getattr(e.op, "name", "")) for e in collect(body, tirx.Call))
    return attrs.op_name("set_max_nreg") in names


def _span_line(text: str, node: Any) -> Line:
    return Line(text, spans_of(node), calls_of(node.span))


def _views(body: Any) -> list[Any]:
    return collect(body, tirx.DeclBuffer)
