"""How does a lowered kernel become an object file for this processor?

    PrimFunc -> one LLVM function per launch, and one that computes grids -> object code + manifest

The printed LLVM IR is the `source` of the artifact; LLVM optimises and vectorises it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_artifact import CpuArtifact, CpuLaunch, CpuMessage, CpuSlot
from tilelang.codegen.cpu_bounds import Interval
from tilelang.codegen.cpu_builder import Builder, Module, Val, integer
from tilelang.codegen.cpu_calls import Calls
from tilelang.codegen.cpu_element import Unsupported
from tilelang.codegen.cpu_expr import Expressions, dtype_of
from tilelang.codegen.cpu_launches import Launch, split_launches
from tilelang.codegen.cpu_memory import Memory, mul64, row_major
from tilelang.codegen.cpu_stmt import Statements
from tilelang.ir import llvm
from tilelang.ir.spans import calls_of, from_tir
from tilelang.nested import nested
from tilelang_diagnostics import diagnose
from tilelang_diagnostics.model import Diagnostic, Span


class CpuError(Exception):
    """The kernel cannot be compiled for the CPU; `diagnostics` say why and where."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__("; ".join(d.message for d in diagnostics))
        self.diagnostics = tuple(diagnostics)


def build_cpu(
    func: Any,
    *,
    options: Any = None,
    find_object: Callable[[CpuArtifact], bytes | None] | None = None,
    cpu: llvm.HostCpu | None = None,
) -> CpuArtifact:
    """Compile a lowered PrimFunc for the CPU; raises `CpuError` with diagnostics.

    `func` is the result of the CPU pipeline: no tile operations, no thread indices. See
    `cpu_artifact` for the result and how it is called. Code is made for `cpu`, this host's when
    left out; no option changes what is built.
    `find_object` may know the object code of an artifact that has all but that: LLVM, which takes
    most of the time, is then left out.
    """
    cpu = cpu or llvm.host_cpu()
    with nested("print"):
        printer = print_cpu(func, cpu)
    printed = CpuArtifact(
        name=printer.name,
        slots=tuple(printer.slots),
        launches=tuple(printer.launches),
        info_symbol=f"{printer.name}_info",
        workspaces=printer.workspaces,
        messages=tuple(printer.messages),
        triple=cpu.triple,
        cpu=cpu.name,
        object_code=b"",
        source=printer.text,
        places=tuple(printer.spans),
    )
    known = find_object(printed) if find_object is not None else None
    if known is None:
        with nested("LLVM"):
            known = llvm.compile_llvm(printer.text, printer.forwarders, cpu)
    return replace(printed, object_code=known)


def print_cpu(func: Any, cpu: llvm.HostCpu | None = None) -> Printed:
    """The LLVM IR of `func` and its manifest, uncompiled."""
    try:
        return _Printer(func, cpu or llvm.host_cpu()).run()
    except Unsupported as refused:
        raise CpuError([_refusal(refused)]) from refused


@dataclass
class Printed:
    """LLVM IR text with what the manifest says about it."""

    name: str
    text: str = ""
    slots: list[CpuSlot] = field(default_factory=list)
    launches: list[CpuLaunch] = field(default_factory=list)
    messages: list[CpuMessage] = field(default_factory=list)
    forwarders: list[llvm.Forwarder] = field(default_factory=list)
    workspaces: int = 0
    spans: list[Span | None] = field(default_factory=list)  # the place of each line of `text`


