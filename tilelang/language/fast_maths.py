"""Mathematics that gives up accuracy for speed, names its rounding, or works on pairs.

Fast forms are a licence to approximate: a target without an approximate instruction computes the
precise function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelang.language.catalog import CPU, CUDA, LanguageFunction, language_function
from tilelang.language.operands import (
    ScalarLike,
    choice,
    intrinsic,
    known,
    require_float,
    use_of,
)
from tilelang.program import operators
from tilelang.program.context import active_trace, reject
from tilelang.program.expr import Expr

ROUNDINGS = ("rn", "rz", "ru", "rd")
PACKED = ("float32x2", "float16x2", "bfloat16x2")

# name: what it approximates (CUDA C++ Programming Guide, intrinsic functions)
FAST: dict[str, str] = {
    "__exp": "e to the power of x",
    "__exp10": "10 to the power of x",
    "__log": "natural logarithm",
    "__log2": "logarithm to base 2",
    "__log10": "logarithm to base 10",
    "__sin": "sine of x in radians",
    "__cos": "cosine of x in radians",
    "__tan": "tangent of x in radians",
}
# name: (what it computes, operands) (CUDA C++ Programming Guide, __fadd_rn and its like)
IEEE: dict[str, tuple[str, tuple[str, ...]]] = {
    "ieee_add": ("x + y", ("x", "y")),
    "ieee_sub": ("x - y", ("x", "y")),
    "ieee_mul": ("x * y", ("x", "y")),
    "ieee_fdiv": ("x / y", ("x", "y")),
    "ieee_fmaf": ("x * y + z with one rounding", ("x", "y", "z")),
    "ieee_frcp": ("1 / x", ("x",)),
    "ieee_fsqrt": ("square root of x", ("x",)),
}
# name: (what it computes per lane, operands) (PTX ISA, add.f32x2 and its like)
PAIRS: dict[str, tuple[str, tuple[str, ...]]] = {
    "add2": ("x + y", ("x", "y")),
    "sub2": ("x - y", ("x", "y")),
    "mul2": ("x * y", ("x", "y")),
    "fma2": ("x * y + z with one rounding", ("x", "y", "z")),
    "max2": ("larger of x and y", ("x", "y")),
    "min2": ("smaller of x and y", ("x", "y")),
    "abs2": ("absolute value of x", ("x",)),
}


@language_function("scalar", targets=CPU)
def ieee_frsqrt(x: ScalarLike) -> Any:
    """Reciprocal square root, rounded to nearest even (CUDA, __frsqrt_rn).

    Args:
        x: float32; gives float32.

    >>> y = T.ieee_frsqrt(x)
    """
    value = operators.as_expr(x)
    require_float("ieee_frsqrt", value)
    return intrinsic("ieee_frsqrt", (value,), value.dtype)


def _fast(name: str, what: str) -> LanguageFunction:
    def function(x: ScalarLike) -> Any:
        value = operators.as_expr(x)
        require_float(name, value)
        return intrinsic(name, (value,), value.dtype)

    doc = (
        f"Approximate {what}, with the fast instruction of the target.\n\n"
        f"Args:\n    x: a float; gives its dtype.\n\n>>> y = T.{name}(x)"
    )
    return _named(name, doc, function, CPU)


def _ieee(name: str, what: str, parameters: tuple[str, ...]) -> LanguageFunction:
    def compute(values: tuple[ScalarLike, ...], rounding_mode: str) -> Any:
        mode = choice(name, "rounding_mode", rounding_mode, ROUNDINGS)
        operands = _common(name, values)
        dtype = operands[0].dtype
        if known(dtype) and dtype.bits == 16 and mode != "rn":
            reject(
                "TL117",
                f"`T.{name}` rounds {dtype} to nearest only, not `{mode}`",
                help="compute in float32, or leave out `rounding_mode`",
            )
        _require_rounding(name, mode)
        # Plain arithmetic rounds to nearest; every other mode is an operation of its own.
        return intrinsic(name if mode == "rn" else f"{name}_{mode}", operands, dtype)

    doc = (
        f"{what[0].upper()}{what[1:]}, rounded as named and never fused or approximated.\n\n"
        f"Args:\n    {', '.join(parameters)}: floats of one dtype;\n"
        "    rounding_mode: rn (nearest even), rz (toward 0), ru (up) or rd (down); "
        f"16-bit floats only rn.\n\n>>> y = T.{name}({', '.join(parameters)}, 'rz')"
    )
    return _named(name, doc, _with_rounding(parameters, compute), CPU)


def _with_rounding(parameters: tuple[str, ...], compute: Callable[..., Any]) -> Callable[..., Any]:
    """`compute` with a signature of as many operands, so that calls are checked by name."""

    def one(x: ScalarLike, rounding_mode: str = "rn") -> Any:
        return compute((x,), rounding_mode)

    def two(x: ScalarLike, y: ScalarLike, rounding_mode: str = "rn") -> Any:
        return compute((x, y), rounding_mode)

    def three(x: ScalarLike, y: ScalarLike, z: ScalarLike, rounding_mode: str = "rn") -> Any:
        return compute((x, y, z), rounding_mode)

    return (one, two, three)[len(parameters) - 1]


def _pair(name: str, what: str, parameters: tuple[str, ...]) -> LanguageFunction:
    def compute(values: tuple[ScalarLike, ...]) -> Any:
        operands = _common(name, values)
        dtype = operands[0].dtype
        if known(dtype) and dtype.name not in PACKED:
            reject(
                "TL236",
                f"`T.{name}` works on pairs ({', '.join(PACKED)}), got {dtype}",
                span=use_of(operands[0]),
                help="build a pair: `T.float32x2(a, b)`",
            )
        return intrinsic(name, operands, dtype)

    def one(x: Any) -> Any:
        return compute((x,))

    def two(x: Any, y: Any) -> Any:
        return compute((x, y))

    def three(x: Any, y: Any, z: Any) -> Any:
        return compute((x, y, z))

    doc = (
        f"{what[0].upper()}{what[1:]}, for both lanes of a pair in one instruction.\n\n"
        f"Args:\n    {', '.join(parameters)}: float32x2 (sm_100), float16x2 or bfloat16x2.\n\n"
        f">>> y = T.{name}({', '.join(parameters)})"
    )
    return _named(name, doc, (one, two, three)[len(parameters) - 1], CUDA)


def _common(name: str, values: tuple[ScalarLike, ...]) -> tuple[Expr, ...]:
    """All operands in the widest of their dtypes, which must be a float."""
    common = operators.as_expr(values[0])
    for value in values[1:]:
        common, _ = operators.as_operands(common, value, name)
    require_float(name, common)
    return tuple(operators.cast(v, common.dtype) for v in values)


def _require_rounding(name: str, mode: str) -> None:
    trace = active_trace()
    target = trace.target if trace else None
    if mode != "rn" and target is not None and not target.startswith("cuda"):
        reject(
            "TL401",
            f"`T.{name}` with rounding `{mode}` is not available on target `{target}`",
            label="needs cuda",
            help="round to nearest (`rn`), or compile for cuda",
        )


def _named(
    name: str, doc: str, function: Callable[..., Any], targets: tuple[str, ...]
) -> LanguageFunction:
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return language_function("scalar", targets=targets)(function)


FUNCTIONS = (
    ieee_frsqrt,
    *(_fast(name, what) for name, what in FAST.items()),
    *(_ieee(name, *row) for name, row in IEEE.items()),
    *(_pair(name, *row) for name, row in PAIRS.items()),
)
