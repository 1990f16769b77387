"""Files come, change and go; what was known is asked again, and nothing else is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lsp.across.project import Place, Project, project
from tilelang_lsp.crossing import Crossing
from tilelang_lsp.features import call_hierarchy, navigation, rename
from tilelang_lsp.workspace import Workspace

MAIN = """
    -- main.py --
    import tilelang.language as T
    from config import BLO$0CK

    @T.prim_func
    def main(A: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32) as bx:
            A[BLOCK - 1] = 0.0
    """
TOO_LARGE = [("TL220", 7)]


def rewritten(made: Project, name: str, text: str) -> None:
    """Another text on the disk, with another time."""
    made.texts.pop(name, None)
    made.save(name, text)
    file = made.path(name)
    stat = os.stat(file)
    os.utime(file, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000))


def test_a_file_on_the_disk_changes_goes_and_comes_back(tmp_path: Path) -> None:
    made = project(f"-- config.py --\nBLOCK = 8{MAIN}".replace("\n    ", "\n"), tmp_path)
    assert made.findings("main.py") == []
    rewritten(made, "config.py", "\nBLOCK = 16\n")
    assert made.findings("main.py") == TOO_LARGE
    assert [str(p) for p in made.places(navigation.DEFINITION)] == ["config.py:2:1 BLOCK"]
    os.unlink(made.path("config.py"))
    assert made.findings("main.py") == []
    assert [str(p) for p in made.places(navigation.DEFINITION)] == ["main.py:2:20 BLOCK"]
    assert made.ask(rename.PREPARE) is None
    made.save("config/__init__.py", "from .sizes import BLOCK\n")
    made.save("config/sizes.py", "BLOCK = 16\n")
    assert made.findings("main.py") == TOO_LARGE
    assert [str(p) for p in made.places(navigation.DEFINITION)] == ["config/sizes.py:1:1 BLOCK"]
    made.save("config.py", "BLOCK = 4\n")  # the package is found first
    assert made.findings("main.py") == TOO_LARGE


def test_a_file_in_the_editor_changes_and_closes(tmp_path: Path) -> None:
    made = project(f"-- config.py --\nBLOCK = 8{MAIN}".replace("\n    ", "\n"), tmp_path)
    path = made.path("config.py")
    made.open("config.py", "BLOCK = 16\n")
    assert made.findings("main.py") == TOO_LARGE
    made.open("config.py", "BLOCK = 8\n")
    assert made.findings("main.py") == []
    made.open("config.py", "")  # and not what is saved
    assert made.findings("main.py") == []
    assert [str(p) for p in made.places(navigation.DEFINITION)] == ["main.py:2:20 BLOCK"]
    made.open("config.py", "BLOCK = 8\n")
    os.unlink(path)  # it is still open
    assert made.findings("main.py") == []
    assert [str(p) for p in made.places(navigation.DEFINITION)] == ["config.py:1:1 BLOCK"]
    made.workspace.close(path)
    assert [str(p) for p in made.places(navigation.DEFINITION)] == ["main.py:2:20 BLOCK"]


def test_while_a_line_is_being_written_what_it_said_holds(tmp_path: Path) -> None:
    made = project(f"-- config.py (open) --\nBLOCK = 16{MAIN}".replace("\n    ", "\n"), tmp_path)
    assert made.findings("main.py") == TOO_LARGE
    for typed in ("BLOCK = 1", "BLOCK = 16", "BLOCK = 16 if", "BLOCK = 16 if (", "import o", ""):
        made.open("config.py", f"BLOCK = 16\n{typed}\nOTHER = 3\n")
        assert made.findings("main.py") == ([] if typed == "BLOCK = 1" else TOO_LARGE), typed


def test_a_change_that_nobody_sees_is_none(tmp_path: Path) -> None:
    """Whoever imports a file is not read again for what happens inside of its kernels."""
    text = """
        -- ops.py (open) --
        import tilelang.language as T

        @T.macro
        def put(x): x[8] = 0.0

        @T.prim_func
        def other(A: T.Tensor((8,), "float32")):
            with T.Kernel(1) as bx:
                A[0] = 1.0
        -- main.py --
        import tilelang.language as T
        from ops import put
        """
    made = project(text, tmp_path)
    path, own = made.path("main.py"), made.texts["main.py"]

    def key(**changed: str) -> object:
        said = made.texts["ops.py"]
        for old, new in changed.values():
            said = said.replace(old, new)
        made.workspace.open(made.path("ops.py"), said)
        return made.following.of(path, own).keys

    before = key()
    assert key(kernel=("A[0] = 1.0", "A[1] = 2.0 + ")) == before
    assert key(macro=("x[8]", "x[7]")) != before
    assert key(kernel=("other(A", "other(B")) != before  # the first line of a kernel is seen
    assert key() == before


@pytest.mark.parametrize("count", [40, 300])
def test_many_files_are_read_once(count: int, tmp_path: Path) -> None:
    """Operations are counted: each file is parsed once, and again only when it changes."""
    folder = tmp_path / "work"
    (folder / "deep").mkdir(parents=True)
    (folder / "ops.py").write_text("BLOCK = 64\ndef double(x, by): return x\n")
    for n in range(count):
        using = "from ops import BLOCK, double\n" if n % 2 else "# nothing\n"
        body = f"def use{n}():\n    return double(BLOCK, by=3)\n" if n % 2 else "x = 3\n"
        (folder / "deep" / f"use{n}.py").write_text(f"{using}{body}")
    workspace = Workspace([str(folder)], rest=1e9)
    path = str(folder / "ops.py")
    text = workspace.text(path) or ""
    workspace.open(path, text)
    using = count // 2

    def asked(question: str, parsed: int, places: int) -> None:
        before = workspace.parsed
        across = Crossing(workspace, path, text)
        found = across.at(2, 5)
        assert found is not None and found.binding is not None
        if question == "references":
            assert len(across.references(found.binding)) == places
        else:
            callers = call_hierarchy.incoming(across, 2, 5)
            assert len(callers) == places
        assert workspace.parsed - before == parsed

    asked("references", using + 1, 2 * using + 1)  # the files with the word, and its own
    asked("references", 0, 2 * using + 1)
    asked("callers", 0, using)
    changed = folder / "deep" / "use1.py"
    changed.write_text("from ops import double\n")
    asked("references", 0, 2 * using + 1)  # nobody said so
    workspace.changed()
    asked("references", 1, 2 * using)
    workspace.open(str(changed), "# not saved\n")
    asked("references", 0, 2 * using - 1)


@pytest.mark.parametrize(
    ("limit", "most", "reason"),
    [
        ("MOST_FILES", 3, ""),
        ("MOST_FILES", 2, "there are too many files in the folders: `BLOCK` may be used in others"),
        (
            "MOST_FOLDERS",
            1,
            "there are too many files in the folders: `BLOCK` may be used in others",
        ),
        ("LARGEST_FILE", 70, "large.py cannot be read: `BLOCK` may be used there"),
    ],
)
def test_where_not_everything_is_read(
    limit: str, most: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No name is renamed by half because there is too much to read."""
    text = f"""
        -- ops.py --
        BLOCK = 64
        -- deep/large.py --
        from ops import BLOCK  # {"-" * 60}
        -- main.py --
        from ops import BLO$0CK
        """
    monkeypatch.setattr(f"tilelang_lsp.workspace.{limit}", most)
    made = project(text, tmp_path)
    assert made.ask(rename.RENAME, new_name="TILE").refused == reason
    assert made.places(navigation.DEFINITION) == [Place("ops.py", 1, 1, "BLOCK")]


