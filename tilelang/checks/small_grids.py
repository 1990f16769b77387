"""Does a launch have fewer blocks than the device has multiprocessors? (TL609, on request)

    with T.Kernel(1, threads=128):      # one of 132 multiprocessors works

Small problems have small grids, so this is only said to someone who asks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from tilelang.program.arith import constant_value
from tilelang.program.context import make_diagnostic
from tilelang.program.stmt import Function, Launch, walk_statements
from tilelang.target import is_auto, parse_target
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic


def check(function: Function, target: str) -> Iterator[Diagnostic]:
    """Launches of constant size that cannot fill the largest device of the architecture."""
    if is_auto(target):
        return
    try:
        units = parse_target(target).capabilities.multiprocessors
    except CompileError:
        return
    if units is None:
        return
    for stmt in walk_statements(function.body):
        if not isinstance(stmt, Launch):
            continue
        counts = [constant_value(extent) for _, extent in stmt.blocks]
        known = [n for n in counts if n is not None]
        blocks = math.prod(known)
        if len(known) == len(counts) and 0 < blocks < units:
            yield make_diagnostic(
                "TL609",
                f"a grid of {blocks} block{'s' * (blocks > 1)} leaves {units - blocks} of the "
                f"{units} multiprocessors of {target} idle",
                span=stmt.span,
                label=" x ".join(map(str, known)) + f" block{'s' * (blocks > 1)}",
                help="use smaller tiles, or split the longest loop over blocks that add up their "
                "parts",
            )
