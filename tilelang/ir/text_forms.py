"""What does a call in printed IR stand for: which operator, operands, attributes and result?

The printer and the reader both ask here, so that they cannot disagree: the printer writes the short
form of a call only where this table turns it back into the same call.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from tilelang.ir import build, tirx
from tilelang.ir.attrs import op_name
from tilelang.ir.calls import ANNOTATIONS
from tilelang.ir.device_ops import DEVICE_OPS, TENSOR_MAP, find_op
from tilelang.ir.intrinsics import FAST, MATH
from tilelang.ir.tile_op import op_of
from tilelang.program.scalar_ops import PURE_SCALARS, THREAD_OPS
from tilelang.program.tile_ops import SCHEMAS

# How an operand is read: a box of a buffer; an expression; either, where a name or a slice is a
# box and an element is its value.
Kind: TypeAlias = Literal["region", "value", "either"]

# TVM's operators whose name in the language differs.
SHOWN_AS: Final = {"fabs": "abs", "nearbyint": "round"}
_TIRX: Final = {
    **{name: op for name, op in MATH.items() if not name.startswith("__")},
    "abs": "tirx.fabs", "round": "tirx.nearbyint", "reinterpret": "tirx.reinterpret",
    "if_then_else": "prim.if_then_else",
}  # fmt: skip
_SCANS: Final = {"cumsum": "sum", "cummax": "max"}
_REDUCTIONS: Final = tuple(
    f"reduce_{kind}"
    for kind in ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")
)

# What an operation's attributes are where its text says nothing of them.
DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "copy": {"disable_tma": False},
    "gemm": {"policy": 0, "k_pack": 1, "transpose_A": False, "transpose_B": False},
    "tcgen05_gemm": {"policy": 0, "transpose_A": False, "transpose_B": False, "use_2cta": False},
    "gemm_sp": {"policy": 0, "k_pack": 1, "transpose_A": False, "transpose_E": False,
                "transpose_B": False},
    "reduce": {"clear": True, "batch": 1, "nan_propagate": False},
    "scan": {"reverse": False},
    "atomic": {"use_tma": False},
    "reducer_finalize": {"batch": 1},
}  # fmt: skip

_BY_REFERENCE: Final = frozenset(
    {"print_buffer", "any_of", "all_of", "access_ptr", "address_of", "reducer_update"}
)
_ONE_ELEMENT: Final = "atomic_"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The operator a call by `name` stands for, how its operands are read, and what is said."""

    op: str
    kinds: tuple[Kind, ...]
    said: Mapping[str, Any]

    def kind(self, position: int) -> Kind:
        """How the operand at a position is read; the last kind goes for all that follow."""
        if not self.kinds:
            return "value"
        return self.kinds[min(position, len(self.kinds) - 1)]


def meaning(name: str, said: Mapping[str, Any], element: bool = False) -> Meaning:
    """What `T.name(…)` with the keywords `said` stands for, whether or not there is one.

    `element`: the first operand is one element, which tells an atomic of an element from one of a
    tile.
    """
    if name in _TIRX:
        return Meaning(_TIRX[name], ("value",), said)
    if name.startswith("__") and name in MATH:
        return Meaning(MATH[name], ("value",), {**said, FAST: True})
    own, more = _tile_op(name, element)
    if own in SCHEMAS:
        defaults = DEFAULTS.get(own, {})
        found = {**defaults, **more, **said}
        return Meaning(op_name(own), _schema_kinds(own), _without_none(found))
    device = find_op(name)
    if device is not None:
        kinds: tuple[Kind, ...] = tuple(
            "region" if operand.by_reference else "value" for operand in device.operands
        )
        return Meaning(op_name(name), kinds, _without_none(said))
    if name == TENSOR_MAP:
        return Meaning(op_name(name), ("region", "value"), _without_none(said))
    if name in _BY_REFERENCE or name.startswith(_ONE_ELEMENT):
        return Meaning(op_name(name), ("region", "value"), _without_none(said))
    return Meaning(op_name(name), ("either",), _without_none(said))


def known_names() -> frozenset[str]:
    """The names of calls that need no mention; a file lists the others it has."""
    return frozenset(
        {*SCHEMAS, *DEVICE_OPS, *PURE_SCALARS, *THREAD_OPS, *ANNOTATIONS, *_TIRX, *_SCANS,
         *_REDUCTIONS, "clear", "finalize_reducer", *(n for n in MATH if n.startswith("__"))}
    )  # fmt: skip


