"""What does T.print write on the CPU? One line per value, through the C library's printf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_builder import Builder, Val
from tilelang.codegen.cpu_element import attr_of
from tilelang.codegen.cpu_regions import each_element
from tilelang.dtypes import DType

if TYPE_CHECKING:
    from tilelang.codegen.cpu_expr import Expressions


def print_values(x: Expressions, e: Any) -> None:
    """`T.print(value, msg)`: the message, then the value."""
    message = str(attr_of(e, "msg", ""))
    parts, values = [], []
    for arg in e.args:
        code, value = _printed(x.b, x.value(arg), types.parse(str(arg.ty)))
        parts.append(code)
        values.append(value)
    _line(x.b, " ".join([_escaped(message), *parts]).strip(), values)


def print_buffer(x: Expressions, e: Any) -> None:
    """`T.print(buffer, msg)`: a line `name[i, j] = value` for each element."""
    (region,) = e.args
    dtype = types.parse(str(region.source.dtype))
    message = _escaped(str(attr_of(e, "msg", "")))
    head = f"{message} {region.source.name}".strip()

    def visit(indices: Sequence[Val], value: Val) -> None:
        code, shown = _printed(x.b, value, dtype)
        places = ", ".join("%lld" for _ in indices)
        _line(x.b, f"{head}[{places}] = {code}", [*indices, shown])

    each_element(x, region, visit)


def _line(b: Builder, text: str, values: Sequence[Val]) -> None:
    printf = b.module.declare("printf", "i32", ["ptr"], vararg=True)
    args = [b.module.string(text + "\n"), *values]
    b.emit(f"call i32 (ptr, ...) {printf}({', '.join(map(str, args))})", "i32")
    # Python does not know of C's buffer: unflushed lines would come out after everything else.
    flush = b.module.declare("fflush", "i32", ["ptr"])
    b.emit(f"call i32 {flush}(ptr null)", "i32")


def _printed(b: Builder, value: Val, dtype: DType) -> tuple[str, Val]:
    """How printf shows a value, and the value as a variadic argument."""
    if dtype.is_float:
        return "%g", b.cast("fpext", types.to_float(b, value, dtype), "double")
    if dtype.kind in ("bool", "uint"):
        return "%llu", b.cast("zext", value, "i64")
    return "%lld", b.cast("sext", value, "i64")


def _escaped(text: str) -> str:
    return text.replace("%", "%%")
