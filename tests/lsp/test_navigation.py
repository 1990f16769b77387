"""Where a name is bound and used."""

from __future__ import annotations

from typing import Any

from tests.lsp.asking import ask, in_launch
from tests.support.markers import kernel_text
from tilelang_lsp.features import document_symbols, navigation

TEXT = in_launch("""
    s = T.alloc_shared((32, 64), "float16")
    for k in T.serial(4):
        T.copy(A[k * 32, 0], s)
        T.copy(s, C[k * 32, 0])
""")


def texts(text: str, spans: tuple[Any, ...]) -> list[tuple[int, str]]:
    """Line numbers (of the kernel's own text) and the text of spans."""
    lines = kernel_text(text.replace("$0", "")).split("\n")
    first = 3
    return [(s.line - first, lines[s.line - 1][s.column - 1 : s.end_column - 1]) for s in spans]


def test_definition_of_a_buffer() -> None:
    text = TEXT.replace("T.copy(s, C", "T.copy($0s, C")
    assert texts(text, ask(navigation.DEFINITION, text)) == [(4, "s")]


def test_definition_of_a_parameter() -> None:
    text = TEXT.replace("A[k", "$0A[k")
    assert texts(text, ask(navigation.DEFINITION, text)) == [(2, "A")]


def test_references_of_a_loop_variable() -> None:
    text = TEXT.replace("for k", "for $0k")
    assert texts(text, ask(navigation.REFERENCES, text)) == [(5, "k"), (6, "k"), (7, "k")]
    found = ask(navigation.REFERENCES, text, include_declaration=False)
    assert texts(text, found) == [(6, "k"), (7, "k")]


def test_names_of_the_factory_around() -> None:
    text = """
    def factory(block):
        @T.prim_func
        def main(A: T.Tensor((128, 64), "float16")):
            with T.Kernel(4) as bx:
                s = T.alloc_shared((block$0,), "float16")
        return main
    """
    assert texts(text, ask(navigation.DEFINITION, text)) == [(1, "block")]
    assert texts(text, ask(navigation.REFERENCES, text)) == [(1, "block"), (5, "block")]


def test_names_inside_a_macro() -> None:
    text = """
    @T.macro
    def double(x, y):
        t = x[0] * 2
        y[0] = $0t

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            double(A, B)
            double(B, A)
    """
    assert texts(text, ask(navigation.DEFINITION, text)) == [(3, "t")]
    assert texts(text, ask(navigation.REFERENCES, text)) == [(3, "t"), (4, "t")]


def test_definition_of_a_macro() -> None:
    text = "@T.macro\ndef double(x):\n    x[0] = 2\n\n" + in_launch("dou$0ble(A)")
    assert texts(text, ask(navigation.DEFINITION, text)) == [(2, "double")]


def test_definition_of_a_language_function_is_its_source() -> None:
    (place,) = ask(navigation.DEFINITION, TEXT.replace("T.copy(s", "T.co$0py(s"))
    with open(place.file) as source:
        assert "def copy(" in "".join(source.readlines()[place.line - 1 : place.line + 3])


def test_no_definition() -> None:
    assert ask(navigation.DEFINITION, TEXT + "$0\n") == ()
    assert ask(navigation.REFERENCES, TEXT.replace("T.serial", "T.ser$0ial")) == ()


def test_the_outline_of_a_file() -> None:
    text = """
    @T.macro
    def double(x):
        x[0] = 2

    class Config:
        def size(self): ...

    def factory(block):
        @T.prim_func
        def main(A: T.Tensor((128, 64), "float16")):
            with T.Kernel(4) as bx:
                s = T.alloc_shared((block,), "float16")
        return main
    $0
    """

    def shown(nodes: Any, depth: int = 0) -> list[str]:
        return [
            line for node in nodes
            for line in (f"{'  ' * depth}{node.kind} {node.name} {node.detail}".rstrip(),
                         *shown(node.children, depth + 1))
        ]  # fmt: skip

    assert shown(ask(document_symbols.FEATURE, text)) == [
        "macro double",
        "class Config",
        "  function size",
        "function factory",
        "  kernel main",
        "    parameter A (128, 64) float16 global",
        "    buffer s (block,) float16 shared",
    ]
