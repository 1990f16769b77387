"""What is known of one device operation: a call that no plain C expression could say?

A `DeviceOp` is a row of the table in `device_ops`. Everything that has to agree about an
operation (verifier, hazard analysis, printers, device headers, emulator) reads that row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from tilelang.target import Kind, arch_number

# Where an operand lives. `memory` is global or shared, `any` also registers; `matrix` are matrices
# that a warp holds together, `barrier` is an mbarrier in shared memory, `map` a tensor map,
# `scalar` an expression passed by value.
Space = Literal["local", "matrix", "shared", "global", "memory", "any", "barrier", "map", "scalar"]
Access = Literal["read", "write", "update"]
# Who has to execute the operation together, convergently, with the same constants.
Group = Literal["thread", "warp", "warpgroup", "block", "cluster", "grid"]
# How an asynchronous access is waited for: a queue of groups, or the transaction count of an
# mbarrier.
Queue = Literal["cp_async", "bulk", "wgmma", "mbarrier"]
Value: TypeAlias = "int | str | bool"


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand, in call order.

    All spaces but `scalar` and `map` are passed by reference, as a region of a one-dimensional
    buffer: what is touched is exactly its `extent` elements. `asynchronous` says the access may
    still be under way when the operation returns. `lanes` is a fixed extent, in elements.
    """

    name: str
    space: Space
    access: Access = "read"
    asynchronous: bool = False
    optional: bool = False
    lanes: int | None = None
    dtype: str | None = None

    def __post_init__(self) -> None:
        if self.space in ("scalar", "map") and (self.access != "read" or self.asynchronous):
            raise ValueError(f"operand {self.name} is passed by value and cannot be written")

    @property
    def by_reference(self) -> bool:
        """Whether the operand is a region of a buffer."""
        return self.space not in ("scalar", "map")


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal of the call, stored in its attrs: a template argument of the device function.

    `values` are the legal ones, () for any. A constant whose `default` is not None may be left
    out. `place` is "template", or "argument" for literals that follow the operands. `of_warp`: a
    number of lanes, by default those of a warp, at most as many as that has.
    """

    name: str
    values: tuple[Value, ...] = ()
    default: Value | None = None
    place: Literal["template", "argument", "ignored"] = "template"
    of_warp: bool = False


@dataclass(frozen=True, slots=True)
class DeviceOp:
    """One operation, called as `tl.<name>` in the IR and as `tl::<symbol>` in device source.

    - `result`: None for none, "same" for the dtype of the first operand, "call" for whatever the
      call says, else a dtype.
    - `queue`: how its asynchronous operands complete. `closes` a group of a queue, `waits` for
      groups of a queue (the constant `groups` says how many may stay in flight).
    - `orders`: after it, earlier writes of this group are visible to all of its threads.
    - `pure`: may be duplicated, moved or dropped.
    - `min_arch` and `max_arch`: first and last compute capability that has it; `arch_specific`:
      only under the `a` spelling of an architecture (sm_90a). `only`: the kind of target that
      alone has it, whose architectures these count then.
    - `section`: of the PTX ISA, named by its instruction.
    - `header`: the device header that defines it.
    """

    name: str
    doc: str
    section: str = ""
    operands: tuple[Operand, ...] = ()
    constants: tuple[Constant, ...] = ()
    result: str | None = None
    group: Group = "thread"
    min_arch: int = 70
    max_arch: int | None = None
    arch_specific: bool = False
    only: Kind | None = None
    symbol: str = ""
    header: str = "common.h"
    queue: Queue | None = None
    closes: Queue | None = None
    waits: Queue | None = None
    orders: Group | None = None
    pure: bool = False

    def __post_init__(self) -> None:
        if any(o.asynchronous for o in self.operands) != (self.queue is not None):
            raise ValueError(f"{self.name}: asynchronous operands and a queue go together")
        required = [not o.optional for o in self.operands]
        if required != sorted(required, reverse=True):
            raise ValueError(f"{self.name}: optional operands come last")

    @property
    def function(self) -> str:
        """The device function without template arguments."""
        return self.symbol or self.name

    @property
    def least_operands(self) -> int:
        """How many operands a call must have."""
        return sum(not o.optional for o in self.operands)

    def exists_on(self, arch: str) -> bool:
        """Whether an architecture, spelled `sm_90a` or `gfx942`, has it."""
        kind, number = arch_number(arch)
        if kind != (self.only or "cuda"):
            return self.only is None
        fits = self.min_arch <= number <= (self.max_arch or number)
        return fits and (not self.arch_specific or arch.endswith(("a", "f")))

    def constant(self, name: str, attrs: Mapping[str, Any]) -> Value | None:
        """The value of constant `name` in a call with `attrs`."""
        row = next(c for c in self.constants if c.name == name)
        found = attrs.get(name)
        if found is None:
            return row.default
        return str(found) if isinstance(found, str) else int(found)

    def problems(self, count: int, attrs: Mapping[str, Any]) -> list[str]:
        """What is wrong with a call that has `count` operands and `attrs`, as sentences."""
        found = []
        if not self.least_operands <= count <= len(self.operands):
            wanted = f"{self.least_operands} to {len(self.operands)}"
            found.append(f"T.{self.name} has {count} operands, not {wanted}")
        unknown = set(attrs) - {c.name for c in self.constants}
        if unknown:
            found.append(f"T.{self.name} knows no attribute {', '.join(sorted(unknown))}")
        for row in self.constants:
            value = self.constant(row.name, attrs)
            if value is None:
                found.append(f"T.{self.name} needs the attribute {row.name}")
            elif row.values and value not in row.values:
                legal = ", ".join(str(v) for v in row.values)
                found.append(f"T.{self.name} has {row.name}={value}, not one of {legal}")
        return found

    def template_arguments(self, attrs: Mapping[str, Any], warp: int = 32) -> tuple[Value, ...]:
        """Its template arguments in order, for warps of so many lanes; trailing ones at their
        default are left out."""
        rows = [c for c in self.constants if c.place == "template"]
        rows = [replace(c, default=warp) if c.of_warp else c for c in rows]
        values = [
            warp if c.of_warp and attrs.get(c.name) is None else self.constant(c.name, attrs)
            for c in rows
        ]
        while rows and rows[-1].default is not None and values[-1] == rows[-1].default:
            rows.pop()
            values.pop()
        assert all(v is not None for v in values)
        return tuple(v for v in values if v is not None)

    def too_wide(self, attrs: Mapping[str, Any], warp: int) -> str | None:
        """A constant that asks for more lanes than a warp has."""
        for row in self.constants:
            value = self.constant(row.name, attrs)
            if row.of_warp and isinstance(value, int) and value > warp:
                return f"{row.name}={value}"
        return None

    def literal_arguments(self, attrs: Mapping[str, Any]) -> tuple[Value, ...]:
        """The literals that follow its operands."""
        found = (self.constant(c.name, attrs) for c in self.constants if c.place == "argument")
        return tuple(v for v in found if v is not None)
