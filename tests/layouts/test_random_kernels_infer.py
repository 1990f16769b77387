"""Kernels with other numbers in them: whatever they say, inference answers or the front end does.

Seeds are the test's parameters; `--full` runs ten times as many edits of each.
"""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static
from tilelang.layouts import infer_layouts

CASES = [
    path.read_text().partition("-" * 40)[0]
    for path in sorted((Path(__file__).parent / "cases").glob("*.txt"))
]
NUMBER = r'(?<![\w"])\d+(?![\w"])'
SIZES = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 20, 24, 31, 32, 33, 48, 64, 65, 96, 100, 128, 256)
DTYPES = (
    "float16", "float32", "bfloat16", "int8", "int32", "float64", "float8_e4m3fn", "int4", "bool",
)  # fmt: skip
INDICES = ("i", "j", "i + 1", "j // 2", "i * 2", "63 - i", "i ^ j", "i % 4")
TARGETS = ("cuda:sm_80", "cuda:sm_90a", "cuda:sm_75", "cuda:sm_70", "hip:gfx942", "metal:apple9")
COUNT = 60


@pytest.mark.parametrize("seed", range(4))
def test_edited_kernels(seed: int, full: bool) -> None:
    rng = random.Random(seed)
    answered = 0
    for _ in range(COUNT * (10 if full else 1)):
        text = edited(rng, rng.choice(CASES))
        result = parse_static(kernel_text(text), "kernel.py", target=rng.choice(TARGETS))
        for parsed in result:
            if parsed.function is not None:
                answered += 1
                for entry in infer_layouts(parsed.function, "cpu"):
                    assert entry.short and isinstance(entry.because, str)
    assert answered > COUNT // 4  # edits that leave no kernel would test nothing


def edited(rng: random.Random, text: str) -> str:
    """`text` with one number replaced everywhere, and perhaps a dtype or an index."""
    numbers = sorted(set(re.findall(NUMBER, text)))
    old, new = rng.choice(numbers), str(rng.choice(SIZES))
    text = re.sub(rf'(?<![\w"]){old}(?![\w"])', new, text)
    if rng.random() < 0.3:
        text = text.replace(f'"{rng.choice(DTYPES)}"', f'"{rng.choice(DTYPES)}"')
    if rng.random() < 0.3:
        text = text.replace(f"[{rng.choice(INDICES)}", f"[{rng.choice(INDICES)}", 1)
    return text
