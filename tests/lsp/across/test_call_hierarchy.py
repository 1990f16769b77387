"""Who inlines whom, and what is defined, over all files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.lsp.across.project import Project, project
from tilelang_lsp.crossing import Crossing
from tilelang_lsp.features import call_hierarchy

TEXT = """
    -- ops.py --
    import tilelang.language as T

    @T.macro
    def inner(x):
        x[0] = 2

    @T.macro
    def outer(x):
        inner(x)
        inner(x)
    -- pkg/__init__.py --
    from .more import third as last
    -- pkg/more.py --
    import tilelang.language as T
    import ops

    @T.macro
    def third(x):
        ops.outer(x)
    -- main.py --
    import tilelang
    import tilelang.language as T
    from ops import *
    from ops import inner as again
    from pkg import last

    outer(None)

    @tilelang.jit
    def factory(block):
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1) as bx:
                outer(A)
                again(A)
                last(A)
        return main
    -- bench.py --
    import main

    def run():
        return main.factory(64), main.factory.compile(block=32)
    -- other.py --
    def inner(x): return x
    def outer(x): return inner(x)
    """


def calls(made: Project, question: Any, name: str) -> list[str]:
    """The answers about the function at `def name`, in whichever file that is."""
    for path, text in made.texts.items():
        if f"def {name}" in text and path != "other.py":
            before = text.partition(f"def {name}")[0]
            line, column = before.count("\n") + 1, len(before) - before.rfind("\n") + len("def ")
            across = Crossing(made.workspace, made.path(path), text)
            return sorted(
                " ".join([str(made.place(c.other.name_span)), *(
                    f"{made.place(s).path}:{s.line}" for s in c.places)])
                for c in question(across, line, column)
            )  # fmt: skip
    raise AssertionError(name)


@pytest.mark.parametrize(
    ("question", "name", "found"),
    [
        (call_hierarchy.incoming, "inner", ["main.py:12:9 main main.py:15",
                                            "ops.py:8:5 outer ops.py:9 ops.py:10"]),
        (call_hierarchy.incoming, "outer", ["main.py:12:9 main main.py:14",
                                            "main.py:1:1  main.py:7",  # outside of functions
                                            "pkg/more.py:5:5 third pkg/more.py:6"]),
        (call_hierarchy.incoming, "third", ["main.py:12:9 main main.py:16"]),
        (call_hierarchy.incoming, "factory", ["bench.py:3:5 run bench.py:4"]),
        (call_hierarchy.incoming, "run", []),
        (call_hierarchy.outgoing, "main", ["ops.py:4:5 inner main.py:15",
                                           "ops.py:8:5 outer main.py:14",
                                           "pkg/more.py:5:5 third main.py:16"]),
        (call_hierarchy.outgoing, "third", ["ops.py:8:5 outer pkg/more.py:6"]),
        (call_hierarchy.outgoing, "outer", ["ops.py:4:5 inner ops.py:9 ops.py:10"]),
        (call_hierarchy.outgoing, "run", ["main.py:10:5 factory bench.py:4"]),
    ],
)  # fmt: skip
def test_who_inlines_whom(question: Any, name: str, found: list[str], tmp_path: Path) -> None:
    assert calls(project(TEXT, tmp_path), question, name) == found


@pytest.mark.parametrize(
    ("at", "found"),
    [
        ("$0outer(A)", "macro ops.py:8:5 outer"),
        ("ag$0ain(A)", "macro ops.py:4:5 inner"),
        ("import la$0st", "macro pkg/more.py:5:5 third"),
        ("main.fac$0tory(", "kernel main.py:10:5 factory"),
        ("factory.comp$0ile(", ""),
        ("main$0.factory(", ""),
    ],
)
def test_a_hierarchy_starts_at_the_definition(at: str, found: str, tmp_path: Path) -> None:
    made = project(TEXT.replace(at.replace("$0", ""), at, 1), tmp_path)
    items = made.ask(call_hierarchy.PREPARE)
    assert " ".join(f"{i.kind} {made.place(i.name_span)}" for i in items) == found


SYMBOLS = """
    -- ops.py --
    import tilelang.language as T
    BLOCK = 64

    @T.macro
    def scale(x):
        by = 2
    -- ops.py (open) --
    import tilelang.language as T
    BLOCK_ROWS = 64
    class Scales:
        SIZE = 3
        def scaled(self): ...
    -- gemm.py --
    import tilelang
    BLOCK = 32
    @tilelang.jit
    def gemm_scaled(M):
        @T.prim_func
        def main(): ...
    -- plain.py --
    BLOCK = 3
    -- untitled:one --
    import tilelang
    def scale_it(): ...
    -- broken.py --
    import tilelang
    def scale_up(x):
        return (
    -- venv/lib/ops.py --
    import tilelang
    def scale_down(x): ...
    """


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("scale", ["class ops.py:3:7 Scales", "function ops.py:5:9 scaled in Scales",
                   "function untitled:one:2:5 scale_it", "function broken.py:2:5 scale_up",
                   "kernel gemm.py:4:5 gemm_scaled"]),
        ("BLOCK", ["constant gemm.py:2:1 BLOCK", "constant ops.py:2:1 BLOCK_ROWS"]),
        ("gs", ["kernel gemm.py:4:5 gemm_scaled"]),
        ("main", ["kernel gemm.py:6:9 main in gemm_scaled"]),
        ("nothing", []),
    ],
)  # fmt: skip
def test_symbols(query: str, found: list[str], tmp_path: Path) -> None:
    made = project(SYMBOLS, tmp_path)
    shown = [
        f"{s.kind} {made.place(s.span)}" + (f" in {s.container}" if s.container else "")
        for s in made.workspace.symbols(query)
    ]
    assert shown == found
