"""Which buffers does a program have at a stage, and what has been attached to them?"""

from __future__ import annotations

from typing import Any

from tilelang_trace.model import Symbol


def symbols_of(func: Any) -> tuple[Symbol, ...]:
    """Parameters, then what is allocated, in the order of the program."""
    from tilelang.ir import tirx
    from tilelang.ir.spans import from_tir
    from tilelang.ir.text_expr import ExprText
    from tilelang.ir.visit import collect

    text = ExprText()

    def symbol(buffer: Any, said: dict[str, Any]) -> Symbol:
        return Symbol(
            text.name(buffer), str(buffer.scope()), str(buffer.dtype),
            tuple(text.expr(e) for e in buffer.shape),
            tuple(sorted((_key(k), str(v)) for k, v in said.items())),
            from_tir(buffer.span),
        )  # fmt: skip

    found = [symbol(p, {}) for p in func.params if tirx.is_buffer_var(p)]
    for node in collect(func.body, tirx.AllocBuffer):
        found.append(symbol(node.buffer, {str(k): v for k, v in dict(node.annotations).items()}))
    return tuple(found)


def _key(key: str) -> str:
    """`tl.versions` and the keys of an author's own by their last word."""
    return key.rpartition(".")[2]
