"""What is drawn into the lines of a kernel."""

from __future__ import annotations

import re

import pytest

from tests.lsp.asking import analysis_of, in_launch, lines_of, with_all_hints, with_hints
from tests.support.markers import kernel_text
from tilelang_lsp.features.inlay_hints import LONGEST_LABEL, hints, shorten


def check_hints(text: str, expect: str, **options: object) -> None:
    assert with_hints(text, **options) == lines_of(expect)


def test_buffers_say_shape_dtype_and_scope() -> None:
    check_hints(
        in_launch("""
            s = T.alloc_shared((32, 64), "float16")
            f = T.alloc_fragment((32, 64), "float32")
            v = T.alloc_var("int32")
        """),
        """
        s⟨: (32, 64) float16 shared⟩ = T.alloc_shared((32, 64), "float16")
        f⟨: (32, 64) float32 fragment⟩ = T.alloc_fragment((32, 64), "float32")
        v⟨: int32 var⟩ = T.alloc_var("int32")
        """,
    )  # fmt: skip


def test_unknown_parameters_stay_symbols() -> None:
    check_hints(
        """
        def factory(block_M, block_K, dtype="float16"):
            @T.prim_func
            def main(A: T.Tensor((128, 64), dtype), n: T.int32):
                with T.Kernel(n) as bx:
                    s = T.alloc_shared((block_M, block_K), dtype)
            return main
        """,
        "s⟨: (block_M, block_K) float16 shared⟩ = T.alloc_shared((block_M, block_K), dtype)",
    )


@pytest.mark.parametrize(
    ("value", "hint"),
    [("1e-3", ""), ("1_024", ""), ("2.0  # all", ""), ("2**10", "⟨ = 1024⟩"), ("3 - 1", "⟨ = 2⟩")],
)
def test_a_number_that_the_line_spells_is_no_news(value: str, hint: str) -> None:
    kernel = f"LIMIT = {value}\n" + in_launch('s = T.alloc_var("int32")', grid="1")
    found = with_hints(kernel)
    assert f"LIMIT{hint} = {value}" in found or (not hint and "LIMIT" not in found)


def test_given_values_make_them_concrete() -> None:
    check_hints(
        """
        def factory(block_M, block_K, dtype="float16"):
            rows = block_M * 2
            @T.prim_func
            def main(A: T.Tensor((128, 64), dtype)):
                with T.Kernel(A.shape[0] // block_M) as bx:
                    s = T.alloc_shared((rows, block_K), dtype)
            return main
        """,
        """
        rows⟨ = 64⟩ = block_M * 2
        with T.Kernel(A.shape[0] // block_M) as bx:⟨ 4 blocks × 128 threads⟩
        s⟨: (64, 16) float16 shared⟩ = T.alloc_shared((rows, block_K), dtype)
        """,
        values={"block_M": 32, "block_K": 16},
    )


def test_scalars_say_their_dtype() -> None:
    check_hints(
        in_launch("""
            i = bx * 2
            x = A[i, 0] * C[i, 0]
            flag = x > 0
        """),
        """
        i⟨: int32⟩ = bx * 2
        x⟨: float32⟩ = A[i, 0] * C[i, 0]
        flag⟨: bool⟩ = x > 0
        """,
    )  # fmt: skip


@pytest.mark.parametrize(
    "line",
    ["n = 64", "n = True", "name = 'tile'", "limit = -1.5  # why", "n: int = 64", "M, N = 64, 32"],
)
def test_literals_get_no_hint(line: str) -> None:
    assert with_hints(f"{line}\n{in_launch('T.clear(C)')}") == ""


def test_computed_constants_say_their_value() -> None:
    check_hints(
        "block = 64\nhalf = block // 2\n" + in_launch("T.clear(C)"),
        "half⟨ = 32⟩ = block // 2",
    )


def test_launch_sizes_stand_behind_the_header() -> None:
    check_hints(
        """
        @T.prim_func
        def main(A: T.Tensor((128, 64), "float16")):
            with T.Kernel(T.ceildiv(128, 32), T.ceildiv(64, 8), threads=(32, 4)) as (
                bx,
                by,
            ):  # one warp a row
                pass
        """,
        "):⟨ 32 blocks × 128 threads⟩  # one warp a row",
    )


def test_annotated_names_are_left_alone() -> None:
    check_hints(in_launch("s: T.SharedBuffer = T.alloc_shared((4,), 'int8')"), "")


def test_hints_survive_errors_elsewhere_in_the_kernel() -> None:
    check_hints(
        in_launch("""
            s = T.alloc_shared((32, 64), "float16")
            T.copy(nothing, s)
        """),
        """s⟨: (32, 64) float16 shared⟩ = T.alloc_shared((32, 64), "float16")""",
    )  # fmt: skip


def test_columns_count_code_points() -> None:
    check_hints(
        in_launch("""
            größe = T.alloc_shared((4,), "int8")
            e, f = "😀", T.alloc_shared((8,), "int8")
        """),
        """
        größe⟨: (4,) int8 shared⟩ = T.alloc_shared((4,), "int8")
        e, f⟨: (8,) int8 shared⟩ = "😀", T.alloc_shared((8,), "int8")
        """,
    )  # fmt: skip


def test_the_tooltip_says_what_the_label_leaves_out() -> None:
    source = kernel_text(in_launch("s = T.alloc_shared((32, 64), 'float16')"))
    (hint,) = hints(analysis_of(source))
    assert hint.tooltip == "s: (32, 64) float16 shared\n2048 elements, 4 KiB per block"


@pytest.mark.parametrize(
    ("label", "short"),
    [
        (": (64, 32) float16 shared", ": (64, 32) float16 shared"),
        (
            ": (batch, heads, seq_len_q, seq_len_kv, head_dim) float16 shared",
            ": (batch, …, head_dim) float16 shared",
        ),
        (
            ": (T.ceildiv(some_long_name, another_one), 3) float16 shared",
            ": (T.ceildiv(some_long_nam…) float16 shared",
        ),
    ],
)
def test_long_labels_are_shortened(label: str, short: str) -> None:
    assert shorten(label) == short
    assert len(shorten(label)) <= LONGEST_LABEL


def test_every_parameter_says_what_it_is_given() -> None:
    text = f"""
        @tilelang.jit
        def make(M=1024, N=256, *, K=512,
                 block=64):
            {in_launch("T.clear(C)").replace(chr(10), chr(10) + " " * 12)}
            return main

        a, b = 1, 2
        make(128, 256, K=128, block=32)
    """
    assert with_hints(text).split("\n")[:2] == [
        "def make(M⟨ = 128⟩=1024, N=256, *, K⟨ = 128⟩=512,",
        "block⟨ = 32⟩=64):",
    ]


def test_a_tile_keeps_its_layout_where_a_macro_gets_it() -> None:
    macro = "@T.macro\ndef double(tile):\n    for i in T.Parallel(64):\n        tile[i] *= 2\n\n"
    body = "s = T.alloc_fragment((64,), 'float32')\nT.clear(s)\ndouble(s)\nT.copy(s, C[0, 0:64])"
    drawn = with_all_hints(macro + in_launch(body, grid="1"))
    assert re.search(r"^s⟨: \(64,\) float32 fragment⟩⟨ [^⟩]+⟩ =", drawn, re.M)
    assert re.search(r"^def double\(tile⟨: \(64,\) float32 fragment⟩⟨ [^⟩]+⟩\)", drawn, re.M)
