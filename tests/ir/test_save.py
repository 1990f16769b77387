"""IR that no file can hold is refused by name; names of variables survive being saved."""

from __future__ import annotations

from typing import Any

import pytest

from tilelang.ir import attrs, build, tirx
from tilelang.ir.read import read_function
from tilelang.ir.save import saved_function
from tilelang.ir.spans import to_tir
from tilelang.ir.visit import collect
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Span

PLACE = Span("k.py", 3, 5, 3, 9)


def kernel(make: Any) -> Any:
    """A function whose body `make` builds from the place and a tensor of four numbers."""
    tirx.load_tvm()
    at = to_tir(PLACE)
    size = build.const(4, "int32", at)
    tensor = tirx.decl_buffer([size], "int32", name="A", scope="global", span=at, layout=None)
    func = tirx.PrimFunc([tensor], make(at, tensor), span=at)
    said = {attrs.GLOBAL_SYMBOL: "k", attrs.STAGE: "loops", attrs.NUM_OUTPUTS: 0}
    return func.with_attr(said)


def stored(at: Any, tensor: Any, value: Any) -> Any:
    return tirx.BufferStore(tensor, value, [build.const(0, "int32", at)], at)


def let(at: Any, tensor: Any) -> Any:
    x = tirx.Var("x", "int32", at)
    return stored(at, tensor, tirx.Let(x, build.const(1, "int32", at), x, at))


def returned(at: Any, tensor: Any) -> Any:
    from tvm.tirx import Return

    return Return(build.const(0, "int32", at), at)


def offset(at: Any, tensor: Any) -> Any:
    four = build.const(4, "int32", at)
    part = tirx.decl_buffer(
        [four], "int32", name="part", scope="global", span=at, layout=None, elem_offset=four
    )
    return build.seq([
        build.declare(part, build.data_of(tensor, at), at),
        stored(at, part, build.const(1, "int32", at)),
    ], at)  # fmt: skip


def stepped(at: Any, tensor: Any) -> Any:
    i, four = tirx.Var("i", "int32", at), build.const(4, "int32", at)
    two = build.const(2, "int32", at)
    zero = build.const(0, "int32", at)
    body = stored(at, tensor, i)
    return tirx.For(i, zero, four, tirx.ForKind.SERIAL, body, None, {}, two, at)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (let, "`Let` has no form in a file of IR"),
        (returned, "`Return` has no form in a file of IR"),
        (offset, "the offset of `part` has no form in a file of IR"),
        (stepped, "the IR reads back as another program"),
    ],
)
def test_what_no_file_can_hold(make: Any, message: str) -> None:
    with pytest.raises(CompileError) as raised:
        saved_function(kernel(make), "k", "emit")
    (found,) = raised.value.diagnostics
    assert (found.code, found.message) == ("TL193", message)
    assert found.span in (PLACE, None) and found.help


@pytest.mark.parametrize(
    ("names", "printed"),
    [
        (["i", "i", "i"], ["i", "i_1", "i_2"]),
        (["i_1", "i", "i"], ["i_1", "i", "i_2"]),
        (["i", "i_1", "i"], ["i", "i_1", "i_2"]),
        (["for", "T", "x y"], ["_for", "T_1", "x_y"]),
    ],
)
def test_variables_keep_their_names(names: list[str], printed: list[str]) -> None:
    def make(at: Any, tensor: Any) -> Any:
        one = build.const(1, "int32", at)
        made = [tirx.Bind(tirx.Var(name, "int32", at), one, at) for name in names]
        return build.seq([*made, stored(at, tensor, one)], at)

    text = saved_function(kernel(make), "k", "emit")
    assert [f"    {name} = 1" in text for name in printed] == [True] * len(printed)
    again = read_function(text, "k.py").func
    assert [str(s.var.name) for s in collect(again.body, tirx.Bind)] == names
