"""Lines that say nothing to Python: what was read of the rest moves, and is as if read again."""

from __future__ import annotations

import random

import pytest

from benchmarks.lsp import eight_kernels
from tests.lsp.asking import PATH, in_launch
from tests.lsp.rpc_client import ROOT
from tests.lsp.test_parts import TWO, normal
from tests.support.markers import kernel_text
from tilelang_lsp import analysis as module
from tilelang_lsp.analysis import Analyser, analyse
from tilelang_lsp.code_lines import code_of
from tilelang_lsp.options import Options

SEED = 11
WRONG = kernel_text(in_launch("""
    s = T.alloc_shared((4, 4), "int8")
    for i, j in T.Parallel(
        4,
        # of rows
        4,
    ):
        s[i, j] = missing
    total = T.alloc_locl((4,), "int8")
    T.copy(s, T.alloc_shared((8,), "int8"))
"""))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("a\n\n  # more\n  b", (0, 3)),
        ("a\n\n", (0,)),
        ('def f():\n\n    """Says.\n\n    # More.\n    """\n\n    b', (0, 2, 3, 4, 5, 7)),
        ("x = '''\n\n'''", (0, 1, 2)),
        ('x = """\n\n"""', (0, 1, 2)),
        ('# """\n\nx = """\n\n"""', (0, 1, 2, 3, 4)),
        ("x = 1 \\\n\n", (0, 1, 2)),
    ],
)
def test_the_lines_that_say_something(text: str, numbers: tuple[int, ...]) -> None:
    assert code_of(text).numbers == numbers


def test_white_space_behind_a_line_says_nothing() -> None:
    assert code_of("a  \n\t\n b\t").said == code_of("a\n b").said == "a\n b"
    assert code_of('"""\na \n"""').said != code_of('"""\na\n"""').said


def added(rng: random.Random, lines: list[str]) -> list[str]:
    """Lines with one more or fewer that says nothing, most of the time."""
    row = rng.randrange(1, len(lines))
    indent = " " * rng.randrange(0, 13, 4)
    match rng.randrange(6):
        case 0 | 1:
            return [*lines[:row], indent, *lines[row:]]
        case 2:
            return [*lines[:row], f"{indent}# 32, {indent}", *lines[row:]]
        case 3:
            return [*lines[:row], f"{lines[row]}  ", *lines[row + 1 :]]
        case 4:
            return [*lines[:row], f"{lines[row]}  # said", *lines[row + 1 :]]
        case _:
            empty = [n for n, line in enumerate(lines) if not line.strip() and n]
            row = rng.choice(empty or [1])
            return [*lines[:row], *lines[row + 1 :]]


def test_what_moves_is_as_if_read_again(full: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...] | None] = []
    real = module._read

    def noting(source: object, options: object, owners: object = None) -> object:
        asked.append(owners)  # type: ignore[arg-type]
        return real(source, options, owners)  # type: ignore[arg-type]

    rng, options = random.Random(SEED), Options(targets=("cuda:sm_90a",))
    examples = [path.read_text() for path in sorted((ROOT / "examples").glob("*.py"))]
    for number, text in enumerate((TWO, WRONG, eight_kernels(), *examples[:: 1 if full else 6])):
        analyser, lines = Analyser(), text.split("\n")
        analyser.analyse(text, PATH, options)
        for step in range(80 if full else 16):
            lines = added(rng, lines)
            now = "\n".join(lines)
            monkeypatch.setattr(module, "_read", noting)
            found = analyser.analyse(now, PATH, options).analysis
            monkeypatch.setattr(module, "_read", real)
            assert normal(found) == normal(analyse(now, PATH, options)), (number, step)
    # Most of these are seen to say nothing: what is read again is what cannot be told.
    assert sum(owners == () for owners in asked) > 0.6 * len(asked)
