"""What is an operation called in a message? As its author wrote it, without the fine print."""

from __future__ import annotations

from tilelang.layout.constraints import Origin
from tilelang.program.buffer import Buffer, Region
from tilelang.program.expr import Load
from tilelang.program.stmt import TileOp
from tilelang.program.text import expr_text, region_text

_SPELLED = {
    "scan": "T.cum{kind}", "reduce": "T.reduce_{kind}", "atomic": "T.atomic_{op}",
    "reducer_finalize": "T.finalize_reducer", "fill": "T.fill",
}  # fmt: skip
SHORT = 40


def origin_of(op: TileOp) -> Origin:
    """A tile operation with the buffers it works on, and where it stands."""
    operands = [_operand(arg) for arg in op.args if isinstance(arg, Region)]
    name = _SPELLED.get(op.name, f"T.{op.name}").format_map(dict(op.attrs))
    return Origin(f"{name}({', '.join(operands)})", op.span)


def access_origin(buffer: Buffer, load: Load | None, text: str, span: object) -> Origin:
    """One element a loop touches."""
    del load
    return Origin(f"{buffer.name}[{text}]", span)  # type: ignore[arg-type]


def _operand(region: Region) -> str:
    """A region in full while it is short, else the buffer's name: spans show the rest."""
    text = region_text(region)
    return text if len(text) <= SHORT else region.buffer.name


def index_text(indices: tuple[object, ...]) -> str:
    """Indices as the user wrote them."""
    return ", ".join(expr_text(i) for i in indices)
