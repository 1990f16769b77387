"""Small kernels and the layouts they get: `cases/*.txt`, a kernel, a line of dashes, the answer.

The answer lists every tile and loop with its layout in short form and the last reason for it, then
the diagnostics. `pytest --update` rewrites it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static
from tilelang.layouts import Entry, LayoutMap, infer_layouts

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))
LINE = "-" * 40 + "\n"


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_layouts_of(path: Path, update: bool) -> None:
    kernel, _, expected = path.read_text().partition(LINE)
    target = "cuda:sm_80"
    if kernel.startswith("# target: "):
        target = kernel.split("\n")[0].removeprefix("# target: ")
    (parsed,) = parse_static(kernel_text(kernel), "k.py")
    assert parsed.function is not None, parsed.diagnostics
    found = described(infer_layouts(parsed.function, target))
    if update:
        path.write_text(kernel + LINE + found)
        return
    assert found == expected


def described(found: LayoutMap) -> str:
    lines = []
    for entry in found:
        lines += [_title(entry), f"    {entry.short}", f"    {entry.because}"]
        for use in entry.bank_uses:
            how = f" ({use.what})" if use.what else ""
            lines.append(f"      {use}{how}")
        if entry.kind == "loop":
            for c in entry.conversions:
                lines.append(f"      {c.var} through {c.via.value}, {c.cost} instructions")
    for d in found.diagnostics:
        lines.append(f"{d.severity.value}[{d.code}] {d.span}: {d.message}")
        if d.help:
            lines.append(f"    help: {d.help}")
    return "\n".join(lines) + "\n"


def _title(entry: Entry) -> str:
    shape = " x ".join(entry.shape)
    return f"{entry.kind} {entry.name}, {shape}{' ' if entry.dtype else ''}{entry.dtype}"
