"""Which compiler makes binaries of CUDA source here, and with which flags?

NVRTC from wheels where it is installed, else `nvcc`; either on request. Nothing is compiled or
loaded to know: every load of a cached kernel asks.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final, Literal

from tilelang import options
from tilelang.options import CompileOptions, PassConfigKey
from tilelang.runtime.nvrtc import Nvrtc, find_nvrtc
from tilelang.runtime.programs import find_program, output_of
from tilelang_diagnostics import code_of, error_for
from tilelang_diagnostics.model import Diagnostic

Compiler = Literal["auto", "nvrtc", "nvcc"]
_STANDARD: Final = "-std=c++17"


def identity(choices: CompileOptions, compiler: Compiler = "auto") -> tuple[str, tuple[str, ...]]:
    """Who would compile with `choices`, and its flags: what a binary says of its making."""
    chosen = find_compiler(compiler)
    return name_of(chosen), flags_of(choices)


def find_compiler(wanted: Compiler = "auto") -> Nvrtc | Path:
    """NVRTC, or the path of nvcc; TL807 when there is neither."""
    nvrtc = find_nvrtc() if wanted in ("auto", "nvrtc") else None
    if nvrtc is not None and nvrtc.include is not None:
        return nvrtc
    nvcc = find_nvcc() if wanted in ("auto", "nvcc") else None
    if nvcc is not None:
        return nvcc
    what = {"auto": "NVRTC nor nvcc", "nvrtc": "NVRTC", "nvcc": "nvcc"}[wanted]
    no = "neither " if wanted == "auto" else "no "
    notes: tuple[str, ...] = ()
    if nvrtc is not None:
        notes = ("NVRTC is there, but the headers of nvidia-cuda-runtime are not",)
    raise error_for(
        (
            Diagnostic(
                "TL807",
                code_of("TL807").severity,
                f"{no}{what} is installed, which compiles CUDA source",
                notes=notes,
                help="pip install 'tilelang[cuda13]', or [cuda12] for an older driver",
            ),
        )
    )


def find_nvcc() -> Path | None:
    """nvcc of `CUDA_HOME`, else on the search path."""
    home = options.CUDA_HOME.get()
    candidate = Path(home) / "bin" / "nvcc" if home else None
    if candidate is not None and candidate.exists():
        return candidate
    found = find_program("nvcc")
    return None if found is None else Path(found)


def flags_of(choices: CompileOptions) -> tuple[str, ...]:
    """Flags both compilers take."""
    found = [_STANDARD, "-lineinfo"]
    if choices.fast_math:
        found.append("--use_fast_math")
    level = choices[PassConfigKey.TL_PTXAS_REGISTER_USAGE_LEVEL]
    if level != 5:
        found.append(f"--ptxas-options=--register-usage-level={level}")
    return (*found, *choices[PassConfigKey.TL_DEVICE_COMPILE_FLAGS], *choices.compile_flags)


def name_of(chosen: Nvrtc | Path) -> str:
    if isinstance(chosen, Nvrtc):
        return f"NVRTC {chosen.version[0]}.{chosen.version[1]}"
    return _nvcc_version(chosen)


@cache
def _nvcc_version(nvcc: Path) -> str:
    found = re.search(r"release (\d+\.\d+)", output_of((str(nvcc), "--version")) or "")
    return f"nvcc {found[1]}" if found else "nvcc"
