"""Whatever is written in one of several files, every feature has an answer."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.lsp.across.project import Place, Project, project
from tests.lsp.across.test_places import IMPORTED
from tilelang_lsp.crossing import Crossing
from tilelang_lsp.features import call_hierarchy, navigation, rename

FEATURES = (
    navigation.DEFINITION, navigation.REFERENCES, navigation.HIGHLIGHT, rename.PREPARE,
    rename.RENAME, call_hierarchy.PREPARE,
)  # fmt: skip
PIECES = (
    "(", "'", '"""', "\r", "\x0c", "\n", "\0", "\t", "\\", "😀", "\u2028", "import ", "lambda ",
    "from . import *\n", "from .. import x\n", "from m import (a,\n", "import a.b.c.d as e\n",
    "__all__ = 3\n", "__all__ += x\n", "global q\n", "nonlocal z\n",
    "match x:\n    case {**y}: pass\n",
)  # fmt: skip


@pytest.mark.parametrize("seed", range(12))
def test_there_is_an_answer(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    made = project(IMPORTED[chance.choice([*IMPORTED])], tmp_path)
    for name, text in list(made.texts.items()):
        for _ in range(chance.randrange(3)):
            text = damaged(text, chance)
        if chance.random() < 0.6:
            made.open(name, text)
        else:
            del made.texts[name]
            made.save(name, text)
    for _ in range(3):
        asked(made, chance)
    assert made.workspace.symbols("") is not None


def damaged(text: str, chance: random.Random) -> str:
    """A text with something put in, left out or cut off."""
    at = chance.randrange(len(text) + 1)
    return chance.choice(
        (text[:at] + chance.choice(PIECES) + text[at:], text[:at] + text[at + 5 :], text[:at])
    )


def asked(made: Project, chance: random.Random) -> None:
    """Ask everything about some place."""
    name = chance.choice([*made.texts])
    lines = made.texts[name].split("\n")
    line = chance.randrange(len(lines)) + 1
    place = Place(name, line, chance.randrange(len(lines[line - 1]) + 1) + 1, "")
    for feature in FEATURES:
        made.ask(feature, place, new_name="fresh")
    for question in (call_hierarchy.incoming, call_hierarchy.outgoing):
        across = Crossing(made.workspace, made.path(name), made.texts[name])
        question(across, place.line, place.column)
