"""When the compiler itself fails, the user gets TL900 and a file to send."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tilelang
from tests.runtime import kernels
from tilelang.runtime import build
from tilelang.runtime.crash import guarded
from tilelang_diagnostics import CompileError, error_for
from tilelang_diagnostics.model import Diagnostic, Severity


def fails(*args: object, **kwargs: object) -> None:
    raise KeyError("layout of A")


def test_a_failure_inside_the_compiler(cache_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "compile_function", fails)
    with pytest.raises(CompileError) as caught:
        tilelang.compile(kernels.scale_factory(40, 77.0), target="cpu")
    (found,) = caught.value.diagnostics
    assert found.code == "TL900"
    assert found.message == (
        "internal error while compiling scale for cpu: KeyError: 'layout of A'"
    )
    (saved,) = (cache_dir / "crashes").iterdir()
    assert found.notes == (f"details are in {saved}",)
    report = saved.read_text()
    for part in ("tilelang ", "python ", "apache-tvm ", "Traceback", "def scale_factory"):
        assert part in report


def test_a_place_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILELANG_CRASH_DIR", str(tmp_path / "crashes"))
    with pytest.raises(CompileError), guarded("testing"):
        fails()
    assert len(list((tmp_path / "crashes").iterdir())) == 1


def test_diagnostics_and_interrupts_pass_through() -> None:
    diagnostic = Diagnostic("TL204", Severity.ERROR, "m")
    with pytest.raises(CompileError, match="TL204"), guarded("testing"):
        raise error_for((diagnostic,))
    with pytest.raises(KeyboardInterrupt), guarded("testing"):
        raise KeyboardInterrupt

    class Carrier(Exception):
        diagnostics = (diagnostic,)

    with pytest.raises(CompileError, match="TL204"), guarded("testing"):
        raise Carrier


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ModuleNotFoundError("No module named 'tvm'", name="tvm"), "TL801"),
        (ValueError("Cannot find global function target.build.llvm"), "TL802"),
        (ModuleNotFoundError("No module named 'mine'", name="mine"), "TL900"),
    ],
)
def test_a_missing_toolchain_is_not_our_fault(error: Exception, code: str, cache_dir: Path) -> None:
    with pytest.raises(CompileError) as caught, guarded("testing"):
        raise error
    assert caught.value.diagnostics[0].code == code


def test_the_other_kernels_still_work(cache_dir: Path) -> None:
    x = np.ones(40, np.float32)
    np.testing.assert_array_equal(kernels.eager_scale(x), 2 * x)
