"""Do the layouts of a kernel for a GPU agree, and what do they cost? (TL301 and its neighbours)

All the work is done by `tilelang.layouts`, whose answer tools ask for again. A CPU has no threads
to lay anything out for, so nothing is said there.
"""

from __future__ import annotations

from collections.abc import Iterator

from tilelang.program.stmt import Function
from tilelang.target import is_auto, parse_target
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """What layout inference has to say; a target that does not exist is not its business."""
    if is_auto(target):
        return
    try:
        known = parse_target(target)
    except CompileError:
        return
    if known.capabilities.threads_cooperate:
        # Imported when a GPU is asked about: most kernels are traced for none.
        from tilelang.layouts.infer import infer_layouts

        yield from infer_layouts(function, known).diagnostics
