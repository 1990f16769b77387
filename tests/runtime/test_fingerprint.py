"""When are two kernels the same kernel?"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tilelang.runtime.fingerprint import Fingerprint, fingerprint, rebase, rebase_diagnostic
from tilelang_diagnostics.model import Diagnostic, Edit, Fix, Label, Severity, Span

SOURCE = """
import tilelang.language as T
AMOUNT = 1.0

def helper(x):
    return x + AMOUNT

@T.macro
def store(B, i, value):
    B[i] = helper(value)

def make(n=64, threads=32):
    @T.prim_func
    def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(1, threads=threads):
            for i in T.Parallel(n):
                store(B, i, A[i] * 2.0)
    return main
"""


def marked(tmp_path: Path, text: str, name: str = "kernel_file", **values: Any) -> Fingerprint:
    path = tmp_path / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found = fingerprint(module.make(**values).function)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("AMOUNT = 1.0", "AMOUNT = 2.0"),
        ("x + AMOUNT", "x - AMOUNT"),
        ("A[i] * 2.0", "A[i] * 3.0"),
        ("A: T.Tensor((n,), \"float32\")", "A: T.Tensor((n,), \"float16\")"),
        ("n=64", "n=96"),
        ("threads=32", "threads=64"),
        ("T.Parallel(n)", "T.serial(n)"),
        ("def main(A", "def other(A"),
    ],
)  # fmt: skip
def test_what_changes_the_kernel_changes_the_digest(tmp_path: Path, old: str, new: str) -> None:
    text = SOURCE.replace(old, new)
    if "other(A" in new:
        text = text.replace("return main", "return other")
    assert text != SOURCE
    assert marked(tmp_path, SOURCE).digest != marked(tmp_path, text, "edited").digest


@pytest.mark.parametrize(
    "edit",
    [
        lambda s: s + "\n# a comment after it\n",
        lambda s: "# a comment before it\n\n" + s,
        lambda s: s.replace("return main", "return main  # a comment"),
    ],
)
def test_what_does_not_change_the_kernel(tmp_path: Path, edit: Any) -> None:
    assert marked(tmp_path, SOURCE).digest == marked(tmp_path, edit(SOURCE), "moved").digest


def test_values_are_part_of_it(tmp_path: Path) -> None:
    digests = {marked(tmp_path, SOURCE, n=n).digest for n in (32, 64, 96)}
    assert len(digests) == 3


def test_every_process_finds_the_same_digest(tmp_path: Path) -> None:
    expected = marked(tmp_path, SOURCE).digest
    program = textwrap.dedent(f"""
        import sys
        sys.path[:0] = {sys.path!r}
        sys.path.insert(0, {str(tmp_path)!r})
        import kernel_file
        from tilelang.runtime.fingerprint import fingerprint
        print(fingerprint(kernel_file.make().function).digest)
    """)
    for seed in ("0", "1"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": os.defpath},
        )
        assert done.stdout.strip() == expected


def test_positions_move_with_the_kernel() -> None:
    old, new = (("a.py", 10), ("b.py", 5)), (("c.py", 13), ("b.py", 4))
    assert rebase(Span("a.py", 12, 5, 12, 9), old, new) == Span("c.py", 15, 5, 15, 9)
    assert rebase(Span("b.py", 5, 1, 6, 2), old, new) == Span("b.py", 4, 1, 5, 2)
    elsewhere = Span("z.py", 1, 1, 1, 2)
    assert rebase(elsewhere, old, new) is elsewhere
    assert rebase(None, old, new) is None


def test_diagnostics_move_with_the_kernel() -> None:
    old, new = (("a.py", 10),), (("a.py", 20),)
    span = Span("a.py", 11, 1, 11, 4)
    found = rebase_diagnostic(
        Diagnostic("TL306", Severity.REMARK, "m", span, labels=(Label(span, "l"),),
                   fixes=(Fix("f", (Edit(span, "x"),)),)), old, new)  # fmt: skip
    moved = Span("a.py", 21, 1, 21, 4)
    assert (found.span, found.labels, found.fixes) == (moved, (Label(moved, "l"),), ())
