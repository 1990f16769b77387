"""What can be asked of the CUDA driver, and which devices does it have?

`libcuda` through ctypes: no toolkit, no compiler and no framework is needed. Nothing here raises
for an error of a call; callers turn `Result`s into diagnostics. Looking for devices (`cuInit`)
happens at first use.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NewType

Result = NewType("Result", int)

# cuda.h, enum cudaError_enum; those that code has to tell apart.
SUCCESS: Final = 0
OUT_OF_MEMORY: Final = 2
INVALID_IMAGE: Final = 200
INVALID_CONTEXT: Final = 201
NO_BINARY_FOR_GPU: Final = 209
UNSUPPORTED_PTX_VERSION: Final = 222
LAUNCH_OUT_OF_RESOURCES: Final = 701
COOPERATIVE_LAUNCH_TOO_LARGE: Final = 720
ILLEGAL_ADDRESS: Final = 700
LAUNCH_TIMEOUT: Final = 702
ASSERT: Final = 710
MISALIGNED_ADDRESS: Final = 716
# After one of these the context executes nothing any more.
STICKY: Final = frozenset({700, 702, 710, 714, 715, 716, 717, 718, 719})

# cuda.h, enum CUdevice_attribute and CUfunction_attribute.
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_MULTIPROCESSORS, _SHARED_OPT_IN, _COOPERATIVE = 16, 97, 95
_MAX_DYNAMIC_SHARED = 8
_CAPTURE_MODE_RELAXED = 2
_LIBCUDA: Final = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
_FIRST_WITH_LIBRARIES: Final = 12000


class NoDriver(Exception):
    """There is no usable CUDA driver; `str` says why."""


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, by its ordinal."""

    index: int
    name: str
    capability: tuple[int, int]
    shared_bytes: int
    multiprocessors: int
    cooperative: bool

    @property
    def arch(self) -> str:
        """Its architecture, `sm_90`."""
        return f"sm_{self.capability[0]}{self.capability[1]}"


@cache
def driver() -> Driver:
    """The driver of this process; raises NoDriver."""
    try:
        library = ctypes.CDLL(_LIBCUDA)
    except OSError as error:
        raise NoDriver(f"the CUDA driver library {_LIBCUDA} is not here") from error
    return Driver(library)


# Of what `cuInit` answers, what usually is behind it.
_BEHIND: Final = {
    34: "the libcuda found is the stub that programs are linked with: take its folder off "
    "LD_LIBRARY_PATH",
    46: "another process has the device for itself",
    100: "CUDA_VISIBLE_DEVICES hides every device, or the container was started without access to "
    "one (docker run --gpus all)",
    101: "CUDA_VISIBLE_DEVICES names a device that does not exist",
    802: "the service that connects the GPUs, nvidia-fabricmanager, is not running",
    803: "libcuda and the kernel module are of different versions: restart after an update, and "
    "let a container take libcuda from its host",
    804: "the compatibility libcuda of a newer toolkit does not support this GPU: take its folder "
    "off LD_LIBRARY_PATH",
    999: "the device may hang: see what nvidia-smi and the kernel log say",
}


def start_failure(library: Any, result: int) -> str:
    """Why a loaded `libcuda` cannot be used, from what `cuInit` or `cuDeviceGetCount` answered."""
    said = f"the CUDA driver cannot start: {_described(library, result)}"
    behind = _BEHIND.get(result)
    return said if behind is None else f"{said}; {behind}"


def _described(library: Any, result: int) -> str:
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    library.cuGetErrorName(int(result), ctypes.byref(name))
    library.cuGetErrorString(int(result), ctypes.byref(text))
    if not name.value:
        return f"CUDA error {int(result)}, which this driver has no name for"
    return f"{name.value.decode()}: {(text.value or b'').decode()}"


