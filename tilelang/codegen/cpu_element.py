"""What do the emitters of calls share: refusal, attributes, and operands passed by reference?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tilelang.codegen.cpu_builder import Val, integer

if TYPE_CHECKING:
    from tilelang.codegen.cpu_expr import Expressions
    from tilelang.codegen.cpu_memory import View

VOID: Final = Val("void", "void")


class Unsupported(Exception):
    """Something the CPU backend has no meaning for; `node` says where."""

    def __init__(self, what: str, node: Any) -> None:
        super().__init__(what)
        self.what = what
        self.node = node


def element_of(x: Expressions, region: Any) -> tuple[View, Val]:
    """The view and element offset of an operand passed by reference: its first element."""
    if hasattr(region, "region"):
        view = x.memory.view(region.source)
        return view, x.memory.offset(view, [x.index(r.min) for r in region.region])
    if hasattr(region, "indices"):
        view = x.memory.view(region.source)
        return view, x.memory.offset(view, [x.index(i) for i in region.indices])
    view = x.memory.view(region)
    return view, x.memory.offset(view, [integer(0, "i64") for _ in view.shape])


def attr_of(e: Any, key: str, default: Any) -> Any:
    """An attribute of a call, or `default`."""
    return default if e.attrs is None else e.attrs.get(key, default)
