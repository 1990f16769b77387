"""Any C++ compiler will do: what g++ builds, clang and the ziglang wheel build too."""

from __future__ import annotations

import importlib.util
import shutil
import sys

import pytest

from tests.emulator.running import MODES, check_emulated
from tests.emulator.suite import emulated
from tilelang.emulator.toolchain import find_compiler
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
    for given in CASES:
        check_emulated(given.case, MODES[mode], given.target)


def test_a_race_is_found(compiler: str) -> None:
    """Checked mode stands on what the compiler tells of accesses."""
    import numpy as np

    import tilelang
    from tests.emulator.damage import device_of, find_line, run_device, with_line
    from tests.emulator.kernels import reverse

    program = reverse()
    device = device_of(program)
    number, _ = find_line(device, r"tl::sync_threads")
    arrays = [np.arange(256, dtype=np.float32), np.zeros(256, np.float32)]
    with pytest.raises(CompileError) as found:
        run_device(program, with_line(device, number, ""), arrays, tilelang.Emulator(check=True))
    assert "TL731" in {d.code for d in found.value.diagnostics}
