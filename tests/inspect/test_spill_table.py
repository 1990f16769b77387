"""The table of registers and spills: how it is made, and a sample of what must not spill."""

from __future__ import annotations

import re

import pytest

from benchmarks.spill_cases import EXAMPLES, ROOT, spill_cases
from benchmarks.spills import ARCHS, TABLE, Row, measure, rows_of, table
from tests.kernels.registry import KERNELS
from tests.support.cuda import needs_nvrtc

SAMPLE = (
    "gemm_float16", "rms_norm", "examples/softmax.py::online_softmax", "mha_fwd_causal",
)  # fmt: skip
CASES = {case.name: case for case in spill_cases()}


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("name", SAMPLE)
def test_nothing_spills(name: str, arch: str) -> None:
    rows = measure(CASES[name], arch)
    assert [r.problem for r in rows] == [None] * len(rows)
    assert all(r.spills == 0 and 0 < r.registers <= 255 and not r.refused for r in rows)


def test_every_kernel_for_a_gpu_is_listed() -> None:
    registered = {c.name for c in KERNELS if any(t.startswith("cuda") for t in c.targets)}
    assert set(CASES) == registered | {f"examples/{place}" for place in EXAMPLES}
    files = {p.name for p in (ROOT / "examples").glob("*.py")}
    assert {place.partition("::")[0] for place in EXAMPLES} == files


def test_the_committed_table_has_a_row_for_each() -> None:
    rows = re.findall(r"^\| (\S+)(?: \((\w+)\))? \|", TABLE.read_text(), re.MULTILINE)
    missing = set(CASES) - {name for name, _ in rows}
    assert not missing, "python -m benchmarks.spills --keep"
    assert f"| {' | '.join(ARCHS)} |" in TABLE.read_text()


def test_the_table_is_read_as_it_was_written() -> None:
    text = TABLE.read_text()
    assert table(rows_of(text), ARCHS) == text


def test_an_architecture_older_than_the_kernel_has_no_cell() -> None:
    assert not CASES["gemm_fp8_e4m3"].runs_on("sm_80")
    assert CASES["gemm_fp8_e4m3"].runs_on("sm_89") and CASES["gemm_float16"].runs_on("sm_120a")


def test_the_text_of_a_table() -> None:
    rows = [
        Row("gemm", "sm_80", "gemm_kernel", 168, 0, 0, 0, 49152),
        Row("gemm", "sm_90a", "gemm_kernel", 255, 24, 8, 0, 65536),
        Row("two", "sm_80", "first", 32),
        Row("two", "sm_80", "second", 40),
        Row("two", "sm_90a", refused="TL314", message="…"),
        Row("big", "sm_80", "big_kernel", 64, small=True),
    ]
    assert table(rows, ("sm_80", "sm_90a")).splitlines()[-7:] == [
        "| gemm | 0 + 49152 | 168 | 255, 24 spilled (0 + 65536) |",
        "| two (first) | 0 + 0 | 32 |  |",
        "| two (second) | 0 + 0 | 40 |  |",
        "| two (refused) |  |  | TL314 |",
        "| big | 0 + 0 | 64, small |  |",
        "",
        "Kernels that spill: gemm.",
    ]


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (Row("gemm", "sm_80", "k", 255, 24), "24 bytes spilled"),
        (Row("histogram", "sm_80", "k", 255, 24), None),
        (Row("mla_decode_split", "sm_100a", "k", 255, 8), "8 bytes spilled"),
        (Row("copy", "sm_80", "k", 16, warnings=("ptxas warning: x",)), "ptxas warning: x"),
        (Row("copy", "sm_80", refused="TL806", message="rejected"), "rejected"),
        (Row("copy", "sm_80", refused="TL406", message="too large"), None),
        (Row("copy", "sm_80", "k", 16), None),
    ],
)
def test_what_fails_the_command(row: Row, problem: str | None) -> None:
    assert row.problem == problem
