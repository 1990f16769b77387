"""What is said about the name under the cursor."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

from tests.lsp.asking import ask, catalogue, in_launch
from tilelang_lsp.features.hover import FEATURE


def hovered(text: str, **options: object) -> str:
    found = ask(FEATURE, text, **options)
    return "" if found is None else found.markdown


def test_a_buffer_says_what_it_is_and_takes() -> None:
    text = in_launch("""
        s = T.alloc_shared((32, 64), "float16")
        T.copy(A[0, 0], s$0)
    """)
    assert hovered(text) == (
        "```python\ns: (32, 64) float16 shared\n```\n\n2048 elements, 4 KiB per block"
        "\n\n`s[0…31, 0…63]` of (32, 64)"
    )


def test_the_range_is_the_name() -> None:
    text = in_launch("T.copy(A[0, 0], C)\nT.clear($0C)")
    found = ask(FEATURE, text)
    assert (found.span.column, found.span.end_column) == (17, 18)


def test_a_block_index() -> None:
    text = in_launch("i = $0bx * 2")
    assert hovered(text) == "```python\nbx: int32\n```\n\nblock index of the launch"


def test_a_symbol_of_the_factory_around() -> None:
    text = """
    def factory(block_M):
        @T.prim_func
        def main(A: T.Tensor((128, 64), "float16")):
            with T.Kernel(4) as bx:
                s = T.alloc_shared((block_M$0,), "float16")
        return main
    """
    assert "compile-time value that the file leaves open" in hovered(text)


def test_language_functions_come_with_signature_and_doc() -> None:
    shown = hovered(in_launch("T.co$0py(A, C)"))
    assert shown.startswith("```python\nT.copy(src, dst")
    assert ">>>" not in shown


def test_what_only_some_targets_have_says_so() -> None:
    assert "only on cuda" in hovered(in_launch("T.tma_c$0opy(A, C)"))


def test_names_imported_from_the_language() -> None:
    text = "from tilelang.language import copy\n" + in_launch("co$0py(A, C)")
    assert hovered(text).startswith("```python\ncopy(src, dst")


def test_other_aliases_of_the_language() -> None:
    text = "import tilelang.language as tl\n" + in_launch("tl.cl$0ear(C)")
    assert hovered(text).startswith("```python\ntl.clear(")


def test_the_same_name_of_another_module_is_not_ours() -> None:
    assert hovered("import shutil\nshutil.co$0py('a', 'b')\n" + in_launch("T.clear(C)")) == ""


def test_a_kernel_says_its_launch() -> None:
    text = in_launch("T.clear(C)", grid="2, 3").replace("bx:", "(x, y):")
    text = text.replace("main(", "ma$0in(")
    assert "grid (2, 3), threads (128)" in hovered(text)


def test_nothing_under_the_cursor() -> None:
    assert hovered(in_launch("T.clear(C) $0")) == ""
    assert hovered(in_launch("T.clear(C)") + "\n\n$0") == ""


def test_a_keyword_of_a_call() -> None:
    found = ask(FEATURE, in_launch("T.gemm(A, A, C, transpo$0se_B=True)"))
    assert found is not None and "transpose_B=False  # of gemm" in found.markdown


def test_a_function_of_the_file() -> None:
    text = "def rows(count, by=2):\n    '''How many rows.'''\n    return count // by\n\n\n"
    found = ask(FEATURE, text + in_launch("C[ro$0ws(4), 0] = 0"))
    assert found is not None
    assert "def rows(count, by=2)" in found.markdown and "How many rows." in found.markdown


def test_a_parameter_of_an_eager_kernel_is_the_tensor_it_is_declared_as() -> None:
    found = ask(FEATURE, """
        @tilelang.jit
        def copy($0A):
            N = T.const("N")
            A: T.Tensor((N,), "float16")
            B = T.empty((N,), "float16")
            with T.Kernel(1, threads=128):
                T.copy(A, B)
            return B
    """)  # fmt: skip
    assert found is not None and "(N,) float16 global" in found.markdown


OTHER_NAMES = frozenset({"sync_global", "launch_thread"})  # their examples have the new name


def lacks(name: str, alias: str, imported: str) -> tuple[str, ...]:
    """What the hover of a public name lacks."""
    shown = hovered(f"{imported}\nx = {alias}.{name}$0\n")
    signature, *others = re.findall(r"```python\n(.*?)```", shown, re.S) or [""]
    doc = re.sub(r"```.*?```", "", shown, flags=re.S).strip()
    entry = catalogue().entries.get(name)
    renamed = name in OTHER_NAMES or (entry is not None and entry.kind == "dtype")
    example = any((renamed or name in x) and is_python(x) for x in others)
    said = {
        "signature": signature.startswith(f"{alias}.{name}"), "doc": len(doc) >= 10,
        "example": example or alias != "T",
    }  # fmt: skip
    return tuple(f"{name}: {what}" for what, there in said.items() if not there)


def is_python(text: str) -> bool:
    """Whether an example can be read; the head of a block may stand without one."""
    code = textwrap.dedent(text).rstrip()
    try:
        ast.parse(f"{code}\n    pass" if code.endswith(":") else code)
    except SyntaxError:
        return False
    return True


def test_every_name_of_the_language_is_explained() -> None:
    names = catalogue().entries
    assert len(names) > 500
    found = [lacks(name, "T", "import tilelang.language as T") for name in names]
    assert [said for said in found if said] == []


def test_every_name_of_the_package_is_explained() -> None:
    names = catalogue().package
    assert len(names) > 20
    found = [lacks(name, "tilelang", "import tilelang") for name in names]
    assert [said for said in found if said] == []


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("i = b$0x * 2", "`bx` is 0…3"),
        ("for k in T.Pipelined(2, 8):\n    C[$0k, 0] = 1", "`k` is 2…7"),
        ("for k$0 in T.serial(0, 8, 2):\n    C[k, 0] = 1", "`k` is 0…6"),
        ("for k in T.serial(n):\n    C[k$0, 0] = 1", None),
        ("for i, j$0 in T.Parallel(4, 16):\n    C[i, j] = 1", "`j` is 0…15"),
    ],
)
def test_what_counts_says_how_far(body: str, says: str | None) -> None:
    found = hovered(in_launch(body, grid="4"))
    assert found is not None
    assert (says or "…") in found if says else "…" not in found
