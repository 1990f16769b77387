"""What is the memory behind a tensor-like argument: address, shape, strides, dtype, device?

NumPy arrays, PyTorch tensors and everything that speaks DLPack or, on an NVIDIA GPU, the CUDA array
interface. PyTorch and NumPy are never imported to find out: an argument of theirs can only exist
once they are.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from tilelang.dtypes import DType
from tilelang_diagnostics import counted, with_article

Family = Literal["torch", "numpy"]


class NotATensor(Exception):
    """The argument is no tensor, or one whose memory cannot be had; `str` says why.

    `help` says what to pass instead of `NAME`, where that depends on why.
    """

    def __init__(self, why: str, help: str | None = None) -> None:
        super().__init__(why)
        self.help = help

    def help_for(self, name: str) -> str | None:
        """What to pass instead of the argument `name`."""
        return None if self.help is None else self.help.replace("NAME", name)


@dataclass(frozen=True, slots=True)
class TensorView:
    """A tensor argument as the checks see it. Strides are in elements."""

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: str
    family: Family
    contiguous: bool
    writable: bool
    owner: Any


def is_tensor(value: Any) -> bool:
    """Whether `value` is array-like enough to be bound to a tensor parameter."""
    protocols = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")
    if any(hasattr(value, p) for p in protocols):
        return not _is_numpy_scalar(value)
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def view_of(value: Any) -> TensorView:
    """The memory of `value`; raises NotATensor."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch_view(value)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, numpy.ndarray):
        return _numpy_view(value)
    if hasattr(value, "__cuda_array_interface__"):
        return _cuda_array_view(value)
    if hasattr(value, "__dlpack__"):
        return _dlpack_view(value)
    raise NotATensor(f"is {with_article(type(value).__name__)}")


def empty(shape: Sequence[int], dtype: DType, family: Family, device: str = "cpu") -> Any:
    """A new contiguous array of `family` on `device`; ValueError where it has no such dtype."""
    if family == "torch":
        import torch

        return torch.empty(tuple(shape), dtype=dtype.as_torch(), device=device)
    import numpy

    return numpy.empty(tuple(shape), dtype=numpy_dtype(dtype))


def size_text(count: int) -> str:
    """A number of bytes as a person reads it: `14.6 TiB`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if size < 1024 or unit == "PiB":
            break
        size /= 1024
    return counted(count, "byte") if unit == "bytes" else f"{size:.1f} {unit}"


def numpy_dtype(dtype: DType) -> Any:
    """The NumPy dtype that stores `dtype`: NumPy's own, else that of ml_dtypes."""
    try:
        return dtype.as_numpy()
    except ValueError:
        import ml_dtypes
        import numpy

        found = getattr(ml_dtypes, dtype.base, None)
        if found is None:
            raise
        return numpy.dtype(found)


def storage_names(dtype: DType, family: Family) -> tuple[str, ...]:
    """The dtypes, as `family` names them, that may hold elements of `dtype`."""
    if dtype.base == "handle":
        return ("int64", "uint64")
    if dtype.base in ("int4", "uint4"):
        return ("int8", "uint8")
    try:
        stored = dtype.as_torch() if family == "torch" else numpy_dtype(dtype)
    except ValueError:
        return ()
    return (str(stored).removeprefix("torch."),)


def elements_per_item(dtype: DType) -> int:
    """How many elements of `dtype` one item of the stored array holds (2 for int4 in int8)."""
    return 8 // dtype.bits if dtype.is_packed else 1


def _torch_view(value: Any) -> TensorView:
    device = str(value.device)
    name = str(value.dtype).removeprefix("torch.")
    if value.is_nested:
        raise NotATensor("is a nested tensor", "pass NAME.values() or a padded tensor")
    if str(value.layout) != "torch.strided":
        raise NotATensor(f"is a sparse tensor ({value.layout})", "pass NAME.to_dense()")
    if value.is_conj() or value.is_neg():
        raise NotATensor("is a view whose elements are negated or conjugated when they are read",
                         "pass NAME.resolve_conj().resolve_neg()")  # fmt: skip
    without_memory = NotATensor(
        f"is {with_article(type(value).__name__)} without memory",
        "call the kernel on the tensors themselves, outside of torch.compile, torch.func and "
        "FakeTensorMode, and not after its storage was freed",
    )
    if _is_fake(value):
        raise without_memory
    try:
        address = value.data_ptr()
    except RuntimeError as error:
        # Tensors of torch.func have no memory.
        raise without_memory from error
    if address == 0 and value.numel() and device != "meta":
        raise without_memory
    return TensorView(
        address=address,
        shape=tuple(value.shape),
        strides=tuple(value.stride()),
        dtype=name,
        device="cpu" if device == "cpu" else device,
        family="torch",
        contiguous=value.is_contiguous(),
        writable=True,
        owner=value,
    )


