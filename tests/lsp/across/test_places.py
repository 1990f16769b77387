"""Where is a name of another file bound and used? One text per way in which names travel.

Every marked place is asked, and has to answer with all of them: `def` is where its definition is,
`set` another binding, `use` a use; `as` and `as2` are places that mean it by another name. Then
each name is given a new one, from every place, and the project has to say what it said before.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.across.project import Place, Project, project, written
from tilelang_lsp.features import navigation, rename

BOUND = ("def", "set")
NAMED = {"def": "", "set": "", "use": ""}  # the others are called by their own name

IMPORTED = {
    "a macro": """
        -- ops.py --
        import tilelang.language as T

        @T.macro
        def double(x):
            ^^^^^^ def
            x[0] = x[0] * 2
        -- main.py --
        import tilelang.language as T
        from ops import double
                        ^^^^^^ use

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1) as bx:
                double(A)
                ^^^^^^ use
        """,
    "a constant, in a dim and a declaration": """
        -- config.py --
        BLOCK = 64
        ^^^^^ def
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
                           ^^^^^ use

        @T.prim_func
        def main(A: T.Tensor((BLOCK, 8), "float32")):
                              ^^^^^ use
            with T.Kernel(1) as bx:
                s = T.alloc_shared((BLOCK,), "float32")
                                    ^^^^^ use
        """,
    "a dim that several files share": """
        -- dims.py --
        import tilelang.language as T

        M = T.dynamic("M")
        ^ def
        -- main.py --
        import tilelang.language as T
        from dims import M
                         ^ use

        @T.prim_func
        def main(A: T.Tensor((M,), "float32")):
                              ^ use
            with T.Kernel(M) as bx:
                          ^ use
                A[bx] = M
                        ^ use
        """,
    "a kernel": """
        -- gemm.py --
        import tilelang
        import tilelang.language as T

        @tilelang.jit
        def gemm(M, block=64):
            ^^^^ def
            @T.prim_func
            def main(A: T.Tensor((M,), "float32")):
                with T.Kernel(1) as bx:
                    A[0] = block
            return main
        -- bench.py --
        from gemm import gemm
                         ^^^^ use

        print(gemm(128)(None))
              ^^^^ use
        """,
    "a name of its own for it": """
        -- ops.py --
        def double(x):
            ^^^^^^ def
            return x * 2
        -- main.py --
        from ops import double as twice
                        ^^^^^^ use
                                  ^^^^^ as

        y = twice(2) + twice(3)
            ^^^^^ as   ^^^^^ as
        """,
    "another name that others import": """
        -- ops.py --
        def double(x):
            ^^^^^^ def
            return x * 2
        -- mid.py --
        from ops import double as twice
                        ^^^^^^ use
                                  ^^^^^ as
        -- main.py --
        from mid import twice as more
                        ^^^^^ as
                                 ^^^^ as2
        y = more(2)
            ^^^^ as2
        """,
    "the same name behind `as`": """
        -- ops.py --
        def double(x):
            ^^^^^^ def
            return x * 2
        -- api.py --
        from ops import double as double
                        ^^^^^^ use
                                  ^^^^^^ use
        -- main.py --
        from api import double
                        ^^^^^^ use
        """,
    "an attribute of a module": """
        -- ops.py --
        BLOCK = 64
        ^^^^^ def
        -- main.py --
        import ops
        y = ops.BLOCK + ops.BLOCK
                ^^^^^ use   ^^^^^ use
        """,
    "an attribute of a module of a package": """
        -- pkg/ops.py --
        BLOCK = 64
        ^^^^^ def
        -- pkg/__init__.py --
        -- main.py --
        import pkg.ops
        y = pkg.ops.BLOCK
                    ^^^^^ use
        """,
    "an attribute of a module by another name": """
        -- pkg/ops.py --
        BLOCK = 64
        ^^^^^ def
        -- pkg/__init__.py --
        -- main.py --
        import pkg.ops as o
        y = o.BLOCK
              ^^^^^ use
        """,
    "a package without `__init__.py`": """
        -- pkg/sub/ops.py --
        BLOCK = 64
        ^^^^^ def
        -- main.py --
        import pkg.sub.ops
        from pkg.sub import ops
        from pkg.sub.ops import BLOCK
                                ^^^^^ use
        y = pkg.sub.ops.BLOCK + ops.BLOCK + BLOCK
                        ^^^^^ use   ^^^^^ use
                                            ^^^^^ use
        """,
    "relative imports": """
        -- pkg/__init__.py --
        -- pkg/config.py --
        BLOCK = 64
        ^^^^^ def
        -- pkg/near.py --
        from .config import BLOCK
                            ^^^^^ use
        -- pkg/deep/__init__.py --
        -- pkg/deep/far.py --
        from ..config import BLOCK
                             ^^^^^ use
        from .. import config
        y = config.BLOCK
                   ^^^^^ use
        """,
    "through the `__init__.py` of a package": """
        -- pkg/__init__.py --
        from .ops import double
                         ^^^^^^ use

        __all__ = ["double"]
                    ^^^^^^ use
        -- pkg/ops.py --
        def double(x):
            ^^^^^^ def
            return x
        -- main.py --
        import pkg
        from pkg import double
                        ^^^^^^ use
        y = double(pkg.double(1))
            ^^^^^^ use ^^^^^^ use
        """,
    "a function that is called like its module": """
        -- pkg/__init__.py --
        from .double import double
                            ^^^^^^ use
        -- pkg/double.py --
        def double(x):
            ^^^^^^ def
            return x
        -- main.py --
        from pkg import double
                        ^^^^^^ use
        y = double(1)
            ^^^^^^ use
        """,
    "`import *`": """
        -- ops.py --
        def double(x):
            ^^^^^^ def
            return x
        -- main.py --
        from ops import *
        y = double(1)
            ^^^^^^ use
        """,
    "`import *` through several files": """
        -- one.py --
        from two import *
        -- two.py --
        from three import *
        -- three.py --
        BLOCK = 64
        ^^^^^ def
        -- main.py --
        from one import *
        import one
        y = BLOCK + one.BLOCK
            ^^^^^ use   ^^^^^ use
        """,
    "`import *` of files that import each other": """
        -- one.py --
        from two import *
        def double(x):
            ^^^^^^ def
            return x
        -- two.py --
        from one import *
        y = double(1)
            ^^^^^^ use
        """,
    "`import *` of a name that `__all__` lists": """
        -- ops.py --
        __all__ = ["_double"]
                    ^^^^^^^ use
        def _double(x):
            ^^^^^^^ def
            return x
        -- main.py --
        from ops import *
        y = _double(1)
            ^^^^^^^ use
        """,
    "`import *` of a name that is added to `__all__`": """
        -- ops.py --
        __all__: list[str] = []
        __all__ += ["double"]
                     ^^^^^^ use
        def double(x):
            ^^^^^^ def
            return x
        -- main.py --
        from ops import *
        y = double(1)
            ^^^^^^ use
        """,
    "`import *` of another name": """
        -- ops.py --
        def double(x):
            ^^^^^^ def
            return x
        -- mid.py --
        from ops import double as twice
                        ^^^^^^ use
                                  ^^^^^ as
        -- main.py --
        from mid import *
        y = twice(1) + twice(2)
            ^^^^^ as   ^^^^^ as
        """,
    "not the same name elsewhere": """
        -- ops.py --
        BLOCK = 64
        ^^^^^ def
        def size(BLOCK):
            return BLOCK
        -- other.py --
        BLOCK = 32
        -- main.py --
        import other
        from ops import BLOCK
                        ^^^^^ use

        class Config:
            BLOCK = 16

        def inner():
            BLOCK = 8
            return BLOCK + other.BLOCK + Config.BLOCK

        def outer(x=BLOCK):
                    ^^^^^ use
            return [BLOCK for BLOCK in range(x)] + [BLOCK]
                                                    ^^^^^ use
        """,
    "an import inside a factory": """
        -- ops.py --
        BLOCK = 64
        ^^^^^ def
        -- main.py --
        BLOCK = 3

        def factory():
            from ops import BLOCK
                            ^^^^^ use
            return BLOCK
                   ^^^^^ use

        y = BLOCK
        """,
    "a class that has a name from around": """
        -- ops.py --
        BLOCK = 64
        ^^^^^ def
        -- main.py --
        from ops import BLOCK
                        ^^^^^ use

        class Config:
            BLOCK = BLOCK // 2
                    ^^^^^ use
            HALF = BLOCK
        """,
    "an attribute of a module that `import *` brings": """
        -- ops.py --
        BLOCK = 64
        ^^^^^ def
        -- api.py --
        import ops as o
        -- main.py --
        from api import *
        y = o.BLOCK
              ^^^^^ use
        """,
    "files that import each other": """
        -- one.py --
        from two import half
        def double(x):
            ^^^^^^ def
            return half(x)
        -- two.py --
        import one
        def half(x):
            return one.double(x)
                       ^^^^^^ use
        """,
    "a name assigned several times": """
        -- config.py --
        BLOCK = 64
        ^^^^^ def
        if BLOCK > 32:
           ^^^^^ use
            BLOCK = 32
            ^^^^^ set
        def smaller():
            global BLOCK
                   ^^^^^ use
            BLOCK = 16
            ^^^^^ set
        -- main.py --
        from config import BLOCK
                           ^^^^^ use
        """,
    "in strings with values": """
        -- config.py --
        BLOCK = 64
        ^^^^^ def
        -- main.py --
        from config import BLOCK
                           ^^^^^ use
        name = f"gemm BLOCK={BLOCK} {BLOCK:>{BLOCK}}"
                             ^^^^^ use
                                     ^^^^^ use
                                             ^^^^^ use
        """,
    "behind letters of two units and in wide names": """
        -- config.py --
        größe = "😀"; BLOCK = 64
                     ^^^^^ def
        -- main.py --
        from config import größe, BLOCK
                                  ^^^^^ use
        name = "😀é", größe, BLOCK
                            ^^^^^ use
        """,
    "in annotations that are strings": """
        -- ops.py --
        class Config: ...
              ^^^^^^ def
        -- main.py --
        from __future__ import annotations
        from typing import TYPE_CHECKING, TypeAlias
        if TYPE_CHECKING:
            from ops import Config
                            ^^^^^^ use
        Made: TypeAlias = "dict[str, Config]"
                                     ^^^^^^ use
        Pair = tuple["Config | None", int]
                      ^^^^^^ use
        def made(größe: "Config | None", text="Config") -> "list['Config']":
                         ^^^^^^ use
            found: list["Config"] = []
                         ^^^^^^ use
            return found
        def other(A: T.Tensor(("Config",), "Config"), B: Tensor["Config"]): ...
        def kind(c: Literal["Config"]): ...
        """,
    "an import of several lines": """
        -- config.py --
        BLOCK, STAGES = 64, 3
               ^^^^^^ def
        -- main.py --
        from config import (  # those of Hopper (sm_90)
            BLOCK,
            STAGES as
            ^^^^^^ use
                DEPTH,
                ^^^^^ as
        )
        from config \\
            import BLOCK, \\
            STAGES
            ^^^^^^ use
        y = (DEPTH, STAGES)
             ^^^^^ as
                    ^^^^^^ use
        """,
    "a parameter given by its name": """
        -- ops.py --
        import tilelang.language as T

        @T.macro
        def scale(x, by):
                     ^^ def
            x[0] = x[0] * by
                          ^^ use
        -- main.py --
        import ops
        import tilelang.language as T
        from ops import scale as scaled

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1) as bx:
                scaled(A, by=2)
                          ^^ use
                ops.scale(A, by=3)
                             ^^ use
        """,
    "a parameter of an eager kernel": """
        -- gemm.py --
        import tilelang
        import tilelang.language as T

        @tilelang.jit
        def gemm(M, block=64):
                    ^^^^^ def
            @T.prim_func
            def main(A: T.Tensor((M,), "float32")):
                with T.Kernel(1) as bx:
                    A[0] = block
                           ^^^^^ use
            return main
        -- bench.py --
        from gemm import gemm
        kernels = gemm(128, block=32), gemm.compile(M=128, block=32)
                            ^^^^^ use                      ^^^^^ use
        """,
    "a buffer, which is of its kernel alone": """
        -- ops.py --
        tile = 3
        -- main.py --
        import tilelang.language as T
        from ops import *

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1) as bx:
                tile = T.alloc_shared((8,), "float32")
                ^^^^ def
                T.copy(A, tile)
                          ^^^^ use
                A[0] = tile[bx]
                       ^^^^ use
        """,
}  # fmt: skip


@pytest.mark.parametrize("case", IMPORTED)
def test_every_place_knows_all_of_them(case: str, tmp_path: Path) -> None:
    made = project(IMPORTED[case], tmp_path)
    places = sorted(p for found in made.marks.values() for p in found)
    bound = [p for word in BOUND for p in made.marks.get(word, ())]
    for place in places:
        assert made.places(navigation.DEFINITION, place) == made.marks["def"], place
        assert made.places(navigation.REFERENCES, place) == places, place
        others = made.places(navigation.REFERENCES, place, include_declaration=False)
        assert others == [p for p in places if p not in bound], place
        here = [p for p in places if p.path == place.path]
        assert made.places(navigation.HIGHLIGHT, place) == here, place


@pytest.mark.parametrize("case", IMPORTED)
def test_a_new_name_changes_nothing_else(case: str, tmp_path: Path) -> None:
    made = project(IMPORTED[case], tmp_path)
    root = made.marks["def"][0]
    before = {name: made.findings(name) for name in made.texts}
    places = without_names(made.places(navigation.REFERENCES, root))
    for group in groups(made):
        new = "q" * len(group[0].name)
        for place in group:
            assert made.ask(rename.PREPARE, place).name == place.name
            found = made.ask(rename.RENAME, place, new_name=new)
            assert not found.refused, (place, found.refused)
            edited = sorted(made.place(e.span) for e in found.edits)
            assert [p for p in edited if p in group] == group, place
            # Beside them only the text of a `T.dynamic("M")` that says the same name.
            assert all(_is_text(made, p) for p in edited if p not in group), place
        again = written(made.edited(found.edits), tmp_path)
        assert {name: again.findings(name) for name in again.texts} == before
        assert without_names(again.places(navigation.REFERENCES, root)) == places


def _is_text(made: Project, place: Place) -> bool:
    line = made.texts[place.path].splitlines()[place.line - 1]
    return line[place.column - 2] == '"'


def without_names(places: list[Place]) -> list[tuple[str, int, int]]:
    return [(p.path, p.line, p.column) for p in places]


def groups(made: Project) -> list[list[Place]]:
    """The places of each name."""
    found: dict[str, list[Place]] = {}
    for word, places in made.marks.items():
        found.setdefault(NAMED.get(word, word), []).extend(places)
    return [sorted(places) for places in found.values()]
