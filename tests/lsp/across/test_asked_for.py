"""Which modules does a text ask for? Found on the lines around the word, as in all of the text."""

from __future__ import annotations

import random

import pytest

from tilelang_lsp import following

ASKED = {
    "import a, b as c": [("a", 0), ("b", 0)],
    "x = 1; import a": [("a", 0)],
    "from a import b": [("a", 0), ("a.b", 0)],
    "from .. import b": [("", 2), ("b", 2)],
    "from a import (  # all (of) it\n    b,  # one)\n    c as d,\n)\nimport e": [
        ("a", 0), ("a.b", 0), ("a.c", 0), ("e", 0),
    ],
    "from a \\\n    import b, \\\n    c\nd": [("a", 0), ("a.b", 0), ("a.c", 0)],
    "important = 1  # import a": [],
}  # fmt: skip
PARTS = (
    "import ", "from ", "a", "b.c", " ", "\n", "\n", "(", ")", ",", "\\\n", "#", ";", ":", ".",
    " as ", "'#'", "def f():\n", " import (", "from . import ", "\r\n", "*",
)  # fmt: skip


@pytest.mark.parametrize("text", ASKED)
def test_the_modules_that_a_text_imports(text: str) -> None:
    assert list(following.asked_for(text)) == ASKED[text]


def test_no_import_is_missed_for_the_lines_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(2026)
    texts = ["".join(rng.choices(PARTS, k=rng.randrange(5, 60))) for _ in range(5_000)]
    found = [tuple(following._asked_for(text)) for text in texts]
    monkeypatch.setattr(following, "_around_imports", lambda text: text)
    for text, some in zip(texts, found, strict=True):
        assert some == tuple(following._asked_for(text)), text
    assert sum(map(bool, found)) > 1_000
