"""A text of which most was parsed before gives the tree, or the message, of parsing all of it."""

from __future__ import annotations

import ast
import random
from functools import partial
from pathlib import Path

import pytest

from benchmarks.lsp import eight_kernels
from tilelang_lsp.parsing import Parser
from tilelang_lsp.recovery import recover

SEED = 5
SAMPLE, FULL = 120, 6000
EXAMPLES = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
TYPED = (
    "(", ")", "[", "'", "\n", '"""', "é", "\\", ":", "    x = 1\n", "\nelse:\n    pass\n", "\t",
    "#", "\nif x:\n  pass\n", "@d\n", "def f():", "\r\n", "\\\n", "x=1;y=2\n", "\x0c", "\x00",
    "async ",
)  # fmt: skip
THREE = (
    "import a\n\ndef first():\n    x = 1\n\n# between\n@a.b\ndef second():\n    y = 2\n\nz = 3\n"
)


def outcome(parse: object, text: str) -> object:
    try:
        return ast.dump(parse(text), include_attributes=True)  # type: ignore[operator]
    except SyntaxError as error:
        return (error.msg, error.lineno, error.offset, error.end_lineno, error.end_offset)
    except (ValueError, RecursionError, MemoryError) as error:
        return type(error), str(error)


def edited(rng: random.Random, text: str) -> str:
    at = rng.randrange(len(text) + 1)
    if rng.random() < 0.4:
        at = text.rfind("\n", 0, at) + 1
    match rng.randrange(4):
        case 0:  # a line is doubled, or goes
            lines = text.split("\n")
            row = rng.randrange(len(lines))
            lines[row : row + 1] = [lines[row]] * rng.choice((0, 2))
            return "\n".join(lines)
        case 1:
            return text[:at] + text[at + rng.randrange(1, 40) :]
        case 2:  # something is pasted
            begin = rng.randrange(len(text) + 1)
            return text[:at] + text[begin : begin + rng.randrange(300)] + text[at:]
        case _:
            return text[:at] + rng.choice(TYPED) + text[at:]


@pytest.mark.filterwarnings("ignore::SyntaxWarning", "ignore::DeprecationWarning")
def test_random_edits(full: bool) -> None:
    rng = random.Random(SEED)
    texts = [eight_kernels(), THREE, *(path.read_text() for path in EXAMPLES)]
    read = 0
    for number in range(FULL if full else SAMPLE):
        if number % 12 == 0:
            parser, text = Parser(), rng.choice(texts)
            parser.parse("f", text)
        now = edited(rng, text)
        parse = partial(parser.parse, "f")
        found = outcome(parse, now)
        assert found == outcome(ast.parse, now), f"seed {SEED}, edit {number}"
        if isinstance(found, str):
            read, text = read + 1, now
            continue
        mine, whole = recover(now, None, parse), recover(now)
        assert (mine is None) == (whole is None)
        if mine is not None and whole is not None:
            assert (mine.text, mine.broken) == (whole.text, whole.broken)
            assert ast.dump(mine.tree, include_attributes=True) == ast.dump(
                whole.tree, include_attributes=True
            )
    assert read > number * 0.1


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("y = 2", "y = 7", "import a; first; z = 3"),
        ("z = 3", "z = 4", "import a; first"),  # `second` may go on
        ("y = 2", "y = 2\n    w = 3", "import a; first; z = 3"),
        ("# between\n", "", "import a; z = 3"),
        ("import a", "import b", ""),
        ("y = 2", "y = (2", None),
    ],
)
def test_what_was_not_touched_is_the_same_object(old: str, new: str, same: str | None) -> None:
    parser = Parser()
    first = parser.parse("f", THREE)  # kept, so that no identity is given twice
    before = {id(node) for node in first.body}
    if same is None:
        with pytest.raises(SyntaxError):
            parser.parse("f", THREE.replace(old, new, 1))
        assert {id(n) for n in parser.parse("f", THREE).body} == before
        return
    kept = [n for n in parser.parse("f", THREE.replace(old, new, 1)).body if id(n) in before]
    assert "; ".join(getattr(n, "name", None) or ast.unparse(n) for n in kept) == same
