"""What is proposed while a name is typed; the analysis is of the text before it was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.lsp.asking import analysis_of, ask, in_launch, request_for, without_cursor
from tilelang_lsp.features.completion import FEATURE


def labels(text: str, **options: object) -> list[str]:
    return [c.label for c in ask(FEATURE, text, **options)]


def test_the_language_after_its_alias() -> None:
    found = labels(in_launch("T.al$0"))
    assert {"alloc_shared", "alloc_fragment", "gemm", "copy", "Kernel", "float16"} <= set(found)
    assert "float16x4" not in found


def test_vector_dtypes_once_a_width_is_typed() -> None:
    assert "float16x4" in labels(in_launch("x = T.float16x$0"))


def test_entries_carry_signature_and_documentation() -> None:
    (copy,) = [c for c in ask(FEATURE, in_launch("T.$0")) if c.label == "copy"]
    assert copy.detail.startswith("copy(src, dst")
    assert copy.markdown


def test_functions_come_before_dtypes() -> None:
    found = {c.label: c.order for c in ask(FEATURE, in_launch("T.$0"))}
    assert found["copy"] < found["float16"]


def test_keywords_of_the_call_being_written() -> None:
    found = labels(in_launch("T.gemm(A, C, C, $0)"))
    assert {"transpose_A=", "transpose_B=", "policy="} <= set(found)
    assert "A=" not in found


def test_keywords_that_were_given_are_not_proposed_again() -> None:
    found = labels(in_launch("T.gemm(A, C, C, transpose_A=True, tr$0)"))
    assert "transpose_A=" not in found
    assert "transpose_B=" in found


def test_no_keywords_where_a_value_is_written() -> None:
    assert not any(label.endswith("=") for label in labels(in_launch("T.copy(A, dst=$0)")))


@pytest.mark.parametrize("value", ["(n, $0", "[n, $0", "(n + ($0", "{n: $0", "(n in ($0"])
def test_no_keywords_in_a_part_of_a_value(value: str) -> None:
    found = labels(in_launch(f"s = T.alloc_shared({value}"), analysed=in_launch("T.clear(C)"))
    assert not any(label.endswith("=") for label in found)
    assert {"n", "bx"} <= set(found)


def test_local_names_that_are_bound_above() -> None:
    text = in_launch("""
        s = T.alloc_shared((32, 64), "float16")
        T.copy(A[0, 0], $0)
        later = T.alloc_shared((32, 64), "float16")
    """)
    found = labels(text)
    assert {"A", "C", "bx", "s"} <= set(found)
    assert "later" not in found


def test_names_of_another_kernel_are_not_proposed() -> None:
    other = in_launch("mine = T.alloc_shared((4,), 'int8')").replace("main", "first")
    assert "mine" not in labels(other + "\n" + in_launch("T.clear($0)"))


@pytest.mark.parametrize(
    "line", ["x = 'T.$0'", "# T.$0", "other.$0", "f().$0", "x = 1.$0", 'x = """T.$0']
)
def test_nothing_is_proposed(line: str) -> None:
    assert labels(in_launch(line)) == []


def test_the_aliases_of_the_last_good_text_serve() -> None:
    assert "copy" in labels("x = (\nT.$0", analysed=in_launch("T.clear(C)"))


@pytest.mark.parametrize(
    ("line", "first"),
    [
        ("with T.$0", ["Kernel"]),
        ("for i in T.$0", ["Parallel", "Persistent", "Pipelined", "serial", "unroll"]),
        ("T.$0", ["clear", "copy", "fill", "gemm"]),
        ("x = T.$0", ["alloc_fragment", "alloc_shared", "ceildiv"]),
        ("x = C[0, 0] * T.$0", ["And"]),
        ("if n == T.$0", ["And"]),
        ("for i in T.serial(T.$0", ["And"]),
        ("T.gemm(A, A, C, policy=T.$0", ["GemmWarpPolicy"]),
        ("s = T.alloc_shared((4,), T.$0", ["bfloat16", "float16", "float32", "float8_e4m3fn"]),
        ("x: T.$0", ["Tensor"]),
        ("for i in $0", ["T.Parallel", "T.Persistent", "T.Pipelined", "T.serial", "T.unroll"]),
        ("with $0", ["T.Kernel"]),
        ("x: $0", ["T.Tensor", "T.float32", "T.int32"]),
        ("C[$0", ["bx", "n"]),
        ("C[0, bx + $0", ["bx", "n"]),
        ("T.copy(A, C[$0", ["bx", "n"]),
        ("s = T.alloc_shared((n, $0", ["bx", "n"]),
        ("s = T.alloc_shared([$0", ["bx", "n"]),
        ("T.copy(A[0, 0], $0", []),
    ],
)
def test_what_fits_best_comes_first(line: str, first: list[str]) -> None:
    found = ask(FEATURE, in_launch(f"{line}\nT.clear(C)"), analysed=in_launch("T.clear(C)"))
    best = sorted(found, key=lambda c: (c.order, c.label))
    assert [c.label for c in best[: len(first)]] == first


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("@$0", ["T.macro", "T.prim_func", "tilelang.jit"]),
        ("@tilelang.$0", ["jit"]),
        ("@T.$0", ["macro", "prim_func"]),
        ("@T.prim_func\ndef other(A: T.$0", ["Tensor", "float32", "int32"]),
        ("@T.prim_func\ndef other(A: T.int32, B: $0", ["T.Tensor", "T.float32", "T.int32"]),
    ],
)
def test_what_a_definition_begins_with(text: str, first: list[str]) -> None:
    whole = in_launch("T.clear(C)")
    source = f"import tilelang\nimport tilelang.language as T\n\n{whole}\n"
    source_line, line, column = without_cursor(f"{source}{text}\n")
    request = request_for(analysis_of(source))
    found = FEATURE.answer(replace(request, text=source_line, line=line, column=column))
    best = sorted(found, key=lambda c: (c.order, c.label))
    assert [c.label for c in best[: len(first)]] == first


@pytest.mark.parametrize("line", ["if $0", "return $0", "x = $0", "while $0"])
def test_no_pattern_where_an_expression_is_written(line: str) -> None:
    found = ask(FEATURE, in_launch(line), analysed=in_launch("T.clear(C)"))
    assert not [c.label for c in found if c.kind == "snippet"]


def test_a_new_statement_at_the_end_of_a_kernel_knows_its_names() -> None:
    text = in_launch("s = T.alloc_shared((32, 64), 'float16')\nT.clear(C)")
    for line in ("        T.clear($0", "        $0", "\n\n        x$0"):
        assert {"s", "A", "bx"} <= set(labels(f"{text}{line}\n", analysed=text)), line
    assert "s" not in labels(f"{text}$0\n", analysed=text)
    assert "s" not in labels(f"{text}\nx = 1\nif x:\n    $0\n", analysed=text)


def test_what_may_be_ignored_is_what_is_found_first() -> None:
    text = in_launch("s = T.alloc_shared((4,), 'int8')  # tilelang: ignore[$0]")
    found = labels(text, analysed=in_launch("s = T.alloc_shared((4,), 'int8')"))
    assert found[0] == "unused-buffer"
    assert "bank-conflicts" in found
    assert "gemm-k-mismatch" not in found
