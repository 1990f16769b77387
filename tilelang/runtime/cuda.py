"""How is a compiled CUDA kernel loaded, and how does one call of it run?

Neither needs TVM, a compiler or a CUDA toolkit: the driver alone loads binaries and launches. With
PyTorch in the process, kernels run on its current stream of the tensors' device, and are recorded
while it captures a graph; without, on the device's default stream.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, cast

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_source import KernelLaunch
from tilelang.runtime import cuda_errors, cuda_hook
from tilelang.runtime.cuda_driver import (
    COOPERATIVE_LAUNCH_TOO_LARGE,
    INVALID_CONTEXT,
    SUCCESS,
    Driver,
    NoDriver,
    Result,
    driver,
)
from tilelang.runtime.cuda_plan import (
    HELPERS,
    CannotPass,
    Frame,
    block_of,
    launch_lines,
    make_plan,
)
from tilelang.runtime.cuda_ring import RING, Launched, Origin
from tilelang.runtime.cuda_tensor_map import CannotEncode, TensorMaps
from tilelang_diagnostics import code_of, error_for
from tilelang_diagnostics.model import Diagnostic

# cuda.h, CUlaunchAttributeID; an attribute is an id, padded to 8, and a value of 64 bytes.
_COOPERATIVE, _CLUSTER = 2, 4
_ATTRIBUTE: Final = struct.Struct("<I4x3I52x")

# Kernels launched since the last synchronisation: an asynchronous error is one of theirs.
_recent: Final[deque[Launched]] = deque(maxlen=RING)


def load_cuda(artifact: CudaArtifact, *, from_ptx: bool = False) -> CudaKernel:
    """Make `artifact` callable. Needs no GPU: code is loaded at the first launch on a device.

    With `from_ptx` a device that no binary fits gets what its driver makes of the PTX for an older
    one; otherwise it is refused.
    """
    return CudaKernel(artifact, from_ptx)


def synchronize(device: int = 0, name: str = "synchronize") -> None:
    """Wait for a device; raises TL812 or TL722 if a kernel on it failed."""
    found = _driver(name)
    with found.on(device):
        result = found.synchronize()
    if result:
        raise cuda_errors.context_lost(name, found.describe(result), result, tuple(_recent))
    _recent.clear()


class CudaKernel:
    """A kernel that can be launched on every device its binaries fit. Safe to use from threads."""

    def __init__(self, artifact: CudaArtifact, from_ptx: bool = False) -> None:
        self.artifact = artifact
        self._from_ptx = from_ptx
        self._lock = threading.Lock()
        self._libraries: dict[str, int] = {}
        # Of each launch, its function in the context of each device it was loaded on.
        self._handles: tuple[dict[int, int], ...] = tuple({} for _ in artifact.launches)
        # The same in the form that ctypes passes on without making an object.
        self._functions: tuple[dict[int, Any], ...] = tuple({} for _ in artifact.launches)
        self._devices: set[int] = set()
        self._origin: list[Origin] = []
        self._attributes: list[Any] = []
        self._names: dict[str, Any] = {}
        self._plan: Callable[[Sequence[int | float], int], None] | None = None
        self._device_of_thread: Callable[[], int | None] = lambda: None

    def run(self, values: Sequence[int | float], device: int = 0) -> None:
        """Launch everything with one value per slot of the artifact, addresses as integers.

        Returns when the launches are queued. A grid with an axis of size zero launches nothing.
        Raises CompileError with TL805, TL812, … for what does not work.
        """
        plan = self._plan
        if plan is None or device not in self._devices:
            plan = self._prepare(device)
        if self._device_of_thread() == device:
            plan(values, device)
        else:
            with driver().on(device):
                plan(values, device)

    def require_device(self) -> None:
        """Raise TL805 if there is no GPU to run on."""
        _driver(self.artifact.name)

    def came_from(self, entry: str, values: Mapping[str, Any]) -> None:
        """Remember what the user's file makes it with, for commands that run it again."""
        self._origin[:] = [Origin.of(entry, values)]

    def inline(self, values: Sequence[str], device: str) -> tuple[list[str], list[str], Any]:
        """What `run` does, as code for a generated function: tests that it may be used, launches,
        and the names they use. `values` are expressions per slot; the device is called `device`.
        """
        found = _driver(self.artifact.name)
        tests = [f"{device} in devices"]
        if len(found.devices) > 1:
            tests.append(f"current_device() == {device}")
        names = {**HELPERS, **self._names, "devices": self._devices,
                 "current_device": self._device_of_thread}  # fmt: skip
        lines = launch_lines(self.artifact.device, self._attribute_rows(), values)
        return tests, [f"d = {device}"] * (device != "d") + lines, names

    # Loading.

    def _prepare(self, device: int) -> Callable[[Sequence[int | float], int], None]:
        found = _driver(self.artifact.name)
        with self._lock:
            if device not in self._devices:
                self._load(found, device)
                cuda_hook.install(_recent)
                self._devices.add(device)
            if self._plan is None:
                self._device_of_thread = _current_device(found)
                self._names = self._names_for(found)
                slots = len(self.artifact.slots)
                lines = launch_lines(
                    self.artifact.device, self._attribute_rows(), [f"v{n}" for n in range(slots)]
                )
                self._plan = make_plan(lines, slots, self._names)
            return self._plan

    def _load(self, found: Driver, index: int) -> None:
        artifact = self.artifact
        if not 0 <= index < len(found.devices):
            raise cuda_errors.no_such_device(artifact.name, index, len(found.devices))
        device = found.devices[index]
        binary = artifact.binary_for(device.capability)
        code = b"" if binary is None else binary.cubin
        if binary is not None and not binary.is_whole:
            raise cuda_errors.damaged(artifact, binary.arch)
        if binary is None and self._from_ptx:
            binary = artifact.ptx_for(device.capability)
            code = b"" if binary is None else binary.ptx.encode() + b"\0"
        if binary is None:
            raise cuda_errors.wrong_arch(artifact, device)
        for launch in artifact.launches:
            if launch.static_shared + launch.dynamic_shared > device.shared_bytes:
                raise cuda_errors.too_much_shared(artifact, launch, device)

        def checked(result: Result, handle: int = 0) -> int:
            if result != SUCCESS:
                raise cuda_errors.cannot_load(artifact, device, found, result)
            return handle

        with found.on(index) as entered, found.relaxed_capture():
            checked(entered)
            library = self._libraries.get(binary.arch)
            if library is None:
                library = self._libraries[binary.arch] = checked(*found.load(code))
            # Never unloaded: a launch of it may still be under way when the last reference goes.
            for n, launch in enumerate(artifact.launches):
                kernel = checked(*found.kernel(library, launch.symbol))
                sizes = launch.dynamic_shared, launch.static_shared
                handle = checked(*found.prepare(kernel, *sizes))
                self._handles[n][index] = handle
                self._functions[n][index] = ctypes.c_void_p.from_param(handle)

    def _attribute_rows(self) -> list[tuple[int, int]]:
        """Address and number of the launch attributes of each launch."""
        return [
            (0, 0) if a is None else (ctypes.addressof(a), len(a) // _ATTRIBUTE.size)
            for a in self._attributes
        ]

    # Launching.

    def _names_for(self, found: Driver) -> dict[str, Any]:
        """What the generated code uses."""
        artifact = self.artifact
        self._attributes = [_attributes(launch) for launch in artifact.launches]
        names: dict[str, Any] = {
            "driver_launch": found.launch,
            "note": _recent.append,
            "stream": _stream_function(),
            "workspace": partial(_workspace, artifact.name),
            "unmet": self._check_failed,
            "unfit": self._unfit,
            "tensor_map": TensorMaps(found, artifact.device.maps, self._cannot_encode).encode,
        }
        for n, launch in enumerate(artifact.launches):
            try:
                block = block_of(launch, self._attributes[n] is not None)
            except CannotPass as refused:
                raise cuda_errors.cannot_pass(artifact, refused.param) from None
            frames: list[Frame] = []
            names |= {
                f"frames{n}": frames,
                f"launched{n}": Launched(artifact, n, block, frames, self._origin),
                f"frame{n}": block.frame,
                f"pack{n}": block.form.pack_into,
                f"functions{n}": self._functions[n],
                f"failed{n}": partial(self._failed, found, n),
            }
        return names

    def _failed(
        self, found: Driver, number: int, result: int, index: int, frame: Frame,
        grid: tuple[int, int, int],
    ) -> None:  # fmt: skip
        """The driver did not take a launch: try once more where that helps, else raise."""
        launch, device = self.artifact.launches[number], found.devices[index]
        function = self._functions[number][index]
        if result == INVALID_CONTEXT:
            # A thread in which nothing has used CUDA yet.
            _, _, config, parameters = frame
            with found.on(index):
                result = found.launch(config, function, parameters, None)
            if result == SUCCESS:
                return
        resident = None
        if result == COOPERATIVE_LAUNCH_TOO_LARGE:
            with found.on(index):
                resident = found.resident_blocks(
                    self._handles[number][index], launch.threads, launch.dynamic_shared
                )
        raise cuda_errors.launch_failed(
            self.artifact, launch, grid, device, (found.describe(Result(result)), Result(result)),
            tuple(_recent), resident,
        )  # fmt: skip

    def _unfit(self, values: Sequence[int | float]) -> None:
        raise cuda_errors.out_of_range(self.artifact, values)

    def _check_failed(self, number: int) -> None:
        raise cuda_errors.check_failed(self.artifact, self.artifact.device.checks[number])

    def _cannot_encode(self, refused: CannotEncode) -> Exception:
        name = refused.map.source
        return error_for(
            (
                Diagnostic(
                    "TL706",
                    code_of("TL706").severity,
                    f"argument `{name}` of `{self.artifact.name}` cannot be read by TMA: its "
                    "address and its row strides have to be multiples of 16 bytes",
                    help=f"pass a contiguous {name} with a row size that is a multiple of 16 "
                    "bytes, or copy with disable_tma=True",
                ),
            )
        )


def _driver(name: str) -> Driver:
    try:
        return driver()
    except NoDriver as error:
        raise cuda_errors.no_gpu(name, str(error)) from None


def _attributes(launch: KernelLaunch) -> Any:
    """The launch attributes of a kernel as CUlaunchAttribute structs; None for none."""
    packed = b""
    if launch.cooperative:
        packed += _ATTRIBUTE.pack(_COOPERATIVE, 1, 0, 0)
    if launch.cluster is not None:
        packed += _ATTRIBUTE.pack(_CLUSTER, *launch.cluster)
    return (ctypes.c_char * len(packed)).from_buffer_copy(packed) if packed else None


def _torch() -> Any:
    """PyTorch, if it is in the process and was built with CUDA."""
    torch = sys.modules.get("torch")
    return torch if hasattr(getattr(torch, "_C", None), "_cuda_getDevice") else None


def _stream_function() -> Callable[[int], int]:
    """The handle of the stream that work on a device now goes to."""
    torch = _torch()
    if torch is None:
        return lambda device: 0
    # What PyTorch's own compiler launches its kernels on; the public way takes microseconds.
    raw: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return cast(Callable[[int], int], raw)
    return lambda device: int(torch.cuda.current_stream(device).cuda_stream)


def _current_device(found: Driver) -> Callable[[], int | None]:
    """Which device the calling thread works on."""
    torch = _torch()
    if torch is not None and torch.cuda.is_initialized():
        current: Callable[[], int] = torch._C._cuda_getDevice
        return current
    return found.current_device


class Memory:
    """Device memory that lives as long as this object."""

    __slots__ = ("_found", "address")

    def __init__(self, found: Driver, device: int, address: int) -> None:
        self._found: tuple[Driver, int] = (found, device)
        self.address = address

    def __del__(self) -> None:
        found, device = self._found
        with found.on(device):
            found.free(self.address)


class _TorchMemory:
    """Memory of PyTorch's allocator, which knows about streams and captures."""

    __slots__ = ("address", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.address: int = owner.data_ptr()


def device_memory(name: str, size: int, data: bytes | None = None, device: int = 0) -> Memory:
    """`size` bytes from the driver itself, filled with `data` if there is any.

    Raises TL813 where the device has no room, TL812 for anything else.
    """
    found = _driver(name)
    with found.on(device) as result:
        address = 0
        if result == SUCCESS:
            result, address = found.allocate(max(1, size))
        if result == SUCCESS and data:
            result = found.upload(address, data)
    if result != SUCCESS:
        raise cuda_errors.no_memory(name, size, device, (found.describe(result), result))
    return Memory(found, device, address)


def _workspace(name: str, size: int, device: int) -> Memory | _TorchMemory:
    """Memory for one call. Giving it back without PyTorch waits for the kernel that uses it."""
    torch = _torch()
    if torch is None:
        return device_memory(name, size, device=device)
    return _TorchMemory(torch.empty(max(1, size), dtype=torch.uint8, device=f"cuda:{device}"))
