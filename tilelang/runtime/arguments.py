"""Does this call fit the kernel, and if not, which argument is wrong and how?

The complete check, with a message for everything: slow (tens of microseconds), and run only for
the first call of a kind and for calls that are wrong. `fast_call` does the rest.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.program.buffer import Buffer, Dim
from tilelang.program.expr import Var
from tilelang.program.text import expr_text
from tilelang.runtime.dims import dim_vars, evaluate, solve
from tilelang.runtime.place import CPU, Place, device_index
from tilelang.runtime.results import Bound, Call
from tilelang.runtime.scalars import checked_scalar
from tilelang.runtime.signature import Signature
from tilelang.runtime.tensors import (
    Family,
    NotATensor,
    TensorView,
    elements_per_item,
    storage_names,
    view_of,
)
from tilelang_diagnostics import did_you_mean, raise_for
from tilelang_diagnostics.model import Label, Span


def bind(
    signature: Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    written: frozenset[Buffer] = frozenset(),
    place: Place = CPU,
) -> Bound:
    """The checked call; raises the diagnostics of every argument that is wrong.

    `written` are the parameters the kernel stores to: their memory must not be read-only. `place`
    is where all tensors have to be, and where results are made.
    """
    binder = _Binder(signature, written, place)
    binder.bind(binder.by_parameter(args, kwargs))
    raise_for(binder.diagnostics)
    binder.allocate()
    raise_for(binder.diagnostics)
    return binder.bound


def sizes_of(signature: Signature, args: Sequence[Any]) -> dict[Var, int]:
    """What the arguments, which are on the CPU, give as run-time dimensions and integers; raises
    the diagnostics of every argument that is wrong."""
    binder = _Binder(signature, frozenset(), CPU)
    binder.bind(binder.by_parameter(args, {}))
    raise_for(binder.diagnostics)
    return binder.bound.dims


class _Binder(Call):
    """The checks of the arguments."""

    def __init__(self, signature: Signature, written: frozenset[Buffer], place: Place) -> None:
        super().__init__(signature, place)
        self.written = written
        # The tensor that says which of several devices the call is on.
        self.leader: str | None = None

    # Which value goes to which parameter.

    def by_parameter(
        self, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> dict[Buffer | Var, Any]:
        inputs = self.signature.inputs
        names = [p.name for p in inputs]
        taken = list(zip(inputs, args, strict=False))
        for name, value in kwargs.items():
            if name not in names:
                self.report("TL720", f"`{self.name}` has no parameter `{name}`"
                            f"{did_you_mean(name, names)}", self.signature_help())  # fmt: skip
            elif names.index(name) < len(args):
                self.report("TL720", f"argument `{name}` of `{self.name}` is given twice",
                            "pass it by position or by name, not both")  # fmt: skip
            else:
                taken.append((inputs[names.index(name)], value))
        values = dict(taken)
        missing = [p.name for p in inputs if p not in values]
        if len(args) > len(inputs) or (missing and not self.diagnostics):
            self.report("TL701", self.count_message(len(args) + len(kwargs), missing),
                        self.signature_help())  # fmt: skip
        raise_for(self.diagnostics)
        return values

    def count_message(self, given: int, missing: list[str]) -> str:
        wanted = len(self.signature.inputs)
        text = f"`{self.name}` takes {wanted} argument{'s' * (wanted != 1)}, got {given}"
        return f"{text}; missing {', '.join(missing)}" if missing else text

    def signature_help(self) -> str:
        listed = ", ".join(p.name for p in self.signature.inputs)
        text = f"call it as `{self.name}({listed})`"
        allocated = [b.name for b in self.signature.results]
        return f"{text}; {', '.join(allocated)} is returned" if allocated else text

    # Values.

    def bind(self, values: Mapping[Buffer | Var, Any]) -> None:
        tensors: list[tuple[Buffer, TensorView]] = []
        for parameter, value in values.items():
            if isinstance(parameter, Var):
                self.bind_scalar(parameter, value)
        for parameter, value in values.items():
            if isinstance(parameter, Buffer):
                view = self.view(parameter, value)
                if view is not None:
                    tensors.append((parameter, view))
        if any(view.family == "torch" for _, view in tensors):
            self.bound.family = "torch"
        elif not tensors and "torch" in sys.modules:
            # Nothing to go by: whoever has imported PyTorch expects its tensors back.
            self.bound.family = "torch"
        fitting = [(b, v) for b, v in tensors if self.check_rank(b, v)]
        self.bind_dims(fitting)
        for buffer, view in fitting:
            self.check_shape(buffer, view)
            self.check_strides(buffer, view)
        for var in self.signature.dims:
            if var not in self.bound.dims and not self.only_in_results(var):
                self.bind_absent(var)
        self.check_promises()

    def bind_scalar(self, var: Var, value: Any) -> None:
        checked = checked_scalar(var.dtype, value)
        if isinstance(checked, str):
            self.report("TL718", f"argument `{var.name}` of `{self.name}` is {checked}",
                        span=var.span, label="declared here")  # fmt: skip
            checked = 0
        self.bound.scalars[var] = checked
        if isinstance(checked, int):
            self.bound.dims[var] = checked
            self.givers[var] = (f"argument `{var.name}`", var.span)

    def view(self, buffer: Buffer, value: Any) -> TensorView | None:
        if value is None:
            if not buffer.nullable:
                self.report("TL717", f"argument `{buffer.name}` of `{self.name}` is None",
                            "pass a tensor: the kernel always uses it",
                            span=buffer.span, label=self.declared(buffer))  # fmt: skip
            self.bound.addresses[buffer] = 0
            return None
        try:
            view = view_of(value)
        except NotATensor as error:
            self.report("TL709", f"argument `{buffer.name}` of `{self.name}` {error}, "
                        "expected a tensor",
                        error.help_for(buffer.name) or _how_to_make_tensor(value),
                        span=buffer.span, label=self.declared(buffer))  # fmt: skip
            return None
        self.check_device(buffer, view)
        self.check_dtype(buffer, view)
        self.check_alignment(buffer, view)
        if buffer in self.written and not view.writable:
            self.report("TL727", f"argument `{buffer.name}` of `{self.name}` is read-only, and the "
                        "kernel writes to it", "pass a copy",
                        span=buffer.span, label=self.declared(buffer))  # fmt: skip
        self.bound.addresses[buffer] = view.address
        self.bound.owners.append(view.owner)
        return view

    def check_device(self, buffer: Buffer, view: TensorView) -> None:
        if not self.place.holds(view.device):
            name = buffer.name
            move = f"{name}.cpu()" if self.place.kind == "cpu" else f"{name}.cuda()"
            if view.family == "numpy" and self.place.kind != "cpu":
                move = f"torch.from_numpy({name}).cuda()"
            self.report("TL707", f"argument `{name}` of `{self.name}` is on {view.device}, "
                        f"expected {self.place.kind}",
                        f"pass {move}, or compile the kernel for that device",
                        span=buffer.span, label=self.declared(buffer))  # fmt: skip
            return
        index = device_index(view.device)
        if self.leader is None:
            self.leader, self.bound.device = buffer.name, index
        elif index != self.bound.device:
            wanted = f"{self.place.kind}:{self.bound.device}"
            self.report("TL707", f"argument `{buffer.name}` of `{self.name}` is on {view.device}, "
                        f"but `{self.leader}` is on {wanted}",
                        f"pass {buffer.name}.to('{wanted}')",
                        span=buffer.span, label=self.declared(buffer))  # fmt: skip

    def check_dtype(self, buffer: Buffer, view: TensorView) -> None:
        names = storage_names(buffer.dtype, view.family)
        if view.dtype in names:
            return
        stored = f" (stored as {names[0]})" if names and names[0] != buffer.dtype.name else ""
        self.report("TL702", f"argument `{buffer.name}` of `{self.name}` has dtype {view.dtype}, "
                    f"expected {buffer.dtype.name}{stored}",
                    _how_to_convert(buffer, view.family, names),
                    span=buffer.span, label=self.declared(buffer))  # fmt: skip

    def check_alignment(self, buffer: Buffer, view: TensorView) -> None:
        size = self.place.alignment_of(buffer)
        if self.place.holds(view.device) and view.address % size:
            copy = "clone()" if view.family == "torch" else "copy()"
            element = size == buffer.dtype.scalar.bytes
            why = f"the size of {buffer.dtype.name}" if element else "which its code relies on"
            self.report("TL706", f"argument `{buffer.name}` of `{self.name}` starts at an address "
                        f"that is not a multiple of {size} bytes, {why}",
                        f"pass {buffer.name}.{copy}, which is aligned",
                        span=buffer.span, label=self.declared(buffer))  # fmt: skip

    # Shapes.

    def check_rank(self, buffer: Buffer, view: TensorView) -> bool:
        if len(view.shape) == buffer.ndim:
            return True
        got, want = len(view.shape), buffer.ndim
        self.report("TL703", f"argument `{buffer.name}` of `{self.name}` has {got} "
                    f"dimension{'s' * (got != 1)} {view.shape}, expected {want}",
                    f"pass a tensor of shape {self.shape_text(buffer.shape)}",
                    span=buffer.span, label=self.declared(buffer))  # fmt: skip
        return False

    def bind_dims(self, tensors: Sequence[tuple[Buffer, TensorView]]) -> None:
        """Give every runtime dimension the value the tensors show, plain ones first."""
        sites = [
            (b, axis, dim, size)
            for b, v in tensors
            for axis, (dim, size) in enumerate(zip(b.shape, logical_shape(b, v), strict=True))
        ]
        steps = [(b, axis, dim, v.strides[axis]) for b, v in tensors if b.strides is not None
                 for axis, dim in enumerate(b.strides)]  # fmt: skip
        plain = [s for s in (*sites, *steps) if isinstance(s[2], Var)]
        for buffer, _, dim, size in plain:
            assert isinstance(dim, Var)
            if dim not in self.bound.dims:
                self.bound.dims[dim] = size
                self.givers[dim] = (f"argument `{buffer.name}`", buffer.span)
        for buffer, _, dim, size in (*sites, *steps):
            found = solve(dim, size, self.bound.dims)
            if found is not None:
                self.bound.dims[found[0]] = found[1]
                self.givers[found[0]] = (f"argument `{buffer.name}`", buffer.span)

    def check_shape(self, buffer: Buffer, view: TensorView) -> None:
        shape = logical_shape(buffer, view)
        for axis, (dim, size) in enumerate(zip(buffer.shape, shape, strict=True)):
            wanted = evaluate(dim, self.bound.dims)
            if wanted is None or wanted == size:
                continue
            giver = self.giver_of(dim)
            if giver is not None and giver[0] != f"argument `{buffer.name}`":
                self.dim_conflict(buffer, axis, dim, (size, wanted), giver)
            else:
                expected = self.shape_text(buffer.shape)
                self.report("TL704", f"argument `{buffer.name}` of `{self.name}` has shape "
                            f"{view.shape}, expected {expected}: dimension {axis} is {size}, "
                            f"not {wanted}", span=buffer.span,
                            label=self.declared(buffer))  # fmt: skip
            return

    def dim_conflict(
        self, buffer: Buffer, axis: int, dim: Dim, sizes: tuple[int, int],
        giver: tuple[str, Span | None],
    ) -> None:  # fmt: skip
        size, wanted = sizes
        labels = (Label(giver[1], f"gives {wanted}"),) if giver[1] is not None else ()
        self.report("TL711", f"dimension {axis} of argument `{buffer.name}` of `{self.name}` is "
                    f"{size}, but {expr_text(dim)} is {wanted} by {giver[0]}",
                    span=buffer.span, label=self.declared(buffer), labels=labels)  # fmt: skip

    def check_strides(self, buffer: Buffer, view: TensorView) -> None:
        if buffer.strides is None:
            if not view.contiguous and self.place.holds(view.device):
                self.not_contiguous(buffer, view)
            return
        for axis, dim in enumerate(buffer.strides):
            wanted = evaluate(dim, self.bound.dims)
            # The stride of an axis with one element is never used.
            if wanted is None or view.shape[axis] <= 1 or view.strides[axis] == wanted:
                continue
            got, expected = view.strides, self.shape_text(buffer.strides)
            self.report("TL705", f"argument `{buffer.name}` of `{self.name}` has strides {got}, "
                        f"expected {expected}: stride {axis} is {view.strides[axis]}, not {wanted}",
                        span=buffer.span, label=self.declared(buffer))  # fmt: skip
            return

    def not_contiguous(self, buffer: Buffer, view: TensorView) -> None:
        wanted = [1]
        for size in reversed(view.shape[1:]):
            wanted.insert(0, wanted[0] * max(size, 1))
        make = (f"{buffer.name}.contiguous()" if view.family == "torch"
                else f"np.ascontiguousarray({buffer.name})")  # fmt: skip
        self.report("TL708", f"argument `{buffer.name}` of `{self.name}` is not contiguous: it has "
                    f"strides {view.strides}, expected {tuple(wanted)}",
                    f"pass {make}, or declare the parameter with its strides: "
                    "T.StridedTensor(shape, strides, dtype)",
                    span=buffer.span, label=self.declared(buffer))  # fmt: skip

    def check_promises(self) -> None:
        """What `T.assume` promised of the arguments; judged only when they fit otherwise."""
        for promise in () if self.diagnostics else self.signature.promises:
            try:
                kept = evaluate(promise.condition, self.bound.dims)
            except ZeroDivisionError:
                kept = 0
            if kept == 0:
                shown = ", ".join(f"{v.name} = {self.bound.dims[v]}"
                                  for v in dim_vars(promise.condition))  # fmt: skip
                self.report(
                    "TL721",
                    f"`{self.name}` assumes {expr_text(promise.condition)}, but {shown}",
                    "pass other arguments, or drop the `T.assume`",
                    span=promise.span,
                    label="does not hold for these arguments",
                )


def logical_shape(buffer: Buffer, view: TensorView) -> tuple[int, ...]:
    """The shape of `view` in elements: two int4 share one item of the stored array."""
    per_item = elements_per_item(buffer.dtype)
    if per_item == 1 or not view.shape:
        return view.shape
    return (*view.shape[:-1], view.shape[-1] * per_item)


def _how_to_make_tensor(value: Any) -> str | None:
    if isinstance(value, list | tuple | int | float):
        return "pass torch.tensor(...) or numpy.array(...)"
    return "pass a NumPy array, a PyTorch tensor, or an object with __dlpack__"


def _how_to_convert(buffer: Buffer, family: Family, names: Sequence[str]) -> str | None:
    if not names:
        return f"{family} has no dtype for {buffer.dtype.name}"
    if family == "torch":
        return f"pass {buffer.name}.to(torch.{names[0]})"
    missing = names[0].startswith(("bfloat16", "float8", "float4", "float6"))
    place = "" if names[0] == "bool" else "ml_dtypes." if missing else "np."
    return f"pass {buffer.name}.astype({place}{names[0]})"
