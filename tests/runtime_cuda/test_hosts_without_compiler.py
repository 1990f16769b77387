"""A host without a CUDA compiler runs what others have put into a shared cache."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.cuda import needs_nvrtc

pytestmark = needs_nvrtc  # the processes have no nvcc on their path

ROOT = Path(__file__).parents[2]
PROCESS = """
    import sys
    sys.path[:0] = {path!r}
    {before}
    import tilelang
    from tests.runtime_cuda import kernels
    from tilelang_diagnostics import CompileError
    for target, options in {attempts!r}:
        try:
            kernel = tilelang.compile(kernels.scale, target=target, **options)
        except CompileError as error:
            print(*(d.code for d in error.diagnostics))
        else:
            (binary,) = kernel.artifact.binaries
            print(kernel.from_cache, binary.compiler.split()[0], len(binary.cubin) > 0)
"""
PLAIN = ("cuda:sm_80", {})
NO_COMPILER = 'sys.modules["nvidia"] = None'
ANOTHER = """
    from tilelang.runtime import cuda_compiler
    cuda_compiler.name_of = lambda chosen: "NVRTC 99.0"
"""


def in_a_process(
    home: Path, cache: str, before: str = "", attempts: Sequence[Any] = (PLAIN,)
) -> str:
    """What the kernel says of itself, a line for each attempt, in a process of another user."""
    text = textwrap.dedent(PROCESS).format(
        path=sys.path, before=textwrap.dedent(before).strip(), attempts=list(attempts)
    )
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "TILELANG_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", text], env=environment, cwd=ROOT,
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.strip()


@pytest.mark.parametrize("form", ["file://{}", "{}"], ids=["url", "folder"])
def test_what_another_host_compiled_is_found(tmp_path: Path, form: str) -> None:
    cache = form.format(tmp_path / "shared")
    without = tmp_path / "without"
    # Nobody has compiled it yet, and nobody can here.
    assert in_a_process(without, cache, NO_COMPILER) == "TL807"
    made = in_a_process(tmp_path / "with", cache)
    assert made.startswith("False") and made.endswith("True")
    # Of other flags or another architecture there is nothing.
    fast = ("cuda:sm_80", {"pass_configs": {"tl.enable_fast_math": True}})
    found = in_a_process(without, cache, NO_COMPILER, [PLAIN, fast, ("cuda:sm_90a", {})])
    assert found.splitlines() == [made.replace("False", "True"), "TL807", "TL807"]


def test_a_host_with_another_compiler_asks_its_own(tmp_path: Path) -> None:
    cache = f"file://{tmp_path / 'shared'}"
    in_a_process(tmp_path / "with", cache)
    assert in_a_process(tmp_path / "other", cache, ANOTHER).startswith("False")


def test_a_damaged_entry_is_no_answer(tmp_path: Path) -> None:
    in_a_process(tmp_path / "with", f"file://{tmp_path / 'shared'}")
    for entry in (tmp_path / "shared").rglob("*.entry"):
        if "front" in entry.parts:
            entry.write_bytes(entry.read_bytes()[:-10])
    text = in_a_process_with_warnings(tmp_path)
    assert text == "TL807"


def in_a_process_with_warnings(tmp_path: Path) -> str:
    quiet = NO_COMPILER + '\nimport warnings; warnings.simplefilter("ignore")'
    return in_a_process(tmp_path / "without", f"file://{tmp_path / 'shared'}", quiet)
