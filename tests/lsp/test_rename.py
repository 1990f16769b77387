"""New names for what a kernel binds, and who inlines whom."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lsp.asking import analysis_of, ask, in_launch, without_cursor
from tests.support.markers import kernel_text
from tilelang_diagnostics import apply_edits
from tilelang_lsp.crossing import Crossing
from tilelang_lsp.features import call_hierarchy, rename
from tilelang_lsp.workspace import Workspace

BODY = """
    s = T.alloc_shared((32, 64), "float16")
    for k in T.serial(4):
        T.copy(A[k * 32, 0], s)
        T.copy(s, C[k * 32, 0])
"""
FACTORY = """
    def factory(block, dtype="float16"):
        @T.prim_func
        def main(A: T.Tensor((128, 64), dtype)):
            with T.Kernel(4) as bx:
                s = T.alloc_shared((block,), dtype)
        return main

    made = factory(block=32)
    """


def renamed(text: str, new: str) -> Any:
    """The text after renaming what is at `$0`; the refusal, or None for what has no new name."""
    found = ask(rename.RENAME, text, new_name=new)
    if found is None or found.refused:
        return found if found is None else found.refused
    source, _, _ = without_cursor(kernel_text(text))
    return apply_edits(source, found.edits)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (in_launch(BODY.replace("], s)", "], $0s)")), "s", "tile"),
        (in_launch(BODY.replace("for k", "for $0k")), "k", "step"),
        (in_launch(BODY).replace("main(A:", "main($0A:"), "A", "source"),
        (in_launch(BODY).replace("as bx", "as $0bx"), "bx", "x_block"),
        (FACTORY.replace("((block,)", "(($0block,)"), "block", "rows"),
        (FACTORY.replace("factory(block, ", "factory($0block, "), "block", "rows"),
        (FACTORY.replace("), dtype)):", "), $0dtype)):"), "dtype", "kind"),
        (in_launch("größe = bx * 2\ny = $0größe + 1"), "größe", "size"),
    ],
)
def test_every_place_gets_the_new_name(text: str, old: str, new: str) -> None:
    import re

    source, _, _ = without_cursor(kernel_text(text))
    expected = re.sub(rf"(?<![\w.\"']){old}(?![\w\"'])", new, source)
    assert renamed(text, new) == expected


def test_only_calls_of_the_function_are_touched() -> None:
    """Not what a comment or a string says, nor methods of the same name."""
    others = """
    # factory(block=32) is said here
    note = "factory(block=32)"

    class Other:
        def factory(self, block): ...

    Other().factory(block=3)
    """
    text = FACTORY.replace("factory(block, ", "factory($0block, ") + others
    changed = renamed(text, "rows")
    assert "made = factory(rows=32)" in changed
    assert changed.endswith(kernel_text(others).partition("T\n")[2])


@pytest.mark.parametrize("text", ["T.clear(C)  # $0x", "x = $01", "y = 'A$0'"])
def test_what_has_no_name_of_its_own_cannot_be_renamed(text: str) -> None:
    assert ask(rename.PREPARE, in_launch(text)) is None
    assert renamed(in_launch(text), "other") is None


def test_names_of_the_language_cannot_be_renamed() -> None:
    text = in_launch("T.co$0py(A, C)")
    assert ask(rename.PREPARE, text) is None
    assert renamed(text, "other") == "`T.copy` is a name of the language"


def test_what_would_be_renamed() -> None:
    found = ask(rename.PREPARE, in_launch(BODY.replace("], s)", "], $0s)")))
    assert found.name == "s"
    assert found.span.end_column - found.span.column == 1


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ("1x", "is no name"),
        ("for", "is no name"),
        ("__debug__", "is no name"),
        ("a b", "is no name"),
        ("k", "another name"),
    ],
)
def test_names_that_do_not_fit_are_refused(new: str, says: str) -> None:
    assert says in renamed(in_launch(BODY.replace("], s)", "], $0s)")), new)


PAGED = """
# tilelang: set block=4
# tilelang: set page=16, note="page=1"
def paged($0page, block):
    # tilelang: set page=(1, 2)
    @T.prim_func
    def main(A: T.Tensor((128, 64), "float32"), n: T.int32):
        with T.Kernel(page) as bx:
            s = T.alloc_shared((page, block), "float32")
    return main
"""
OTHER = PAGED.replace("$0", "").replace("paged", "other").replace("page=", "width=")
REFERENCE = "def paged_reference(A, page):\n    return A\n"
INPUTS = "def inputs({}):\n    return {{'A': 1}}\n"


def test_the_comments_that_set_a_parameter_follow() -> None:
    found = renamed(PAGED + OTHER, "rows")
    assert '# tilelang: set rows=16, note="page=1"\ndef paged(rows, block):' in found
    assert "    # tilelang: set rows=(1, 2)\n" in found and "T.Kernel(rows)" in found
    assert OTHER in found


def test_a_comment_for_the_whole_file_follows() -> None:
    everywhere = "# tilelang: set page=16\n\nx = 1\n"
    assert renamed(everywhere + PAGED, "rows").count("set rows=16") == 2
    assert "`other`, too" in renamed(everywhere + PAGED + OTHER, "rows")


DIMS = """
@tilelang.jit
def added(A, B):
    # tilelang: set N=64, M=32
    M, N = T.const("M, N")
    A: T.Tensor[[M, N], T.float32]
    B: T.Tensor[[M, $0N], T.float32]
    with T.Kernel(1, threads=64):
        T.copy(A, B)
