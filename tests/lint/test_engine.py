"""What lint finds in a text, whatever state it is in."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from tests.kernels import registry
from tests.kernels.registry import REJECTED
from tests.support.markers import kernel_text
from tilelang_diagnostics import Diagnostic, diagnose
from tilelang_lint import engine
from tilelang_lint.engine import Settings, lint_text
from tilelang_lint.rules import RULES, Subject
from tilelang_lint.selection import Selection

BAD = kernel_text("""
@T.prim_func
def first(A: T.Tensor((128,), "float32")):
    with T.Kernel(4) as bx:
        T.clear(missing)
        T.cpoy(A, A)

@T.prim_func
def second(B: T.Tensor((128,), "float32")):
    with T.Kernel(4) as bx:
        T.clear(absent)
""")


def codes(text: str, settings: Settings | None = None) -> list[str]:
    return [d.code for d in lint_text(text, "k.py", settings)]


def test_every_kernel_in_source_order() -> None:
    found = lint_text(BAD, "k.py")
    assert [d.code for d in found] == ["TL110", "TL111", "TL110"]
    lines = [d.span.line for d in found if d.span]
    assert lines == sorted(lines)
    assert len(lines) == 3


def test_selection_and_suppression() -> None:
    assert codes(BAD, Settings(Selection(select=("TL111",)))) == ["TL111"]
    quiet = BAD.replace("T.clear(missing)", "T.clear(missing)  # tilelang: ignore[unknown-name]")
    assert codes(quiet) == ["TL111", "TL110"]


def test_values_make_more_known() -> None:
    text = kernel_text("""
    def factory(n):
        @T.prim_func
        def main(A: T.Tensor((128, 64), "float32")):
            with T.Kernel(4) as bx:
                s = T.alloc_shared((n, 64), "float32")
                t = T.alloc_shared((32, 64), "float32")
                T.clear(s)
                for i, j in T.Parallel(32, 64):
                    t[i, j] = s[i, j]
                T.copy(t, A[0:n, 0:64])
        return main
    """)
    assert codes(text) == []
    assert codes(text, Settings(values={"n": 16})) != []


@pytest.mark.parametrize("text", ["", "x = (", "import os\n" * 5000, "\0", "T.copy(("])
def test_files_of_other_things_are_skipped(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "parse_static", None)  # not even parsed
    assert codes(text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import tilelang\nx = (", ["TL101"]),
        ("import tilelang\n\0", ["TL101"]),
        ("import tilelang\n" + "(" * 3000, ["TL101"]),
        ("import tilelang\n  x = 1", ["TL101"]),
        ("# tilelang", []),
        ("import tilelang\r\nx = 1\r\n", []),
        ("import tilelang\n" + "x = 1\n" * 5000, []),
    ],
)
def test_odd_files(text: str, expected: list[str]) -> None:
    assert codes(text) == expected


def test_a_large_file_is_read_whole() -> None:
    kernel = BAD[BAD.index("@T.prim_func\ndef second") :]
    copies = [kernel.replace("second", f"kernel_{n}") for n in range(800)]
    text = kernel_text("\n".join(copies))
    assert text.count("\n") > 4000
    assert codes(text) == ["TL110"] * 800


def test_a_failing_rule_is_a_finding_and_the_others_run() -> None:
    def broken(subject: Subject) -> Iterable[Diagnostic]:
        yield diagnose("TL118", "found before the failure")
        raise KeyError("oops")

    found = lint_text(BAD, "k.py", rules=(broken, *RULES))
    assert [d.code for d in found].count("TL900") == 1
    assert [d.code for d in found].count("TL110") == 2


def test_a_failure_to_read_a_kernel_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    read = engine.parse_static

    def failing(text: str, path: str, **options: object) -> object:
        if options.get("kernel") in (None, "first"):
            raise TypeError("oops")
        return read(text, path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "parse_static", failing)
    found = lint_text(BAD, "k.py")
    assert [d.code for d in found] == ["TL900", "TL110"]
    assert "TypeError: oops" in found[0].message
    assert found[0].span is not None
    assert BAD.split("\n")[found[0].span.line - 1].startswith("def first")


def test_a_reading_that_fails_as_a_whole_is_one_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> object:
        raise TypeError("oops")

    monkeypatch.setattr(engine, "parse_static", failing)
    assert codes("import tilelang\nx = 1") == ["TL900"]


REFUSED = {case.code for case in REJECTED}
FOLDER = Path(registry.__file__).parent


def errors_in(path: Path) -> list[str]:
    return [str(d) for d in lint_text(path.read_text(), path.name) if d.is_error]


def test_no_kernel_under_test_is_wrongly_accused() -> None:
    found = [error for path in sorted(FOLDER.glob("*.py")) for error in errors_in(path)]
    # Kernels that must be refused stand in the same files, one error each.
    wrong = [error for error in found if not any(f"[{code}]" in error for code in REFUSED)]
    assert wrong == []
    assert len(found) <= len(REJECTED)
