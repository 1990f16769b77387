"""Which tensors does a call make and return, and what is said where it cannot?

`Call` is what is known about one call while it is checked: values so far, and what is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.program.buffer import Buffer, Dim
from tilelang.program.expr import Var
from tilelang.program.text import expr_text
from tilelang.runtime.dims import buffer_vars, dim_vars, evaluate
from tilelang.runtime.place import Place, device_index
from tilelang.runtime.scalars import Scalar
from tilelang.runtime.signature import Signature
from tilelang.runtime.tensors import (
    Family,
    NotATensor,
    elements_per_item,
    empty,
    size_text,
    view_of,
)
from tilelang_diagnostics import diagnose
from tilelang_diagnostics.model import Diagnostic, Label, Span

# Bytes no address space has.
_LARGEST: Final = 1 << 63


@dataclass(slots=True)
class Bound:
    """A call that fits: one value per parameter, and the runtime dimensions.

    `device` is the number of the device all tensors are on, None for a call without tensors.
    """

    addresses: dict[Buffer, int] = field(default_factory=dict)
    scalars: dict[Var, Scalar] = field(default_factory=dict)
    dims: dict[Var, int] = field(default_factory=dict)
    results: list[Any] = field(default_factory=list)
    owners: list[Any] = field(default_factory=list)
    family: Family = "numpy"
    device: int | None = None

    def value(self, parameter: Buffer | Var) -> Scalar:
        """What goes into the slot of `parameter`."""
        if isinstance(parameter, Buffer):
            return self.addresses[parameter]
        return self.scalars[parameter] if parameter in self.scalars else self.dims[parameter]


class Call:
    """One call: its signature, what its arguments gave so far, and what is wrong with it."""

    def __init__(self, signature: Signature, place: Place) -> None:
        self.signature = signature
        self.place = place
        self.diagnostics: list[Diagnostic] = []
        self.bound = Bound()
        # Which argument gave a runtime dimension its value, for messages.
        self.givers: dict[Var, tuple[str, Span | None]] = {}

    # Outputs.

    @property
    def device(self) -> str:
        """Where results are made: beside the arguments."""
        if self.place.kind == "cpu":
            return "cpu"
        index = self.bound.device
        return self.place.kind if index is None else f"{self.place.kind}:{index}"

    @property
    def family(self) -> Family:
        """Of whose kind results are: NumPy has no memory on a device."""
        return self.bound.family if self.place.kind == "cpu" else "torch"

    def only_in_results(self, var: Var) -> bool:
        inputs = [p for p in self.signature.inputs if isinstance(p, Buffer)]
        return not any(_mentions(b, var) for b in inputs)

    def bind_absent(self, var: Var) -> None:
        """A dimension that only null tensors have: there are no elements to count."""
        nullable = [p for p in self.signature.inputs if isinstance(p, Buffer) and p.nullable]
        if any(_mentions(b, var) for b in nullable):
            self.bound.dims[var] = 0
        elif not self.diagnostics:
            self.unbound(var, None)

    def allocate(self) -> None:
        for buffer in self.signature.results:
            shape: list[int] = []
            for dim in buffer.shape:
                size = evaluate(dim, self.bound.dims)
                if size is None:
                    self.unbound(next(iter(self.unknown(dim))), buffer)
                    return
                shape.append(size)
            shape[-1:] = [-(-n // elements_per_item(buffer.dtype)) for n in shape[-1:]]
            if not self.make_result(buffer, shape):
                return

    def make_result(self, buffer: Buffer, shape: list[int]) -> bool:
        size = math.prod(shape) * buffer.dtype.bytes
        if size >= _LARGEST:
            self.no_room(buffer, shape, size)
            return False
        try:
            result = empty(shape, buffer.dtype, self.family, self.device)
            view = view_of(result)
        except NotATensor as error:  # torch.empty under FakeTensorMode
            self.report("TL709", f"result `{buffer.name}` of `{self.name}` {error}",
                        error.help_for(buffer.name), span=buffer.span)  # fmt: skip
            return False
        except (ValueError, ImportError) as error:
            self.report("TL702", f"result `{buffer.name}` of `{self.name}` cannot be made as "
                        f"{self.bound.family} {buffer.dtype.name}: {error}",
                        "pass PyTorch tensors", span=buffer.span)  # fmt: skip
            return False
        except (MemoryError, RuntimeError):
            # PyTorch says with a RuntimeError that there is no memory, and nothing else can go
            # wrong with an allocation whose dtype and size are known to be fine.
            self.no_room(buffer, shape, size)
            return False
        self.bound.results.append(result)
        self.bound.addresses[buffer] = view.address
        if self.bound.device is None:
            self.bound.device = device_index(view.device)
        return True

    def no_room(self, buffer: Buffer, shape: list[int], size: int) -> None:
        self.report("TL813", f"there is no memory for result `{buffer.name}` of `{self.name}`: "
                    f"{size_text(size)} on {self.device}",
                    "call it with smaller sizes, or free what is not needed",
                    span=buffer.span, label=f"has shape {tuple(shape)} here")  # fmt: skip

    def unknown(self, dim: Dim) -> list[Var]:
        return [v for v in dim_vars(dim) if v not in self.bound.dims]

    def unbound(self, var: Var, buffer: Buffer | None) -> None:
        what = (
            f"`{var.name}` of result `{buffer.name}`" if buffer is not None else (f"`{var.name}`")
        )
        self.report("TL710", f"the runtime dimension {what} of `{self.name}` is determined by no "
                    "argument", f"use {var.name} as a whole dimension of a tensor argument, or "
                    "make it a scalar parameter",
                    span=(None if buffer is None else buffer.span) or var.span)  # fmt: skip

    # Messages.

    @property
    def name(self) -> str:
        return self.signature.name

    def giver_of(self, dim: Dim) -> tuple[str, Span | None] | None:
        return next((self.givers[v] for v in dim_vars(dim) if v in self.givers), None)

    def shape_text(self, dims: Sequence[Dim]) -> str:
        parts = [expr_text(d) for d in dims]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"

    def declared(self, buffer: Buffer) -> str:
        return f"declared as {self.shape_text(buffer.shape)} {buffer.dtype.name}"

    def report(self, code: str, message: str, help: str | None = None, *,
               span: Span | None = None, label: str = "",
               labels: tuple[Label, ...] = ()) -> None:  # fmt: skip
        self.diagnostics.append(
            diagnose(
                code, message, span=span or self.signature.span,
                label=label, labels=labels, help=help,
            )
        )  # fmt: skip


def _mentions(buffer: Buffer, var: Var) -> bool:
    # Not `in`: == between expressions builds a comparison.
    return any(v is var for v in buffer_vars(buffer))
