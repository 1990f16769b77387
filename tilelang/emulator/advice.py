"""What can the author do about what was seen? Where it depends on how the lines were written."""

from __future__ import annotations

import re

from tilelang.codegen.source_map import Line
from tilelang_diagnostics import SourceMap as Texts
from tilelang_diagnostics.model import Span

_WARP_GROUP = re.compile(r"^with\b.*\bws\(")


def race_help(line: Line | None, other: Line | None) -> str:
    """What to do about two accesses that nothing orders."""
    if line is not None and other is not None and line.foreign and other.foreign:
        # Two lines of a string come from one statement of Python.
        if line is not other:
            return "__syncthreads() between the two lines of the CUDA source, for all threads"
    if line is not None and other is not None and line.span == other.span:
        return (
            "several threads reach one element in this statement: give each its own, let one "
            "thread do it (`if T.get_thread_binding() == 0`), or use T.atomic_add; where a loop "
            "comes back to the statement, T.sync_threads() in the loop"
        )
    if any(found is not None and _in_warp_group(found.span) for found in (line, other)):
        return (
            "T.sync_threads() would wait for ever in a `T.ws` group: between groups use an "
            "mbarrier (T.mbarrier_arrive behind the first access, T.mbarrier_wait_parity before "
            "the second), within one T.sync_threads(1, 128), a barrier of its 128 threads"
        )
    return (
        "T.sync_threads() between the two; where the compiler places barriers itself, "
        "foreign code or a wrong `access_type` of T.access_ptr hides an access from it"
    )


def flight_help(copy: Line | None) -> str:
    """What to do about an access where what `copy` fetches may not have arrived."""
    if copy is not None and "tl::tma_" in copy.text:
        return (
            "whoever reads has to wait for the copy's mbarrier first: T.mbarrier_wait_parity(bar, "
            "parity) with the barrier that the copy was given"
        )
    return "the thread that copies has to wait (T.ptx_wait_group) before a barrier lets others read"


def _in_warp_group(span: Span | None) -> bool:
    """Whether a statement is within a `with T.ws(…):`, as the author indented it."""
    if span is None:
        return False
    rows = (Texts().text(span.file) or "").splitlines()[: span.line]
    if not rows:
        return False
    depth = _depth(rows[-1])
    for row in reversed(rows[:-1]):
        if row.strip() and _depth(row) < depth:
            depth = _depth(row)
            if _WARP_GROUP.match(row.strip()):
                return True
    return False


def _depth(row: str) -> int:
    return len(row) - len(row.lstrip())
