"""Which signature, and which of its parameters, the cursor is in."""

from __future__ import annotations

import pytest

from tests.lsp.asking import ask, in_launch
from tilelang_lsp.features.signature_help import FEATURE


@pytest.mark.parametrize(
    ("call", "active"),
    [
        ("T.gemm($0)", "A"),
        ("T.gemm(A, $0)", "B"),
        ("T.gemm(A[0, 1], C, (1, 2), $0", "transpose_A"),
        ("T.gemm(A, B, C, policy=$0", "policy"),
        ("T.gemm(A, B, C, po$0", "transpose_A"),
        ("T.copy(A[i, T.min(1, 2)], $0", "dst"),
        ("T.copy('a, b', $0", "dst"),
        ("T.copy(\n    A,  # first, of two\n    $0", "dst"),
        ("with T.Kernel(1, 2, $0", "*blocks"),
        ("with T.Kernel(1, threads=$0", "threads"),
    ],
)
def test_the_parameter_at_the_cursor(call: str, active: str) -> None:
    found = ask(FEATURE, in_launch(call), analysed=in_launch("T.clear(C)"))
    assert found.active is not None
    assert found.parameters[found.active].split("=")[0] == active


def test_the_innermost_call_counts() -> None:
    found = ask(FEATURE, in_launch("T.copy(A[T.min(1, $0)], C)"))
    assert found.label.startswith("T.min(")


def test_too_many_arguments_mark_none() -> None:
    found = ask(FEATURE, in_launch("T.clear(C, 1, 2, 3, $0)"), analysed=in_launch("T.clear(C)"))
    assert found.active is None


@pytest.mark.parametrize("line", ["x = (1, $0)", "other(1, $0)", "T.clear(C) $0", "# T.copy($0"])
def test_no_signature(line: str) -> None:
    assert ask(FEATURE, in_launch(line), analysed=in_launch("T.clear(C)")) is None


def test_definitions_are_no_calls() -> None:
    assert ask(FEATURE, "def copy($0): ...\n" + in_launch("T.clear(C)")) is None


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("for k in T.Pipelined(4, num_stages=$0",
         'num_stages: how many tiles of each shared buffer exist (0 or 1: no overlap), or "auto": '
         "as many as fit into the shared memory of the target"),
        ("T.gemm(A, $0", "B: K x N, or N x K with `transpose_B`, shared or fragment, of A's dtype"),
        ("T.clear($0", "buffer: any tile"),
    ],
)  # fmt: skip
def test_what_is_said_of_the_parameter_at_the_cursor(call: str, says: str) -> None:
    found = ask(FEATURE, in_launch(call), analysed=in_launch("T.clear(C)"))
    assert found.active is not None
    assert found.about[found.active] == says
