"""How is one call of a kernel written down for the emulator's process? See `cpp/runtime/call.h`."""

from __future__ import annotations

import ctypes
import mmap
import os
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilelang.codegen.device_source import DeviceSource, KernelParam, TensorMap
from tilelang.codegen.host_expr import evaluate
from tilelang.dtypes import dtype as dtype_of
from tilelang.emulator.settings import Emulator
from tilelang.emulator.source import written_tensors
from tilelang.runtime.scalars import FORMATS, packed
from tilelang_diagnostics import failure, with_article

_PAGE: Final = mmap.PAGESIZE
# The lanes of a warp, where there are not 32.
WARPS: Final[Mapping[str, int]] = {"hip": 64}
# What cudaMalloc promises.
_ALIGNMENT: Final = 256


@dataclass(frozen=True, slots=True)
class Region:
    """A tensor at an address of this process, or (address 0) memory of the kernel's own."""

    name: str
    address: int
    bytes: int
    # Nobody gave it values: a result, or memory of the kernel's own.
    is_fresh: bool = False


class Memory:
    """A file that holds all regions. Each ends as near as can be to the end of a page, so that the
    processor catches whoever runs over it."""

    def __init__(self, path: Path, regions: Sequence[Region]) -> None:
        self.path = path
        self.regions = tuple(regions)
        self.offsets: list[int] = []
        at = 0
        for region in regions:
            taken = -(-max(region.bytes, 1) // _ALIGNMENT) * _ALIGNMENT
            pages = -(-taken // _PAGE) * _PAGE
            self.offsets.append(at + pages - taken)
            at += pages
        size = max(at, _PAGE)
        with path.open("w+b") as file:
            _reserve(file.fileno(), size)
            self._map = mmap.mmap(file.fileno(), size)

    def copy_in(self) -> None:
        """Fill the file; memory nobody gave a value to holds nonsense, NaN for floats."""
        for region, offset in zip(self.regions, self.offsets, strict=True):
            if region.address and region.bytes and not region.is_fresh:
                data = ctypes.string_at(region.address, region.bytes)
            else:
                data = b"\xff" * region.bytes
            self._map[offset : offset + region.bytes] = data

    def copy_out(self, names: frozenset[str]) -> None:
        """Copy regions called `names` back to where they came from."""
        for region, offset in zip(self.regions, self.offsets, strict=True):
            if region.name in names and region.address and region.bytes:
                data = self._map[offset : offset + region.bytes]
                ctypes.memmove(region.address, data, region.bytes)

    def close(self) -> None:
        self._map.close()


def _reserve(file: int, size: int) -> None:
    """Make a file that long whose memory is there: a file system that is full raises here, and not
    where memory is touched."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
    else:  # macOS
        os.ftruncate(file, size)


def write_call(
    folder: Path, device: DeviceSource, names: Mapping[str, Any], memory: Memory, library: Path,
    reports: Path, settings: Emulator, workers: int,
) -> Path:  # fmt: skip
    """Write the call of every launch of `device` where scalars and dims have the values `names`."""
    lines = [
        f"library {library}", f"reports {reports}", f"memory {memory.path}",
        f"seed {settings.seed}", f"check {int(settings.check)}", f"workers {workers}",
        f"warp {WARPS.get(device.dialect, 32)}",
    ]  # fmt: skip
    written = written_tensors(device)
    number: dict[str, int] = {}
    for n, (region, offset) in enumerate(zip(memory.regions, memory.offsets, strict=True)):
        number[region.name] = n
        flags = f"{int(region.name in written)} {int(region.is_fresh)}"
        lines.append(f"region {offset} {region.bytes} {flags} {region.name}")
    for launch in device.launches:
        grid, block = launch.grid_of(names), launch.block
        sizes = " ".join(str(n) for n in (*grid, *block))
        lines.append(
            f"launch {launch.symbol} {sizes} {launch.dynamic_shared} {int(launch.cooperative)}"
        )
        for param in launch.params:
            lines.append(_argument(device, param, names, number))
    path = folder / "call"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


# What `tma_reduce_add` adds as: see TensorMap in `cpp/include/emulator/runtime.h`.
_NUMBERS: Final = {"float32": 1, "float16": 2, "bfloat16": 3, "float64": 4}


def _tensor_map(made: TensorMap, names: Mapping[str, Any], number: Mapping[str, int]) -> str:
    dtype = dtype_of(made.dtype)
    shape, strides = ([int(evaluate(e, names)) for e in row] for row in (made.shape, made.strides))
    words = (
        number[made.source], int(evaluate(made.offset, names)), _NUMBERS.get(dtype.name, 0),
        dtype.scalar.bytes, made.swizzle, len(shape), *shape, *strides, *made.box,
    )  # fmt: skip
    return f"map {' '.join(str(w) for w in words)}"


def _argument(
    device: DeviceSource, param: KernelParam, names: Mapping[str, Any], number: Mapping[str, int]
) -> str:
    if param.kind in ("buffer", "workspace"):
        given = names.get(param.source, 1)
        return f"pointer {number[param.source]}" if given else "value 0"
    if param.kind == "map":
        made = next(m for m in device.maps if m.name == param.source)
        return _tensor_map(made, names, number)
    value, dtype = names[param.source], dtype_of(param.dtype).name
    if dtype not in FORMATS:
        raise failure(
            "TL718", f"{with_article(str(param.dtype))} scalar cannot be passed to `{device.name}`",
            help="pass a float32 and convert it in the kernel",
        )  # fmt: skip
    try:
        data = packed(dtype, value)
    except struct.error:
        raise failure(
            "TL718",
            f"`{param.source}` of `{device.name}` is {value}, which {param.dtype} cannot hold",
            help="pass a smaller number, or declare a wider type",
        ) from None
    return f"value {int.from_bytes(data, 'little'):x}"
