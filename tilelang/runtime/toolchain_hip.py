"""How does generated HIP source become a code object for AMD's processors, and with which compiler?

Any clang that knows the processors does: the one of the ziglang wheel, which knows all of them, one
of the system, or ROCm's. Headers of ours stand in for HIP's, so that nothing else is needed; no GPU
either. The source is ours: an error is shown at the Python lines that its lines came from.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from tilelang import codegen
from tilelang.codegen.device_artifact import DeviceCode
from tilelang.codegen.device_source import DeviceSource
from tilelang.options import CompileOptions
from tilelang.runtime.clang import Clang, errors_in, find_clang
from tilelang.runtime.programs import find_program, run_group
from tilelang.runtime.rejected import rejected
from tilelang.target import Target
from tilelang_diagnostics import failure

_ALL_HEADERS: Final = Path(codegen.__file__).parent / "headers"
# HIP's own first; what says nothing of CUDA is the same for both.
HEADERS: Final = (_ALL_HEADERS / "hip", _ALL_HEADERS / "cuda")
_SECONDS: Final = 120
# No runtime, library or header but ours. `property` members need -fdeclspec.
_BARE: Final = ("-nogpulib", "-nogpuinc", "-nostdinc", "-fdeclspec")
_FLAGS: Final = (
    "-std=c++17", "-O3", "-fno-math-errno", "-ffp-contract=fast-honor-pragmas",
    "-Wno-unknown-pragmas", "-Wno-unused-command-line-argument",
)  # fmt: skip
# Where the host's part of the file would be for, which is not compiled.
_HOST: Final = ("-target", "x86_64-linux-gnu")
_KERNEL: Final = re.compile(r"^\s+\.name:\s+(\w+)$")
_FIGURE: Final = re.compile(r"^\s*-?\s*\.(\w+):\s+(\d+)$")
_KEPT: Final = (
    "vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count",
    "group_segment_fixed_size", "private_segment_fixed_size", "wavefront_size",
    "max_flat_workgroup_size",
)  # fmt: skip


def require_clang() -> Clang:
    """The clang; TL807 where there is none."""
    found = find_clang()
    if found is None:
        raise failure(
            "TL807",
            "no clang is installed, which compiles HIP source",
            help="pip install 'tilelang[clang]', which brings the ziglang wheel; CXX names another",
        )
    return found


def identity(target: Target, options: CompileOptions) -> tuple[str, tuple[str, ...]]:
    """Who would compile, and with which flags."""
    return require_clang().version, (*_flags_for(target), headers_digest())


def compile(device: DeviceSource, target: Target, options: CompileOptions) -> DeviceCode:
    """The code object and the assembly; raises CompileError with TL806 or TL807."""
    clang = require_clang()
    with tempfile.TemporaryDirectory(prefix="tilelang-hip-") as folder:
        source = Path(folder) / f"{device.name}.hip"
        source.write_text(device.text, encoding="utf-8")
        assembly, linked = source.with_suffix(".s"), source.with_suffix(".co")
        base = (*clang.command, "-x", "hip", "--offload-device-only", *_BARE, *_flags_for(target),
                *_HOST, *(f"-I{folder}" for folder in HEADERS))  # fmt: skip
        _run(device, target, clang, (*base, "-S", str(source), "-o", str(assembly)))
        text = assembly.read_text(encoding="utf-8")
        made = _linked(device, target, clang, assembly, linked)
    name, flags = identity(target, options)
    return DeviceCode(name, flags, made, text, resources_of(text))


def _flags_for(target: Target) -> tuple[str, ...]:
    return (f"--offload-arch={target.arch}", *_FLAGS)


def _linked(
    device: DeviceSource, target: Target, clang: Clang, assembly: Path, to: Path
) -> bytes:  # fmt: skip
    """The assembly as a code object: a shared object that the driver loads."""
    made = assembly.with_suffix(".o")
    machine = ("-target", "amdgcn-amd-amdhsa", f"-mcpu={target.arch}", "-nogpulib")
    _run(device, target, clang, (*clang.command, *machine, "-x", "assembler", "-c",
                                 str(assembly), "-o", str(made)))  # fmt: skip
    linker = (*clang.command[:-1], "ld.lld") if "ziglang" in clang.command else None
    if linker is None:
        name = find_program("ld.lld", "lld")
        linker = None if name is None else (name, *(() if name.endswith("ld.lld") else
                                                    ("-flavor", "gnu")))  # fmt: skip
    if linker is None:
        return made.read_bytes()
    _run(device, target, clang, (*linker, "-shared", "--no-undefined", str(made), "-o", str(to)))
    return to.read_bytes()


def _run(device: DeviceSource, target: Target, clang: Clang, command: Sequence[str]) -> None:
    try:
        done = run_group(command, _SECONDS)
    except subprocess.TimeoutExpired:
        raise failure(
            "TL809",
            f"{clang.version} did not compile `{device.name}` within {_SECONDS} seconds",
            help="make tiles smaller, or use fewer unrolled iterations",
        ) from None
    if done.returncode != 0:
        log = (done.stderr + done.stdout).strip()
        raise rejected(
            device, tuple(errors_in(log, f"{device.name}.hip")), clang.version, target.arch,
            f"{device.name}.hip", log,
        )  # fmt: skip


def resources_of(assembly: str) -> dict[str, dict[str, int]]:
    """What each kernel takes, from the notes of the code object."""
    found: dict[str, dict[str, int]] = {}
    figures: dict[str, int] = {}
    _, _, notes = assembly.partition("amdhsa.kernels:")
    for line in notes.splitlines():
        if line.startswith("  - "):  # the next kernel
            figures = {}
        if (row := _FIGURE.match(line)) and row[1] in _KEPT:
            figures[row[1]] = int(row[2])
        elif name := _KERNEL.match(line):
            found.setdefault(name[1], figures)
    return found


@cache
def headers_digest() -> str:
    """A hash of the device headers, for cache keys."""
    digest = hashlib.sha256()
    for folder in HEADERS:
        for path in sorted(folder.rglob("*.h")):
            digest.update(str(path.relative_to(folder)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
