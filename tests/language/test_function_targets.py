"""What the reference says of targets is what the table of device operations says."""

from __future__ import annotations

from typing import get_args

import pytest

from tilelang.ir.device_ops import find_op
from tilelang.ir.device_support import has_op
from tilelang.language import FUNCTIONS
from tilelang.language.catalog import LanguageFunction
from tilelang.target import ARCHS, Kind, Target
from tilelang_diagnostics import CompileError

GPUS = [
    Target(kind, arch) for kind in get_args(Kind) if kind != "cpu" for arch in ARCHS[kind]
]  # fmt: skip
# Older than the barriers in shared memory that they are for, which `T.alloc_barrier` makes.
LATER = {"cp_async_barrier_noinc", "ptx_init_barrier_thread_count"}
NAMES = sorted(name for name in FUNCTIONS if find_op(name) is not None and name not in LATER)


def _refused(function: LanguageFunction, target: Target) -> bool:
    try:
        function.check_target(str(target))
    except CompileError as error:
        assert {d.code for d in error.diagnostics} <= {"TL401", "TL402"}
        return True
    return False


@pytest.mark.parametrize("name", NAMES)
def test_a_target_has_a_function_if_it_has_its_operation(name: str) -> None:
    op = find_op(name)
    assert op is not None
    refused = {str(t) for t in GPUS if _refused(FUNCTIONS[name], t)}
    assert refused == {str(t) for t in GPUS if not has_op(op, t)}


@pytest.mark.parametrize("name", ["async_copy", "ptx_cp_async", "ptx_wait_group"])
def test_copies_in_groups_are_those_of_ampere(name: str) -> None:
    have = {str(t) for t in GPUS if not _refused(FUNCTIONS[name], t)}
    commit = find_op("cp_async_commit")
    assert commit is not None
    assert have == {str(t) for t in GPUS if has_op(commit, t)}


def test_why_a_target_lacks_it() -> None:
    with pytest.raises(CompileError, match="gives no barrier across them here"):
        FUNCTIONS["sync_grid"].check_target("hip:gfx942")
