"""Kernel text over a fixed set of tensors and tiles, of which a body uses what it names."""

from __future__ import annotations

import re
from typing import Any

from tests.support.markers import check_diagnostics, kernel_text
from tests.support.programs import body_of
from tilelang.language.frontend import parse_static
from tilelang_diagnostics.model import Diagnostic

PARAMS = {
    "A": 'T.Tensor((128, 128), "float16")',
    "B": 'T.Tensor((128, 128), "float16")',
    "C": 'T.Tensor((128, 128), "float32")',
    "D": 'T.Tensor((4, 128, 100), "float16")',
    "I": 'T.Tensor((128,), "int32")',
    "J": 'T.Tensor((128,), "int8")',
    "V": 'T.Tensor((256,), "float32")',
    "H": 'T.Tensor((128,), "float16")',
    "img": 'T.Tensor((2, 16, 16, 32), "float16")',
    "n": "T.int32",
    "x": "T.float32",
    "h": "T.float16",
    "u": "T.uint32",
    "q": "T.bool",
}
TILES = {
    "s": 'T.alloc_shared((32, 64), "float16")',
    "t": 'T.alloc_shared((64, 32), "float16")',
    "w": 'T.alloc_shared((2, 32, 64), "float16")',
    "z": 'T.alloc_shared((32, 128), "float16")',
    "f": 'T.alloc_fragment((32, 32), "float32")',
    "g": 'T.alloc_fragment((32,), "float32")',
    "c": 'T.alloc_fragment((32, 1), "float32")',
    "b": 'T.alloc_fragment((32, 32), "int32")',
    "k": 'T.alloc_fragment((32,), "int32")',
    "m": 'T.alloc_shared((32, 32), "int8")',
    "l": 'T.alloc_local((8,), "float32")',
    "y": 'T.alloc_var("float32")',
    "acc": 'T.alloc_reducer((32,), "float32", op="sum")',
    "full": "T.alloc_barrier([128, 128])",
    "tm": 'T.alloc_tmem((32, 32), "float32")',
}


def tile_kernel(body: str, threads: int = 128) -> str:
    """A kernel with `body` inside its launch and the tensors and tiles it names."""
    inner = _at_column(body, 8)
    used = set(re.findall(r"\b[A-Za-z_]\w*\b", inner))
    named = [k for k in PARAMS if k in used] or ["V"]
    params = ", ".join(f"{k}: {PARAMS[k]}" for k in named)
    tiles = [f"{k} = {v}" for k, v in TILES.items() if k in used]
    lines = [
        "@T.prim_func",
        f"def main({params}):",
        f"    with T.Kernel(4, threads={threads}) as bx:",
        *(f"        {tile}" for tile in tiles),
        inner,
    ]
    return "\n".join(lines) + "\n"


def statements(body: str) -> str:
    """The program text of `body`, without the allocations in front."""
    used = set(re.findall(r"\b[A-Za-z_]\w*\b", body))
    lines = body_of(tile_kernel(body)).split("\n")
    return "\n".join(lines[sum(tile in used for tile in TILES) :])


def check_tiles(body: str, help: str = "", **options: Any) -> tuple[Diagnostic, ...]:
    """Assert that `body` gives exactly the diagnostics its markers name, the first with `help`."""
    found = check_diagnostics(tile_kernel(body), **options)
    assert help in (found[0].help or ""), found[0].help
    return found


def diagnostics_in(body: str, target: str | None = None, threads: int = 128) -> list[str]:
    """`code: message` of everything said about `body`."""
    text = kernel_text(tile_kernel(body, threads))
    found = parse_static(text, "kernel.py", target=target).all_diagnostics
    return [f"{d.code}: {d.message}" for d in found]


def _at_column(body: str, column: int) -> str:
    """`body` shifted so that its first line starts at `column`; markers move along."""
    lines = body.strip("\n").rstrip().split("\n")
    shift = column - (len(lines[0]) - len(lines[0].lstrip()))
    return "\n".join(" " * shift + line if shift >= 0 else line[-shift:] for line in lines)
