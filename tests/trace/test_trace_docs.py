"""The table of passes in the documentation is what the passes say of themselves."""

from __future__ import annotations

import importlib
import os
from pathlib import Path

from tilelang.passes.context import PassContext
from tilelang.pipeline import PIPELINE, Pass
from tilelang_diagnostics import Span
from tilelang_trace.near import near
from tilelang_trace.writer import MAJOR, MINOR

DOCS = Path(__file__).resolve().parents[2] / "docs" / "trace.md"
KINDS = {"CPU": "cpu", "CUDA": "cuda:sm_90a", "HIP": "hip:gfx942", "Metal": "metal:apple9"}
GPUS = ["CUDA", "HIP", "Metal"]


def row(step: Pass) -> str:
    kinds = [name for name, kind in KINDS.items() if step.applies(PassContext(kind))]
    where = "all" if kinds == [*KINDS] else "GPUs" if kinds == GPUS else ", ".join(kinds)
    said = importlib.import_module(step.run.__module__).__doc__ or ""
    return f"| `{step.name}` | {where} | {said.partition(chr(10))[0]} |"


def test_every_pass_is_in_the_table_in_its_order() -> None:
    section = DOCS.read_text().partition("## The passes")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    assert rows == list(dict.fromkeys(map(row, PIPELINE)))


def test_the_version_of_the_format() -> None:
    assert f'"major": {MAJOR}, "minor": {MINOR}, …' in DOCS.read_text()


def test_reasons_name_files_from_the_traced_one(tmp_path: Path) -> None:
    place = Span(str(tmp_path / "lib" / "k.py"), 3, 1, 3, 2)
    text = f"required by T.gemm at {place.file}:3:1"
    for traced in (str(tmp_path / "main.py"), os.path.relpath(tmp_path / "main.py")):
        assert near(text, [place, None], traced) == "required by T.gemm at lib/k.py:3:1"
    assert near(text, [place], "") == text
