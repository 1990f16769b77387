"""Random projects compute the same after a name has a new one, or it is refused.

`python -m tests.lsp.across.test_random_projects 0 1000` tries more of them.
"""

from __future__ import annotations

import io
import keyword
import random
import sys
import tempfile
import tokenize
from collections import Counter
from pathlib import Path

from tests.lsp.across.project import Place, written
from tests.lsp.across.random_project import NAMES, RandomProject, said_by
from tilelang_lsp.features import rename

OURS = ("SAID", "append", "range", "ImportError")


def test_a_new_name_changes_nothing(tmp_path: Path) -> None:
    counts = Counter[str]()
    for seed in range(24):
        folder = tmp_path / str(seed)
        folder.mkdir()
        counts += tried(seed, 4, folder)
    # Neither is all of it refused, nor are the random projects without use.
    assert counts["renamed"] > 24
    assert counts["refused"] > 24
    assert counts["useless"] < 6


def tried(seed: int, tries: int, folder: Path) -> Counter[str]:
    """How often a name of a random project was renamed, and how often that was refused."""
    texts = RandomProject(seed).texts
    made = written(texts, folder)
    before = said_by(made.root)
    if isinstance(before, str):
        return Counter(useless=1)
    counts = Counter[str]()
    chance = random.Random(seed)
    names = names_in(texts)
    for number in range(tries):
        place = chance.choice(names)
        new = chance.choice((*NAMES, *["fresh"] * len(NAMES)))
        found = made.ask(rename.RENAME, place, new_name=new)
        if found.refused:
            counts["refused"] += 1
            continue
        counts["renamed"] += 1
        (again := folder / f"again{number}").mkdir()
        after = said_by(written(made.edited(found.edits), again).root)
        edits = ", ".join(str(made.place(e.span)) for e in found.edits)
        assert after == before, f"seed {seed}, {place} to {new}: {edits}"
    return counts


def names_in(texts: dict[str, str]) -> list[Place]:
    """The names in some texts that may have a new one."""
    return [
        Place(file, token.start[0], token.start[1] + 1, token.string)
        for file, text in texts.items()
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.NAME
        and not keyword.iskeyword(token.string) and token.string not in OURS
    ]  # fmt: skip


if __name__ == "__main__":
    total = Counter[str]()
    for one in range(int(sys.argv[1]), int(sys.argv[2])):
        with tempfile.TemporaryDirectory() as temporary:
            total += tried(one, 8, Path(temporary))
    print(dict(total))
