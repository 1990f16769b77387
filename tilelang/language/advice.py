"""What is meant where somebody writes PyTorch, NumPy, Triton or CUDA inside a kernel?

Names that the language does not have but its neighbours do, and how it says the same; used where a
name is missing and where a function of Python is handed what only the device knows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from tilelang.dtypes import find_dtype
from tilelang.language.operands import kind_text
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import reject
from tilelang.program.expr import Const, Expr, Var, walk
from tilelang.program.unknown import Unknown

_TILE: Final = "`T.alloc_fragment(shape, dtype)`, then `T.clear` or `T.fill`"
_GEMM: Final = "`T.gemm(A_tile, B_tile, C_tile)` on tiles"
_GATHER: Final = "an index (`A[i, j]`), or the copy of a tile (`T.copy(A[i, j], tile)`)"
_SYNC: Final = "`T.sync_threads()`, where threads meet outside of tile operations"
_SPLIT: Final = "`T.copy` into or out of regions, such as `tile[:, 0:64]`"
_ALONG: Final = "an index without that axis: `A[i, j] * bias[j]` inside `T.Parallel`"

# Functions, by the names other libraries have for them.
NAMES: Final[Mapping[str, str]] = {
    "where": "`T.if_then_else(condition, a, b)`",
    "inf": "`T.infinity(dtype)`, `-T.infinity(dtype)` for the other end",
    "reduce_mean": "`T.reduce_sum(tile, out, dim)`, and divide `out` by the number of elements",
    "select": "`T.if_then_else(condition, a, b)`",
    "maximum": "`T.max(a, b)`",
    "minimum": "`T.min(a, b)`",
    "fmaxf": "`T.max(a, b)`",
    "fminf": "`T.min(a, b)`",
    "relu": "`T.max(x, 0)`",
    "clip": "`T.clamp(x, low, high)`",
    "square": "`x * x`",
    "silu": "`x * T.sigmoid(x)`",
    "gelu": "`0.5 * x * (1 + T.erf(x / 2**0.5))`",
    "softmax": "`T.reduce_max`, `T.exp` in `T.Parallel`, and `T.reduce_sum`",
    "add": "`a + b` on elements",
    "sub": "`a - b` on elements",
    "subtract": "`a - b` on elements",
    "mul": "`a * b` on elements",
    "multiply": "`a * b` on elements",
    "div": "`a / b` on elements",
    "divide": "`a / b` on elements",
    "negative": "`-x`",
    "neg": "`-x`",
    "mod": "`a % b`",
    "remainder": "`a % b`",
    "dot": _GEMM,
    "matmul": _GEMM,
    "mm": _GEMM,
    "bmm": f"{_GEMM}, with the batch as an axis of the grid",
    "einsum": _GEMM,
    "mma": _GEMM,
    "sum": "`T.reduce_sum(tile, out, dim)` for tiles, `+=` in `T.serial` for elements",
    "mean": "`T.reduce_sum(tile, out, dim)`, divided by the extent",
    "amax": "`T.reduce_max(tile, out, dim)`",
    "amin": "`T.reduce_min(tile, out, dim)`",
    "argmax": "`T.reduce_max`, then `T.reduce_min` of the positions that hold the maximum",
    "prod": "`*=` in `T.serial`",
    "zeros": _TILE,
    "zeros_like": _TILE,
    "ones": _TILE,
    "full": _TILE,
    "full_like": _TILE,
    "tensor": "a parameter of the kernel for a tensor, `T.alloc_shared` and its like for a tile",
    "array": "a parameter of the kernel for a tensor, `T.alloc_shared` and its like for a tile",
    "arange": "the variable of a loop: `for i in T.Parallel(n):`",
    "range": "`T.serial(n)`, or Python's own `range(n)`",
    "static_range": "`T.unroll(n)`",
    "load": _GATHER,
    "store": "an assignment (`A[i, j] = x`), or the copy of a tile (`T.copy(tile, A[i, j])`)",
    "program_id": "the names of the launch: `with T.Kernel(grid_x, grid_y) as (bx, by):`",
    "num_programs": "the extents that `T.Kernel` was given",
    "threadidx": "`T.get_thread_binding(0)`",
    "blockidx": "the names of the launch: `with T.Kernel(grid_x, grid_y) as (bx, by):`",
    "thread_id": "`T.get_thread_binding(0)`",
    "constexpr": "a parameter of the Python function around the kernel",
    "cdiv": "`T.ceildiv(a, b)`",
    "syncthreads": _SYNC,
    "debug_barrier": _SYNC,
    "barrier": _SYNC,
    "shared": "`T.alloc_shared(shape, dtype)`",
    "alloc": "`T.alloc_shared`, `T.alloc_fragment` or `T.alloc_local`",
    "cat": _SPLIT,
    "concat": _SPLIT,
    "concatenate": _SPLIT,
    "stack": _SPLIT,
    "split": _SPLIT,
    "permute": "`T.transpose(src, dst)`, or the indices in another order",
    "broadcast_to": _ALONG,
    "expand": _ALONG,
    "expand_dims": _ALONG,
    "unsqueeze": _ALONG,
    "randn": "`T.rng_init(seed)`, then `T.rng_rand_float()`",
    "rand": "`T.rng_init(seed)`, then `T.rng_rand_float()`",
    "printf": "`T.print(x)`",
    "static_assert": "Python's `assert`, while the kernel is traced",
    "device_print": "`T.print(x)`",
    "divmod": "`a // b` and `a % b`",
}

# Attributes of tensors that neither a buffer nor an element has.
_ATTRIBUTES: Final[Mapping[str, str]] = {
    "T": "`T.transpose(src, dst)`, or `transpose_B=True` of `T.gemm`",
    "mT": "`T.transpose(src, dst)`, or `transpose_B=True` of `T.gemm`",
    "t": "`T.transpose(src, dst)`, or `transpose_B=True` of `T.gemm`",
    "size": "`.shape`",
    "numel": "`.shape`",
    "dim": "`.ndim`",
    "item": "the element itself, which is a value of the kernel already",
    "tolist": "its elements, in a loop",
    "fill_": "`T.fill(tile, value)`",
    "fill": "`T.fill(tile, value)`",
    "zero_": "`T.clear(tile)`",
    "copy_": "`T.copy(src, dst)`",
    "clone": "`T.copy(src, dst)` into a tile of its own",
    "copy": "`T.copy(src, dst)` into a tile of its own",
    "contiguous": "`T.copy(src, dst)` into a tile of its own",
    "to": "`T.cast(x, dtype)` for elements; `T.copy` converts tiles",
    "type": "`T.cast(x, dtype)` for elements; `T.copy` converts tiles",
    "float": "`T.cast(x, dtype)` for elements; `T.copy` converts tiles",
    "half": "`T.cast(x, dtype)` for elements; `T.copy` converts tiles",
    "astype": "`T.cast(x, dtype)` for elements; `T.copy` converts tiles",
    "view": "`T.view(tile, shape)`",
    "flatten": "`T.reshape(tile, shape)`",
    "append": "a buffer, which has a fixed number of elements",
    "max": "`T.reduce_max(tile, out, dim)`",
    "min": "`T.reduce_min(tile, out, dim)`",
    "stride": "`.strides`",
    "device": "nothing: a kernel runs where its tensors are",
    "numpy": "its elements, in a loop",
}

# Libraries whose functions compute in Python, and never become part of a kernel.
_LIBRARIES: Final = ("numpy", "torch", "math", "cmath", "jax", "cupy", "scipy", "builtins")


def for_name(name: str) -> str | None:
    """How the language says what other libraries call `name`."""
    from tilelang.language import FUNCTIONS

    plain = name.lower().strip("_")
    if plain in NAMES:
        return f"use {NAMES[plain]}"
    for candidate in (plain, plain.removesuffix("f")):  # C's `expf`
        if candidate in FUNCTIONS:
            return f"use `T.{candidate}(…)`"
    return None


def for_attribute(owner: Any, name: str) -> str | None:
    """As `for_name`, for an attribute or method of a buffer or value."""
    if not isinstance(owner, (Buffer, Region, Expr)):
        return None
    if name in _ATTRIBUTES:
        return f"use {_ATTRIBUTES[name]}"
    return for_name(name)


def refuse_foreign(function: Any, text: str, given: Any) -> None:
    """TL152 for `np.exp(A[i])` and its like: Python cannot compute what the device knows."""
    device = next(device_values(given), None)
    if device is None or _library(function) not in _LIBRARIES:
        return
    name = getattr(function, "__name__", text.rsplit(".", 1)[-1])
    whole = isinstance(device, (Buffer, Region))
    cast = f"use `T.cast(x, '{name}')`" if find_dtype(name) is not None else None
    help = (
        cast
        or for_name(name)
        or ("write it with functions of the language: `T.exp(x)`, `T.max(a, b)`, `a * b`")
    )
    if whole and "tile" not in help:
        help += ", element by element in `for i in T.Parallel(n):`"
    reject(
        "TL152",
        f"`{text}` computes in Python, and cannot take {kind_text(device)}",
        label="only known when the kernel runs",
        help=help,
    )


def refuse_index(container: Any, index: Any) -> None:
    """TL228 for a Python container that is indexed by what only the device knows."""
    device = next(device_values(index), None)
    if device is None:
        return
    what = _container_text(container)
    array = "array" in what or "tensor" in what
    reject(
        "TL228",
        f"{what} is indexed by {kind_text(device)}, which is only known when the kernel runs",
        help="pass it to the kernel as a tensor: a parameter with an annotation"
        if array
        else "hold the values in a buffer, as in `T.alloc_local((n,), dtype)`, or index by a "
        "Python value",
    )


def device_values(value: Any) -> Iterator[Any]:
    """The buffers and expressions in `value` that have no value while the kernel is traced."""
    if isinstance(value, (Buffer, Region)):
        yield value
    elif isinstance(value, Expr):
        if not isinstance(value, Const) and not _is_open(value):
            yield value
    elif isinstance(value, slice):
        yield from device_values((value.start, value.stop, value.step))
    elif isinstance(value, Mapping):
        yield from device_values(tuple(value.values()))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from device_values(item)


def mentions_open(value: Any) -> bool:
    """Whether something in `value` is computed from a parameter that nobody has chosen yet."""
    if isinstance(value, Mapping):
        return mentions_open((*value, *value.values()))
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(mentions_open(item) for item in value)
    return isinstance(value, Expr) and _is_open(value)


def _is_open(value: Expr) -> bool:
    """Whether it is a parameter of a factory that nobody has chosen yet."""
    return any(isinstance(n, Var) and n.kind in ("symbol", "const") for n in walk(value))


def _library(function: Any) -> str:
    if isinstance(function, Unknown):  # of an import that is not executed
        return str(function).split(".")[0]
    owner = getattr(function, "__self__", None)
    home = getattr(function, "__module__", None)
    if home is None:  # a method of C, an object that can be called
        home = getattr(owner, "__module__", None) or type(function).__module__
    return str(home).split(".")[0]


def _container_text(value: Any) -> str:
    module = type(value).__module__.split(".")[0]
    if module == "numpy":
        return "a NumPy array"
    if module == "torch":
        return "a PyTorch tensor"
    return f"a Python {type(value).__name__}"
