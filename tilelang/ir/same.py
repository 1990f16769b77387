"""Are two functions the same, layouts by what they say?

TVM compares Python objects in attributes, such as layouts, by identity.
"""

from __future__ import annotations

from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.text_values import value_text
from tilelang.ir.visit import Rewriter


def same_function(a: tirx.PrimFunc, b: tirx.PrimFunc) -> bool:
    """Whether they are structurally equal, with equal attributes throughout."""
    return bool(tirx.structural_equal(_comparable(a), _comparable(b)))


def _comparable(func: tirx.PrimFunc) -> tirx.PrimFunc:
    body = _Plain().any(func.body)
    return tirx.PrimFunc(list(func.params), body).with_attr(_plain(func.attrs))


def _plain(said: Any) -> dict[str, Any]:
    """Attributes as text, but for buffers."""
    found = {} if said is None else dict(said)
    return {str(k): v if isinstance(v, tirx.Var) else value_text(v) for k, v in found.items()}


class _Plain(Rewriter):
    def alloc(self, s: Any) -> Any:
        said = _plain(s.annotations)
        flat = said.pop(attrs.FLAT, None)
        made = tirx.AllocBuffer(s.buffer, said, s.span)
        # TVM maps variables where statements define them, and an annotation is no statement.
        return made if flat is None else build.seq([made, build.allocate(flat)], s.span)

    def for_(self, s: Any) -> Any:
        new = super().for_(s)
        return tirx.For(
            new.loop_var, new.min, new.extent, new.kind, new.body, new.thread_binding,
            _plain(new.annotations), new.step, new.span,
        )  # fmt: skip

    def attr(self, s: Any) -> Any:
        new = super().attr(s)
        if not isinstance(new.node, attrs.Held):
            return new
        said = tirx.StringImm(value_text(new.node))
        return tirx.AttrStmt(said, new.attr_key, new.value, new.body, new.span)

    def call(self, e: Any) -> Any:
        new = super().call(e)
        if new.attrs is None or not dict(new.attrs):
            return new
        return tirx.Call(
            new.op, list(new.args), attrs=_plain(new.attrs), ret_ty=new.ty, span=new.span
        )
