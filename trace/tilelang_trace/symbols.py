"""Which buffers does a program have at a stage, and what has been attached to them?"""

from __future__ import annotations

from typing import Any

from tilelang_trace.model import Symbol


class SymbolTable:
    """The buffers of the programs of one compilation; those that passes left alone are known."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Any, Symbol]] = {}  # by address of what declares them

    def of(self, func: Any) -> tuple[Symbol, ...]:
        """Parameters, then what is allocated, in the order of the program."""
        from tilelang.ir import tirx
        from tilelang.ir.text_expr import ExprText
        from tilelang.ir.visit import collect

        text = ExprText()
        found = [self._symbol(p, p, text) for p in func.params if tirx.is_buffer_var(p)]
        found += [self._symbol(n, n.buffer, text) for n in collect(func.body, tirx.AllocBuffer)]
        return tuple(found)

    def _symbol(self, node: Any, buffer: Any, text: Any) -> Symbol:
        name = text.name(buffer)
        known = self._known.get(hash(node))
        if known is not None and known[1].name == name:
            return known[1]
        said = {} if node is buffer else {str(k): v for k, v in dict(node.annotations).items()}
        found = _symbol(name, buffer, said, text)
        if all(extent.isdecimal() for extent in found.shape):  # else variables are named on the way
            self._known[hash(node)] = node, found
        return found


def _symbol(name: str, buffer: Any, said: dict[str, Any], text: Any) -> Symbol:
    from tilelang.ir.spans import from_tir

    return Symbol(
        name, str(buffer.scope()), str(buffer.dtype), tuple(text.expr(e) for e in buffer.shape),
        tuple(sorted((_key(k), str(v)) for k, v in said.items())), from_tir(buffer.span),
    )  # fmt: skip


def _key(key: str) -> str:
    """`tl.versions` and the keys of an author's own by their last word."""
    return key.rpartition(".")[2]