def _without_none(said: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in said.items() if value is not None}


def _tile_op(name: str, element: bool) -> tuple[str, dict[str, Any]]:
    """The schema behind a name of the language, and the attributes that the name says."""
    if name == "clear":
        return "fill", {}
    if name.startswith("reduce_"):
        return "reduce", {"kind": name.removeprefix("reduce_")}
    if name in _SCANS:
        return "scan", {"kind": _SCANS[name]}
    if name.startswith(_ONE_ELEMENT) and not element:
        kind = name.removeprefix(_ONE_ELEMENT)
        return (
            ("atomic", {"op": kind}) if kind in ("add", "max", "min", "and", "or") else (name, {})
        )
    if name == "finalize_reducer":
        return "reducer_finalize", {}
    return name, {}


def _schema_kinds(name: str) -> tuple[Kind, ...]:
    return tuple("either" if "=" in operand else "region" for operand in SCHEMAS[name].operands)


def short_form(call: Any) -> tuple[str, list[Any], dict[str, Any]]:
    """The name of a call in the language, its operands, and its attributes but for those that the
    name says."""
    name = op_of(call)
    args = list(call.args)
    said = {} if call.attrs is None else {str(k): v for k, v in dict(call.attrs).items()}
    if name is None:
        op = str(call.op.name) if isinstance(call.op, tirx.Op) else "?"
        short = op.rpartition(".")[2]
        if said.get(FAST):
            del said[FAST]
            return f"__{short}", args, said
        return SHOWN_AS.get(short, short), args, said
    match name:
        case "fill" if is_zero(args[1], str(args[0].source.dtype)):
            return "clear", args, said
        case "reduce":
            return f"reduce_{said.pop('kind')}", args, said
        case "scan" if said.get("kind") in ("sum", "max"):
            return {"sum": "cumsum", "max": "cummax"}[str(said.pop("kind"))], args, said
        case "atomic":
            return f"atomic_{said.pop('op')}", args, said
        case "reducer_finalize":
            return "finalize_reducer", args, said
    return name, args, said


def shown_attrs(call: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    """What the text of a call has to say: all but defaults; None for a default that is absent."""
    defaults = DEFAULTS.get(op_of(call) or "", {})
    found = {k: v for k, v in said.items() if k not in defaults or not _same(v, defaults[k])}
    found.update({k: None for k in defaults if k not in said})
    return found


def _same(value: Any, default: Any) -> bool:
    return type(value) is type(default) and bool(value == default)


def result_of(op: str, args: Sequence[Any]) -> str | None:
    """The dtype a call of `op` has, where the table knows; `void` for a statement."""
    short = op.rpartition(".")[2]
    if op == "prim.if_then_else":
        return dtype_of(args[1]) if len(args) > 1 else None
    if op in ("tirx.isnan",):
        return "bool"
    if op.startswith(("tirx.", "prim.")):
        return dtype_of(args[0]) if args and short != "reinterpret" else None
    if short in SCHEMAS or short in ANNOTATIONS:
        return "void"
    if short == TENSOR_MAP:
        return "handle"
    device = find_op(short)
    if device is None or device.result == "call":
        return None
    if device.result == "same":
        return dtype_of(args[0]) if args else None
    return device.result or "void"


def dtype_of(e: Any) -> str:
    """The dtype of an operand, also of a region and of a whole buffer."""
    if isinstance(e, tirx.TensorRegion):
        return str(e.source.dtype)
    if isinstance(e, tirx.Var) and tirx.is_buffer_var(e):
        return str(e.dtype)
    return build.dtype_of(e)


def type_text(ty: Any) -> str:
    """A type as `ret=` says it: a dtype, or `void`."""
    return str(ty) or "void"


def is_zero(e: Any, dtype: str) -> bool:
    """Whether `e` is the zero that `T.clear` stores into a buffer of `dtype`."""
    if not isinstance(e, (tirx.IntImm, tirx.FloatImm)) or build.dtype_of(e) != dtype:
        return False
    return float(e.value) == 0 and not str(e.value).startswith("-")


def is_element(region: Any) -> bool:
    """Whether a box is written as one element."""
    return isinstance(region, tirx.TensorRegion) and all(
        build.is_int(r.extent, 1) for r in region.region
    )
