"""How is a compiled CPU kernel loaded, and how does one call of it run?

Neither needs TVM. A kernel comes as an artifact with object code, or as a manifest with a shared
library beside it (see `codegen.cpu_artifact` for the calling convention).
"""

from __future__ import annotations

import ctypes
import struct
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tilelang.codegen.cpu_artifact import CpuArtifact, CpuLaunch, CpuMessage, CpuSlot
from tilelang.dtypes import find_dtype
from tilelang.runtime.cpu_elf import CannotLoad, LoadedObject
from tilelang.runtime.cpu_link import link_shared
from tilelang.runtime.cpu_pool import POOL

# Waking a helper costs some 20 µs: each one should have that much work.
_WORTH_WAKING: Final = 20e-6
_CHUNKS_PER_WORKER: Final = 8
_SCRATCH_ALIGN: Final = 64


class CpuLoadError(Exception):
    """The compiled kernel cannot be loaded on this machine."""


class CpuAssertionError(Exception):
    """An assertion of the kernel failed: `message`, and whether it was checked before launch."""

    def __init__(self, message: CpuMessage, host: bool) -> None:
        super().__init__(message.text)
        self.message = message
        self.host = host


def load_cpu(artifact: CpuArtifact, *, library: Path | None = None) -> CpuKernel:
    """Make `artifact` callable: from `library` when given, else from its object code."""
    if library is not None:
        return CpuKernel(artifact, _functions_of_library(library))
    try:
        loaded = LoadedObject(artifact.object_code, _outside_address)
    except CannotLoad as reason:
        return CpuKernel(artifact, _functions_of_linked(artifact, str(reason)))
    return CpuKernel(artifact, loaded.address, keep=loaded)


def link_cpu(artifact: CpuArtifact, destination: Path) -> bool:
    """Write the kernel as a shared library (atomically); False when no linker is there."""
    return link_shared(artifact.object_code, destination)


def set_num_threads(count: int | None) -> None:
    """Run blocks on `count` threads; None for one per core this process may use."""
    POOL.resize(count)


def num_threads() -> int:
    """How many threads run the blocks of a launch."""
    return POOL.workers()


class CpuKernel:
    """A loaded kernel. `run` is safe to call from several threads at once."""

    def __init__(
        self, artifact: CpuArtifact, address: Callable[[str], int], keep: Any = None
    ) -> None:
        self.artifact = artifact
        self._keep = keep  # owns the code
        self._pack = struct.Struct("=" + "".join(_format(s) for s in artifact.slots))
        self._info = _INFO(address(artifact.info_symbol))
        self._launches = tuple(_Launch(entry, address) for entry in artifact.launches)
        self._extra = 1 + len(artifact.launches) + artifact.workspaces

    def run(self, values: Sequence[int | float], device: int = 0) -> None:
        """Run every launch with one value per slot of the artifact, addresses as integers.

        Returns when all blocks are done. Memory behind the addresses must stay alive until then;
        it may have any alignment down to that of one element. A grid with an axis of size zero
        or less launches nothing. Raises `CpuAssertionError` when an assertion of the kernel
        fails; launches after the failing one do not run. Raises `MemoryError` when there is no
        room for the tiles of a block.
        """
        slots = self._pack.pack(*values)
        sizes = (ctypes.c_int64 * self._extra)()
        self._info(slots, sizes)
        if sizes[0]:
            raise CpuAssertionError(self.artifact.messages[sizes[0] - 1], host=True)
        count = len(self._launches)
        workspaces = [Scratch(size) for size in sizes[1 + count :]]
        if workspaces:
            slots += struct.pack(f"={len(workspaces)}Q", *(w.address for w in workspaces))
        for launch, blocks in zip(self._launches, sizes[1 : 1 + count], strict=True):
            status = launch.run(blocks, slots)
            if status:
                raise CpuAssertionError(self.artifact.messages[status - 1], host=False)

    def require_device(self) -> None:
        """Nothing: there is always a processor."""


_INFO = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
_LAUNCH = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p,
    ctypes.c_void_p,
)  # fmt: skip


