"""Can every kernel file and every example be read from its text alone?"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels.registry import KERNELS, REJECTED, KernelCase
from tilelang.language.frontend import parse_static
from tilelang_diagnostics.model import Severity

ROOT = Path(__file__).parents[2]
PATHS = tuple(
    path
    for folder in ("tests/kernels", "examples")
    for path in sorted((ROOT / folder).glob("*.py"))
    if "import tilelang.language as T" in path.read_text() and not path.name.startswith("test_")
)
# These hold kernels that are wrong on purpose.
WITH_REJECTED = {"cpu_atomic.py", "frontend.py", "nested_loops.py", "reshape.py"}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_is_read_without_running_it(path: Path) -> None:
    kernels = parse_static(path.read_text(), str(path))
    assert len(kernels) > 0
    codes = {d.code for parsed in kernels for d in parsed.diagnostics if d.is_error}
    expected = {case.code for case in REJECTED} if path.name in WITH_REJECTED else set()
    assert codes <= expected


RIGHT = [path for path in PATHS if path.name not in {*WITH_REJECTED, "tcgen05_gemm.py"}]
EMULATED = [ROOT / f"tests/emulator/{name}.py" for name in ("kernels", "mutated_kernels")]


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
@pytest.mark.parametrize("path", [*RIGHT, *EMULATED], ids=lambda p: p.name)
def test_checks_say_nothing_against_right_kernels(path: Path, target: str) -> None:
    found = [d for parsed in parse_static(path.read_text(), str(path), target=target)
             for d in parsed.diagnostics]  # fmt: skip
    # What a target has not, these say.
    wrong = [d for d in found if d.severity is not Severity.REMARK]
    assert [d for d in wrong if d.code not in ("TL401", "TL402", "TL412")] == []


@pytest.mark.parametrize(
    "case",
    [case for case in KERNELS if "cpu" not in case.targets],
    ids=lambda case: case.name,
)
def test_gpu_kernels_are_clean_on_their_target(case: KernelCase) -> None:
    path = case.source()
    (target,) = case.targets
    for parsed in parse_static(path.read_text(), str(path), target=target):
        assert [d for d in parsed.diagnostics if d.severity is not Severity.REMARK] == []
