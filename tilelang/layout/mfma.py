"""Which lane holds which element of AMD's matrix instructions?

A wave of 64 lanes multiplies blocks of 32 x 32 or 16 x 16 (AMD Instinct MI300 ISA, Matrix
Arithmetic Instructions; AMD's matrix instruction calculator prints the same tables). With E
elements of A in a lane, and lanes counted in groups of `m`:

    A[i, k]: lane i + m (k / E),          register k % E
    B[k, j]: lane j + m (k / E),          register k % E
    D[i, j]: lane j + m (i / 4 % groups), register i % 4 + 4 (i / (4 groups))

A lane has four neighbours of a *column* of D, where code wants neighbours of a row. Since
D' = B' A', the operands are exchanged: the device function passes our B as A, and our A as B, and
these fragments describe what comes of it. The sums of one product then lie as the next one wants
its A, and rows are stored four elements at a time.

    >>> MFMA_ATOMS[0].c.owners(3, 5)
    ((35, 1),)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

from tilelang.layout.atoms import Atom
from tilelang.layout.digits import Digit
from tilelang.layout.fragment import Fragment

WAVE: Final = 64
# Rows of D that a lane holds next to each other.
_NEIGHBOURS: Final = 4
_GFX90A, _GFX942, _GFX950 = 0x90A, 0x942, 0x950


@dataclass(frozen=True, slots=True)
class MfmaAtom(Atom):
    """One `v_mfma`; `section` is its name without the types."""

    family: str = "mfma"
    threads: int = WAVE

    @property
    def a(self) -> Fragment:
        """The operand A, shape (m, k)."""
        return _operand(self.m, self.k, WAVE // self.m)

    @property
    def b(self) -> Fragment:
        """The operand B, shape (k, n)."""
        return _operand(self.n, self.k, WAVE // self.n).permute((1, 0))

    @property
    def c(self) -> Fragment:
        """The accumulators C and D, shape (m, n)."""
        return _sums(self.m, self.n, WAVE // self.m)


def _both(k: int, inputs: tuple[str, ...], bits: int, sums: str, first: int) -> tuple[Atom, ...]:
    """The 32 x 32 form of depth `k`, and the 16 x 16 one of twice the depth."""
    return tuple(
        MfmaAtom(m, m, depth, bits, inputs, (sums,), first, f"v_mfma_{m}x{m}x{depth}")
        for m, depth in ((32, k), (16, 2 * k))
    )


MFMA_ATOMS: Final[tuple[Atom, ...]] = (
    *_both(8, ("float16", "bfloat16"), 16, "float32", _GFX90A),
    *_both(2, ("float32",), 32, "float32", _GFX90A),
    *_both(16, ("int8",), 8, "int32", _GFX942),
)


@cache
def _operand(rows: int, k: int, groups: int) -> Fragment:
    held = k // groups
    return Fragment.from_digits(
        (rows, k),
        thread=(Digit(0, 1, rows, 1), Digit(1, held, groups, rows)),
        slot=(Digit(1, 1, held, 1),),
    )


@cache
def _sums(m: int, n: int, groups: int) -> Fragment:
    return Fragment.from_digits(
        (m, n),
        thread=(Digit(0, 1, m, 1), Digit(1, _NEIGHBOURS, groups, m)),
        slot=(
            Digit(1, 1, _NEIGHBOURS, 1),
            Digit(1, _NEIGHBOURS * groups, n // (_NEIGHBOURS * groups), _NEIGHBOURS),
        ),
    )
