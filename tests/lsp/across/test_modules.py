"""Which file does an import mean? The first that Python would find in the folders there are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lsp.across.project import project
from tilelang_lint.module_files import ModuleFiles
from tilelang_lsp.features import navigation

# The files, the folders that are open, then for some imports in a file: what they mean.
MEANT = {
    "beside the importing file first, then upwards": (
        "ops.py app/ops.py app/deep/main.py config.py",
        (".",),
        "app/deep/main.py",
        {"ops": "app/ops.py", "config": "config.py", "lost": None, "app.ops": "app/ops.py"},
    ),
    "the usual folders of sources": (
        "src/lib/ops.py python/more.py tests/test_ops.py",
        (".",),
        "tests/test_ops.py",
        {"lib.ops": "src/lib/ops.py", "more": "python/more.py", "src.lib.ops": "src/lib/ops.py"},
    ),
    "a package from inside of it": (
        "top/pkg/__init__.py top/pkg/deep/__init__.py top/pkg/deep/main.py top/pkg/ops.py",
        ("top/pkg/deep",),
        "top/pkg/deep/main.py",
        {"pkg.ops": "top/pkg/ops.py", "..ops": "top/pkg/ops.py", ".": "top/pkg/deep/__init__.py",
         "..": "top/pkg/__init__.py", "..deep.main": "top/pkg/deep/main.py", "...ops": None},
    ),
    "a package before a module, a module before a folder": (
        "main.py ops/__init__.py ops.py config.py config/x.py",
        (".",),
        "main.py",
        {"ops": "ops/__init__.py", "config": "config.py", "config.x": "config/x.py"},
    ),
    "a module further up before a folder without `__init__.py`": (
        "app/main.py app/ops/notes.py ops.py",
        (".",),
        "app/main.py",
        {"ops": "ops.py", "ops.notes": "app/ops/notes.py"},
    ),
    "its own folder before the others": (
        "one/main.py one/ops.py two/ops.py two/more.py",
        ("two", "one"),
        "one/main.py",
        {"ops": "one/ops.py", "more": "two/more.py"},
    ),
    "folders in folders": (
        "one/ops.py one/two/main.py one/two/ops.py",
        ("one", "one/two"),
        "one/two/main.py",
        {"ops": "one/two/ops.py", "two.ops": "one/two/ops.py"},
    ),
    "a folder whose name begins like that of another": (
        "one/main.py one-more/ops.py",
        ("one",),
        "one/main.py",
        {"ops": None},
    ),
    "a file that is in no folder": (
        "else/main.py else/ops.py one/more.py up.py",
        ("one",),
        "else/main.py",
        {"ops": "else/ops.py", "more": "one/more.py", "up": None, "..up": "up.py"},
    ),
    "never one of ours or of Python": (
        "main.py tilelang/language.py tilelang/__init__.py copy.py",
        (".",),
        "main.py",
        {"tilelang": None, "tilelang.language": None, "copy": None, ".copy": "copy.py"},
    ),
    "an untitled file": (
        "ops.py",
        (".",),
        "untitled:one",
        {"ops": "ops.py", ".ops": None, ".": None},
    ),
    "a relative import that leads out of everything": (
        "main.py",
        (".",),
        "main.py",
        {"." * 64 + "ops": None},
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MEANT)
def test_meant(case: str, tmp_path: Path) -> None:
    files, folders, importer, imports = MEANT[case]
    for name in files.split():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    modules = ModuleFiles([str(tmp_path / folder) for folder in folders])
    path = importer if ":" in importer else str(tmp_path / importer)
    found = {}
    for asked in imports:
        module = asked.lstrip(".")
        file = modules.find(module, len(asked) - len(module), path)
        found[asked] = None if file is None else os.path.relpath(file, tmp_path)
    assert found == imports


@pytest.mark.parametrize(
    ("folders", "places"),
    [
        (("one", "two"), ["one/main.py:1:17 double", "two/ops.py:1:5 double",
                          "two/use.py:1:17 double"]),
        (("two", "one"), ["one/main.py:1:17 double", "two/ops.py:1:5 double",
                          "two/use.py:1:17 double"]),
        (("one",), []),  # what lies elsewhere is not known
    ],
)  # fmt: skip
def test_several_folders(folders: tuple[str, ...], places: list[str], tmp_path: Path) -> None:
    text = """
        -- two/ops.py --
        def double(x): return x
        -- two/use.py --
        from ops import double
        -- three/use.py --
        from ops import double
        -- one/main.py --
        from ops import dou$0ble
        """
    made = project(text, tmp_path, folders)
    found = [str(p) for p in made.places(navigation.REFERENCES)]
    assert found == (places or ["one/main.py:1:17 double"])


def test_a_module_opens_its_file(tmp_path: Path) -> None:
    text = """
        -- pkg/__init__.py --
        -- pkg/ops.py --
        -- bare/more.py --
        -- main.py --
        import pkg.ops, bare.more
        from pkg import ops as o
        """
    places = {
        "pkg.$0ops": "pkg/ops.py", "$0pkg.ops": "pkg/__init__.py",
        "bare.$0more": "bare/more.py", "as $0o": "pkg/ops.py",
        "import $0ops": "pkg/ops.py", "from $0pkg": "pkg/__init__.py",
    }  # fmt: skip
    for at, file in places.items():
        made = project(text.replace(at.replace("$0", ""), at), tmp_path)
        assert [p.path for p in made.places(navigation.DEFINITION)] == [file], at
    nowhere = project(text.replace("bare.more", "ba$0re"), tmp_path)
    assert nowhere.places(navigation.DEFINITION) == []  # a folder has no file
