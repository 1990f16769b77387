"""Every code page is run: the failing block gives exactly its code, the fixed block gives nothing.

A kernel block is read by the static front end; one that is fine there is also traced live and
compiled, for a GPU up to its source. A call block is executed. `target=` names the target,
`select=` asks for a remark that is off unless asked for. Command pages are run in
`tests/cli/test_command_pages.py`.
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

KERNEL_PAGES = tuple(p for p in (page(row.code) for row in CATALOGUE) if p.kind == "kernel")
CALL_PAGES = tuple(p for p in (page(row.code) for row in CATALOGUE) if p.kind == "call")
CALLS = tuple(
    pytest.param(p, id=p.code, marks=[pytest.mark.needs_torch] * ("import torch" in p.failing.text))
    for p in CALL_PAGES
)


@pytest.fixture(autouse=True, scope="module")
def cache_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TILELANG_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.mark.parametrize("one", KERNEL_PAGES, ids=lambda p: p.code)
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
    """What the compiler says of the kernels of a file."""
    found: list[Diagnostic] = []
    try:
        for value in _run(example, folder).values():
            if isinstance(value, PrimFunc):
                found.extend(value.parsed.diagnostics)
                found.extend(_compile(value, str(example.options.get("target", "cpu"))))
    except CompileError as error:
        found.extend(error.diagnostics)
    return tuple(found)


def _compile(kernel: PrimFunc, target: str) -> tuple[Diagnostic, ...]:
    from tilelang.codegen.cuda import print_cuda
    from tilelang.compiler import compile_function, lower_function
    from tilelang.options import CompileOptions
    from tilelang.target import parse_target

    wanted = parse_target(target)
    if wanted.kind != "cuda":
        return compile_function(kernel.function, wanted, CompileOptions()).diagnostics
    lowered = lower_function(kernel.function, wanted, CompileOptions())
    print_cuda(lowered.func)
    return lowered.diagnostics


def _run(example: Example, folder: Path) -> dict[str, object]:
    # Each text has a file of its own: Python keeps the lines of one it has read.
    file = folder / f"page_{abs(hash(example.text))}.py"
    file.write_text(example.text)
    return runpy.run_path(str(file))


def _shown(found: tuple[Diagnostic, ...], example: Example) -> str:
    return render_text(found, SourceMap({"kernel.py": example.text})) or "nothing was said"