class Driver:
    """A loaded and initialised `libcuda`."""

    def __init__(self, library: Any) -> None:
        self.library = library
        self._contexts: dict[int, int] = {}
        self._lock = threading.Lock()
        result = library.cuInit(0)
        if result:
            raise NoDriver(start_failure(library, result))
        version = ctypes.c_int()
        library.cuDriverGetVersion(ctypes.byref(version))
        self.version: int = version.value
        if self.version < _FIRST_WITH_LIBRARIES:
            shown = f"{self.version // 1000}.{self.version % 1000 // 10}"
            raise NoDriver(f"the driver is for CUDA {shown}, and kernels need 12.0 or later")
        count = ctypes.c_int()
        result = library.cuDeviceGetCount(ctypes.byref(count))
        if result:
            raise NoDriver(start_failure(library, result))
        if count.value == 0:
            raise NoDriver("the CUDA driver sees no device")
        self.devices: tuple[Device, ...] = tuple(self._device(n) for n in range(count.value))
        self.launch: Any = library.cuLaunchKernelEx
        self.launch.restype = ctypes.c_int

    def describe(self, result: Result) -> str:
        """`CUDA_ERROR_…: what it means`."""
        return _described(self.library, result)

    def load(self, cubin: bytes) -> tuple[Result, int]:
        """A library of kernels, which every context that uses it loads by itself."""
        handle = ctypes.c_void_p()
        load = self.library.cuLibraryLoadData
        result = load(ctypes.byref(handle), cubin, None, None, 0, None, None, 0)
        return self._checked(result, handle)

    def kernel(self, library: int, symbol: str) -> tuple[Result, int]:
        """One kernel of a library."""
        handle = ctypes.c_void_p()
        find = self.library.cuLibraryGetKernel
        result = find(ctypes.byref(handle), ctypes.c_void_p(library), symbol.encode())
        return self._checked(result, handle)

    def prepare(
        self, kernel: int, dynamic_shared: int, static_shared: int = 0
    ) -> tuple[Result, int]:
        """The function of a kernel in the current context, ready to use that much shared memory."""
        function = ctypes.c_void_p()
        result = self.library.cuKernelGetFunction(ctypes.byref(function), ctypes.c_void_p(kernel))
        # Dynamic shared memory begins at a multiple of 1 KiB behind what is static.
        total = -(-static_shared // 1024) * 1024 + dynamic_shared
        if result == SUCCESS and total > 48 * 1024:
            # Up to 48 KiB need no asking: CUDA programming guide, dynamic shared memory.
            result = self.library.cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED, dynamic_shared)
        return self._checked(result, function)

    def resident_blocks(self, function: int, threads: int, dynamic_shared: int) -> int:
        """How many blocks of a function fit on one multiprocessor of the current device."""
        count = ctypes.c_int()
        self.library.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            ctypes.byref(count), ctypes.c_void_p(function), threads,
            ctypes.c_size_t(dynamic_shared),
        )  # fmt: skip
        return count.value

    def allocate(self, size: int) -> tuple[Result, int]:
        """Memory of the current context's device."""
        address = ctypes.c_uint64()
        result = self.library.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(size))
        return Result(result), address.value

    def free(self, address: int) -> Result:
        """Give `allocate`d memory back; waits for the device."""
        return Result(self.library.cuMemFree_v2(ctypes.c_uint64(address)))

    def upload(self, address: int, data: bytes) -> Result:
        """Copy `data` to device memory."""
        size = ctypes.c_size_t(len(data))
        return Result(self.library.cuMemcpyHtoD_v2(ctypes.c_uint64(address), data, size))

    def synchronize(self) -> Result:
        """Wait for everything in the current context."""
        return Result(self.library.cuCtxSynchronize())

    @contextmanager
    def on(self, device: int) -> Iterator[Result]:
        """Inside, the primary context of `device`, that of PyTorch, is the thread's current one."""
        result, context = self.context(device)
        if result == SUCCESS:
            result = Result(self.library.cuCtxPushCurrent_v2(ctypes.c_void_p(context)))
        try:
            yield result
        finally:
            if result == SUCCESS:
                popped = ctypes.c_void_p()
                self.library.cuCtxPopCurrent_v2(ctypes.byref(popped))

    def context(self, device: int) -> tuple[Result, int]:
        """The primary context of `device`, which this process then keeps."""
        with self._lock:
            found = self._contexts.get(device)
            if found is not None:
                return Result(SUCCESS), found
            handle = ctypes.c_void_p()
            result = self.library.cuDevicePrimaryCtxRetain(ctypes.byref(handle), device)
            if result == SUCCESS and handle.value:
                self._contexts[device] = handle.value
            return self._checked(result, handle)

    def current_device(self) -> int | None:
        """The device of the thread's current context."""
        device = ctypes.c_int()
        result = self.library.cuCtxGetDevice(ctypes.byref(device))
        return device.value if result == SUCCESS else None

    @contextmanager
    def relaxed_capture(self) -> Iterator[None]:
        """Inside, loading code does not break a stream capture that is going on."""
        mode = ctypes.c_int(_CAPTURE_MODE_RELAXED)
        self.library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))
        try:
            yield
        finally:
            self.library.cuThreadExchangeStreamCaptureMode(ctypes.byref(mode))

    def _device(self, index: int) -> Device:
        name = ctypes.create_string_buffer(128)
        self.library.cuDeviceGetName(name, len(name), index)
        major, minor = (self._attribute(index, a) for a in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR))
        return Device(
            index,
            name.value.decode(errors="replace"),
            (major, minor),
            self._attribute(index, _SHARED_OPT_IN),
            self._attribute(index, _MULTIPROCESSORS),
            bool(self._attribute(index, _COOPERATIVE)),
        )

    def _attribute(self, device: int, which: int) -> int:
        value = ctypes.c_int()
        self.library.cuDeviceGetAttribute(ctypes.byref(value), which, device)
        return value.value

    @staticmethod
    def _checked(result: int, handle: ctypes.c_void_p) -> tuple[Result, int]:
        return Result(result), handle.value or 0
