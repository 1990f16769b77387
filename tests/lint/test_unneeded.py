"""Comments that switch off what there is not; what is left once their fix is applied."""

from __future__ import annotations

import pytest

from tests.lsp.asking import in_launch
from tests.support.markers import kernel_text
from tilelang_diagnostics import Diagnostic, apply_edits
from tilelang_lint.engine import Settings, lint_text
from tilelang_lint.selection import Selection
from tilelang_lint.settings_check import comment_findings
from tilelang_lsp.analysis import analyse

PATH = "kernel.py"
UNUSED = "s = T.alloc_shared((4,), 'int8')"


def unneeded(text: str, settings: Settings | None = None) -> list[Diagnostic]:
    return [d for d in lint_text(text, PATH, settings) if d.code == "TL737"]


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("T.clear(C)  # tilelang: ignore[unused-buffer]", "T.clear(C)"),
        ("T.clear(C)  # tilelang: ignore[TL186] the reason", "T.clear(C)"),
        ("T.clear(C)  # noqa  # tilelang: ignore[TL186]", "T.clear(C)  # noqa"),
        ("T.clear(C)  # tilelang: ignore[TL186]  # noqa", "T.clear(C)  # noqa"),
        (f"{UNUSED}  # tilelang: ignore[TL186, TL118]", f"{UNUSED}  # tilelang: ignore[TL186]"),
        (f"{UNUSED}  # tilelang: ignore[TL118, TL186]", f"{UNUSED}  # tilelang: ignore[TL186]"),
        (f"T.clear(C)\n# tilelang: ignore[TL118]\n{UNUSED}  # tilelang: ignore[TL186]",
         f"T.clear(C)\n{UNUSED}  # tilelang: ignore[TL186]"),
        ("T.copy(\n    A,  # tilelang: ignore[TL186]\n    A,\n)", "T.copy(\n    A,\n    A,\n)"),
    ],
)  # fmt: skip
def test_a_comment_that_hides_nothing(line: str, after: str) -> None:
    text = kernel_text(in_launch(line, grid="1"))
    (found,) = unneeded(text)
    assert found.severity.value == "hint"
    assert apply_edits(text, found.fixes[0].edits) == kernel_text(in_launch(after, grid="1"))
    assert [d for d in analyse(text, PATH).diagnostics if d.code == "TL737"] == [found]


@pytest.mark.parametrize(
    "line",
    [
        f"{UNUSED}  # tilelang: ignore[TL186]",
        f"{UNUSED}  # tilelang: ignore[TL1]",  # a group says no more than it hides
        "T.clear(C)  # tilelang: ignore[TL306]",  # only found where layouts are inferred
        "T.clear(C)  # tilelang: ignore[TL222]",  # only looked for where it is asked for
        "T.copy(missing, C)\nT.clear(C)  # tilelang: ignore[TL186]",  # an error hides the rest
        "T.clear(C)  # tilelang: ignore[no-such-name]",
        "T.clear(C)  # tilelang: ignore[]",
    ],
)
def test_what_is_no_comment_too_many(line: str) -> None:
    assert unneeded(kernel_text(in_launch(line, grid="1"))) == []


def test_a_code_that_is_not_looked_for_may_be_hidden() -> None:
    text = kernel_text(in_launch("T.clear(C)  # tilelang: ignore[TL186]", grid="1"))
    assert unneeded(text, Settings(Selection(ignore=("TL186",)))) == []
    assert unneeded(text, Settings(Selection(ignore=("TL737",)))) == []
    assert unneeded(text, Settings(Selection(select=("TL2",)))) == []


def test_a_macro_is_read_where_it_is_called() -> None:
    macro = "@T.macro\ndef m(x):\n    T.clear(x)  # tilelang: ignore[TL186]\n\n"
    assert unneeded(kernel_text(macro + in_launch("T.clear(C)", grid="1"))) == []


def test_a_kernel_of_open_sizes_may_be_another_for_others() -> None:
    kernel = in_launch("T.clear(C)  # tilelang: ignore[TL227]", grid="1")
    text = "def make(M):\n" + "".join(f"    {line}\n" for line in kernel.split("\n"))
    assert len(unneeded(kernel_text(text))) == 1
    assert unneeded(kernel_text(text.replace("(128, 64)", "(M, 64)"))) == []


def test_a_comment_for_the_whole_file() -> None:
    kernel = kernel_text(in_launch("T.clear(C)", grid="1"))
    (found,) = unneeded(f"# tilelang: ignore-file[TL186]\n{kernel}")
    assert found.span is not None
    assert (found.span.line, found.span.column) == (1, 25)
    assert unneeded("# tilelang: ignore-file[TL186]\nimport tilelang\n") == []


@pytest.mark.parametrize(
    ("said", "titles"),
    [
        ("ignore[unused-bufer]", ["write `unused-buffer`", "remove the comment"]),
        ("ignore[nonsense]", ["remove the comment"]),
        ("ignore[TL186, TL999x]", ["remove `TL999x` from the comment"]),
        ("ignore[TL186]", []),
        ("ignore[TL2]", []),
    ],
)
@pytest.mark.parametrize("place", ["T.clear(C)  # tilelang: {}", "# tilelang: {}\nT.clear(C)"])
def test_a_name_that_nothing_has(said: str, titles: list[str], place: str) -> None:
    text = kernel_text(in_launch(place.format(said), grid="1"))
    found = comment_findings(text, PATH)
    assert [d.code for d in found] == ["TL725"] * bool(titles)
    assert [f.title for d in found for f in d.fixes] == titles
    for diagnostic in found:
        for fix in diagnostic.fixes:
            assert comment_findings(apply_edits(text, fix.edits), PATH) == ()
