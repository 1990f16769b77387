"""Which thread holds which operand element of a matrix instruction: one table row each.

Every `mma.sync` operand follows one scheme (PTX ISA 9.7.14.5). A lane is `4 * groupID +
threadID_in_group`. The rows of A and C, and the columns of B, run over `groupID`, then over
registers. Along k, first the elements packed into one 32-bit register, then
`threadID_in_group`, then registers again. So a row of the table needs only its shape and the
width of its elements; the tests compare each with the formulas as the manual spells them.

To add an instruction family: a subclass of `Atom` with fragments of its own, its rows, and a
`Family` in `instructions` (`mfma` is one).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from tilelang.layout.digits import Digit
from tilelang.layout.fragment import Fragment

LANES = 32


@dataclass(frozen=True, slots=True)
class Atom:
    """One matrix instruction `c[m, n] += a[m, k] @ b[k, n]` executed by `threads` threads.

    `bits` is the width of an element of A and B in a register. `min_arch` is the first compute
    capability that has it. `section` is where the PTX ISA (8.7 to 9.2) draws the fragments.
    """

    m: int
    n: int
    k: int
    bits: int
    inputs: tuple[str, ...]
    accumulators: tuple[str, ...]
    min_arch: int
    section: str
    family: str = "mma.sync"
    threads: int = LANES

    def __post_init__(self) -> None:
        if self.m % 8 or self.n % 8 or self.k < 1:
            raise ValueError(f"matrix fragments are built from 8 rows by 8 columns, got {self}")

    @property
    def name(self) -> str:
        """As the manual writes it, with the input types."""
        return f"{self.family}.{self.shape} ({'/'.join(self.inputs)})"

    @property
    def shape(self) -> str:
        """As the manual writes it: `m16n8k16`."""
        return f"m{self.m}n{self.n}k{self.k}"

    @property
    def a(self) -> Fragment:
        """The operand A, shape (m, k)."""
        return _mma_a(self.m, self.k, max(1, 32 // self.bits))

    @property
    def b(self) -> Fragment:
        """The operand B, shape (k, n)."""
        return _mma_b(self.k, self.n, max(1, 32 // self.bits))

    @property
    def c(self) -> Fragment:
        """The accumulators C and D, shape (m, n)."""
        return _mma_c(self.m, self.n)

    def __str__(self) -> str:
        return self.name


_FLOAT = ("float16", "float32")
_INT8 = ("int8", "uint8")
_INT4 = ("int4", "uint4")
_FP8 = ("float8_e4m3fn", "float8_e5m2")

ATOMS: tuple[Atom, ...] = (
    Atom(16, 8, 4, 32, ("tfloat32",), ("float32",), 80, "9.7.14.5.6"),
    Atom(16, 8, 8, 32, ("tfloat32",), ("float32",), 80, "9.7.14.5.7"),
    Atom(16, 8, 8, 16, ("float16",), _FLOAT, 75, "9.7.14.5.7"),
    Atom(16, 8, 8, 16, ("bfloat16",), ("float32",), 80, "9.7.14.5.7"),
    Atom(16, 8, 16, 16, ("float16",), _FLOAT, 80, "9.7.14.5.8"),
    Atom(16, 8, 16, 16, ("bfloat16",), ("float32",), 80, "9.7.14.5.8"),
    Atom(8, 8, 16, 8, _INT8, ("int32",), 75, "9.7.14.5.3"),
    Atom(16, 8, 16, 8, _INT8, ("int32",), 80, "9.7.14.5.9"),
    Atom(16, 8, 32, 8, _INT8, ("int32",), 80, "9.7.14.5.10"),
    Atom(16, 8, 16, 8, _FP8, _FLOAT, 89, "9.7.14.5.9"),
    Atom(16, 8, 32, 8, _FP8, _FLOAT, 89, "9.7.14.5.10"),
    Atom(8, 8, 32, 4, _INT4, ("int32",), 75, "9.7.14.5.4"),
    Atom(16, 8, 32, 4, _INT4, ("int32",), 80, "9.7.14.5.10"),
    Atom(16, 8, 64, 4, _INT4, ("int32",), 80, "9.7.14.5.11"),
    Atom(8, 8, 4, 64, ("float64",), ("float64",), 80, "9.7.14.5.2"),
    Atom(16, 8, 4, 64, ("float64",), ("float64",), 90, "9.7.14.5.6"),
    Atom(16, 8, 8, 64, ("float64",), ("float64",), 90, "9.7.14.5.7"),
    Atom(16, 8, 16, 64, ("float64",), ("float64",), 90, "9.7.14.5.8"),
)


def find_atoms(dtype: str, accumulator: str, arch: int) -> tuple[Atom, ...]:
    """The instructions for these types on compute capability `arch`, deepest k first."""
    found = [
        atom
        for atom in ATOMS
        if dtype in atom.inputs and accumulator in atom.accumulators and atom.min_arch <= arch
    ]
    return tuple(sorted(found, key=lambda atom: (-atom.m, -atom.k)))


@cache
def ldmatrix(matrices: int, transposed: bool = False) -> Fragment:
    """What `ldmatrix.x<matrices>` gives, shape (matrices, 8, 8) of 16-bit elements: slot `2*q`
    and `2*q + 1` of a lane are two neighbours of matrix `q` (PTX ISA 9.7.14.5.15)."""
    row, column = (2, 1) if transposed else (1, 2)
    return Fragment.from_digits(
        (matrices, 8, 8),
        thread=(Digit(row, 1, 8, 4), Digit(column, 2, 4, 1)),
        slot=(Digit(column, 1, 2, 1), Digit(0, 1, matrices, 2)),
    )


@cache
def _mma_a(m: int, k: int, packed: int) -> Fragment:
    return Fragment.from_digits(
        (m, k),
        thread=(Digit(0, 1, 8, 4), Digit(1, packed, 4, 1)),
        slot=(
            Digit(1, 1, packed, 1),
            Digit(0, 8, m // 8, packed),
            Digit(1, 4 * packed, max(1, k // (4 * packed)), packed * (m // 8)),
        ),
    )


@cache
def _mma_b(k: int, n: int, packed: int) -> Fragment:
    return Fragment.from_digits(
        (k, n),
        thread=(Digit(1, 1, n, 4), Digit(0, packed, 4, 1)),
        slot=(
            Digit(0, 1, packed, 1),
            Digit(0, 4 * packed, max(1, k // (4 * packed)), packed),
        ),
    )


@cache
def _mma_c(m: int, n: int) -> Fragment:
    return Fragment.from_digits(
        (m, n),
        thread=(Digit(0, 1, 8, 4), Digit(1, 2, n // 2, 1)),
        slot=(Digit(1, 1, 2, 1), Digit(0, 8, m // 8, 2)),
    )
