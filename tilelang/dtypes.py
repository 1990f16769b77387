"""Which element types exist, and what each is called by NumPy, PyTorch, TVM and C.

The one dtype table of the compiler. A `DType` compares equal to its name, so
`buffer.dtype == "float16"` and `buffer.dtype == T.float16` both hold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

# `symbol` is a dtype the static environment does not know yet: checks stay silent about it.
Kind = Literal["int", "uint", "float", "bool", "handle", "symbol"]


@dataclass(frozen=True, slots=True, eq=False)
class DType:
    """One element type, `lanes` > 1 for vectors; `bits` is the width of one lane in memory."""

    base: str
    kind: Kind
    bits: int
    lanes: int = 1

    # Filled by the program layer: calling a dtype builds a cast expression.
    convert: ClassVar[Callable[..., Any] | None] = None

    @property
    def name(self) -> str:
        return self.base if self.lanes == 1 else f"{self.base}x{self.lanes}"

    @property
    def bytes(self) -> int:
        """Storage of one value (all lanes), rounded up to whole bytes."""
        return (self.bits * self.lanes + 7) // 8

    @property
    def scalar(self) -> DType:
        return self if self.lanes == 1 else DType(self.base, self.kind, self.bits)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_packed(self) -> bool:
        """Whether several elements share one byte."""
        return self.bits < 8 and self.kind != "bool"

    def with_lanes(self, lanes: int) -> DType:
        return DType(self.base, self.kind, self.bits, lanes)

    def integer_range(self) -> tuple[int, int]:
        """Smallest and largest value of an integer or bool type."""
        match self.kind:
            case "bool":
                return 0, 1
            case "uint":
                return 0, (1 << self.bits) - 1
            case "int":
                return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
            case _:
                raise ValueError(f"{self.name} is not an integer type")

    def overflowed(self, number: float) -> float:
        """`number`, or what becomes of it when it is too large for this float type.

        That is infinity; formats of 8 bits and less saturate, as they do in every conversion.
        """
        largest = LARGEST.get(self.base, math.inf)
        if not largest < abs(number) < math.inf:
            return number
        # Numbers up to half a step above the largest value are rounded down to it.
        next_power = math.ldexp(1.0, math.frexp(largest)[1])
        rounds_down = abs(number) < (largest + next_power) / 2
        return math.copysign(largest if self.bits <= 8 or rounds_down else math.inf, number)

    def as_torch(self) -> Any:
        """The `torch.dtype` that stores this type (int4 is stored as int8)."""
        import torch

        name = TORCH_STORAGE.get(self.base, self.base)
        found = getattr(torch, name, None)
        if found is None:
            raise ValueError(f"this PyTorch has no dtype for {self.name}")
        return found

    def as_numpy(self) -> Any:
        """The `numpy.dtype` that stores this type; raises ValueError where NumPy has none."""
        import numpy

        if self.base in NUMPY_MISSING:
            raise ValueError(f"NumPy has no dtype for {self.name}")
        return numpy.dtype(NUMPY_STORAGE.get(self.base, self.base))

    def __call__(self, *values: Any) -> Any:
        assert DType.convert is not None
        return DType.convert(self, *values)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, DType):
            return (self.base, self.lanes) == (other.base, other.lanes)
        if isinstance(other, str):
            return self.name == other or self == find_dtype(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"T.{self.name}"


def _row(base: str, kind: Kind, bits: int) -> tuple[str, DType]:
    return base, DType(base, kind, bits)


SCALARS: dict[str, DType] = dict(
    [
        _row("bool", "bool", 8),
        *(_row(f"int{b}", "int", b) for b in (4, 8, 16, 32, 64)),
        *(_row(f"uint{b}", "uint", b) for b in (1, 2, 4, 8, 16, 32, 64)),
        *(_row(f"float{b}", "float", b) for b in (16, 32, 64)),
        _row("bfloat16", "float", 16),
        _row("tfloat32", "float", 32),
        *(
            _row(f"float8_{f}", "float", 8)
            for f in ("e3m4", "e4m3", "e4m3b11fnuz", "e4m3fn", "e4m3fnuz")
        ),
        *(_row(f"float8_{f}", "float", 8) for f in ("e5m2", "e5m2fnuz", "e8m0fnu")),
        _row("float6_e2m3fn", "float", 6),
        _row("float6_e3m2fn", "float", 6),
        _row("float4_e2m1fn", "float", 4),
        _row("float4_e2m1_unpacked", "float", 8),
        _row("handle", "handle", 64),
    ]
)

# Other spellings users write. `float8_e4m3` is accepted with a warning by the front end.
ALIASES: dict[str, str] = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "uchar": "uint8",
    "ushort": "uint16",
    "uint": "uint32",
    "ulong": "uint64",
    "float8_e4m3": "float8_e4m3fn",
    "bf16": "bfloat16",
    "fp16": "float16",
    "fp32": "float32",
    "ptr": "handle",
}

# Largest finite value of each float format (OCP and IEEE 754).
LARGEST: dict[str, float] = {
    "float64": 1.7976931348623157e308,
    "float32": 3.4028234663852886e38,
    "tfloat32": 3.4011621342146535e38,
    "bfloat16": 3.3895313892515355e38,
    "float16": 65504.0,
    "float8_e3m4": 15.5,
    "float8_e4m3": 240.0,
    "float8_e4m3b11fnuz": 30.0,
    "float8_e4m3fn": 448.0,
    "float8_e4m3fnuz": 240.0,
    "float8_e5m2": 57344.0,
    "float8_e5m2fnuz": 57344.0,
    "float8_e8m0fnu": 1.7014118346046923e38,
    "float6_e2m3fn": 7.5,
    "float6_e3m2fn": 28.0,
    "float4_e2m1fn": 6.0,
    "float4_e2m1_unpacked": 6.0,
}
WITH_INFINITY = (
    "float64", "float32", "tfloat32", "bfloat16", "float16", "float8_e3m4", "float8_e4m3",
    "float8_e5m2",
)  # fmt: skip

VECTOR_LANES = (2, 4, 8, 16, 32, 64)

TORCH_STORAGE = {
    "int4": "int8",
    "uint4": "uint8",
    "tfloat32": "float32",
    "float8_e4m3": "float8_e4m3fn",
    "float4_e2m1fn": "float4_e2m1fn_x2",
    "float4_e2m1_unpacked": "uint8",
    "handle": "int64",
}
NUMPY_STORAGE = {"int4": "int8", "uint4": "uint8", "tfloat32": "float32", "handle": "int64"}
NUMPY_MISSING = frozenset(
    n for n in SCALARS if n == "bfloat16" or n.startswith(("float8_", "float6_", "float4_"))
)

_VECTOR = re.compile(r"^(?P<base>.+?)x(?P<lanes>\d+)$")


def find_dtype(name: str) -> DType | None:
    """The dtype called `name` (aliases and vector suffixes included), or None."""
    name = name.removeprefix("torch.").removeprefix("T.")
    name = ALIASES.get(name, name) if name != "float8_e4m3" else name
    if (found := SCALARS.get(name)) is not None:
        return ALIASED_FP8.get(name, found)
    match = _VECTOR.match(name)
    if match is None or int(match["lanes"]) not in VECTOR_LANES:
        return None
    base = find_dtype(match["base"])
    return None if base is None else base.with_lanes(int(match["lanes"]))


# `float8_e4m3` names no format of its own: every framework means the finite one.
ALIASED_FP8 = {"float8_e4m3": SCALARS["float8_e4m3fn"]}


def as_dtype(value: Any) -> DType | None:
    """A dtype from whatever users pass: DType, name, torch or NumPy dtype, Python type."""
    if isinstance(value, DType):
        return value
    if isinstance(value, str):
        return find_dtype(value)
    if isinstance(value, type):
        by_type = {bool: "bool", int: "int32", float: "float32"}
        if value in by_type:
            return SCALARS[by_type[value]]
        return find_dtype(getattr(value, "__name__", ""))
    text = str(value)
    if text.startswith("torch."):
        return find_dtype(text)
    name = getattr(value, "name", None)
    return find_dtype(name) if isinstance(name, str) else None


def dtype(value: Any) -> DType:
    """Like `as_dtype`, but raises ValueError for what names no dtype."""
    found = as_dtype(value)
    if found is None:
        raise ValueError(f"{value!r} names no dtype")
    return found