def test_a_new_name_in_many_files(tmp_path: Path) -> None:
    text = "-- ops.py --\nBLOCK = 64\n" + "".join(
        f"-- use{n}.py --\nfrom ops import BLOCK as B{n}\ny = B{n}\n" for n in range(120)
    )
    made = project(f"{text}-- main.py --\nfrom ops import BLO$0CK\n", tmp_path)
    before = made.workspace.parsed
    found = made.ask(rename.RENAME, new_name="TILE")
    assert len(found.edits) == 122
    assert made.workspace.parsed - before == 122


def test_files_that_import_everything_of_each_other(tmp_path: Path) -> None:
    """Every file is asked once for a name, however many ways lead there."""
    others = "".join(f"from m{n} import *\n" for n in range(12))
    text = "".join(f"-- m{n}.py --\n{others}" for n in range(12))
    made = project(f"{text}-- main.py --\n{others}y = los$0t\n", tmp_path)
    assert made.places(navigation.DEFINITION) == []
    assert made.workspace.parsed == 13
    assert made.following.of(made.path("main.py"), "import tilelang\n" + others).paths


def test_words_in_other_files_are_not_enough(tmp_path: Path) -> None:
    text = """
        -- ops.py --
        def double(x): return x
        -- use.py --
        # double
        text = "double"
        class Other:
            def double(self): ...
        Other().double()
        def inner(double=3): return double
        inner(double=4)
        -- main.py --
        from ops import dou$0ble
        """
    made = project(text, tmp_path)
    assert made.places(navigation.REFERENCES) == [
        Place("main.py", 1, 17, "double"), Place("ops.py", 1, 5, "double"),
    ]  # fmt: skip