class _Launch:
    """One launch function and how long its blocks were seen to take."""

    def __init__(self, entry: CpuLaunch, address: Callable[[str], int]) -> None:
        self._entry = entry
        self._function = _LAUNCH(address(entry.symbol))
        self._seconds_per_block: float | None = None

    def run(self, blocks: int, slots: bytes) -> int:
        """Run the blocks; 0, or the status a failed assertion left."""
        if blocks <= 0:
            return 0
        workers = self._workers(blocks)
        chunk = max(1, blocks // (workers * _CHUNKS_PER_WORKER)) if workers > 1 else blocks
        drawn, status = ctypes.c_int64(0), ctypes.c_int64(0)
        first, outcome = ctypes.byref(drawn), ctypes.byref(status)

        def work() -> None:
            scratch = _scratch(self._entry.scratch_bytes)
            self._function(first, blocks, chunk, slots, scratch, outcome)

        start = time.perf_counter()
        POOL.run(workers, work)
        self._seconds_per_block = (time.perf_counter() - start) * workers / blocks
        return status.value

    def _workers(self, blocks: int) -> int:
        """How many threads are worth waking for `blocks` blocks."""
        if self._entry.serial:
            return 1
        workers = min(blocks, POOL.workers())
        if self._seconds_per_block is not None:
            workers = min(workers, int(self._seconds_per_block * blocks / _WORTH_WAKING))
        return max(1, workers)


class Scratch:
    """Memory for a kernel's own use, aligned to a cache line."""

    def __init__(self, size: int) -> None:
        try:
            self._memory = (ctypes.c_char * (max(0, size) + _SCRATCH_ALIGN))()
        except (MemoryError, OverflowError):
            raise MemoryError(f"{size} bytes for the tiles of one block") from None
        start = ctypes.addressof(self._memory)
        self.address = -(-start // _SCRATCH_ALIGN) * _SCRATCH_ALIGN
        self.size = size


_local = threading.local()


def _scratch(size: int) -> int:
    """The scratch memory of this thread, at least `size` bytes; kept for the next call."""
    if size == 0:
        return 0
    kept: Scratch | None = getattr(_local, "scratch", None)
    if kept is None or kept.size < size:
        kept = _local.scratch = Scratch(size)
    return kept.address


def _format(slot: CpuSlot) -> str:
    """The struct code of one slot."""
    if slot.kind == "buffer":
        return "Q"
    dtype = find_dtype(slot.dtype)
    if dtype is None:
        raise ValueError(f"slot {slot.name} has unknown dtype {slot.dtype}")
    if dtype.is_float:
        return "d"
    return "Q" if dtype.base == "uint64" else "q"


def _functions_of_library(library: Path) -> Callable[[str], int]:
    _c_library()  # makes its symbols visible to what is loaded next
    try:
        loaded = ctypes.CDLL(str(library))
    except OSError as error:
        raise CpuLoadError(f"{library} cannot be loaded: {error}") from error

    def address(name: str) -> int:
        try:
            found = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
        except AttributeError as error:
            raise CpuLoadError(f"{library} has no function {name}") from error
        assert found is not None
        return found

    return address


def _functions_of_linked(artifact: CpuArtifact, reason: str) -> Callable[[str], int]:
    """Through a temporary shared library, for systems the built-in loader does not know."""
    with tempfile.TemporaryDirectory(prefix="tilelang-") as folder:
        library = Path(folder) / f"{artifact.name}.so"
        if not link_shared(artifact.object_code, library):
            raise CpuLoadError(
                f"the kernel's object code cannot be loaded ({reason}) and no linker was found"
            )
        return _functions_of_library(library)


def _outside_address(name: str) -> int | None:
    for library in _c_library():
        try:
            return ctypes.cast(getattr(library, name), ctypes.c_void_p).value
        except AttributeError:
            continue
    return None


def _c_library() -> tuple[ctypes.CDLL, ...]:
    """The process itself and the C mathematics library, with global visibility."""
    found = [ctypes.CDLL(None)]
    for name in ("libm.so.6", "libm.so", "libm.dylib"):
        try:
            found.append(ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL))
            break
        except OSError:
            continue
    return tuple(found)
