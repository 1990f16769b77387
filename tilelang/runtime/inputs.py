"""Which inputs can a kernel be tried on, given only its signature?"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import Enum
from typing import Any, NoReturn

from tilelang.dtypes import DType
from tilelang.program.buffer import Buffer, Dim
from tilelang.program.expr import Var
from tilelang.program.text import expr_text
from tilelang.runtime.dims import dim_vars, evaluate
from tilelang.runtime.signature import Signature
from tilelang.runtime.tensors import Family, elements_per_item, numpy_dtype
from tilelang_diagnostics import failure


class TensorSupplyType(Enum):
    """How random inputs are drawn."""

    Integer = 1  # small whole numbers
    Uniform = 2  # uniform in [-1, 1)
    Normal = 3  # normal, standard deviation 1
    Randn = 4  # the same, by PyTorch's name for it
    Zero = 5
    One = 6
    Auto = 7  # normal for floats, small whole numbers for integers, both values for bool


def make_inputs(
    signature: Signature,
    supply: TensorSupplyType = TensorSupplyType.Auto,
    sizes: Mapping[str, Any] | None = None,
    seed: int = 0,
    family: Family | None = None,
    tables: frozenset[Buffer] = frozenset(),
    device: str = "cpu",
) -> list[Any]:
    """One value per input of `signature`. `sizes` gives runtime dimensions and scalars by name.

    `tables` are parameters whose elements are used as addresses. Inputs on a `device` are those
    that the CPU would get, as PyTorch tensors.

    Raises TL716 for a dimension or scalar without a value, TL726 for a parameter that no value can
    be made up for.
    """
    import numpy

    generator = numpy.random.default_rng(seed)
    values = _named_values(signature, sizes or {})
    chosen: Family = family or ("torch" if "torch" in sys.modules else "numpy")
    if device != "cpu":
        chosen = "torch"
    inputs: list[Any] = []
    for parameter in signature.inputs:
        if isinstance(parameter, Var):
            inputs.append(_scalar(signature, parameter, sizes or {}, (seed, len(inputs))))
        elif parameter in tables or parameter.dtype.base == "handle":
            _refuse(
                "TL726",
                f"no inputs can be made for `{parameter.name}` of `{signature.name}`: its elements "
                "are addresses",
                "call the kernel from Python instead",
            )
        else:
            drawn = _tensor(signature, parameter, supply, values, generator, chosen)
            inputs.append(drawn if device == "cpu" else _on_device(drawn, device))
    return inputs


def on_device(value: Any, dtype: DType, device: str) -> Any:
    """A tensor of either library as a PyTorch tensor on a device."""
    made = value if hasattr(value, "data_ptr") else _as_family(value, dtype, "torch")
    return _on_device(made, device)


def _on_device(tensor: Any, device: str) -> Any:
    """The same elements with the same strides in the memory of a device."""
    why = ""
    try:
        import torch

        if device == "cuda" and not torch.cuda.is_available():
            why = "PyTorch sees no GPU"
    except ModuleNotFoundError:
        why = "PyTorch is not installed"
    if why:
        _refuse(
            "TL805",
            f"inputs cannot be put on the GPU: {why}",
            "install PyTorch with CUDA, or run on the processor with `tilelang run --emulate` or "
            "execution_backend='emulator'",
        )
    there = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)
    return there.copy_(tensor)


def _named_values(signature: Signature, sizes: Mapping[str, Any]) -> dict[Var, int]:
    scalars = [p for p in signature.params if isinstance(p, Var)]
    for var in signature.dims:
        given = sizes.get(var.name, 0)
        if isinstance(given, bool) or not hasattr(given, "__index__"):
            _refuse("TL726", f"{var.name} of {signature.name} is {given!r}, not an integer",
                    f"give a size: {var.name}=256")  # fmt: skip
    return {v: int(sizes[v.name]) for v in (*signature.dims, *scalars)
            if v.name in sizes and isinstance(sizes[v.name], int | float)}  # fmt: skip


def _scalar(signature: Signature, var: Var, sizes: Mapping[str, Any], seed: tuple[int, int]) -> Any:
    """One that a kernel cannot leave out unseen, as it could a factor of 1; exact in any dtype."""
    import numpy

    if var.name in sizes:
        return sizes[var.name]
    if var.dtype.base == "handle":
        _refuse("TL726", f"no address can be made up for the pointer {var.name} of "
                f"{signature.name}", "call the kernel from Python instead")  # fmt: skip
    if any(v is var for b in signature.slots if isinstance(b, Buffer) for v in _vars(b)):
        _missing(signature, var)
    generator = numpy.random.default_rng(seed)
    if var.dtype.is_float:
        return float(generator.choice([0.5, 0.625, 0.75, 1.25, 1.5, 1.75]))
    return int(generator.integers(2, 8)) if var.dtype.is_integer and var.dtype.bits >= 8 else 1


def _tensor(
    signature: Signature, buffer: Buffer, supply: TensorSupplyType, values: Mapping[Var, int],
    generator: Any, family: Family,
) -> Any:  # fmt: skip
    shape = [_size(signature, buffer, d, values) for d in buffer.shape]
    shape[-1:] = [-(-n // elements_per_item(buffer.dtype)) for n in shape[-1:]]
    array = _draw(shape, buffer.dtype, supply, generator)
    if buffer.strides is not None:
        steps = [_size(signature, buffer, d, values) for d in buffer.strides]
        array = _with_strides(array, steps)
    return _as_family(array, buffer.dtype, family)


def _draw(shape: list[int], dtype: DType, supply: TensorSupplyType, generator: Any) -> Any:
    import numpy

    stored = numpy_dtype(dtype)
    if supply is TensorSupplyType.Zero:
        return numpy.zeros(shape, stored)
    if supply is TensorSupplyType.One:
        return numpy.ones(shape, stored)
    if dtype.kind == "bool":
        return generator.integers(0, 2, shape).astype(bool)
    if dtype.is_packed:
        return generator.integers(0, 256, shape, dtype=numpy.uint8).astype(numpy.uint8).view(stored)
    if not dtype.is_float:
        low = 0 if dtype.kind == "uint" else -2
        if supply in (TensorSupplyType.Auto, TensorSupplyType.Integer):
            return generator.integers(low, 4, shape).astype(stored)
        bounds = (0, 2) if supply is TensorSupplyType.Uniform else (low, 4)
        return generator.integers(*bounds, shape).astype(stored)
    if supply is TensorSupplyType.Integer:
        return generator.integers(-2, 3, shape).astype(numpy.float32).astype(stored)
    if supply is TensorSupplyType.Uniform:
        return generator.uniform(-1.0, 1.0, shape).astype(numpy.float32).astype(stored)
    # Drawn in float32: half the time, and nothing narrower tells the difference.
    drawn = generator.standard_normal(shape, dtype=numpy.float32)
    return drawn.astype(stored)


def _with_strides(array: Any, steps: list[int]) -> Any:
    """A view with the wanted strides over fresh memory that holds the same values."""
    import numpy

    span = 1 + sum((n - 1) * s for n, s in zip(array.shape, steps, strict=True) if n > 0)
    backing = numpy.zeros(max(1, span), array.dtype)
    item = array.dtype.itemsize
    view = numpy.lib.stride_tricks.as_strided(backing, array.shape, [s * item for s in steps])
    view[...] = array
    return view


def _as_family(array: Any, dtype: DType, family: Family) -> Any:
    if family == "numpy":
        return array
    import torch

    wanted = dtype.as_torch()
    if wanted.itemsize == array.dtype.itemsize and not hasattr(torch, array.dtype.name):
        return torch.from_numpy(array.view(f"u{array.dtype.itemsize}")).view(wanted)
    if array.dtype.name in ("bfloat16",) or array.dtype.name.startswith("float8"):
        # PyTorch reads no ml_dtypes: hand over the bits.
        return torch.from_numpy(array.view(f"u{array.dtype.itemsize}")).view(wanted)
    return torch.from_numpy(array)


def _size(signature: Signature, buffer: Buffer, dim: Dim, values: Mapping[Var, int]) -> int:
    size = evaluate(dim, values)
    if size is None:
        _missing(signature, next(v for v in dim_vars(dim) if v not in values))
    assert size is not None
    if size < 0:
        _refuse("TL726", f"{expr_text(dim)} of {buffer.name} is {size}", "choose other sizes")
    return size


def _vars(buffer: Buffer) -> tuple[Var, ...]:
    return tuple(v for d in (*buffer.shape, *(buffer.strides or ())) for v in dim_vars(d))


def _missing(signature: Signature, var: Var) -> None:
    _refuse(
        "TL716",
        f"{signature.name} needs a value for {var.name}",
        f"give one: --set {var.name}=256 on the command line, or sizes={{{var.name!r}: 256}}",
    )


def _refuse(code: str, message: str, help: str) -> NoReturn:
    raise failure(code, message, help=help)