def _numpy_view(value: Any) -> TensorView:
    dtype = value.dtype
    if not dtype.isnative:
        raise NotATensor(f"has byte-swapped elements ({dtype.str})",
                         f"pass NAME.astype(np.{dtype.name})")  # fmt: skip
    if _is_masked(value):
        raise NotATensor("is a masked array, whose mask the kernel would not see",
                         "pass NAME.filled(...), and the mask as a tensor of its own")  # fmt: skip
    size = dtype.itemsize
    if size == 0 or any(s % size for s in value.strides):
        raise NotATensor("has strides that are no multiple of its element size")
    return TensorView(
        address=value.ctypes.data,
        shape=value.shape,
        strides=tuple(s // size for s in value.strides),
        dtype=dtype.name,
        device="cpu",
        family="numpy",
        contiguous=value.flags.c_contiguous,
        writable=value.flags.writeable,
        owner=value,
    )


def _cuda_array_view(value: Any) -> TensorView:
    """An array of CuPy, Numba, … on a GPU (numba.readthedocs.io, CUDA Array Interface v3)."""
    import numpy

    found = value.__cuda_array_interface__
    dtype = numpy.dtype(found["typestr"])
    shape = tuple(found["shape"])
    rows: list[int] = [1]
    for extent in reversed(shape[1:]):
        rows.insert(0, rows[0] * extent)
    contiguous = tuple(rows[: len(shape)])
    given = found.get("strides")
    strides = contiguous if given is None else tuple(s // dtype.itemsize for s in given)
    index = value.__dlpack_device__()[1] if hasattr(value, "__dlpack_device__") else 0
    address, read_only = found["data"]
    return TensorView(
        address=address,
        shape=shape,
        strides=strides,
        dtype=dtype.name,
        device=f"cuda:{index}",
        family="numpy",
        contiguous=strides == contiguous,
        writable=not read_only,
        owner=value,
    )


# DLPack device types of dlpack.h that are ordinary host memory: CPU, CUDA pinned.
_HOST_DEVICES = (1, 3)


def _dlpack_view(value: Any) -> TensorView:
    try:
        kind, index = value.__dlpack_device__()
    except Exception as error:  # whatever the library behind it raises
        raise _not_exchanged(value, error) from None
    if kind not in _HOST_DEVICES:
        shape = tuple(value.shape)
        return TensorView(
            address=0,
            shape=shape,
            strides=(0,) * len(shape),
            dtype=str(value.dtype),
            device=f"DLPack device {kind}:{index}",
            family="numpy",
            contiguous=True,
            writable=True,
            owner=value,
        )
    import numpy

    try:
        array = numpy.from_dlpack(value)
    except Exception as error:
        raise _not_exchanged(value, error) from None
    return _numpy_view(array)


def _not_exchanged(value: Any, error: Exception) -> NotATensor:
    return NotATensor(f"is {with_article(type(value).__name__)} that cannot be exchanged ({error})")


def _is_fake(value: Any) -> bool:
    """Whether this is a tensor of FakeTensorMode, whose `data_ptr()` is 0 or a warning."""
    module = sys.modules.get("torch._subclasses.fake_tensor")
    return module is not None and isinstance(value, module.FakeTensor)


def _is_masked(value: Any) -> bool:
    module = sys.modules.get("numpy.ma")
    return module is not None and isinstance(value, module.MaskedArray)


def _is_numpy_scalar(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.generic)


def copy_of(value: Any) -> Any:
    """A tensor of its own with the elements of `value`; scalars as they are."""
    if hasattr(value, "clone"):
        return value.clone()
    return value.copy() if hasattr(value, "copy") else value


def as_float64(value: Any) -> Any:
    """A NumPy array of `value` in float64."""
    import numpy

    if hasattr(value, "detach"):
        import torch

        value = value.detach().cpu().to(torch.float64).numpy()
    return numpy.asarray(value).astype(numpy.float64)
