"""What is proposed while a name is typed; the analysis is of the text before it was."""

from __future__ import annotations

import pytest

from tests.lsp.asking import ask, in_launch
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
