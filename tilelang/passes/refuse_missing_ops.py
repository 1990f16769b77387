"""What a kernel calls by name has to exist on the architecture it is compiled for.

The front end refuses it where the target is known; a kernel traced without one is refused here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tilelang.ir import tirx
from tilelang.ir.attrs import short_name
from tilelang.ir.device_op import DeviceOp
from tilelang.ir.device_ops import DEVICE_OPS, op_of_call
from tilelang.ir.device_support import has_op, lacking_in_call
from tilelang.ir.spans import TirSpan
from tilelang.ir.visit import collect
from tilelang.passes.context import PassContext
from tilelang.target import KINDS, parse_target
from tilelang_diagnostics import raise_for

BARRIERS: Final = {
    "shared.barrier": "alloc_barrier", "shared.cluster_barrier": "alloc_cluster_barrier",
}  # fmt: skip


def refuse_missing_ops(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Report TL401 or TL402 for each operation that the target does not have."""
    target = parse_target(ctx.target)
    arch = target.arch
    for name, op, span, operands in _named(func.body):
        why = lacking_in_call(op, ctx.kind, operands)
        if why is None and has_op(op, target):
            continue
        if why is not None:
            ctx.report(
                "TL401", f"`T.{name}` does not exist on {ctx.target}: {why}", span,
                label=f"{arch} does not have it", help=_elsewhere(op, operands),
            )  # fmt: skip
            continue
        needed = f"cuda:sm_{op.min_arch}{'a' if op.arch_specific else ''}"
        newer = "" if op.arch_specific else " or newer"
        ctx.report(
            "TL402", f"`T.{name}` needs {needed}, and the target is {ctx.target}", span,
            label=f"{arch} does not have it", help=f"compile for {needed}{newer}",
        )  # fmt: skip
    # What follows would only find the same again, one instruction at a time.
    raise_for(ctx.remarks)
    return func


def _elsewhere(op: DeviceOp, operands: int) -> str:
    kinds = [kind for kind in KINDS if lacking_in_call(op, kind, operands) is None]
    return f"compile for a target of kind {' or '.join(kinds)}, or write the kernel without it"


def _named(body: Any) -> Iterator[tuple[str, DeviceOp, TirSpan, int]]:
    """What the author calls, the operation that it needs, and with how many operands."""
    for s in collect(body, tirx.AllocBuffer):
        name = BARRIERS.get(str(s.buffer.scope()))
        if name is not None:
            yield name, DEVICE_OPS["mbarrier_wait_parity"], s.span, 0
    for e in collect(body, tirx.Call):
        name = short_name(str(getattr(e.op, "name", "")))
        op = DEVICE_OPS["tma_load"] if name == "tma_copy" else op_of_call(e)
        if name == "gemm" and str(dict(e.attrs or {}).get("instruction")) == "wgmma":
            name, op = "wgmma_gemm", DEVICE_OPS["wgmma_fence"]
        if op is not None:
            yield name, op, e.span, len(e.args)
