"""Each fix that is offered for a finding makes it go away, and nothing else wrong.

The kernels are those of the pages of the codes, and of the complaints.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache

import pytest

from tests.complaints.cases import CASES
from tests.lsp.asking import PATH, in_launch, request_for
from tests.support.markers import kernel_text
from tilelang_diagnostics import CATALOGUE, Applicability, Diagnostic, apply_edits, page
from tilelang_lint.engine import Settings, lint_text
from tilelang_lsp.analysis import analyse
from tilelang_lsp.features.code_actions import code_actions, fixes_of
from tilelang_lsp.features.diagnostics import editor_diagnostic
from tilelang_lsp.features.suppressions import in_the_project
from tilelang_lsp.model import Analysis
from tilelang_lsp.options import Options

PAGES = tuple(
    p for p in (page(row.code) for row in CATALOGUE) if p.kind == "kernel"
)  # fmt: skip
KERNELS: dict[str, tuple[str, Options]] = {
    p.code: (p.failing.text, Options(targets=(p.failing.options["target"],)
                                     if "target" in p.failing.options else ()))
    for p in PAGES
} | {
    f"complaint {c.number} {c.about}": (
        kernel_text(c.wrong),
        Options(dict(c.options.get("values", {})),
                (c.options["target"],) if "target" in c.options else ()),
    )
    for c in CASES
}  # fmt: skip
# Codes whose finding has a fix in the kernel of its page.
FIXED = (
    "TL110", "TL111", "TL112", "TL117", "TL118", "TL119", "TL146", "TL149", "TL155", "TL163",
    "TL185", "TL186", "TL223", "TL227", "TL231", "TL232", "TL234", "TL244", "TL507",
    "TL512",
)  # fmt: skip


@cache
def analysed(name: str) -> Analysis:
    """What is found in a kernel as it is."""
    text, options = KERNELS[name]
    return analyse(text, PATH, options)


def errors(analysis: Analysis) -> Counter[str]:
    return Counter(d.code for d in analysis.diagnostics if d.severity.value in ("error", "warning"))


def found_of(analysis: Analysis, code: str) -> list[Diagnostic]:
    return [d for d in analysis.diagnostics if d.code == code]


@pytest.mark.parametrize("name", KERNELS)
def test_after_each_fix_it_is_gone(name: str) -> None:
    text, options = KERNELS[name]
    before = analysed(name)
    request = request_for(before)
    for diagnostic in before.diagnostics:
        for number, fix in enumerate(fixes_of(request, diagnostic)):
            after = analyse(apply_edits(text, fix.edits), PATH, options)
            assert after.complete, fix.title
            left, had = len(found_of(after, diagnostic.code)), len(
                found_of(before, diagnostic.code)
            )  # fmt: skip
            # A second suggestion for a name may lead elsewhere; the first is the best.
            if number == 0 or fix.applicability is Applicability.SAFE:
                assert left < had, fix.title
                assert sum(errors(after).values()) < sum(errors(before).values()) or not errors(
                    before
                ), fix.title


@pytest.mark.parametrize("name", KERNELS)
def test_lint_knows_every_fix(name: str) -> None:
    text, options = KERNELS[name]
    analysis = analysed(name)
    request = request_for(analysis)
    target = options.targets[0] if options.targets else None
    known = {
        (d.code, d.span, fix)
        for d in lint_text(text, PATH, Settings(values=options.values, target=target))
        for fix in d.fixes
    }
    assert known >= {
        (d.code, d.span, fix)
        for d in analysis.diagnostics for fix in fixes_of(request, d)
    }  # fmt: skip


@pytest.mark.parametrize("code", FIXED)
def test_these_have_one(code: str) -> None:
    text, options = KERNELS[code]
    analysis = analyse(text, PATH, options)
    request = request_for(analysis)
    assert any(fixes_of(request, d) for d in found_of(analysis, code))


@pytest.mark.parametrize("name", KERNELS)
def test_after_all_safe_ones_no_such_finding_is_left(name: str) -> None:
    text, options = KERNELS[name]
    before = analysed(name)
    request = replace(request_for(before), only=("source.fixAll",))
    actions = code_actions(request)
    offered = [f for d in before.diagnostics for f in fixes_of(request, d)]
    safe = [f for f in offered if f.applicability is Applicability.SAFE]
    assert len(actions) == (1 if safe else 0)
    for action in actions:
        after = analyse(apply_edits(text, action.edits), PATH, options)
        assert sum(errors(after).values()) < sum(errors(before).values())


@pytest.mark.parametrize("where", ["on this line", "in this file"])
def test_a_warning_can_be_switched_off(where: str) -> None:
    text, options = KERNELS["TL186"]
    before = analyse(text, PATH, options)
    (found,) = [d for d in before.diagnostics if d.code == "TL186"]
    assert found.span is not None
    request = replace(request_for(before), line=found.span.line, end_line=found.span.line,
                      column=found.span.column, end_column=found.span.column)  # fmt: skip
    (action,) = [a for a in code_actions(request) if a.title.endswith(where)]
    after = analyse(apply_edits(text, action.edits), PATH, options)
    assert found_of(after, "TL186") == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '[tool.tilelang.lint]\nignore = ["never-read"]\n'),
        ("[a]\n", '[a]\n\n[tool.tilelang.lint]\nignore = ["never-read"]\n'),
        ("[tool.tilelang.lint]\nselect = ['TL2']\n",
         "[tool.tilelang.lint]\nignore = [\"never-read\"]\nselect = ['TL2']\n"),
        ("[tool.tilelang.lint]\nignore = ['TL6']\n[b]\n",
         "[tool.tilelang.lint]\nignore = ['TL6', \"never-read\"]\n[b]\n"),
        ("[tool.tilelang.lint]\nignore = ['never-read']\n", None),
        ("[tool.tilelang]\nlint = {ignore = []}\n", None),
        ("[tool", None),
    ],
)  # fmt: skip
def test_a_project_that_ignores_a_rule(before: str, after: str | None) -> None:
    edit = in_the_project(before, "pyproject.toml", "never-read")
    assert (None if edit is None else apply_edits(before, (edit,))) == after


def fixed(text: str, code: str, number: int = 0) -> str:
    """The text after a fix of its only finding of a code."""
    analysis = analyse(text, PATH, Options())
    (found,) = found_of(analysis, code)
    offered = fixes_of(request_for(analysis), found)
    if not offered:
        return "no fix"
    after = apply_edits(text, offered[number].edits)
    assert not found_of(analyse(after, PATH, Options()), code)
    return after


def product(call: str, a: str = "(64, 32)", b: str = "(64, 32)", c: str = "(64, 64)") -> str:
    return kernel_text(
        in_launch(f"""
        a = T.alloc_shared({a}, "float16")
        b = T.alloc_shared({b}, "float16")
        c = T.alloc_fragment({c}, "float32")
        T.clear(a)
        T.clear(b)
        T.clear(c)
        {call}
        T.copy(c, C)
    """)
    )


@pytest.mark.parametrize(
    ("call", "after", "shapes"),
    [
        ("T.gemm(a, b, c)", "T.gemm(a, b, c, transpose_B=True)", {}),
        ("T.gemm(a, b, c,)", "T.gemm(a, b, c, transpose_B=True,)", {}),
        ("T.gemm(a, b, c, transpose_B=False)", "T.gemm(a, b, c, transpose_B=True)", {}),
        ("T.gemm(a, b, c, True, True)", "T.gemm(a, b, c, False, True)", {}),
        ("T.gemm(A=a, B=b, C=c)", "no fix", {}),
        (
            "T.gemm(a, b, c, policy=T.GemmWarpPolicy.FullRow)",
            "T.gemm(a, b, c, policy=T.GemmWarpPolicy.FullRow, transpose_B=True)",
            {},
        ),
        ("T.gemm(a, b, c)", "T.gemm(b, a, c)", {"a": "(32, 16)", "c": "(64, 16)"}),
        ("T.gemm(a, b[0:64, 0:32], c)", "no fix", {"a": "(32, 16)", "c": "(64, 16)"}),
        ("T.gemm(a, b, c)", "no fix", {"b": "(16, 64)"}),
    ],
)
def test_a_product_that_does_not_fit(call: str, after: str, shapes: dict[str, str]) -> None:
    text = product(call, **shapes)
    expected = text.replace(call, after) if after != "no fix" else after
    assert fixed(text, "TL204") == expected


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("s = T.alloc_shared((4,), 'int8')\nT.clear(C)", "T.clear(C)"),
        ("s = T.alloc_shared((4,), 'int8')\nT.clear(s)\nT.clear(C)", "T.clear(C)"),
        ("T.clear(C)\ns = T.alloc_shared((128, 64), 'float16')\nT.copy(A, s)", "T.clear(C)"),
        ("s = T.alloc_shared((4,), 'int8')", "pass"),
        (
            "T.clear(C)\ns = T.alloc_shared((4,), 'int32')\nfor i in T.serial(4):\n    s[i] = i",
            "T.clear(C)",
        ),
        (
            "s = T.alloc_shared((4,), 'int8')\nfor i in T.serial(4):\n    s[i] = 1\n"
            "    C[i, 0] = 1",
            "for i in T.serial(4):\n    C[i, 0] = 1",
        ),
        (
            "s = T.alloc_shared((4,), 'int32')\nif n > 2:\n    T.fill(s, 3)\nT.clear(C)",
            "if n > 2:\n    pass\nT.clear(C)",
        ),
        ("s = T.alloc_shared((4,), 'int8'); T.clear(C)", "no fix"),
        (
            "s = T.alloc_shared((4,), 'int32')\ns[0] = T.atomic_add(C[0, 0], 1, return_prev=True)",
            "no fix",
        ),
    ],
)
def test_a_tile_that_nothing_reads_goes_with_what_writes_it(body: str, after: str) -> None:
    wanted = after if after == "no fix" else kernel_text(in_launch(after))
    assert fixed(kernel_text(in_launch(body)), "TL186") == wanted


@pytest.mark.parametrize(
    ("index", "after"),
    [("n / 2", "n // 2"), ("(n + bx) / 2", "(n + bx) // 2"), ("n / (2 + 2)", "n // (2 + 2)")],
)
def test_a_division_keeps_its_brackets(index: str, after: str) -> None:
    text = kernel_text(in_launch("C[{}, 0] = 1"))
    assert fixed(text.format(index), "TL232") == text.format(after)


def test_a_comment_too_many_is_faint_and_goes_with_a_click() -> None:
    comment = "  # tilelang: ignore[TL186]"
    text = kernel_text(in_launch(f"T.clear(C){comment}", grid="1"))
    analysis = analyse(text, PATH, Options())
    (found,) = found_of(analysis, "TL737")
    assert editor_diagnostic(found, PATH).unnecessary
    line = text[: text.index(comment)].count("\n") + 1
    end = len(text.split("\n")[line - 1]) + 1
    request = replace(request_for(analysis), line=line, end_line=line, column=1, end_column=end)
    (action,) = [a for a in code_actions(request) if a.resolves is not None]
    assert action.title == "remove the comment"
    assert apply_edits(text, action.edits) == text.replace(comment, "")
