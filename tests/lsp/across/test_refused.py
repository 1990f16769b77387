"""A name that cannot have a new one, and why; nothing is renamed by half."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.across.project import project
from tilelang_lsp.features import rename

OPS = "-- ops.py --\n        def double(x): return x * 2"
DOUBLE = f"        {OPS}\n        -- main.py --\n        from ops import dou$0ble"

# What is renamed, the new name, and what the editor is told; `$0` is in the file that is open.
REFUSED = {
    "a name of a library": (
        """
        -- main.py --
        from torch import flo$0at16
        """,
        "half",
        "`float16` is a name of `torch`, which is outside the workspace",
    ),
    "a module of a library": (
        """
        -- main.py --
        import numpy as np
        import nu$0mpy.typing
        """,
        "np",
        "`numpy` is a name of `numpy`, which is outside the workspace",
    ),
    "a name of a library by way of another file": (
        """
        -- api.py --
        from torch import float16
        -- main.py --
        from api import flo$0at16
        """,
        "half",
        "`float16` is a name of `torch`, which is outside the workspace",
    ),
    "a name of the language by way of another file": (
        """
        -- api.py --
        from tilelang import language
        -- main.py --
        import api
        api.langu$0age.copy
        """,
        "lang",
        "`language` is a name of the language, which is outside the workspace",
    ),
    "a module": (
        f"""
        {OPS}
        -- main.py --
        import o$0ps
        """,
        "more",
        "`ops` is a module: rename its file",
    ),
    "a module that an import mentions": (
        """
        -- pkg/ops.py --
        def double(x): return x
        -- main.py --
        from pkg.o$0ps import double
        """,
        "more",
        "`pkg.ops` is a module: rename its file",
    ),
    "a name that no file has": (
        f"""
        {OPS}
        -- main.py --
        import ops
        ops.triple$0(3)
        """,
        "treble",
        "`triple` is no name of a file of the workspace",
    ),
    "an imported name that its file does not have": (
        f"""
        {OPS}
        -- main.py --
        from ops import tri$0ple
        """,
        "treble",
        "`triple` is a name of `ops`, which does not define it",
    ),
    "a name of the compiler's own files": (
        """
        -- tilelang/__init__.py --
        -- tilelang/runtime/clang.py --
        def find_cl$0ang(): ...
        """,
        "find",
        "`find_clang` is a name of `tilelang`, whose files are not searched",
    ),
    "an attribute of a class": (
        """
        -- main.py --
        class Config:
            BLO$0CK = 64
        """,
        "TILE",
        "`BLOCK` belongs to the class `Config`: not all uses can be seen",
    ),
    "what is defined outside of the folders": (
        """
        -- lib.py --
        -- ../other/lib2.py --
        def double(x): return x
        -- ../other/main.py --
        from lib2 import dou$0ble
        """,
        "twice",
        "`double` also stands in lib2.py, which is outside the workspace",
    ),
    "what is used in an open file outside of the folders": (
        f"""
        {OPS}
        -- ../other/use.py (open) --
        from ops import double
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "`double` also stands in use.py, which is outside the workspace",
    ),
    "what is defined in an environment inside of the folders": (
        """
        -- venv/lib/site-packages/ops.py --
        def double(x): return x
        -- venv/lib/site-packages/main.py --
        from ops import dou$0ble
        """,
        "twice",
        "`double` also stands in ops.py, which is outside the workspace",
    ),
    "a keyword": (DOUBLE, "while", "'while' is no name"),
    "no word": (DOUBLE, "2x", "'2x' is no name"),
    "two words": (DOUBLE, "a b", "'a b' is no name"),
    "nothing": (DOUBLE, "", "'' is no name"),
    "another name where it is imported": (
        f"""
        {OPS}
        -- other.py --
        from ops import double
        twice = 2
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "`twice` is another name of `other.py` already",
    ),
    "another name where it is defined": (
        """
        -- ops.py --
        def double(x): return x
        def twice(x): return x
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "`twice` is another name of `ops.py` already",
    ),
    "a name inside of a function that uses it": (
        f"""
        {OPS}
        -- other.py --
        from ops import double
        def four(twice):
            return double(twice)
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "`twice` is another name of `four` already (other.py)",
    ),
    "a builtin that another file uses": (
        f"""
        {OPS}
        -- other.py --
        from ops import double
        print(double(2))
        -- main.py --
        from ops import dou$0ble
        """,
        "print",
        "`print` in line 2 would come to mean this (other.py)",
    ),
    "another name that `import *` brings": (
        f"""
        {OPS}
        -- more.py --
        def twice(x): return x
        -- other.py --
        from more import *
        from ops import *
        twice(2)
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "`twice` in line 3 would come to mean this (other.py)",
    ),
    "another parameter": (
        """
        -- ops.py --
        def scale(x, by): return x * by
        -- main.py --
        from ops import scale
        scale(2, b$0y=3)
        """,
        "x",
        "`x` is another name of `scale` already",
    ),
    "a name from one of two modules": (
        f"""
        {OPS}
        -- main.py --
        try:
            from fast_lib.ops import double
        except ImportError:
            from ops import dou$0ble
        """,
        "twice",
        "`double` of main.py may also be that of `fast_lib.ops`",
    ),
    "a name from one of two modules, asked elsewhere": (
        """
        -- compat.py --
        try:
            from fast import double
        except ImportError:
            from slow import double
        -- fast.py --
        def double(x): return x
        -- slow.py --
        def double(x): return x
        -- main.py --
        from slow import dou$0ble
        """,
        "twice",
        "`double` of compat.py may also be that of `fast`",
    ),
    "a name of its own or that of the module": (
        f"""
        {OPS}
        -- main.py --
        try:
            from fast_lib import mul as double
        except ImportError:
            from ops import double
        dou$0ble(2)
        """,
        "twice",
        "`double` of main.py may also be that of `ops`",
    ),
    "a name of one of two modules": (
        f"""
        {OPS}
        -- main.py --
        try:
            import fast_lib as ops
        except ImportError:
            import ops
        ops.dou$0ble(2)
        """,
        "twice",
        "`ops` of main.py may be several modules",
    ),
    "a name by `import *` that is defined, too": (
        f"""
        {OPS}
        -- other.py --
        from ops import *
        if double(2) > 3:
            def double(x): return x
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "`double` of other.py may also be that of `ops`",
    ),
    "a name that two `import *` bring": (
        f"""
        {OPS}
        -- more.py --
        def double(x): return x
        -- other.py --
        from ops import *
        from more import *
        double(2)
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "`double` of other.py may also be that of `ops`",
    ),
    "a parameter of a function that is defined twice": (
        """
        -- main.py --
        if True:
            def scale(x, b$0y): return x * by
        else:
            def scale(x, by): return x
        scale(2, by=3)
        """,
        "factor",
        "`scale` of main.py is bound several times",
    ),
    "a parameter of a function that may be another": (
        """
        -- ops.py --
        def scale(x, by): return x * by
        -- compat.py --
        from ops import scale as scaled
        def scaled(x, by): return x
        scaled(2, by=3)
        -- main.py --
        from ops import scale
        scale(2, b$0y=3)
        """,
        "factor",
        "`scaled` of compat.py is bound several times",
    ),
    "a line that cannot be read": (
        """
        -- ops.py --
        def double(x): return x
        y = double(
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "line 2 of ops.py cannot be read: `double` may be used there",
    ),
    "a file that cannot be read": (
        f"""
        {OPS}
        -- broken.py --
        from ops import (
        double(2)
        -- main.py --
        from ops import dou$0ble
        """,
        "twice",
        "broken.py cannot be read: `double` may be used there",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    text, new, reason = REFUSED[case]
    made = project(text, tmp_path)
    found = made.ask(rename.RENAME, new_name=new)
    assert found.refused == reason
    assert found.edits == ()


RENAMED = {
    "no folder is open, both files are": (
        """
        -- ops.py (open) --
        def double(x): return x
        -- main.py --
        from ops import dou$0ble
        """,
        (),
        {"main.py": "from ops import twice\n", "ops.py": "def twice(x): return x\n"},
    ),
    "an untitled file": (
        """
        -- ops.py --
        def double(x): return x
        -- untitled:one --
        from ops import dou$0ble
        """,
        (".",),
        {"untitled:one": "from ops import twice\n", "ops.py": "def twice(x): return x\n"},
    ),
    "the one of two modules that both files name": (
        """
        -- ops.py --
        try:
            from fast_lib import mul
        except ImportError:
            def mul(x): return x
        def double(x): return mul(x)
        -- main.py --
        if True:
            from ops import dou$0ble
        else:
            from ops import double
        """,
        (".",),
        {"main.py": "if True:\n    from ops import twice\nelse:\n    from ops import twice\n"},
    ),
    "with a library that has the name": (
        """
        -- ops.py --
        import lib
        def double(x): return lib.double(x)
        -- main.py --
        from ops import dou$0ble
        """,
        (".",),
        {"ops.py": "import lib\ndef twice(x): return lib.double(x)\n"},
    ),
    "what is open counts, not what is saved": (
        """
        -- ops.py --
        def single(x): return x
        -- ops.py (open) --
        # more
        def double(x): return x
        -- main.py --
        from ops import dou$0ble
        """,
        (".",),
        {"ops.py": "# more\ndef twice(x): return x\n"},
    ),
}


@pytest.mark.parametrize("case", RENAMED)
def test_renamed(case: str, tmp_path: Path) -> None:
    text, folders, expected = RENAMED[case]
    made = project(text, tmp_path, folders)
    found = made.ask(rename.RENAME, new_name="twice")
    assert found.refused == ""
    texts = made.edited(found.edits)
    assert {name: texts[name] for name in expected} == expected
