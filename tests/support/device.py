"""Thread-level kernels for tests: written in the language, with device operations as extern calls.

`T.call_extern("handle", "ldmatrix_x4", …)` of a name in the table of device operations becomes that
operation; constants follow the name: `"cp_async bytes=16"`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.ir import build, device_ops, tirx
from tilelang.ir.emit import emit
from tilelang.ir.visit import Rewriter, substitute, with_body
from tilelang.passes.context import PassContext
from tilelang.passes.simplify import simplify
from tilelang.passes.vectorize_accesses import vectorize_accesses


def device_func(
    kernel: Any, vectorize: bool = True, maps: Mapping[str, tuple[str, Sequence[int], int]] = {}
) -> Any:
    """The PrimFunc of a `T.prim_func` that is written at thread level.

    `maps`: an int64 parameter stands for a tensor map of (buffer, box, swizzle).
    """
    func = _with_maps(emit(kernel.function), maps)
    func = with_body(func, _DeviceOps().any(func.body))
    context = PassContext("cuda:sm_90a")
    func = simplify(func, context)
    return vectorize_accesses(func, context) if vectorize else func


def _with_maps(func: Any, maps: Mapping[str, tuple[str, Sequence[int], int]]) -> Any:
    params = {str(p.name): p for p in func.params}
    binds, values = [], {}
    for name, (buffer, box, swizzle) in maps.items():
        source = params[buffer]
        whole = [(build.const(0, "int32"), n) for n in source.shape]
        region = build.region(source, whole, source.span)
        var = tirx.Var(name, "handle", source.span)
        made = device_ops.tensor_map(region, box, swizzle=swizzle, span=source.span)
        binds.append(tirx.Bind(var, made, source.span))
        values[params.pop(name)] = var
    if not binds:
        return func
    body = build.seq([*binds, substitute(func.body, values)])
    return tirx.PrimFunc(list(params.values()), body, span=func.span).with_attr(dict(func.attrs))


class _DeviceOps(Rewriter):
    def call(self, e: Any) -> Any:
        e = super().call(e)
        if str(getattr(e.op, "name", "")) != "tl.call_extern":
            return e
        name, *rest = str(e.attrs["function"]).split()
        if device_ops.find_op(name) is None:
            return e
        constants = {k: _value(v) for k, v in (part.split("=") for part in rest)}
        op = device_ops.DEVICE_OPS[name]
        args = [
            _region(a) if row.by_reference else a
            for row, a in zip(op.operands, e.args, strict=False)
        ]
        dtype = "void" if op.result is None else build.dtype_of(e)
        return device_ops.call(name, args, dtype=dtype, span=e.span, **constants)


def _region(arg: Any) -> Any:
    if isinstance(arg, tirx.TensorRegion):
        return arg
    if isinstance(arg, tirx.TensorLoad):
        return build.region(
            arg.source, [(i, build.const(1, "int32")) for i in arg.indices], arg.span
        )
    extents = [(build.const(0, "int32"), n) for n in arg.shape]
    return build.region(arg, extents, arg.span)


def _value(text: str) -> Any:
    return int(text) if text.lstrip("-").isdigit() else text
