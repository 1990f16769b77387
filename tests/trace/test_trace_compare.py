"""Where two traces part, and what that cost."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tilelang.cli import main
from tilelang.codegen.source_map import Line as Source
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.sass import find_nvdisasm
from tilelang_diagnostics import Span
from tilelang_trace.compare import compare, comparison_text
from tilelang_trace.model import Line, Resources, Step, Trace
from tilelang_trace.ndjson import dump
from tilelang_trace.resuming import remapped


def trace(*texts: str, registers: int = 64, names: str = "emit a b", **more: object) -> Trace:
    steps = tuple(
        Step(name, tuple(Line(t, Span("k.py", 1, 1, 1, 9)) for t in text.split("|")), 0.001)
        for name, text in zip(names.split(), texts, strict=True)
    )
    used = Resources("f_kernel", 128, registers, 0, 0, 4096, 2, (("mma", 16),))
    return Trace("f", "k.py", "cuda:sm_80", steps, resources=(used,), **more)  # type: ignore[arg-type]


def test_the_first_pass_after_which_they_differ() -> None:
    found = compare(trace("x", "x", "x|y"), trace("x", "x|z", "z"))
    assert found.parted is not None and found.parted.name == "a"


def test_a_pass_that_only_one_has() -> None:
    other = trace("x", "x", "x", names="emit c b")
    found = compare(trace("x", "x|y", "x"), other)
    assert found.parted is not None
    assert (found.parted.name, found.parted.second) == ("a", None)
    assert compare(trace("x", "x", "x"), other).parted is None  # it has changed nothing


def test_costs() -> None:
    costs = {c.what: (c.first, c.second) for c in
             compare(trace("x", "x", "x"), trace("x", "x", "x", registers=80)).costs}  # fmt: skip
    assert costs["registers a thread"] == (64, 80)
    assert costs["mma"] == (16, 16)
    assert costs["time of all passes"] == pytest.approx((0.003, 0.003))


def test_the_text() -> None:
    first = trace("T.f(1)", "T.f(1)", "T.f(1)", values=(("M", "64"),))
    second = trace("T.f(1)", "T.f(2)", "T.f(2)", values=(("M", "128"),), registers=80)
    lines = [t.plain.rstrip() for t in comparison_text(first, second)]
    assert "   M: 64 → 128" in lines
    assert "they first differ in a: 1 changed" in lines
    assert lines[lines.index("they first differ in a: 1 changed") + 2 :][:2] == [
        "- T.f(1)", "+ T.f(2)",
    ]  # fmt: skip
    row = next(x for x in lines if x.startswith("registers"))
    assert row.split() == ["registers", "a", "thread", "64", "80", "+25%"]


def test_times_are_told_where_they_are_asked_for_and_as_one_measurement() -> None:
    first, second = trace("x", "x", "x"), trace("x", "x", "x")
    assert not [t for t in comparison_text(first, second) if "time" in t.plain]
    (row,) = [t.plain for t in comparison_text(first, second, timed=True) if "time" in t.plain]
    assert "%" not in row and row.endswith("one measurement each")
    assert list(comparison_text(replace(first, resources=()), replace(second, resources=())))


@pytest.mark.parametrize(
    ("counts", "others", "names"),
    [
        ({"ld.global": 4, "ld.global.nc": 4}, {"ld.global": 6, "ld.global.nc": 6}, ["ld.global"]),
        ({"ld.global": 4, "ld.global.nc": 4}, {"ld.global": 4}, ["ld.global", "ld.global.nc"]),
        ({"ld.global": 4, "ld.global.plain": 4}, {"ld.global": 4, "ld.global.plain": 4},
         ["ld.global"]),
    ],
)  # fmt: skip
def test_the_same_loads_are_counted_once(
    counts: dict[str, int], others: dict[str, int], names: list[str]
) -> None:
    first, second = (
        replace(trace("x", "x", "x"), resources=(Resources("f", 1, 2, 3, 4, 5, None, pairs),))
        for pairs in (tuple(counts.items()), tuple(others.items()))
    )
    assert [c.what for c in compare(first, second).costs if "." in c.what] == names


def test_different_kernels() -> None:
    other = replace(trace("x", "x", "x"), kernel="g")
    lines = [t.plain for t in comparison_text(trace("x", "x", "x"), other)]
    assert lines[2] == "   these are different kernels: f, g"


def test_the_same() -> None:
    lines = [t.plain for t in comparison_text(trace("x", "x", "x"), trace("x", "x", "x"))]
    assert "the same program after every pass" in lines


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in (("old", "x"), ("new", "y")):
        (tmp_path / f"{name}.ndjson").write_text("".join(dump(trace("x", text, text))))
    new, old = (str(tmp_path / f"{n}.ndjson") for n in ("new", "old"))
    assert main(["trace", new, "--compare", old]) == 0
    said = capsys.readouterr().out
    assert "they first differ in a" in said
    assert said.split("\n")[:2] == [
        f"1: f for cuda:sm_80, saved in {old}", f"2: f for cuda:sm_80, of {new}",
    ]  # fmt: skip
    assert main(["trace", new, "--compare", str(tmp_path / "none.ndjson")]) == 2
    assert "cannot read" in capsys.readouterr().err


@pytest.fixture
def kernel(tmp_path: Path) -> str:
    if find_nvrtc() is None or find_nvdisasm() is None:
        pytest.skip("NVRTC or nvdisasm is not installed")
    file = tmp_path / "k.py"
    file.write_text(KERNEL)
    return str(file)


KERNEL = """
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((1024,), "float32"), B: T.Tensor((1024,), "float32")):
    with T.Kernel(8, threads=128) as bx:
        for i in T.Parallel(128):
            B[bx * 128 + i] = A[bx * 128 + i] * 2.0
