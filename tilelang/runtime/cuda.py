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
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, cast

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_source import KernelLaunch
from tilelang.runtime import cuda_errors
from tilelang.runtime.cuda_driver import (
    COOPERATIVE_LAUNCH_TOO_LARGE,
    INVALID_CONTEXT,
    SUCCESS,
    Driver,
    NoDriver,
    Result,
    driver,
)
from tilelang.runtime.cuda_plan import Block, CannotPass, Frame, block_of, make_plan
from tilelang.runtime.cuda_tensor_map import CannotEncode, TensorMaps
from tilelang_diagnostics import code_of, error_for
from tilelang_diagnostics.model import Diagnostic

# cuda.h, CUlaunchAttributeID; an attribute is an id, padded to 8, and a value of 64 bytes.
_COOPERATIVE, _CLUSTER = 2, 4
_ATTRIBUTE: Final = struct.Struct("<I4x3I52x")

# Kernels launched since the last synchronisation: an asynchronous error is one of theirs.
_recent: Final[deque[str]] = deque(maxlen=16)


def load_cuda(artifact: CudaArtifact) -> CudaKernel:
    """Make `artifact` callable. Needs no GPU: code is loaded at the first launch on a device."""
    return CudaKernel(artifact)


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

    def __init__(self, artifact: CudaArtifact) -> None:
        self.artifact = artifact
        self._lock = threading.Lock()
        self._libraries: dict[str, int] = {}
        # Per device, the kernel of each launch.
        self._loaded: dict[int, tuple[ctypes.c_void_p, ...]] = {}
        self._plan: Callable[[Sequence[int | float], int], None] | None = None
        self._device_of_thread: Callable[[], int | None] = lambda: None

    def run(self, values: Sequence[int | float], device: int = 0) -> None:
        """Launch everything with one value per slot of the artifact, addresses as integers.

        Returns when the launches are queued. A grid with an axis of size zero launches nothing.
        Raises CompileError with TL805, TL812, … for what does not work.
        """
        plan = self._plan
        if plan is None or device not in self._loaded:
            plan = self._prepare(device)
        try:
            if self._device_of_thread() == device:
                plan(values, device)
            else:
                with driver().on(device):
                    plan(values, device)
        except struct.error:
            raise cuda_errors.out_of_range(self.artifact, values) from None
        except CannotEncode as refused:
            raise self._cannot_encode(refused) from None

    def require_device(self) -> None:
        """Raise TL805 if there is no GPU to run on."""
        _driver(self.artifact.name)

    # Loading.

    def _prepare(self, device: int) -> Callable[[Sequence[int | float], int], None]:
        found = _driver(self.artifact.name)
        with self._lock:
            if device not in self._loaded:
                self._loaded[device] = self._load(found, device)
            if self._plan is None:
                self._device_of_thread = _current_device(found)
                self._plan = self._make_plan(found)
            return self._plan

    def _load(self, found: Driver, index: int) -> tuple[ctypes.c_void_p, ...]:
        artifact = self.artifact
        if not 0 <= index < len(found.devices):
            raise cuda_errors.no_such_device(artifact.name, index, len(found.devices))
        device = found.devices[index]
        binary = artifact.binary_for(device.capability)
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
                library = self._libraries[binary.arch] = checked(*found.load(binary.cubin))
            kernels = []
            for launch in artifact.launches:
                kernel = checked(*found.kernel(library, launch.symbol))
                checked(found.prepare(kernel, index, launch.dynamic_shared))
                kernels.append(ctypes.c_void_p(kernel))
            # Never unloaded: a launch of it may still be under way when the last reference goes.
            return tuple(kernels)

    # Launching.

    def _make_plan(self, found: Driver) -> Callable[[Sequence[int | float], int], None]:
        artifact = self.artifact
        try:
            blocks = [block_of(launch) for launch in artifact.launches]
        except CannotPass as refused:
            raise cuda_errors.cannot_pass(artifact, refused.param) from None
        functions: dict[str, Any] = {
            f"launch{n}": self._launcher(found, n, block) for n, block in enumerate(blocks)
        }
        functions["stream"] = _stream_function()
        functions["workspace"] = partial(_workspace, artifact.name)
        functions["failed"] = self._check_failed
        functions["tensor_map"] = TensorMaps(found, artifact.device.maps).encode
        self._attributes = [_attributes(launch) for launch in artifact.launches]
        attributes = [
            (ctypes.addressof(a), len(a) // _ATTRIBUTE.size) if a is not None else (0, 0)
            for a in self._attributes
        ]
        return make_plan(artifact.device, attributes, functions)

    def _launcher(
        self, found: Driver, number: int, block: Block
    ) -> Callable[[int, tuple[Any, ...]], None]:
        """What puts one launch of kernel `number` into a stream: device, grid, numbers to pack."""
        frames: list[Frame] = []
        pack, launch, loaded = block.form.pack_into, found.launch, self._loaded
        note, name = _recent.append, self.artifact.launches[number].symbol

        def launch_kernel(device: int, numbers: tuple[Any, ...]) -> None:
            # Frames are taken out while in use: ctypes lets other threads run during the call.
            try:
                frame = frames.pop()
            except IndexError:
                frame = block.frame()
            pack(frame.memory, frame.start, *numbers)
            result = launch(frame.config, loaded[device][number], frame.parameters, None)
            if result == INVALID_CONTEXT:
                # A thread in which nothing has used CUDA yet.
                with found.on(device):
                    result = launch(frame.config, loaded[device][number], frame.parameters, None)
            frames.append(frame)
            if result:
                self._launch_failed(found, number, numbers[:3], device, Result(result))
            note(name)

        return launch_kernel

    def _launch_failed(
        self, found: Driver, number: int, grid: tuple[int, ...], index: int, result: Result
    ) -> None:
        launch, device = self.artifact.launches[number], found.devices[index]
        resident = None
        if result == COOPERATIVE_LAUNCH_TOO_LARGE:
            kernel = self._loaded[index][number].value or 0
            with found.on(index):
                resident = found.resident_blocks(kernel, launch.threads, launch.dynamic_shared)
        x, y, z = grid
        raise cuda_errors.launch_failed(
            self.artifact, launch, (x, y, z), device, (found.describe(result), result),
            tuple(_recent), resident,
        )  # fmt: skip

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


def _stream_function() -> Callable[[int], int]:
    """The handle of the stream that work on a device now goes to."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "cuda"):
        return lambda device: 0
    # What PyTorch's own compiler launches its kernels on; the public way takes microseconds.
    raw: Any = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if raw is not None:
        return cast(Callable[[int], int], raw)
    return lambda device: int(torch.cuda.current_stream(device).cuda_stream)


def _current_device(found: Driver) -> Callable[[], int | None]:
    """Which device the calling thread works on."""
    torch = sys.modules.get("torch")
    if torch is not None and hasattr(torch._C, "_cuda_getDevice") and torch.cuda.is_initialized():
        current: Callable[[], int] = torch._C._cuda_getDevice
        return current
    return found.current_device


class _Memory:
    """Device memory of one call."""

    __slots__ = ("address", "owner")

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.address: int = owner.data_ptr()


def _workspace(name: str, size: int, device: int) -> _Memory:
    """Memory from PyTorch's allocator, which knows about streams and captures."""
    try:
        import torch
    except ImportError:
        raise error_for(
            (
                Diagnostic(
                    "TL808",
                    code_of("TL808").severity,
                    f"`{name}` needs memory of its own on the device, and PyTorch, which "
                    "allocates it, is not installed",
                    help="pip install torch",
                ),
            )
        ) from None
    return _Memory(torch.empty(max(1, size), dtype=torch.uint8, device=f"cuda:{device}"))
