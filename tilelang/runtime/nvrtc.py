"""How is NVRTC, NVIDIA's compiler as a library, found and called?

Through `ctypes`, from the wheels `nvidia-cuda-nvrtc` and `nvidia-cuda-runtime` (headers): no
driver, no toolkit and no host compiler is needed. Its part with the builtins has to be in the
process before it, or compilation fails with error 7.
"""

from __future__ import annotations

import ctypes
import importlib.util
import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tilelang_diagnostics import failure


@dataclass(frozen=True, slots=True)
class Compiled:
    """What NVRTC made: machine code, PTX, and everything it said."""

    ok: bool
    log: str
    cubin: bytes = b""
    ptx: str = ""


@dataclass(frozen=True, slots=True)
class Nvrtc:
    """An NVRTC, loaded when it compiles; `include` holds CUDA's headers, None where they are
    missing."""

    library: Path
    version: tuple[int, int]
    include: Path | None

    def compile(self, source: str, name: str, options: Sequence[str]) -> Compiled:
        """Compile one file. Options are NVRTC's own."""
        with _lock:
            return _compile(_load(self.library), source, name, options)

    def architectures(self) -> tuple[int, ...]:
        """Compute capabilities it generates code for."""
        api = _load(self.library)
        count = ctypes.c_int()
        api.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        found = (ctypes.c_int * count.value)()
        api.nvrtcGetSupportedArchs(found)
        return tuple(found)


_lock = threading.Lock()


@cache
def find_nvrtc() -> Nvrtc | None:
    """NVRTC from the installed wheels, or None."""
    for root in _wheel_roots():
        for library in sorted((root / "lib").glob("libnvrtc.so.*")):
            if ".alt." in library.name:
                continue
            version = _version_of(library)
            if version is not None:
                return Nvrtc(library, version, _include_of(root))
    return None


def _version_of(library: Path) -> tuple[int, int] | None:
    """By the name of its part with the builtins, since loading it takes longer than loading a
    kernel; asked of the library itself where there is none. None if that does not load."""
    for path in _builtins(library):
        found = re.search(r"\.so\.(\d+)\.(\d+)", path.name)
        if found is not None:
            return int(found[1]), int(found[2])
    try:
        api = ctypes.CDLL(str(library))
    except OSError:
        return None
    major, minor = ctypes.c_int(), ctypes.c_int()
    api.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def _builtins(library: Path) -> list[Path]:
    found = sorted(library.parent.glob("libnvrtc-builtins.so.*"))
    return [path for path in found if ".alt." not in path.name]


def _wheel_roots() -> list[Path]:
    """Where wheels put NVRTC: `nvidia/cu13` from CUDA 13 on, `nvidia/cuda_nvrtc` before."""
    spec = importlib.util.find_spec("nvidia")
    if spec is None or spec.submodule_search_locations is None:
        return []
    bases = [Path(p) for p in spec.submodule_search_locations]
    names = ("cu13", "cuda_nvrtc", "cu12")
    return [base / n for base in bases for n in names if (base / n / "lib").is_dir()]


def _include_of(root: Path) -> Path | None:
    for folder in (root / "include", root.parent / "cuda_runtime" / "include"):
        if (folder / "cuda_fp16.h").exists():
            return folder
    return None


@cache
def _load(library: Path) -> Any:
    try:
        for builtins in _builtins(library):
            ctypes.CDLL(str(builtins), ctypes.RTLD_GLOBAL)
        return ctypes.CDLL(str(library))
    except OSError as error:
        raise failure(
            "TL807",
            f"NVRTC is installed but cannot be loaded: {error}",
            help="install its wheel again: pip install --force-reinstall nvidia-cuda-nvrtc",
        ) from None


def _compile(api: Any, source: str, name: str, options: Sequence[str]) -> Compiled:
    program = ctypes.c_void_p()
    _check(
        api,
        api.nvrtcCreateProgram(
            ctypes.byref(program), source.encode(), name.encode(), 0, None, None
        ),
    )
    try:
        encoded = [o.encode() for o in options]
        status = api.nvrtcCompileProgram(
            program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded)
        )
        log = _fetch(api, program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if status != 0:
            text = _error(api, status)
            return Compiled(False, log or text)
        cubin = _fetch(api, program, "CUBIN")
        ptx = _fetch(api, program, "PTX").rstrip(b"\0").decode(errors="replace")
        return Compiled(True, log, cubin, ptx)
    finally:
        api.nvrtcDestroyProgram(ctypes.byref(program))


def _fetch(api: Any, program: Any, what: str) -> bytes:
    size = ctypes.c_size_t()
    if getattr(api, f"nvrtcGet{what}Size")(program, ctypes.byref(size)) != 0 or not size.value:
        return b""
    data = ctypes.create_string_buffer(size.value)
    _check(api, getattr(api, f"nvrtcGet{what}")(program, data))
    return data.raw


def _error(api: Any, status: int) -> str:
    api.nvrtcGetErrorString.restype = ctypes.c_char_p
    return str(api.nvrtcGetErrorString(status).decode())


def _check(api: Any, status: int) -> None:
    if status != 0:
        raise RuntimeError(f"NVRTC: {_error(api, status)}")
