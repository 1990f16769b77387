"""What a hover says of names that other files bind."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lsp.across.project import project
from tilelang_lsp.features import hover

FILES = """
    -- lib.py --
    '''Tiles of ours.'''
    import tilelang.language as T

    @T.macro
    def double(x, by=2):
        '''Twice.'''
        x[0] = x[0] * by

    def rows(n):
        return n * 2
    -- main.py --
    import tilelang.language as T
    import lib
    from lib import double, rows as count

    def main(A: T.Tensor((8,), "float32")):
        double(A)
        lib.rows(3)
        count(3)
"""


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("double(A)", ("def double(x, by=2)  # of lib.py", "Twice.")),
        ("double, rows", ("def double(x, by=2)  # of lib.py", "Twice.")),
        ("rows(3)", ("def rows(n)  # of lib.py",)),
        ("count(3)", ("def rows(n)  # of lib.py",)),
        ("lib.rows", ("module lib", "Tiles of ours.")),
        ("lib\n", ("module lib", "Tiles of ours.")),
    ],
)
def test_a_name_of_another_file(at: str, says: tuple[str, ...], tmp_path: Path) -> None:
    head, mark, main = FILES.partition("-- main.py --")
    made = project(head + mark + main.replace(at, f"$0{at}", 1), tmp_path)
    found = made.ask(hover.FEATURE)
    assert found is not None
    for part in says:
        assert part in found.markdown