"""


def test_two_targets(kernel: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", kernel, "--target", "cuda:sm_80,cuda:sm_90a"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert lines[:2] == ["1: main for cuda:sm_80", "2: main for cuda:sm_90a"]
    assert "the same program after every pass" in lines
    assert any(line.startswith("registers a thread") for line in lines)
    assert main(["trace", kernel, "--target", "cpu,cuda:sm_80", "--html", "x.html"]) == 2
    assert "one target at a time" in capsys.readouterr().err


def test_source_is_edited_and_goes_on(
    kernel: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, page = tmp_path / "k.cu", tmp_path / "k.html"
    assert main(["trace", kernel, "--target", "cuda:sm_80", "--source", str(source)]) == 0
    text = source.read_text()
    edited = text.replace("* 2.0f", "* 2.0f + 1.0f")
    assert edited != text
    source.write_text(edited)
    capsys.readouterr()
    command = ["trace", kernel, "--target", "cuda:sm_80", "--resume", str(source)]
    assert main([*command, "--html", str(page)]) == 0
    lines = capsys.readouterr().out.split("\n")
    changed = lines.index("the generated source differs")
    assert any(x.startswith("+ ") and "+ 1.0f" in x for x in lines[changed:])
    assert "FFMA" in page.read_text()
    source.write_text(edited.replace("1.0f", "nothing"))
    assert main(command) == 1
    shown = capsys.readouterr().err
    row = next(n for n, x in enumerate(source.read_text().split("\n"), 1) if "nothing" in x)
    column = source.read_text().split("\n")[row - 1].index("nothing") + 1
    assert "TL816" in shown and f"k.cu:{row}:{column}" in shown


def test_what_is_between_lines_of_a_statement_is_its() -> None:
    span = Span("k.py", 3, 1, 3, 9)
    old = [Source("a"), Source("b;", (span,)), Source("c")]
    found = remapped(old, ["a", "b + 1;", "new;", "c", "more;"])
    assert [x.text for x in found] == ["a", "b + 1;", "new;", "c", "more;"]
    assert [x.span for x in found] == [None, span, span, None, None]
