"""`tilelang run --emulate` and what `doctor` says of it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from tests.cli.conftest import Result, Run
from tests.emulator.needs import needs_compiler

SESSION_CACHE: Final = os.environ["TILELANG_CACHE_DIR"]
KERNEL = """\
import tilelang.language as T


def scale(N=200):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(T.ceildiv(N, 64), threads=64) as bx:
            tile = T.alloc_shared((64,), "float32")
            T.copy(A[bx * 64], tile)
            for i in T.Parallel(64):
                tile[i] = tile[i] * 2
            T.copy(tile, B[bx * 64])

    return main


def reference(A):
    return A * 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "scale.py"
    path.write_text(KERNEL)
    return path


@pytest.fixture
def emulate(run: Run, file: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """`tilelang run scale.py`, with the cache of the session: the emulator is built once."""
    monkeypatch.setenv("TILELANG_CACHE_DIR", SESSION_CACHE)

    def command(*arguments: str) -> Result:
        return run("run", "scale.py", *arguments)

    return command


@needs_compiler
def test_same_arguments_and_results(emulate: Run) -> None:
    done = emulate("--target", "cuda:sm_80", "--emulate", "--set", "N=300")
    assert done.status == 0, done.err
    assert "  target   cuda:sm_80\n" in done.out
    assert "  inputs   A (300,) float32\n           B (300,) float32\n" in done.out
    assert "relative to reference() in float64" in done.out
    assert done.out.endswith(" s, emulated\n")


@needs_compiler
def test_checked_and_shuffled(emulate: Run) -> None:
    done = emulate("--target", "cuda:sm_80", "--emulate", "--check", "--schedule", "shuffle:3")
    assert done.status == 0, done.err
    assert done.out.endswith(" s, emulated and checked\n")


@needs_compiler
def test_a_mistake_is_told_at_its_line(run: Run, emulate: Run, file: Path) -> None:
    """The compiler places no barriers inside foreign code."""
    put = "static __device__ void put(float* to, float* tile, int i) "
    put += "{ tile[i] = float(i); to[i] = tile[63 - i]; }"
    text = KERNEL.replace(
        "T.copy(tile, B[bx * 64])",
        'T.call_extern("void", "put", T.access_ptr(B[bx * 64], "w"), '
        'T.access_ptr(tile[0], "rw", 64), T.get_thread_binding())',
    ).replace("        with T.Kernel", f'        T.import_source("{put}")\n        with T.Kernel')
    file.write_text(text)
    done = emulate("--target", "cuda:sm_80", "--emulate", "--check", "--set", "N=256")
    assert done.status == 1
    assert "TL731" in done.err and "scale.py:" in done.err


@needs_compiler
def test_json(emulate: Run) -> None:
    done = emulate("--target", "cuda:sm_80", "--emulate", "--check", "--json", "--schedule",
                   "shuffle:2")  # fmt: skip
    assert (done.status, done.err) == (0, "")
    told = json.loads(done.out)
    assert list(told) == [
        "schema", "major", "minor", "kernel", "target", "schedule", "checked", "status", "seconds",
        "diagnostics", "results", "traffic",
    ]  # fmt: skip
    assert told["kernel"] == "scale.py" and told["schedule"] == "shuffle:2" and told["checked"]
    assert told["diagnostics"] == [] and told["results"][0]["name"] == "B"
    # 200 floats in and out.
    assert told["traffic"]["global"] == {"transactions": 50, "minimum": 50}
    line = next(t for t in told["traffic"]["lines"] if t["space"] == "global")
    assert list(line) == [
        "space", "access", "bytes", "requests", "transactions", "minimum", "worst", "ratio",
        "span", "line", "code",
    ]  # fmt: skip
    assert Path(line["span"]["file"]).name == "scale.py"
    plain = json.loads(emulate("--target", "cuda:sm_80", "--emulate", "--json").out)
    assert plain["traffic"] is None and not plain["checked"]


@needs_compiler
def test_json_has_both_sides_of_a_conflict(emulate: Run, file: Path) -> None:
    text = KERNEL.replace("T.copy(tile, B[bx * 64])", "B[0] = tile[bx]").replace(
        "return A * 2", "return A"
    )  # fmt: skip
    file.write_text(text)
    done = emulate("--target", "cuda:sm_80", "--emulate", "--check", "--json")
    told = json.loads(done.out)
    assert done.status == told["status"] == 1
    assert told["results"] == [] and told["seconds"] is None and told["traffic"] is None
    (race,) = (d for d in told["diagnostics"] if d["code"] == "TL735")
    assert race["span"]["line"] == 12 and "of block (" in race["notes"][0]
    done = emulate("--emulate", "--target", "cpu", "--json")
    assert done.status == 1 and json.loads(done.out)["diagnostics"][0]["code"] == "TL817"


@needs_compiler
def test_a_wrong_result_as_json(emulate: Run, file: Path) -> None:
    file.write_text(KERNEL.replace("return A * 2", "return A * 3"))
    done = emulate("--target", "cuda:sm_80", "--emulate", "--json")
    told = json.loads(done.out)
    assert done.status == 1 and [d["code"] for d in told["diagnostics"]] == ["TL723"]
    assert told["results"][0]["error"] > told["results"][0]["allowed"]


@needs_compiler
def test_the_costliest_lines_are_shown(emulate: Run, file: Path) -> None:
    text = KERNEL.replace("A[bx * 64], tile", "A[bx * 64], tile").replace(
        "tile[i] = tile[i] * 2", "tile[i] = A[(i * 8 + bx) % N]"
    )
    file.write_text(text)
    done = emulate("--target", "cuda:sm_80", "--emulate", "--check", "--no-check", "--set", "N=512")
    assert done.status == 0, done.err
    assert "  traffic  shared memory: 16 passes, the least\n" in done.out
    assert "8.0x  " in done.out and "scale.py:11: a read of 4 bytes a lane, 512 sectors for 64" in (
        done.out
    )


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("--emulate", "--target", "cpu"), 1, "TL817"),
        (("--emulate",), 1, "TL817"),
        (("--check",), 2, "add --emulate"),
        (("--schedule", "fifo"), 2, "add --emulate"),
        (("--json",), 2, "add --emulate"),
        (("--emulate", "--schedule", "sometimes"), 2, "shuffle:SEED"),
    ],
)
def test_refusals(emulate: Run, arguments: tuple[str, ...], status: int, text: str) -> None:
    done = emulate(*arguments)
    assert done.status == status
    assert text in done.err


@needs_compiler
def test_doctor_names_the_compiler(run: Run) -> None:
    assert "✓ emulator  " in run("doctor").out


def test_doctor_without_a_compiler(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    out = run("doctor").out
    assert "· emulator" in out and "pip install ziglang" in out
