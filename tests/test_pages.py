"""Every code page is run: the failing block gives exactly its code, the fixed block gives nothing.

A kernel block is read by the static front end; a CPU kernel that is fine there is also traced live
and compiled. A call block is executed. `target=` names the target, `select=` asks for a remark
that is off unless asked for. Command pages are run in `tests/cli/test_command_pages.py`.
"""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from pathlib import Path

import pytest

from tilelang.language.frontend import parse_static
from tilelang.language.primfunc import PrimFunc
from tilelang_diagnostics import CATALOGUE, CompileError, SourceMap, page, render_text
from tilelang_diagnostics.model import Diagnostic
from tilelang_diagnostics.pages import Example, Page

# Pages whose finding needs an analysis for GPUs that does not exist yet. Each must still give
# nothing, so that a page leaves this list with the analysis that finds its mistake.
AWAITING_GPU_ANALYSES = (
    "TL406", "TL407", "TL411", "TL508", "TL509", "TL510", "TL512", "TL602", "TL603",
    "TL608", "TL609",
)  # fmt: skip

KERNEL_PAGES = tuple(p for p in (page(row.code) for row in CATALOGUE) if p.kind == "kernel")
CALL_PAGES = tuple(p for p in (page(row.code) for row in CATALOGUE) if p.kind == "call")
DECIDED_PAGES = tuple(p for p in KERNEL_PAGES if p.code not in AWAITING_GPU_ANALYSES)


@pytest.fixture(autouse=True, scope="module")
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELANG_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("one", DECIDED_PAGES, ids=lambda p: p.code)
def test_failing_kernel_gives_its_code(one: Page, tmp_path: Path) -> None:
    found = _read(one.failing)
    if not found:
        found = _compiled(one.failing, tmp_path)
    assert {d.code for d in found} == {one.code}, _shown(found, one.failing)
    assert all(d.span is not None for d in found), _shown(found, one.failing)


@pytest.mark.parametrize("one", KERNEL_PAGES, ids=lambda p: p.code)
def test_fixed_kernel_gives_nothing(one: Page, tmp_path: Path) -> None:
    found = _read(one.fixed) or _compiled(one.fixed, tmp_path)
    assert not found, _shown(found, one.fixed)


@pytest.mark.parametrize("code", AWAITING_GPU_ANALYSES)
def test_the_list_of_awaiting_pages_only_shrinks(code: str) -> None:
    assert page(code).failing.options.get("target", "cpu") != "cpu"
    assert code not in {d.code for d in _read(page(code).failing)}, "take it off the list"


@pytest.mark.parametrize("one", CALL_PAGES, ids=lambda p: p.code)
def test_failing_call_gives_its_code(one: Page, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as raised:
        _run(one.failing, tmp_path)
    found = raised.value.diagnostics
    assert {d.code for d in found} == {one.code}, _shown(found, one.failing)


@pytest.mark.parametrize("one", CALL_PAGES, ids=lambda p: p.code)
def test_fixed_call_runs(one: Page, tmp_path: Path) -> None:
    _run(one.fixed, tmp_path)


@pytest.mark.parametrize("one", CALL_PAGES, ids=lambda p: p.code)
def test_the_text_of_a_call_page_reads_well(one: Page) -> None:
    """What only the call decides is no finding in the text."""
    assert {d.code for d in _read(one.failing)} <= {one.code}
    assert not _read(one.fixed)


def _read(example: Example) -> tuple[Diagnostic, ...]:
    """What the front end says of the text alone."""
    selected = example.options.get("select")
    return parse_static(
        example.text, "kernel.py", target=example.options.get("target", "cpu"),
        select=() if selected is None else (selected,),
    ).all_diagnostics  # fmt: skip


def _compiled(example: Example, folder: Path) -> tuple[Diagnostic, ...]:
    """What the compiler says of the kernels of a file, for the CPU."""
    from tilelang.compiler import compile_function
    from tilelang.options import CompileOptions
    from tilelang.target import Target

    if example.options.get("target", "cpu") != "cpu":
        return ()
    found: list[Diagnostic] = []
    try:
        for value in _run(example, folder).values():
            if isinstance(value, PrimFunc):
                found.extend(value.parsed.diagnostics)
                compiled = compile_function(value.function, Target("cpu"), CompileOptions())
                found.extend(compiled.diagnostics)
    except CompileError as error:
        found.extend(error.diagnostics)
    return tuple(found)


def _run(example: Example, folder: Path) -> dict[str, object]:
    file = folder / "page.py"
    file.write_text(example.text)
    return runpy.run_path(str(file))


def _shown(found: tuple[Diagnostic, ...], example: Example) -> str:
    return render_text(found, SourceMap({"kernel.py": example.text})) or "nothing was said"
