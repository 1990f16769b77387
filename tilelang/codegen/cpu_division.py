"""How are many numbers divided by one?

A division costs as much as a dozen multiplications. With the divisor's reciprocal computed once,
a product, its exact remainder and one correction give the very quotient IEEE asks for (Markstein,
1990), as long as nothing in between leaves the normal range. Divisors outside a safe range are
divided by plainly; dividends outside it (below 3e-29, above 3e28, zero, infinite, NaN) give the
plain product, which is exact for zero, infinity and NaN and within one unit in the last place for
the others.
"""

from __future__ import annotations

from typing import Final

from tilelang.codegen.cpu_builder import Builder, Val, floating, integer

# |divisor| within 2^±30 and |dividend| within 2^±95 keep every intermediate normal.
_DIVISOR: Final = (127 - 30, 127 + 30)
_DIVIDEND: Final = (127 - 95, 127 + 95)


def divide_by_invariant(b: Builder, x: Val, y: Val) -> Val:
    """`x / y` in float32, where `y` stays the same for a whole loop."""
    fast, slow, done = b.label("by_reciprocal"), b.label("by_division"), b.label("divided")
    # LLVM moves this test, and the reciprocal, out of the loop.
    b.branch_if(_exponent_within(b, b.lane(y, 0), _DIVISOR), fast, slow)
    b.open(slow)
    plain = b.binary("fdiv", x, y)
    b.branch(done)
    b.open(fast)
    quotient = _corrected(b, x, y)
    from_fast = b.block
    b.open(done)
    text = f"phi {plain.type} [ {plain.ref}, %{slow} ], [ {quotient.ref}, %{from_fast} ]"
    return b.emit(text, plain.base, plain.lanes)


def _corrected(b: Builder, x: Val, y: Val) -> Val:
    x, y = b.same_lanes(x, y)
    reciprocal = b.binary("fdiv", floating(1.0, "float", y.lanes), y)
    product = b.binary("fmul", x, reciprocal)
    minus = b.emit(f"fneg {product}", "float", x.lanes)
    remainder = b.intrinsic("fma", minus, y, x)
    quotient = b.intrinsic("fma", remainder, reciprocal, product)
    return b.select(_exponent_within(b, x, _DIVIDEND), quotient, product)


def _exponent_within(b: Builder, value: Val, exponents: tuple[int, int]) -> Val:
    """Whether the biased exponent of a float lies in [low, high), by one unsigned comparison."""
    low, high = exponents
    bits = b.binary("and", b.bitcast(value, "i32"), integer(0x7FFFFFFF, "i32"))
    above = b.binary("sub", bits, integer(low << 23, "i32"))
    return b.compare("ult", above, integer((high - low) << 23, "i32"))
