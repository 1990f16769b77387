"""What do macros and constants of other files mean where they are used?

Each text says all that is found in all of its files: the code, at the place where the editor shows
it. A macro is as its text says, a constant has its value; what is not known says nothing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.across.project import Place, Project, project
from tilelang_lsp.features.diagnostics import editor_diagnostic

# The last of 8 elements is written for a `BLOCK` of 8; one of 16 is too large.
KERNEL = """
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                A[BLOCK - 1] = 0.0
"""
WRONG = KERNEL + "                ^^^^^^^^^^^^ TL220\n"
MACRO = """
        import tilelang.language as T

        @T.macro
        def put(x, y):
            x[0] = y[8]
"""
CALL = """
        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                put(A, A)
"""
CALL_WRONG = CALL + "                ^^^^^^^^^ TL220\n"

FOUND = {
    "a constant": f"""
        -- config.py --
        BLOCK = 16
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        {WRONG}
        """,
    "a constant that fits": f"""
        -- config.py --
        BLOCK = 16 // 2
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        {KERNEL}
        """,
    "a constant by another name": f"""
        -- config.py --
        SIZE = 16
        -- main.py --
        import tilelang.language as T
        from config import SIZE as BLOCK
        {WRONG}
        """,
    "a constant of a module": f"""
        -- config.py --
        SIZE = 16
        -- main.py --
        import config
        import tilelang.language as T
        BLOCK = config.SIZE
        {WRONG}
        """,
    "a constant of a module by another name": f"""
        -- pkg/config.py --
        SIZE = 16
        -- pkg/__init__.py --
        -- main.py --
        import pkg.config as c
        import tilelang.language as T
        BLOCK = c.SIZE
        {WRONG}
        """,
    "a constant of a module of a package": f"""
        -- pkg/deep/config.py --
        SIZE = 16
        -- main.py --
        import pkg.deep.config
        import tilelang.language as T
        BLOCK = pkg.deep.config.SIZE
        {WRONG}
        """,
    "a module of a package": f"""
        -- pkg/config.py --
        SIZE = 16
        -- main.py --
        from pkg import config
        import tilelang.language as T
        BLOCK = config.SIZE
        {WRONG}
        """,
    "a relative import": f"""
        -- pkg/config.py --
        BLOCK = 16
        -- pkg/__init__.py --
        -- pkg/main.py --
        from .config import BLOCK
        import tilelang.language as T
        {WRONG}
        """,
    "a relative import of a module": f"""
        -- pkg/config.py --
        SIZE = 16
        -- pkg/__init__.py --
        -- pkg/main.py --
        from . import config
        import tilelang.language as T
        BLOCK = config.SIZE
        {WRONG}
        """,
    "a relative import of a module without `__init__.py`": f"""
        -- pkg/config.py --
        SIZE = 16
        -- pkg/deep/main.py --
        from .. import config
        import tilelang.language as T
        BLOCK = config.SIZE
        {WRONG}
        """,
    "a relative import of a module of a module": f"""
        -- pkg/deep/config.py --
        SIZE = 16
        -- pkg/main.py --
        from .deep import config
        import tilelang.language as T
        BLOCK = config.SIZE
        {WRONG}
        """,
    "through the `__init__.py` of a package": f"""
        -- pkg/config.py --
        SIZE = 16
        -- pkg/__init__.py --
        from .config import SIZE as BLOCK
        -- main.py --
        import tilelang.language as T
        from pkg import BLOCK
        {WRONG}
        """,
    "`import *`": f"""
        -- config.py --
        from sizes import *
        -- sizes.py --
        BLOCK = 16
        -- main.py --
        import tilelang.language as T
        from config import *
        {WRONG}
        """,
    "`import *` of what `__all__` lists": f"""
        -- sizes.py --
        __all__ = ["OTHER"]
        BLOCK = 16
        OTHER = 4
        -- main.py --
        import tilelang.language as T
        from sizes import *
        {KERNEL}
        """,
    "an import of several lines": f"""
        -- config.py --
        SIZE = 16
        -- pkg/a.py --
        -- pkg/b.py --
        BLOCK = 16
        -- main.py --
        import tilelang.language as T
        from pkg import (  # both (of them)
            a,
            b as c,
        )
        from pkg \\
            import a, \\
            b
        BLOCK = b.BLOCK
        {WRONG}
        """,
    "imports on one line": f"""
        -- config.py --
        SIZE = 16
        -- main.py --
        import tilelang.language as T; import config; from config import SIZE
        BLOCK = config.SIZE
        {WRONG}
        """,
    "an import behind a condition": f"""
        -- config.py --
        BLOCK = 16
        -- main.py --
        import tilelang.language as T
        if True: from config import BLOCK
        {WRONG}
        """,
    "an import inside of a factory": """
        -- config.py --
        BLOCK = 16
        -- main.py --
        import tilelang.language as T

        def factory():
            from config import BLOCK

            @T.prim_func
            def main(A: T.Tensor((8,), "float32")):
                with T.Kernel(1, threads=32) as bx:
                    A[BLOCK - 1] = 0.0
                    ^^^^^^^^^^^^ TL220
            return main
        """,
    "attributes of a module in a kernel": """
        -- config.py --
        import tilelang.language as T
        BLOCK = 16

        @T.macro
        def put(x, size):
            x[size - 1] = 0.0
        -- main.py --
        import config as c
        import tilelang.language as T

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                A[c.BLOCK - 1] = 0.0
                ^^^^^^^^^^^^^^ TL220
                c.put(A, size=c.BLOCK)
                ^^^^^^^^^^^^^^^^^^^^^^ TL220
        """,
    "an eager kernel with a default of another file": """
        -- config.py --
        BLOCK = 16
        -- main.py --
        import tilelang
        import tilelang.language as T
        from config import BLOCK

        @tilelang.jit
        def factory(block=BLOCK):
            @T.prim_func
            def main(A: T.Tensor((8,), "float32")):
                with T.Kernel(1, threads=32) as bx:
                    A[block - 1] = 0.0
                    ^^^^^^^^^^^^ TL220
            return main
        """,
    "macros that a function makes, unknown as they are in one file": """
        -- ops.py --
        import tilelang.language as T

        def made(size):
            @T.macro
            def put(x):
                x[size - 1] = 0.0
            return put

        put = made(16)
        -- main.py --
        import tilelang.language as T
        from ops import made, put

        small = made(8)
        large = made(16)

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                small(A)
                large(A)
                put(A)
        """,
    "a shape and a type of another file": """
        -- types.py --
        -- shapes.py --
        import tilelang.language as T
        ROWS = 8
        SHAPE = (ROWS, 4)
        DTYPE = T.float16
        -- main.py --
        import tilelang.language as T
        import shapes

        @T.prim_func
        def main(A: T.Tensor(shapes.SHAPE, shapes.DTYPE)):
            with T.Kernel(1, threads=32) as bx:
                A[0, 4] = 0.0
                ^^^^^^^ TL220
                A[shapes.ROWS, 0] = 0.0
                ^^^^^^^^^^^^^^^^^ TL220
        """,
    "a fallback where the library is not there": f"""
        -- config.py --
        BLOCK = 16
        -- main.py --
        import tilelang.language as T
        try:
            from tuned import BLOCK
        except ImportError:
            from config import BLOCK
        {KERNEL}
        """,
    "what is computed from other files": f"""
        -- a.py --
        from b import HALF
        SIZE = HALF * 2
        -- b.py --
        HALF = len([n for n in range(8)])
        -- main.py --
        import tilelang.language as T
        from a import SIZE
        BLOCK = SIZE
        {WRONG}
        """,
    "a helper": f"""
        -- config.py --
        def rows(n):
            return n * 2
        -- main.py --
        import tilelang.language as T
        from config import rows
        BLOCK = rows(8)
        {WRONG}
        """,
    "own names before others": f"""
        -- config.py --
        BLOCK = 16
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        BLOCK = 4
        {KERNEL}
        """,
    "a value that a list of another file has": f"""
        -- config.py --
        SIZES = [8, 16]
        BY_NAME = {{"large": SIZES[1]}}
        -- main.py --
        import tilelang.language as T
        from config import BY_NAME, SIZES
        SIZES.append(32)
        BLOCK = BY_NAME["large"]
        {WRONG}
        """,
    "a macro": f"""
        -- ops.py --
        {MACRO}
        -- main.py --
        import tilelang.language as T
        from ops import put
        {CALL_WRONG}
        """,
    "a macro of a macro": f"""
        -- deep.py --
        {MACRO}
        -- ops.py --
        import tilelang.language as T
        import deep

        @T.macro
        def outer(x):
            deep.put(x, x)
        -- main.py --
        import tilelang.language as T
        from ops import outer

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                outer(A)
                ^^^^^^^^ TL220
        """,
    "a macro whose file says that this is fine": f"""
        -- ops.py --
        {MACRO.replace("y[8]", "y[8]  # tilelang: ignore[TL220]")}
        -- main.py --
        import tilelang.language as T
        from ops import put
        {CALL}
        """,
    "a macro with a constant of its file": """
        -- ops.py --
        import tilelang.language as T
        SIZE = 16

        @T.macro
        def staged(x):
            x[SIZE - 1] = 0.0
        -- main.py --
        import tilelang.language as T
        from ops import staged
        SIZE = 8

        @T.prim_func
        def main(A: T.Tensor((8,), "float32")):
            with T.Kernel(1, threads=32) as bx:
                staged(A)
                ^^^^^^^^^ TL220
        """,
    "unsaved text before saved": f"""
        -- config.py --
        BLOCK = 16
        -- config.py (open) --
        BLOCK = 8
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        {KERNEL}
        """,
    "a file that was never saved": f"""
        -- config.py (open) --
        BLOCK = 16
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        {WRONG}
        """,
    "an untitled file imports": f"""
        -- config.py --
        BLOCK = 16
        -- untitled:one --
        import tilelang.language as T
        from config import BLOCK
        {WRONG}
        """,
    "a file outside of the folders": f"""
        -- ../other/config.py --
        BLOCK = 16
        -- ../other/main.py --
        import tilelang.language as T
        from config import BLOCK
        {WRONG}
        """,
    "lines with carriage returns": f"""
        -- config.py --
        LARGE = (8 +\r
            8)\r
        BLOCK = LARGE\r
        -- main.py --
        import tilelang.language as T\r
        from config import BLOCK\r
        {WRONG}
        """,
    "a broken line in the imported file": f"""
        -- config.py --
        BLOCK = 16
        OTHER = (
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        {WRONG}
        """,
    "a broken line in the imported file that is open": f"""
        -- config.py (open) --
        BLOCK = 16
        OTHER = (
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        {WRONG}
        """,
    "a half-written name that an importer takes": f"""
        -- config.py (open) --
        BLOCK = 16 +
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        {KERNEL}
        """,
    "files that import each other": f"""
        -- one.py --
        from two import BLOCK
        SIZE = 16
        -- two.py --
        import one
        BLOCK = 16
        -- main.py --
        import tilelang.language as T
        from one import BLOCK
        {WRONG}
        """,
    "a file that imports itself": f"""
        -- main.py --
        import tilelang.language as T
        from main import BLOCK
        {KERNEL}
        """,
    "names that no file has": f"""
        -- config.py --
        OTHER = 3
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        from lost import double
        {KERNEL}
        """,
    "what is only known when it runs": f"""
        -- config.py --
        import os
        BLOCK = int(os.environ["BLOCK"])
        for n in range(3):
            BLOCK = 16
        -- main.py --
        import tilelang.language as T
        from config import BLOCK
        {KERNEL}
        """,
    "a module of a library that has the name of a folder": f"""
        -- numpy/tools/x.py --
        float32 = 16
        -- main.py --
        import numpy as np
        import tilelang.language as T
        BLOCK = np.float32
        {KERNEL}
        """,
}  # fmt: skip


@pytest.mark.parametrize("case", FOUND)
def test_what_is_found(case: str, tmp_path: Path) -> None:
    made = project(FOUND[case], tmp_path)
    expected = sorted((code, p.path, p.line, p.column, p.name)
                      for code, places in made.marks.items() for p in places)  # fmt: skip
    assert sorted(found_in(made)) == expected


def found_in(made: Project) -> list[tuple[str, str, int, int, str]]:
    """The code and place of all that editors show."""
    out = []
    for name in made.texts:
        for found in made.analysis(name).diagnostics:
            span = editor_diagnostic(found, made.path(name)).span
            place: Place = made.place(span)
            if not (name != "main.py" and found.code == "TL101"):
                out.append((found.code, place.path, place.line, place.column, place.name))
    return out
