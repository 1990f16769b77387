"""Tile kernels in Python, compiled for GPUs and CPUs.

    import tilelang
    import tilelang.language as T

Public names are loaded when first used: `import tilelang` imports neither TVM nor PyTorch.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from typing import TYPE_CHECKING, Any

# A checkout on a bare PYTHONPATH: the sibling packages live in folders of their own.
if importlib.util.find_spec("tilelang_diagnostics") is None:
    _root = os.path.dirname(os.path.dirname(__file__))
    sys.path.extend(os.path.join(_root, folder) for folder in ("diagnostics", "trace", "lsp"))

from tilelang.version import VERSION as __version__

if TYPE_CHECKING:
    from tilelang import autotuner, language, layout, math, profiler, testing
    from tilelang.emulator.settings import Emulator
    from tilelang.language.primfunc import PrimFunc
    from tilelang.layout import Fragment, Layout
    from tilelang.math import cdiv, next_power_of_2
    from tilelang.options import PassConfigKey
    from tilelang.runtime.autotune import autotune, set_autotune_inputs
    from tilelang.runtime.build import disable_cache, enable_cache, is_cache_enabled
    from tilelang.runtime.export import export
    from tilelang.runtime.inputs import TensorSupplyType
    from tilelang.runtime.jit import compile, jit
    from tilelang.runtime.kernel import JITKernel
    from tilelang.runtime.lower import lower
    from tilelang.runtime.parallel import par_compile
    from tilelang.runtime.report import TileLangWarning
    from tilelang.target import Target
    from tilelang_diagnostics import CompileError

# Public name -> where it is.
_NAMES: dict[str, str] = {
    "CompileError": "tilelang_diagnostics",
    "Fragment": "tilelang.layout",
    "JITKernel": "tilelang.runtime.kernel",
    "Layout": "tilelang.layout",
    "Emulator": "tilelang.emulator.settings",
    "PassConfigKey": "tilelang.options",
    "PrimFunc": "tilelang.language.primfunc",
    "Target": "tilelang.target",
    "TensorSupplyType": "tilelang.runtime.inputs",
    "TileLangWarning": "tilelang.runtime.report",
    "autotune": "tilelang.runtime.autotune",
    "set_autotune_inputs": "tilelang.runtime.autotune",
    "cdiv": "tilelang.math",
    "compile": "tilelang.runtime.jit",
    "disable_cache": "tilelang.runtime.build",
    "enable_cache": "tilelang.runtime.build",
    "export": "tilelang.runtime.export",
    "is_cache_enabled": "tilelang.runtime.build",
    "jit": "tilelang.runtime.jit",
    "lower": "tilelang.runtime.lower",
    "next_power_of_2": "tilelang.math",
    "par_compile": "tilelang.runtime.parallel",
}
_MODULES = ("autotuner", "language", "layout", "math", "profiler", "testing")

__all__ = [
    "CompileError", "Emulator", "Fragment", "JITKernel", "Layout", "PassConfigKey", "PrimFunc",
    "Target", "TensorSupplyType", "TileLangWarning", "__version__", "autotune", "autotuner", "cdiv",
    "compile",
    "disable_cache", "enable_cache", "export", "is_cache_enabled", "jit", "language", "layout",
    "lower", "math", "next_power_of_2", "par_compile", "profiler", "set_autotune_inputs",
    "testing",
]  # fmt: skip


def _find(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"tilelang.{name}")
    where = _NAMES.get(name)
    if where is None:
        from tilelang_diagnostics import did_you_mean

        hint = did_you_mean(name, (*_NAMES, *_MODULES))
        raise AttributeError(f"module 'tilelang' has no attribute {name!r}{hint}")
    value = globals()[name] = getattr(importlib.import_module(where), name)
    return value


if not TYPE_CHECKING:  # a type checker that sees it takes every name to be there
    __getattr__ = _find


def __dir__() -> list[str]:
    return sorted({*globals(), *_NAMES, *_MODULES})