class _Printer:
    """Prints one kernel."""

    def __init__(self, func: Any, cpu: llvm.HostCpu) -> None:
        self.func = func
        symbol = func.attrs.get("global_symbol", "kernel")
        self.out = Printed(re.sub(r"\W", "_", str(symbol)))
        self.module = Module(has_scale=cpu.has_scale, has_fma=cpu.has_fma)
        self.host, self.launches = split_launches(func.body)
        self.dims = _free_dims(func)
        self.workspace_buffers = [s.buffer for s in self.host if _is_alloc(s)]

    def run(self) -> Printed:
        out = self.out
        out.workspaces = len(self.workspace_buffers)
        for param in self.func.params:
            kind = "buffer" if _is_buffer(param) else "scalar"
            dtype = str(param.dtype) if kind == "buffer" else str(dtype_of(param))
            out.slots.append(CpuSlot("buffer" if kind == "buffer" else "scalar", param.name, dtype))
        out.slots += [CpuSlot("dim", v.name, str(dtype_of(v))) for v in self.dims]
        self._print_info()
        for index, launch in enumerate(self.launches):
            self._print_launch(index, launch)
        out.text = self.module.text()
        out.spans = self.module.spans()
        return out

    # --- functions ---

    def _print_launch(self, index: int, launch: Launch) -> None:
        name = f"{self.out.name}_launch{index}"
        params = (("next", "ptr"), ("total", "i64"), ("chunk", "i64"), ("slots", "ptr"),
                  ("scratch", "ptr"), ("status", "ptr"))  # fmt: skip
        f = _Function(self, name, params, Val("%scratch", "ptr"))
        f.load_arguments()
        f.host_statements(self.host)
        f.blocks(launch)
        scratch = f.finish()
        self.out.launches.append(CpuLaunch(name, scratch, launch.serial, launch.note))
        kinds = tuple(kind for _, kind in params)
        self.out.forwarders.append(llvm.Forwarder(name, f"{name}_body", kinds))

    def _print_info(self) -> None:
        name = f"{self.out.name}_info"
        f = _Function(self, name, (("slots", "ptr"), ("status", "ptr")), Val("null", "ptr"))
        b = f.b
        b.store(integer(0, "i64"), Val("%status", "ptr"), 8)
        f.load_arguments()
        f.host_statements(self.host, check=True)
        sizes = [f.grid_size(launch) for launch in self.launches]
        sizes += [f.byte_size(buffer) for buffer in self.workspace_buffers]
        for i, size in enumerate(sizes):
            place = b.element(Val("%status", "ptr"), integer(i + 1, "i64"), "i64")
            b.store(size, place, 8)
        f.finish()
        self.out.forwarders.append(llvm.Forwarder(name, f"{name}_body", ("ptr", "ptr")))

    def message(self, text: str, node: Any) -> int:
        """The number of a message in the manifest."""
        span = from_tir(node.span) if node.span is not None else None
        entry = CpuMessage(text)
        if span is not None:
            entry = CpuMessage(
                text, span.file, span.line, span.column, span.end_line, span.end_column
            )
        if entry not in self.out.messages:
            self.out.messages.append(entry)
        return self.out.messages.index(entry)


