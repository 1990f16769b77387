"""Half-typed and damaged kernels never crash the front end.

Each example takes one of the kernels under test, applies a few random edits (cuts, repeated and
swapped lines, changed tokens) and parses it from text. Seeds are Hypothesis's own and recorded in
its database; `--full` runs the large count.
"""

from __future__ import annotations

import keyword
import random
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from tilelang.language.frontend import parse_static

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests" / "kernels").glob("*.py")) + sorted((ROOT / "examples").glob("*.py"))
TEXTS = [text for text in (f.read_text() for f in FILES) if "T.Kernel" in text]
TOKENS = [
    "T.copy", "T.gemm", "T.alloc_shared", "T.Parallel", "None", "0", "-1", "1.5", "'x'", "()", "[]",
    "T", "T.float16", "lambda x: x", "A", "[:]", "*", "**", ",", ":", "(", ")", "=", "if", "for",
    "else 0", "T.cast", "T.if_then_else", "yield", "await x", "not", "is None", "T.Ref", "é", "…",
    "T.Tensor", "T.Kernel", "T.reduce_sum", "T.alloc_var", "T.const('q')", "len", "range", "min",
    *keyword.kwlist[:12],
]  # fmt: skip
SAMPLE, FULL = 120, 2500
SEED = 20261129


def damaged(text: str, rng: random.Random) -> str:
    """`text` after one to four edits of the kinds people and editors make."""
    for _ in range(rng.randint(1, 4)):
        lines = text.split("\n")
        at = rng.randrange(len(lines))
        match rng.randrange(8):
            case 0:
                text = text[: rng.randrange(len(text))]
                if not text:
                    return text
            case 1:
                del lines[at]
                text = "\n".join(lines)
            case 2:
                lines.insert(at, lines[rng.randrange(len(lines))])
                text = "\n".join(lines)
            case 3:
                other = rng.randrange(len(lines))
                lines[at], lines[other] = lines[other], lines[at]
                text = "\n".join(lines)
            case 4 | 5:
                words = list(re.finditer(r"[A-Za-z_][\w.]*|\d+", lines[at]))
                if words:
                    w = rng.choice(words)
                    lines[at] = lines[at][: w.start()] + rng.choice(TOKENS) + lines[at][w.end() :]
                text = "\n".join(lines)
            case 6:
                column = rng.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:column] + rng.choice(TOKENS) + lines[at][column:]
                text = "\n".join(lines)
            case _:
                column = rng.randrange(len(lines[at]) + 1)
                lines[at] = lines[at][:column]
                text = "\n".join(lines)
    return text


def check(choice: int, number: int) -> None:
    text = damaged(TEXTS[choice % len(TEXTS)], random.Random(number))
    result = parse_static(text, "kernel.py")
    for found in result.all_diagnostics:
        assert not found.code.startswith("TL9"), found
        if found.span is not None:
            assert found.span.line <= text.count("\n") + 2


@seed(SEED)
@settings(max_examples=SAMPLE, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, 10_000), st.integers(0, 2**32))
def test_damaged_kernels_never_crash(choice: int, number: int) -> None:
    check(choice, number)


def test_damaged_kernels_never_crash_in_full(full: bool) -> None:
    if not full:
        pytest.skip("run with --full")
    rng = random.Random(SEED)
    for _ in range(FULL):
        check(rng.randrange(10_000), rng.randrange(2**32))


@pytest.mark.parametrize("cut", [0.25, 0.5, 0.75, 0.9])
def test_half_typed_files_parse_or_say_why(cut: float) -> None:
    for text in TEXTS:
        parse_static(text[: int(len(text) * cut)], "kernel.py")
