"""How is a TMA descriptor made for the tensor of one call?

Encoding one costs some microseconds and depends on the address and sizes alone, so the last ones
of each map are kept.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from tilelang.codegen.device_source import TensorMap
from tilelang.dtypes import dtype as dtype_of
from tilelang.runtime.cuda_driver import Driver, Result
from tilelang.runtime.cuda_plan import TENSOR_MAP_BYTES

# cuda.h, enum CUtensorMapDataType. What TMA has no name for travels as bytes of its width.
_TYPES: Final = {
    "uint8": 0, "uint16": 1, "uint32": 2, "int32": 3, "uint64": 4, "int64": 5, "float16": 6,
    "float32": 7, "float64": 8, "bfloat16": 9, "tfloat32": 11,
}  # fmt: skip
_BY_BYTES: Final = {1: 0, 2: 1, 4: 2, 8: 4}
SWIZZLES: Final = {0: 0, 32: 1, 64: 2, 128: 3}
PROMOTIONS: Final = {0: 0, 64: 1, 128: 2, 256: 3}
_KEPT: Final = 16


class CannotEncode(Exception):
    """The driver refused the description of a tensor."""

    def __init__(self, found: TensorMap, result: Result) -> None:
        super().__init__(f"{found.name} of {found.source}")
        self.map, self.result = found, result


class TensorMaps:
    """The descriptors of one kernel: `encode(number, address, shape, strides)` as bytes.

    `error` makes what is raised of a refusal: `encode` is called from generated code.
    """

    def __init__(
        self, driver: Driver, maps: tuple[TensorMap, ...],
        error: Callable[[CannotEncode], Exception] = lambda refused: refused,
    ) -> None:  # fmt: skip
        self._maps = maps
        self._error = error
        self._encode: Any = driver.library.cuTensorMapEncodeTiled if maps else None
        self._kept: dict[tuple[Any, ...], bytes] = {}

    def encode(
        self, number: int, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> bytes:
        """The 128 bytes of map `number`; raises what `error` makes of CannotEncode."""
        key = (number, address, shape, strides)
        found = self._kept.get(key)
        if found is None:
            found = self._make(self._maps[number], address, shape, strides)
            if len(self._kept) >= _KEPT:
                self._kept.clear()
            self._kept[key] = found
        return found

    def _make(
        self, found: TensorMap, address: int, shape: tuple[int, ...], strides: tuple[int, ...]
    ) -> bytes:
        rank = len(shape)
        if 0 in shape:
            # The driver knows no empty tensors. Of this one nothing is read: no loop gets there.
            address, shape = 0, tuple(max(1, extent) for extent in shape)
        memory = ctypes.create_string_buffer(TENSOR_MAP_BYTES + 64)
        start = -ctypes.addressof(memory) % 64
        result = self._encode(
            ctypes.c_void_p(ctypes.addressof(memory) + start),
            data_type(found.dtype),
            rank,
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*shape),
            (ctypes.c_uint64 * max(1, rank - 1))(*strides),
            (ctypes.c_uint32 * rank)(*found.box),
            (ctypes.c_uint32 * rank)(*(1,) * rank),
            0,  # not interleaved
            SWIZZLES[found.swizzle],
            PROMOTIONS[found.l2_promotion],
            0,  # zeros beyond the edges
        )
        if result:
            raise self._error(CannotEncode(found, Result(result)))
        return memory.raw[start : start + TENSOR_MAP_BYTES]


def data_type(dtype: str) -> int:
    """The number of a dtype in `CUtensorMapDataType`."""
    known = _TYPES.get(dtype)
    return _BY_BYTES[max(1, dtype_of(dtype).bytes)] if known is None else known
