"""Did you mean: slips are recognised, other words are not."""

from __future__ import annotations

import pytest

from tilelang_diagnostics import did_you_mean, suggest

NAMES = (
    "alloc_fragment", "alloc_local", "alloc_shared", "alloc_var", "ceildiv", "clear", "copy",
    "exp", "exp2", "fill", "gemm", "GemmWarpPolicy", "Kernel", "max", "min", "Parallel",
    "Pipelined", "prim_func", "reduce_max", "reduce_min", "reduce_sum", "serial", "Tensor",
)  # fmt: skip


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("pipelined", ("Pipelined",)),  # case
        ("ceil_div", ("ceildiv",)),  # spacing
        ("AllocShared", ("alloc_shared",)),
        ("alloc_fragmnet", ("alloc_fragment",)),  # swapped letters
        ("gmem", ("gemm",)),
        ("geem", ("gemm",)),
        ("coppy", ("copy",)),  # doubled
        ("seial", ("serial",)),  # dropped
        ("reduce_mix", ("reduce_max", "reduce_min")),  # a tie: both, in a fixed order
        ("alloc", ("alloc_var", "alloc_local", "alloc_shared")),  # an unfinished word
        ("shared", ("alloc_shared",)),  # the word that counts
        ("Kernels", ("Kernel",)),
        ("gemm", ()),  # itself
        ("softmax", ()),
        ("x", ()),
        ("", ()),
    ],
)
def test_suggest(written: str, meant: tuple[str, ...]) -> None:
    assert suggest(written, NAMES) == meant


def test_enum_members() -> None:
    members = ("Square", "FullRow", "FullCol")
    assert suggest("Full", members) == ("FullCol", "FullRow")
    assert suggest("fullrow", members) == ("FullRow",)
    assert suggest("FullRwo", members) == ("FullRow",)


def test_dtypes() -> None:
    dtypes = ("float16", "float32", "float64", "bfloat16", "int32")
    assert suggest("flaot16", dtypes) == ("float16",)
    assert suggest("float3", dtypes) == ("float32",)


def test_keywords() -> None:
    assert suggest("num_stage", ("num_stages", "order", "stage")) == ("num_stages",)
    assert suggest("transB", ("transpose_A", "transpose_B", "policy")) == ()


def test_did_you_mean_is_the_tail_of_a_message() -> None:
    assert did_you_mean("geem", NAMES) == "; did you mean `gemm`?"
    assert did_you_mean("reduce_mix", NAMES) == "; did you mean `reduce_max` or `reduce_min`?"
    assert did_you_mean("softmax", NAMES) == ""


def test_at_most_three_and_no_repeats() -> None:
    assert suggest("ab", ("ac", "ac", "ad", "ae", "af")) == ("ac", "ad", "ae")
