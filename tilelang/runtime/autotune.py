"""`@tilelang.autotune` is not part of this version: say so, where it is used."""

from __future__ import annotations

from typing import Any, NoReturn

from tilelang_diagnostics import code_of, error_for
from tilelang_diagnostics.model import Diagnostic


def autotune(*args: Any, **kwargs: Any) -> NoReturn:
    """Not available yet; raises a diagnostic."""
    raise error_for((Diagnostic(
        "TL111", code_of("TL111").severity, "tilelang.autotune is not part of this version",
        help="compile the configurations with kernel.par_compile(configs), and time each with "
        "kernel.get_profiler().do_bench()"),))  # fmt: skip
