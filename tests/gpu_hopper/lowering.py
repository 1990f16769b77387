"""How do tests of Hopper code lower a kernel, and what do they look at?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tilelang.ir import build, tirx
from tilelang.ir.device_ops import constants_of, op_of_call
from tilelang.ir.visit import statements


def outline(func: Any) -> list[str]:
    """The device operations of a function in order; `[…]` what some threads run, `(…)` loops."""
    return list(_outline(func.body))


def _outline(s: Any) -> Iterator[str]:
    for one in statements(s):
        if isinstance(one, tirx.SeqStmt):
            yield from _outline(one)
        elif isinstance(one, tirx.AttrStmt):
            yield from _outline(one.body)
        elif isinstance(one, (tirx.For, tirx.While)):
            inner = list(_outline(one.body))
            yield from ["(", *inner, ")"] if inner else []
        elif isinstance(one, tirx.IfThenElse):
            inner = list(_outline(one.then_case))
            yield from ["[", *inner, "]"] if inner else []
        elif isinstance(one, tirx.BufferStore):
            if str(one.buffer.scope()).startswith("shared"):
                yield "store"
        elif isinstance(one, tirx.Evaluate):
            op = op_of_call(one.value)
            if op is not None:
                yield _name(op.name, one.value)


def _name(name: str, call: Any) -> str:
    numbers = [n for a in call.args if (n := build.int_value(a)) is not None]
    if name == "sync_threads" and numbers:
        return f"{name} {numbers[1]}"
    groups = constants_of(call).get("groups")
    return name if groups is None else f"{name} {int(groups)}"
