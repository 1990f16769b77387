"""What is an operation called in a message? As its author wrote it, without the fine print."""

from __future__ import annotations

import re

from tilelang.layout.constraints import Origin
from tilelang.layouts.indices import variables_of
from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer, Region
from tilelang.program.stmt import TileOp
from tilelang.program.text import expr_text, region_text
from tilelang_diagnostics.model import Span

_SPELLED = {
    "scan": "T.cum{kind}", "reduce": "T.reduce_{kind}", "atomic": "T.atomic_{op}",
    "reducer_finalize": "T.finalize_reducer",
}  # fmt: skip
SHORT = 32


def origin_of(op: TileOp) -> Origin:
    """A tile operation with the buffers it works on, and where it stands."""
    operands = [_operand(arg) for arg in op.args if isinstance(arg, Region)]
    own = f"{op.attr('instruction')}_{op.name}" if op.attr("instruction") else op.name
    name = _SPELLED.get(op.name, f"T.{own}").format_map(dict(op.attrs))
    return Origin(f"{name}({', '.join(operands)})", op.span)


def access_origin(buffer: Buffer, indices: tuple[ex.Expr, ...], span: Span | None) -> Origin:
    """One element that a loop touches."""
    text = ", ".join(map(expr_text, indices))
    for var in variables_of(indices):
        written = written_name(var)
        if written != var.name:
            text = re.sub(rf"\b{var.name}\b", written, text)
    return Origin(f"{buffer.name}[{text}]", span)


def _operand(region: Region) -> str:
    """A region in full while it is short, else the buffer's name: the span shows the rest."""
    text = region_text(region)
    return text if len(text) <= SHORT else region.buffer.name


def written_name(var: ex.Var) -> str:
    """A variable as its author spelled it: the program gives second loops over `i` other names."""
    span = var.span
    if span is None or span.line != span.end_line:
        return var.name
    return var.name[: span.end_column - span.column]