"""
OTHERS = DIMS.replace("$0", "").replace("added", "others")
OF_FILE = """
# tilelang: set N=64

N = T.dynamic("N")

def make():
    @T.prim_func
    def main(A: T.Tensor(($0N,), "float32")):
        # tilelang: set N=8
        with T.Kernel(1, threads=64):
            T.clear(A)
    return main
"""


def test_the_comments_that_set_a_dimension_follow() -> None:
    found = renamed(DIMS + OTHERS, "columns")
    assert found == kernel_text(
        DIMS.replace("$0", "").replace("N=64", "columns=64").replace(
            'M, N = T.const("M, N")', 'M, columns = T.const("M, columns")'
        ).replace("[M, N]", "[M, columns]") + OTHERS
    )  # fmt: skip
    assert renamed(OF_FILE, "columns") == kernel_text(
        OF_FILE.replace("$0", "").replace("set N=", "set columns=").replace(
            'N = T.dynamic("N")', 'columns = T.dynamic("columns")').replace("(N,)", "(columns,)")
    )  # fmt: skip


def test_a_dimension_with_a_name_of_its_own_keeps_it() -> None:
    text = DIMS.replace('"M, N"', '"M, N2"').replace("set N=64", "set N2=64")
    assert renamed(text, "columns") == kernel_text(
        text.replace("$0", "").replace("M, N =", "M, columns =").replace("[M, N]", "[M, columns]")
    )


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        ("# tilelang: set N=8\n\nx = 1\n" + DIMS + OTHERS, "line 4 sets `N` for `others`, too"),
        (DIMS + "def reference(A, N):\n    return A\n", "`reference` is given `N` by that name"),
        (DIMS + "made = added.compile(N=4)\n", "gives `added.compile` `N` by that name"),
        (DIMS + "made = others.compile(N=4)\n", ""),
    ],
)
def test_what_keeps_the_name_of_a_dimension(text: str, refused: str) -> None:
    found = renamed(text, "columns")
    assert (refused in found) if refused else ("columns=64" in found)


@pytest.mark.parametrize(
    ("text", "refused"),
    [
        (PAGED + REFERENCE, "`paged_reference` is given `page`"),
        (PAGED + INPUTS.format("page"), "`inputs` is given `page`"),
        (PAGED + INPUTS.format("").replace("'A'", "'page'"), ""),
        (PAGED + "def other_reference(page):\n    pass\n", ""),
        (PAGED.replace("$0", "").replace("main(A", "main($0A") + INPUTS.format(""),
         "`inputs` makes `A`"),
        (PAGED.replace("$0", "").replace("main(A", "main($0A") + REFERENCE, ""),
        (PAGED.replace("$0", "").replace("main(A", "main($0A")
         + "def inputs():\n    return dict(A=1)\n", "`inputs` makes `A`"),
    ],
)  # fmt: skip
def test_what_the_file_gives_by_name(text: str, refused: str) -> None:
    found = renamed(text, "rows")
    assert (refused in found) if refused else ("rows" in found and "rename it" not in found)


def test_what_the_project_sets_by_name() -> None:
    for said, refused in (("page = 16", True), ("pages = 16", False), ("page = ", False)):
        project = ("pyproject.toml", f"[tool.tilelang.set]\n{said}\n")
        found = ask(rename.RENAME, PAGED, new_name="rows", project=project)
        assert ("pyproject.toml sets `page`" in found.refused) is refused


def test_a_renamed_kernel_says_what_it_said() -> None:
    text = in_launch(BODY.replace("], s)", "], $0s)"))
    before = analysis_of(kernel_text(text.replace("$0", ""))).diagnostics
    assert analysis_of(renamed(text, "tile")).diagnostics == before


MACROS = """
    @T.macro
    def inner(x):
        x[0] = 2

    @T.macro
    def outer(x):
        inner(x)
        inner(x)

    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1) as bx:
            outer(A)
    """


def calls(question: Any, name: str) -> list[tuple[str, list[int]]]:
    source = kernel_text(MACROS)
    before, _, _ = source.partition(f"def {name}")
    across = Crossing(Workspace(), "kernel.py", source)
    found = question(across, before.count("\n") + 1, len("def ") + 1)
    return [(c.other.name, [s.line - 3 for s in c.places]) for c in found]


@pytest.mark.parametrize(
    ("question", "name", "found"),
    [
        (call_hierarchy.incoming, "inner", [("outer", [7, 8])]),
        (call_hierarchy.incoming, "outer", [("main", [13])]),
        (call_hierarchy.incoming, "main", []),
        (call_hierarchy.outgoing, "main", [("outer", [13])]),
        (call_hierarchy.outgoing, "outer", [("inner", [7, 8])]),
        (call_hierarchy.outgoing, "inner", []),
    ],
)
def test_who_inlines_whom(question: Any, name: str, found: list[Any]) -> None:
    assert calls(question, name) == found


@pytest.mark.parametrize(
    ("at", "name", "kind"),
    [
        ("        $0inner(x)\n        inner", "inner", "macro"), ("def $0outer", "outer", "macro"),
        ("def $0main", "main", "kernel"),
    ],
)  # fmt: skip
def test_a_hierarchy_starts_at_definitions_and_calls(at: str, name: str, kind: str) -> None:
    text = MACROS.replace(at.replace("$0", ""), at, 1)
    (item,) = ask(call_hierarchy.PREPARE, text)
    assert (item.name, item.kind) == (name, kind)
