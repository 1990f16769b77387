"""The language: `import tilelang.language as T`.

Every name users write as `T.x` is listed here, by family. Functions are `LanguageFunction`
values (`catalog.py`) that also drive completion, hover and documentation; dtypes come from the
one table in `tilelang.dtypes`.
"""

# No `from __future__ import annotations` here: it would hide the submodule of that name.
from typing import Any

from tilelang.dtypes import ALIASES, SCALARS, VECTOR_LANES, DType, dtype
from tilelang.language import (
    alloc,
    annotations,
    atomics,
    casts,
    definitions,
    gpu,
    launch,
    loops,
    maths,
    source_kernel,
    threads,
    tile_copy,
    tile_gemm,
    tile_reduce,
    types,
    utilities,
    views,
)
from tilelang.language.catalog import LanguageFunction
from tilelang.language.primfunc import PrimFunc
from tilelang.language.types import (
    FragmentBuffer,
    LocalBuffer,
    Ref,
    SharedBuffer,
    StridedTensor,
    Tensor,
    make_tensor,
    ptr,
)
from tilelang.program.buffer import Buffer

FAMILIES = (
    definitions, launch, source_kernel, loops, alloc, tile_copy, tile_gemm, tile_reduce, views,
    atomics, maths, casts, threads, annotations, utilities, gpu,
)  # fmt: skip
FUNCTIONS: dict[str, LanguageFunction] = {
    function.name: function for family in FAMILIES for function in family.FUNCTIONS
}
CONSTANTS: dict[str, Any] = {
    name: value for family in FAMILIES for name, value in getattr(family, "CONSTANTS", {}).items()
}


DType.convert = casts.convert

_DTYPES: dict[str, DType] = {
    **SCALARS,
    **{alias: SCALARS[name] for alias, name in ALIASES.items() if alias != "ptr"},
}
_VECTORS = {
    f"{name}x{lanes}": found.with_lanes(lanes)
    for name, found in SCALARS.items()
    if name != "handle"
    for lanes in VECTOR_LANES
}
globals().update({**_VECTORS, **_DTYPES, **FUNCTIONS, **CONSTANTS})
globals().update(
    Serial=loops.serial, Unroll=loops.unroll, Vectorized=loops.vectorized, make_tensor=make_tensor
)

__all__ = [
    "Buffer", "DType", "FragmentBuffer", "LocalBuffer", "PrimFunc", "Ref", "SharedBuffer",
    "StridedTensor", "Tensor", "dtype", "make_tensor", "ptr", "types",
    *_DTYPES, *FUNCTIONS, *CONSTANTS,
]  # fmt: skip