class _Function:
    """One exported function: arguments, host bindings, then blocks or sizes."""

    def __init__(
        self, owner: _Printer, name: str, params: Sequence[tuple[str, str]], scratch: Val
    ) -> None:
        self.owner = owner
        self.shares_blocks = any(name == "next" for name, _ in params)
        noalias = [(n, k if n != "scratch" else "ptr noalias align 64") for n, k in params]
        self.b = Builder(owner.module, f"{name}_body", noalias)
        self.b.at = from_tir(owner.func.span)
        self.memory = Memory(self.b, scratch)
        self.exit = self.b.label("exit")
        self.block_end = self.exit
        calls = Calls(self.b, self._fail, self._leave)
        self.x = Expressions(self.b, self.memory, calls)
        self.statements = Statements(self.x, self._fail)

    def finish(self) -> int:
        """Close the function; returns the scratch bytes it needs."""
        self.b.open(self.exit)
        self.b.ret()
        self.memory.finish()
        self.b.finish()
        return self.memory.scratch_bytes

    def _leave(self) -> None:
        self.b.branch(self.statements.thread_end or self.block_end)

    def _fail(self, condition: Val, text: str, node: Any) -> None:
        b = self.b
        good, bad = b.label("holds"), b.label("fails")
        b.branch_if(condition, good, bad)
        b.open(bad)
        number = integer(self.owner.message(text, node) + 1, "i64")
        b.store(number, Val("%status", "ptr"), 8)
        if self.shares_blocks:
            # No worker finds another block.
            b.emit("atomicrmw max ptr %next, i64 %total monotonic", "i64")
        b.branch(self.exit)
        b.open(good)

    # --- arguments ---

    def load_arguments(self) -> None:
        """Scalars and dims become values, parameters and workspaces become buffers."""
        owner, x = self.owner, self.x
        params = list(owner.func.params)
        for index, param in enumerate(params):
            if not _is_buffer(param):
                self._scalar(index, param)
        for index, var in enumerate(owner.dims, len(params)):
            self._scalar(index, var)
            if dtype_of(var).base == "int32":
                x.bounds.bind(var, Interval(0, (1 << 31) - 1))
        for index, param in enumerate(params):
            if _is_buffer(param):
                self._buffer(param, self._pointer(index))

    def _slot(self, index: int, base: str) -> Val:
        b = self.b
        place = b.element(Val("%slots", "ptr"), integer(index, "i64"), "i64")
        return b.load(place, base, 1, 8, f", !invariant.load {self._empty()}")

    def _empty(self) -> str:
        return self.owner.module.node("!{}")

    def _scalar(self, index: int, var: Any) -> None:
        dtype = dtype_of(var)
        if dtype.is_float:
            raw = self._slot(index, "double")
            value = types.convert(self.b, raw, types.parse("float64"), dtype)
        else:
            raw = self._slot(index, "i64")
            value = types.convert(self.b, raw, types.parse("int64"), dtype)
        self.x.values[var] = value

    def _pointer(self, index: int) -> Val:
        return self.b.cast("inttoptr", self._slot(index, "i64"), "ptr")

    def _buffer(self, buffer: Any, pointer: Val) -> None:
        x = self.x
        shape = [x.index(d) for d in buffer.shape]
        given = [x.index(s) for s in buffer.strides or []]
        strides = given or list(row_major(self.b, shape))
        offset = x.index(buffer.elem_offset) if buffer.elem_offset is not None else None
        self.memory.outside(buffer, pointer, shape, strides, offset or integer(0, "i64"))

    def host_statements(self, host: Sequence[Any], check: bool = False) -> None:
        """Bindings before the launches; assertions only where `check`."""
        workspace = 0
        base = len(self.owner.out.slots)
        for stmt in host:
            kind = type(stmt).__name__
            if kind == "AllocBuffer":
                if not check:
                    self._buffer(stmt.buffer, self._pointer(base + workspace))
                workspace += 1
            elif kind == "AssertStmt" and not check:
                continue
            elif kind == "DeclBuffer" and check and not self.memory.knows(_source(stmt)):
                continue  # a view of a workspace, which is not there yet
            else:
                self.statements.emit(stmt)

    # --- sizes ---

    def grid_size(self, launch: Launch) -> Val:
        """The number of blocks; 0 when any extent is not positive."""
        total = integer(1, "i64")
        for axis in launch.blocks:
            total = mul64(self.b, total, self._extent(axis.extent))
        return total

    def byte_size(self, buffer: Any) -> Val:
        dtype = types.parse(str(buffer.dtype))
        total = integer(1, "i64")
        for dim in buffer.shape:
            total = mul64(self.b, total, self.x.index(dim))
        return mul64(self.b, total, integer(max(1, dtype.bytes), "i64"))

    def _extent(self, extent: Any) -> Val:
        size = self.x.index(extent)
        return self.b.intrinsic("smax", size, integer(0, "i64"))

    # --- blocks ---

    def blocks(self, launch: Launch) -> None:
        """Draw chunks of blocks until none is left, and run the body of `launch` for each."""
        b, x = self.b, self.x
        extents = [self._extent(axis.extent) for axis in launch.blocks]
        draw, chunk = b.label("draw"), b.label("chunk")
        head, body = b.label("block"), b.label("run")
        self.block_end = b.label("block_end")
        total, size = Val("%total", "i64"), Val("%chunk", "i64")
        b.open(draw)
        begin = b.emit("atomicrmw add ptr %next, i64 %chunk monotonic", "i64")
        b.branch_if(b.compare("slt", begin, total), chunk, self.exit)
        b.open(chunk)
        end = b.intrinsic("smin", b.binary("add", begin, size, "nsw "), total)
        b.open(head)
        after = b.label("%next_block")
        text = f"phi i64 [ {begin.ref}, %{chunk} ], [ {after}, %{self.block_end} ]"
        block = b.emit(text, "i64")
        b.branch_if(b.compare("slt", block, end), body, draw)
        b.open(body)
        rest = block
        for axis, extent in zip(launch.blocks, extents, strict=True):
            last = axis is launch.blocks[-1]
            index = rest if last else b.binary("urem", rest, extent)
            rest = rest if last else b.binary("udiv", rest, extent)
            x.values[axis.var] = b.cast("trunc", index, types.register(dtype_of(axis.var)))
            high = x.bounds.of(axis.extent).high
            x.bounds.bind(axis.var, Interval(0, max(0, min(high, (1 << 31) - 1) - 1)))
        self.statements.emit(launch.body)
        b.open(self.block_end)
        b.do(f"{after} = add nsw i64 {block.ref}, 1")
        b.branch(head)


def _free_dims(func: Any) -> list[Any]:
    """Variables of the parameters' shapes and strides that are no parameters, in order."""
    known = {p for p in func.params if not _is_buffer(p)}
    found: list[Any] = []

    def visit(e: Any) -> None:
        if type(e).__name__ == "Var":
            if e not in known:
                known.add(e)
                found.append(e)
            return
        for part in (getattr(e, "a", None), getattr(e, "b", None), getattr(e, "value", None)):
            if part is not None and not isinstance(part, (int, float)):
                visit(part)

    for param in func.params:
        if _is_buffer(param):
            for e in (*param.shape, *(param.strides or [])):
                visit(e)
    return found


def _is_buffer(var: Any) -> bool:
    return type(var.ty).__name__ == "BufferType"


def _is_alloc(stmt: Any) -> bool:
    return type(stmt).__name__ == "AllocBuffer"


def _source(stmt: Any) -> Any:
    args = getattr(stmt.data, "args", None)
    return args[0] if args else None


def _refusal(refused: Unsupported) -> Diagnostic:
    node = refused.node
    return diagnose(
        code="TL401",
        message=f"{refused.what} cannot be compiled for the CPU",
        span=from_tir(node.span),
        label="the CPU backend has no meaning for this",
        calls=calls_of(node.span),
    )
