"""Kernels damaged at random places: the analysis never fails, and mostly still understands."""

from __future__ import annotations

import random
from pathlib import Path

from tests.kernels import registry
from tilelang_lsp.analysis import analyse
from tilelang_lsp.features.diagnostics import editor_diagnostic
from tilelang_lsp.features.inlay_hints import hints

SEED = 7
SAMPLE, FULL = 60, 2000
TYPED = ("(", ")", "[", "'", "\n", " for ", "T.", "= ", '"""', "é", "\\", ":")
TEXTS = [
    text for path in sorted(Path(registry.__file__).parent.glob("*.py"))
    if "import tilelang.language" in (text := path.read_text())
]  # fmt: skip


def damaged(rng: random.Random) -> str:
    """A kernel file cut off, with a piece taken out, or with something typed into it."""
    text = rng.choice(TEXTS)
    at = rng.randrange(len(text))
    match rng.choice(("cut", "delete", "type")):
        case "cut":
            return text[:at]
        case "delete":
            return text[:at] + text[at + rng.randrange(1, 30) :]
        case _:
            return text[:at] + rng.choice(TYPED) + text[at:]


def test_damaged_files_are_analysed(full: bool) -> None:
    rng = random.Random(SEED)
    count = FULL if full else SAMPLE
    unread = 0
    for number in range(count):
        text = damaged(rng)
        analysis = analyse(text, "kernel.py")
        found = {editor_diagnostic(d, "kernel.py").code for d in analysis.diagnostics}
        assert "TL900" not in found, f"seed {SEED}, text {number}"
        hints(analysis)
        unread += not analysis.complete
    assert unread <= count * 0.08
