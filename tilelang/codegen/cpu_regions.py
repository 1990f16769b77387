"""How do calls that look at a whole region (printing it, any, all) visit its elements?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tilelang.codegen.cpu_builder import Builder, Val, integer
from tilelang.codegen.cpu_memory import add64

if TYPE_CHECKING:
    from tilelang.codegen.cpu_expr import Expressions


def each_element(x: Expressions, region: Any, body: Callable[[Sequence[Val], Val], None]) -> None:
    """Emit loops that run `body(indices, value)` for every element, last index fastest."""
    view = x.memory.view(region.source)
    starts = [x.index(r.min) for r in region.region]
    extents = [x.index(r.extent) for r in region.region]

    def visit(indices: list[Val]) -> None:
        depth = len(indices)
        if depth == len(starts):
            offset = x.memory.offset(view, indices)
            body(indices, x.memory.load(view, offset))
            return
        count(x.b, extents[depth], lambda i: visit([*indices, add64(x.b, starts[depth], i)]))

    visit([])


def count(b: Builder, extent: Val, body: Callable[[Val], None]) -> None:
    """Emit `for i in [0, extent): body(i)` with an i64 counter."""
    head, inside, done = b.label("each"), b.label("visit"), b.label("visited")
    before = b.block
    b.open(head)
    after = b.label("%n")
    # The block that ends the body is only known once it is written.
    latch = b.label("again")
    text = f"phi i64 [ 0, %{before} ], [ {after}, %{latch} ]"
    i = b.emit(text, "i64")
    b.branch_if(b.compare("slt", i, extent), inside, done)
    b.open(inside)
    body(i)
    b.open(latch)
    b.do(f"{after} = add nsw i64 {i.ref}, 1")
    b.branch(head)
    b.open(done)


def any_element(x: Expressions, region: Any, every: bool) -> Val:
    """Whether any element (`every`: all elements) of `region` is not zero."""
    b = x.b
    found = b.alloca("i1", 1, 1)
    b.store(integer(every, "i1"), found, 1)

    def visit(indices: Sequence[Val], value: Val) -> None:
        so_far = b.load(found, "i1", 1, 1)
        if value.base == "i1":
            truth = value
        else:
            truth = b.compare("ne", value, integer(0, value.base))
        b.store(b.binary("and" if every else "or", so_far, truth), found, 1)

    each_element(x, region, visit)
    return b.load(found, "i1", 1, 1)
