"""What did lowering make of a kernel: which instructions, how many stages, how much memory?

Everything is read off the last IR, by the spans of the author's own statements. This is the one
file of what looks into kernels that needs TVM.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tilelang.choices import Note
from tilelang.compiler import effective_options, lower_function
from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import SHARED_OFFSET, constants_of, op_of_call
from tilelang.ir.spans import from_tir
from tilelang.ir.visit import collect
from tilelang.options import CompileOptions
from tilelang.program.arith import constant_value
from tilelang.program.stmt import For, Function, Launch, TileOp, walk_statements
from tilelang.target import Target
from tilelang_diagnostics import Diagnostic, Span, has_errors
from tilelang_lsp.describe_budget import byte_text
from tilelang_lsp.model import Fact, Share

# What a statement becomes, and why nothing faster; other choices belong to tiles and loops.
_OF_STATEMENTS = ("copy", "gemm", "operand")
SHARED = ("shared", "shared.dyn", "shared.barrier", "shared.cluster_barrier")


@dataclass(slots=True)
class Told:
    """What lowering tells; `finished` says that there is code to tell of. `loading` are the threads
    of a block that the compiler added, to load what the others compute with."""

    facts: list[Fact] = field(default_factory=list)
    shared: int = 0
    loading: int = 0
    shares: list[Share] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    finished: bool = False


def lowered_facts(function: Function, target: Target, path: str) -> Told:
    """Lower a kernel and read the result. Raises what lowering raises."""
    options = effective_options(function, CompileOptions())
    lowered = lower_function(function, target, options, thorough=True)
    told = Told(diagnostics=list(lowered.diagnostics))
    if has_errors(told.diagnostics):
        return told
    if not target.capabilities.threads_cooperate:
        return told
    told.finished = True
    _memory(lowered.func, told, path)
    used = _instructions(lowered.func)
    for stmt in walk_statements(function.body):
        if isinstance(stmt, TileOp) and stmt.span is not None and stmt.span.file == path:
            chosen = [n for n in lowered.notes if n.span == stmt.span and n.kind in _OF_STATEMENTS]
            fact = _operation(stmt, used.get(stmt.span, _Used()), chosen)
            if fact is not None:
                told.facts.append(fact)
    told.facts += _pipelines(function, told.shares, path)
    told.facts += _loading(function, lowered.func, told, path)
    return told


@dataclass(slots=True)
class _Used:
    """The device operations and vector widths (in bytes) that stand for one statement."""

    calls: dict[str, dict[str, Any]] = field(default_factory=dict)
    widths: dict[int, None] = field(default_factory=dict)


def _instructions(func: Any) -> dict[Span, _Used]:
    found: dict[Span, _Used] = {}
    for call in collect(func.body, tirx.Call):
        op, span = op_of_call(call), from_tir(call.span)
        if op is not None and span is not None:
            found.setdefault(span, _Used()).calls[op.name] = constants_of(call)
    for store, lanes in _stores(func.body):
        span = from_tir(store.span)
        if span is not None:
            bits = find_dtype(str(store.buffer.dtype)).bits * lanes
            found.setdefault(span, _Used()).widths[bits // 8] = None
    return found


def _stores(body: Any) -> Iterator[tuple[Any, int]]:
    """Every store with how many elements it moves at once."""
    vectors: dict[int, int] = {}
    for loop in collect(body, tirx.For):
        if int(loop.kind) == int(tirx.ForKind.VECTORIZED):
            for store in collect(loop.body, tirx.BufferStore):
                vectors[hash(store)] = build.int_value(loop.extent) or 1
    for store in collect(body, tirx.BufferStore):
        yield store, vectors.get(hash(store), 1)


def _operation(stmt: TileOp, used: _Used, chosen: Sequence[Note]) -> Fact | None:
    """What a copy, a product or a reduction became."""
    assert stmt.span is not None
    names = tuple(used.calls)
    match stmt.name:
        case "gemm" | "tcgen05_gemm":
            label = _product(names)
        case "copy" | "async_copy" | "tma_copy" | "copy_cluster" | "im2col" | "transpose":
            label = _copy(used)
        case "reduce" | "scan" | "reducer_finalize":
            label = _reduction(names)
        case _:
            return None
    if not label:
        return None
    detail = [f"`T.{stmt.name}` became **{label}**"]
    for name, constants in used.calls.items():
        said = ", ".join(f"{k}={v}" for k, v in constants.items())
        detail.append(f"- `{name}`{f' ({said})' if said else ''}")
    widest = max(used.widths, default=0)
    if widest:
        detail.append(f"- stores of up to {byte_text(widest)}")
    detail += [f"- {note.said}" for note in chosen]
    return Fact(stmt.span, "instructions", f" {label}", "\n".join(detail))


def _product(names: tuple[str, ...]) -> str:
    for name in names:
        shape = re.match(r"(mma|wgmma)\w*?_(m\d+n\d+k\d+)", name)
        if shape is not None:
            return f"{shape[1]} {shape[2]}"
    for name in names:
        if name.startswith(("wgmma_", "tcgen05_")) and "mma" in name.split("_")[-1]:
            return name
    return "wgmma" if any(n.startswith("wgmma") for n in names) else "plain loops"


def _copy(used: _Used) -> str:
    names = used.calls
    for start, said in (("tma_load", "TMA load"), ("tma_store", "TMA store"),
                        ("bulk_load", "bulk load"), ("bulk_store", "bulk store")):  # fmt: skip
        if any(n.startswith(start) for n in names):
            return said
    if "cp_async" in names:
        return f"cp.async {names['cp_async'].get('bytes', '?')} B"
    if any(n.startswith("stmatrix") for n in names):
        return "stmatrix"
    if any(n.startswith("ldmatrix") for n in names):
        return "ldmatrix"
    widest = max(used.widths, default=0)
    return f"{widest} B a thread" if widest else ""


def _reduction(names: tuple[str, ...]) -> str:
    parts = []
    if any(n.startswith(("shfl", "redux")) for n in names):
        parts.append("warp shuffles")
    if "sync_threads" in names or any(n.startswith("named_barrier") for n in names):
        parts.append("shared memory")
    return " + ".join(parts) or "in registers"


def _memory(func: Any, told: Told, path: str) -> None:
    """Every shared buffer with its versions, and how many bytes all take together."""
    static, dynamic = 0, 0
    for alloc in collect(func.body, tirx.AllocBuffer):
        if str(alloc.buffer.scope()) not in SHARED:
            continue
        said = dict(alloc.annotations or {})
        size = _bytes(alloc.buffer)
        stages = int(said.get(attrs.VERSIONS) or said.get(attrs.IN_STAGES) or 1)
        span = from_tir(alloc.buffer.span)
        told.shares.append(Share(str(alloc.buffer.name), size // stages, stages, span))
        if SHARED_OFFSET in said:
            dynamic = max(dynamic, int(said[SHARED_OFFSET]) + size)
        else:
            static += size
        if stages > 1 and span is not None and span.file == path:
            label = f" ×{stages} {byte_text(size)}"
            detail = f"{stages} versions of {byte_text(size // stages)}, for the pipeline"
            told.facts.append(Fact(span, "pipelines", label, detail, f" ×{stages}"))
    told.shared = static + dynamic


def _loading(function: Function, func: Any, told: Told, path: str) -> Iterator[Fact]:
    """The threads that a launch has beside those its author asks for."""
    counts = [
        build.int_value(s.value) or 0
        for s in collect(func.body, tirx.AttrStmt)
        if str(s.attr_key) == attrs.THREAD_EXTENT and str(s.node.thread_tag) == attrs.THREAD_TAGS[0]
    ]
    launches = [s for s in function.body if isinstance(s, Launch)]
    if len(launches) != len(counts):
        return  # some launch has no threads along x that are counted
    for launch, count in zip(launches, counts, strict=True):
        asked = constant_value(launch.threads[0][1])
        if asked is None or count <= asked:
            continue
        told.loading = max(told.loading, count - asked)
        if launch.span is not None and launch.span.file == path:
            yield Fact(
                launch.span, "launch", f" and {count - asked} that load",
                f"{count} threads a block: {asked} compute, and {count - asked} load the tiles of "
                "the pipeline by TMA",
            )  # fmt: skip


def _bytes(buffer: Any) -> int:
    total = find_dtype(str(buffer.dtype)).bits
    for extent in buffer.shape:
        total *= build.int_value(extent) or 1
    return -(-total // 8)


def _pipelines(function: Function, shares: list[Share], path: str) -> Iterator[Fact]:
    """Stages and bytes behind the header of a pipelined loop."""
    by_span = {s.span: s for s in shares if s.stages > 1}
    for loop in walk_statements(function.body):
        if not isinstance(loop, For) or loop.kind != "pipelined" or loop.span is None:
            continue
        if loop.span.file != path:
            continue
        written = {
            a.buffer.span for s in walk_statements(loop.body) if isinstance(s, TileOp)
            for a in s.args if hasattr(a, "buffer")
        }  # fmt: skip
        tiles = [by_span[span] for span in written if span in by_span]
        if tiles:
            depth = max(t.stages for t in tiles)
            size = sum(t.size * t.stages for t in tiles)
            listed = "\n".join(f"- `{t.name}`: {t.stages} × {byte_text(t.size)}" for t in tiles)
            yield Fact(
                loop.span, "pipelines", f" {depth} stages, {byte_text(size)}",
                f"tiles that exist once for each stage:\n{listed}", f" {depth} stages",
            )  # fmt: skip
