"""A `libcuda` that remembers what it was asked: launches are decoded from the memory they got."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

CONFIG = struct.Struct("<6I I 4x Q Q I 4x")
ERRORS = {
    34: "CUDA_ERROR_STUB_LIBRARY", 100: "CUDA_ERROR_NO_DEVICE", 999: "CUDA_ERROR_UNKNOWN",
    222: "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", 803: "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
    1: "CUDA_ERROR_INVALID_VALUE", 2: "CUDA_ERROR_OUT_OF_MEMORY",
    200: "CUDA_ERROR_INVALID_IMAGE",
    201: "CUDA_ERROR_INVALID_CONTEXT", 700: "CUDA_ERROR_ILLEGAL_ADDRESS",
    701: "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", 702: "CUDA_ERROR_LAUNCH_TIMEOUT",
    710: "CUDA_ERROR_ASSERT", 716: "CUDA_ERROR_MISALIGNED_ADDRESS",
    719: "CUDA_ERROR_LAUNCH_FAILED", 720: "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE",
}  # fmt: skip


@dataclass(frozen=True)
class Launched:
    """One launch as the driver saw it."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    attributes: tuple[tuple[int, ...], ...]
    function: int
    parameters: tuple[Any, ...]
    context: int | None


class _Function:
    """Callable, and takes attributes such as `restype`."""

    def __init__(self, call: Any) -> None:
        self._call = call

    def __call__(self, *args: Any) -> int:
        found = self._call(*args)
        return 0 if found is None else int(found)


def value_of(arg: Any) -> int:
    """The number an argument passes, which ctypes tells of its own kind only in its `repr`."""
    if type(arg).__name__ == "CArgObject":
        return int(repr(arg).rpartition("0x")[2].rstrip(")>"), 16)
    return int(getattr(arg, "value", arg) or 0)


class FakeLibrary:
    """`devices` are (capability, opt-in shared bytes); `formats` decode the parameters.

    `results` maps the name of a function to what its next calls return, first to last.
    """

    def __init__(
        self,
        devices: Sequence[tuple[tuple[int, int], int]] = (((9, 0), 232448),),
        formats: Sequence[str] = (),
        version: int = 13000,
    ) -> None:
        self.devices, self.formats, self.version = devices, formats, version
        self.launches: list[Launched] = []
        self.loaded: list[bytes] = []
        self.results: dict[str, list[int]] = {}
        self.attributes: list[tuple[int, int]] = []
        self.contexts: list[int] = []
        self.encoded: list[dict[str, Any]] = []

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("cu"):
            raise AttributeError(name)
        found = getattr(self, f"_{name}", lambda *args: 0)

        def call(*args: Any) -> Any:
            queued = self.results.get(name)
            if queued:
                result = queued.pop(0)
                if result:
                    return result
            return found(*args)

        function = _Function(call)
        setattr(self, name, function)
        return function

    def _set(self, pointer: Any, value: int) -> None:
        pointer._obj.value = value

    def _cuDriverGetVersion(self, out: Any) -> None:
        self._set(out, self.version)

    def _cuDeviceGetCount(self, out: Any) -> None:
        self._set(out, len(self.devices))

    def _cuDeviceGetName(self, buffer: Any, size: int, index: int) -> None:
        buffer.value = f"Test GPU {value_of(index)}".encode()

    def _cuDeviceGetAttribute(self, out: Any, which: int, index: int) -> None:
        (major, minor), shared = self.devices[value_of(index)]
        known = {75: major, 76: minor, 97: shared, 16: 4, 95: 1}
        self._set(out, known[which])

    def _cuGetErrorName(self, result: int, out: Any) -> None:
        self._set(out, ERRORS[result].encode())

    def _cuGetErrorString(self, result: int, out: Any) -> None:
        self._set(out, b"what it means")

    def _cuLibraryLoadData(self, out: Any, cubin: bytes, *rest: Any) -> None:
        self.loaded.append(cubin)
        self._set(out, 0x1000 + len(self.loaded))

    def _cuLibraryGetKernel(self, out: Any, library: Any, symbol: bytes) -> None:
        self._set(out, value_of(library) * 16 + int(symbol[-1:] if symbol[-1:].isdigit() else b"0"))

    def _cuKernelGetFunction(self, out: Any, kernel: Any) -> None:
        context = self.contexts[-1] if self.contexts else 0
        self._set(out, value_of(kernel) * 256 + context)

    def _cuFuncSetAttribute(self, function: Any, which: int, value: int) -> None:
        self.attributes.append((which, value))

    def _cuOccupancyMaxActiveBlocksPerMultiprocessor(self, out: Any, *rest: Any) -> None:
        self._set(out, 2)

    def _cuDevicePrimaryCtxRetain(self, out: Any, index: int) -> None:
        self._set(out, 0x90 + index)

    def _cuCtxPushCurrent_v2(self, context: Any) -> None:
        self.contexts.append(value_of(context))

    def _cuCtxPopCurrent_v2(self, out: Any) -> None:
        self._set(out, self.contexts.pop())

    def _cuCtxGetDevice(self, out: Any) -> int:
        if not self.contexts:
            return 201
        self._set(out, self.contexts[-1] - 0x90)
        return 0

    def _cuTensorMapEncodeTiled(
        self, out: Any, kind: int, rank: int, address: Any, shape: Any, strides: Any, box: Any,
        steps: Any, interleave: int, swizzle: int, promotion: int, fill: int,
    ) -> int:  # fmt: skip
        assert value_of(out) % 64 == 0
        if 0 in tuple(shape):  # as a driver on an H200 says
            return 1
        self.encoded.append({
            "kind": kind, "address": value_of(address), "shape": tuple(shape),
            "strides": tuple(strides)[: rank - 1], "box": tuple(box), "steps": tuple(steps),
            "swizzle": swizzle, "promotion": promotion,
        })  # fmt: skip
        ctypes.memmove(value_of(out), bytes([len(self.encoded)]) * 128, 128)
        return 0

    def _cuLaunchKernelEx(self, config: Any, function: Any, parameters: Any, extra: Any) -> None:
        *sizes, shared, stream, attributes, count = CONFIG.unpack(
            ctypes.string_at(value_of(config), CONFIG.size)
        )
        rows = [
            struct.unpack("<I4x4I", ctypes.string_at(attributes + 72 * n, 24)) for n in range(count)
        ]
        decoded = [
            struct.unpack(f"<{form}", ctypes.string_at(pointer, struct.calcsize(f"<{form}")))[0]
            for form, pointer in zip(self.formats, parameters._obj, strict=False)
        ]
        self.launches.append(
            Launched(tuple(sizes[:3]), tuple(sizes[3:]), shared, stream, tuple(rows),
                     value_of(function), tuple(decoded),
                     self.contexts[-1] if self.contexts else None)
        )  # fmt: skip
