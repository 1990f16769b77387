"""Any C++ compiler will do: what g++ builds, clang and the ziglang wheel build too."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys

import pytest

from tests.emulator.running import MODES, check_emulated
from tests.emulator.suite import emulated
from tilelang.emulator.toolchain import Compiler, find_compiler, kernel_library
from tilelang_diagnostics import CompileError

COMPILERS = {
    "g++": "g++" if shutil.which("g++") else None,
    "clang++": "clang++" if shutil.which("clang++") else None,
    "zig": f"{sys.executable} -m ziglang c++" if importlib.util.find_spec("ziglang") else None,
}
# cp.async and mma.sync, shuffles, atomics, TMA and WGMMA.
NAMES = (
    "gemm_float16-sm_80", "reduce_sum_single_pass-sm_80", "jit_gemm_nt-sm_90a", "gemm_splitk-sm_80",
)  # fmt: skip
CASES = tuple(case for case in emulated() if str(case) in NAMES)


@pytest.fixture(params=COMPILERS)
def compiler(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, full: bool) -> str:
    """Each of them, named as a user would; building the emulator takes half a minute."""
    command = COMPILERS[request.param]
    if command is None:
        pytest.skip(f"{request.param} is not installed")
    if not full:
        pytest.skip("runs with --full")
    monkeypatch.setenv("CXX", command)
    return str(request.param)


@pytest.mark.parametrize("mode", ["fifo", "check"])
def test_kernels_are_right(compiler: str, mode: str) -> None:
    assert find_compiler().family == ("gcc" if compiler == "g++" else "clang")
    assert len(CASES) == len(NAMES)
    if mode == "check":
        _skip_old_clang()
    for given in CASES:
        check_emulated(given.case, MODES[mode], given.target)


def _skip_old_clang() -> None:
    version = re.search(r"clang version (\d+)", find_compiler().version)
    if version is not None and int(version[1]) < 16:
        pytest.skip("refused by name: see below")


def test_a_clang_that_does_not_tell_is_refused() -> None:
    """Clang before 16 fills arrays by a function that checked mode hears nothing of."""
    old = Compiler(("clang++",), "clang", "Debian clang version 14.0.6")
    with pytest.raises(CompileError, match="clang 14 is too old"):
        kernel_library("", "main", True, old)


def test_a_race_is_found(compiler: str) -> None:
    """Checked mode stands on what the compiler tells of accesses."""
    import numpy as np

    import tilelang
    from tests.emulator.damage import device_of, find_line, run_device, with_line
    from tests.emulator.kernels import reverse

    _skip_old_clang()
    program = reverse()
    device = device_of(program)
    number, _ = find_line(device, r"tl::sync_threads")
    arrays = [np.arange(256, dtype=np.float32), np.zeros(256, np.float32)]
    with pytest.raises(CompileError) as found:
        run_device(program, with_line(device, number, ""), arrays, tilelang.Emulator(check=True))
    assert "TL731" in {d.code for d in found.value.diagnostics}
