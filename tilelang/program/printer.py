"""A tile program as text, in the language it was written in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelang.program import stmt as st
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Const
from tilelang.program.text import expr_text, operand_text

_ALLOCATORS = {
    "shared": "alloc_shared", "shared.dyn": "alloc_shared", "local.fragment": "alloc_fragment",
    "local": "alloc_local", "local.var": "alloc_var", "local.reducer": "alloc_reducer",
    "global": "alloc_global", "shared.barrier": "alloc_barrier",
    "shared.cluster_barrier": "alloc_cluster_barrier", "shared.tmem": "alloc_tmem",
}  # fmt: skip
_LOOPS = {
    "serial": "T.serial", "unroll": "T.unroll", "vectorized": "T.vectorized",
    "parallel": "T.Parallel", "pipelined": "T.Pipelined", "cpu_parallel": "T.parallel",
}  # fmt: skip


def function_text(function: st.Function) -> str:
    """The whole kernel, the same from run to run."""
    params = [_parameter(p) for p in function.params]
    lines = [f"def {function.name}({', '.join(params)}):"]
    for buffer in function.outputs:
        lines.append(f"    {buffer.name} = T.empty({_shape(buffer)}, {buffer.dtype.name!r})")
    lines.extend("    " + line for line in block_lines(function.body))
    if function.outputs:
        lines.append(f"    return {', '.join(b.name for b in function.outputs)}")
    return "\n".join(lines) + "\n"


def block_lines(block: st.Block) -> Iterator[str]:
    """The statements of a block, one or more lines each, without indentation."""
    if not block:
        yield "pass"
    for statement in block:
        yield from statement_lines(statement)


def statement_lines(statement: st.Stmt) -> Iterator[str]:
    """One statement; nested blocks are indented."""
    match statement:
        case st.Allocate(buffer=buffer, init=init):
            yield _allocation(buffer, init)
        case st.Let(var=var, value=value):
            yield f"{var.name} = {expr_text(value)}"
        case st.Store(buffer=buffer, indices=indices, value=value):
            if buffer.scope_name == "local.var":
                yield f"{buffer.name} = {expr_text(value)}"
            else:
                yield f"{buffer.name}[{', '.join(map(expr_text, indices))}] = {expr_text(value)}"
        case st.TileOp(name=name, args=args, attrs=attrs):
            given = [operand_text(a) for a in args]
            given += [f"{k}={v!r}" for k, v in attrs if v is not None and v is not False]
            yield f"T.{name}({', '.join(given)})"
        case st.Evaluate(value=value):
            yield expr_text(value)
        case st.For():
            yield _loop_header(statement)
            yield from _indented(statement.body)
        case st.While(condition=condition, body=body):
            yield f"while {expr_text(condition)}:"
            yield from _indented(body)
        case st.If(condition=condition, then=then, orelse=orelse):
            yield f"if {expr_text(condition)}:"
            yield from _indented(then)
            if orelse:
                yield "else:"
                yield from _indented(orelse)
        case st.Assert(condition=condition, message=message):
            yield f"assert {expr_text(condition)}, {message!r}"
        case st.Assume(condition=condition):
            yield f"T.assume({expr_text(condition)})"
        case st.Jump(kind=kind):
            yield "T.thread_return()" if kind == "thread_return" else kind
        case st.Annotate(key=key):
            yield f"T.annotate_{key}(…)"
        case st.Scoped(kind=kind, args=args, body=body):
            yield f"with T.{kind}({', '.join(map(str, args))}):"
            yield from _indented(body)
        case st.Launch():
            yield _launch_header(statement)
            yield from _indented(statement.body)


def _indented(block: st.Block) -> Iterator[str]:
    for line in block_lines(block):
        yield "    " + line


def _parameter(param: Any) -> str:
    if isinstance(param, Buffer):
        kind = "T.Tensor" if param.strides is None else "T.StridedTensor"
        strides = (
            "" if param.strides is None else f", ({', '.join(map(expr_text, param.strides))},)"
        )
        return f"{param.name}: {kind}({_shape(param)}{strides}, {param.dtype.name!r})"
    return f"{param.name}: T.{param.dtype.name}"


def _shape(buffer: Buffer) -> str:
    dims = ", ".join(expr_text(d) for d in buffer.shape)
    return f"({dims},)" if len(buffer.shape) == 1 else f"({dims})"


def _allocation(buffer: Buffer, init: Any) -> str:
    allocator = _ALLOCATORS[buffer.scope_name]
    if buffer.scope_name == "local.var":
        tail = "" if init is None else f", init={expr_text(init)}"
        return f"{buffer.name} = T.{allocator}({buffer.dtype.name!r}{tail})"
    return f"{buffer.name} = T.{allocator}({_shape(buffer)}, {buffer.dtype.name!r})"


def _loop_header(loop: st.For) -> str:
    names = ", ".join(v.var.name for v in loop.loop_vars)
    bounds: list[str] = []
    for v in loop.loop_vars:
        zero = isinstance(v.start, Const) and v.start.value == 0
        if zero and v.step is None:
            bounds.append(expr_text(v.extent))
        elif v.step is None:
            bounds.append(f"{expr_text(v.start)}, {expr_text(v.start + v.extent)}")
        else:
            stop = v.start + v.extent * v.step
            bounds.append(f"{expr_text(v.start)}, {expr_text(stop)}, {expr_text(v.step)}")
    given = [f"{k}={v!r}" for k, v in loop.attrs if isinstance(v, (int, str, tuple)) and v != 0]
    return f"for {names} in {_LOOPS[loop.kind]}({', '.join([*bounds, *given])}):"


def _launch_header(launch: st.Launch) -> str:
    grid = ", ".join(expr_text(e) for _, e in launch.blocks)
    threads = ", ".join(expr_text(e) for _, e in launch.threads)
    names = ", ".join(v.name for v, _ in launch.blocks)
    block = threads if len(launch.threads) == 1 else f"({threads})"
    target = names if len(launch.blocks) == 1 else f"({names})"
    if launch.attr("source") is not None:
        entry = launch.attr("entry")
        return f"with T.CUDASourceCodeKernel({grid}, threads={block}, entry_name={entry!r}):"
    return f"with T.Kernel({grid}, threads={block}) as {target}:"
