"""`tilelang inspect`: for people, for tools, for CI."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.inspect import kernels
from tests.inspect.kernels import line_of
from tests.support.cuda import needs_nvdisasm, needs_nvrtc
from tilelang.cli import main
from tilelang.inspection.as_json import SCHEMA
from tilelang.inspection.counts import NAMES

pytestmark = [needs_nvrtc, needs_nvdisasm]
FILE = kernels.__file__
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("COLUMNS", "100")

    def command(*arguments: str) -> tuple[int, str, str]:
        status = main(["inspect", *arguments])
        said = capsys.readouterr()
        return status, said.out, said.err

    return command


def test_the_first_line_is_the_budget(run: Run) -> None:
    status, out, _ = run(f"{FILE}::matmul", "--target", "cuda:sm_90a")
    assert status == 0
    assert out.splitlines()[0] == (
        "shared memory: 0 static + 24576 dynamic = 24576 bytes of the 232448 a block may have (10%)"
    )
    assert "matmul for cuda:sm_90a, machine code by NVRTC" in out
    row = next(x for x in out.splitlines() if x.startswith(f"kernels.py:{line_of('gemm')}"))
    assert row.split("  ")[1:] and row.endswith("2 mma")
    assert "bank conflicts: none predicted in 2 uses of shared tiles" in out
    assert "\x1b" not in out and all(x == x.rstrip() for x in out.splitlines())


@pytest.mark.parametrize("width", [36, 60, 100])
def test_narrow_terminals(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    _, out, _ = run(f"{FILE}::columns", "--target", "cuda:sm_80")
    assert max(map(len, out.splitlines())) <= width
    flat = "".join(out.split())
    for part in ("32-way", "TL306", "st.global", f"kernels.py:{line_of('read by columns')}"):
        assert part.replace(" ", "") in flat


def test_json(run: Run) -> None:
    status, out, _ = run(f"{FILE}::attention", "--target", "cuda:sm_80", "--json")
    found = json.loads(out)
    assert status == 0 and {k: found[k] for k in SCHEMA} == SCHEMA
    assert set(found) == {
        *SCHEMA, "name", "target", "arch", "compiler", "source", "note", "kernels", "conflicts",
        "remarks", "choices",
    }  # fmt: skip
    said = [choice["said"] for choice in found["choices"] if choice["kind"] == "gemm"]
    assert said == ["mma.sync m16n8k16, 32 a warp, by 4x1 warps"] * 2
    (kernel,) = found["kernels"]
    assert set(kernel) == {
        "symbol", "threads", "shared", "registers", "stack", "spill_stores", "spill_loads",
        "occupancy", "counts", "mapped", "loops", "lines",
    }  # fmt: skip
    assert kernel["shared"] == {"static": 0, "dynamic": 40960, "limit": 166912}
    assert set(kernel["occupancy"]) == {"blocks", "warps", "most_warps", "percent", "limited_by"}
    assert set(kernel["counts"]) <= set(NAMES) and kernel["counts"]["mma"] == 64
    (loop,) = kernel["loops"]
    assert (loop["span"]["line"], loop["variable"]) == (line_of("steps of attention"), "k")
    lines = {x["span"]["line"]: x["counts"] for x in kernel["lines"]}
    assert lines[line_of("copy V")]["cp.async"] == 8
    macro = next(x for x in kernel["lines"] if x["calls"])
    assert macro["calls"][0]["function"] == "rescale"
    assert {c["degree"] for c in found["conflicts"]} == {1}
    assert set(found["conflicts"][0]) == {
        "buffer", "operation", "access", "mode", "degree", "span",
    }  # fmt: skip


def test_several_targets(run: Run) -> None:
    targets = "cuda:sm_80,cuda:sm_90a"
    status, out, err = run(f"{FILE}::matmul", "--target", targets, "--expect", "shared>65536")
    assert status == 1 and err.count("error[TL610]") == 2
    assert "matmul for cuda:sm_80," in out and "matmul for cuda:sm_90a," in out
    _, out, _ = run(f"{FILE}::matmul", "--target", targets, "--json")
    assert [x["target"] for x in json.loads(out)] == targets.split(",")


def test_an_expectation_that_holds(run: Run) -> None:
    status, _, err = run(
        f"{FILE}::matmul", "--target", "cuda:sm_80", "--expect", "cp.async>=4,mma>0",
        "--expect", "spills==0",
    )  # fmt: skip
    assert (status, err) == (0, "")


def test_an_expectation_that_is_missed(run: Run) -> None:
    status, out, err = run(
        f"{FILE}::matmul", "--target", "cuda:sm_80", "--expect", "mma>=64,spills==0,tma>0"
    )
    assert status == 1 and out.startswith("shared memory:")
    assert "error[TL610]: `mma>=64` was expected of matmul for cuda:sm_80: mma is 16" in err
    assert "error[TL610]: `tma>0` was expected of matmul for cuda:sm_80: tma is 0" in err
    assert "spills" not in err


def test_an_expectation_that_is_written_wrongly(run: Run) -> None:
    status, _, err = run(f"{FILE}::matmul", "--target", "cuda:sm_80", "--expect", "mmma>0")
    assert status == 2
    assert "nothing is counted under `mmma`; did you mean `mma`?" in err


def test_to_a_file(run: Run, tmp_path: Path) -> None:
    status, out, _ = run(f"{FILE}::matmul", "--target", "cuda:sm_80", "-o", "found.txt")
    assert status == 0 and "wrote" in out
    assert (tmp_path / "found.txt").read_text().startswith("shared memory: 0 static")
    run(f"{FILE}::matmul", "--target", "cuda:sm_80", "--json", "-o", "found.json")
    assert json.loads((tmp_path / "found.json").read_text())["name"] == "matmul"


def test_a_target_without_machine_code(run: Run) -> None:
    status, _, err = run(f"{FILE}::two_launches", "--target", "cpu")
    assert status == 1 and "error[TL417]" in err


def test_help_names_what_may_be_expected(run: Run) -> None:
    status, out, _ = run("--help")
    assert status == 0
    for name in ("cp.async", "ld.global.nc", "occupancy", "conflicts", "loop.NAME"):
        assert name in out
