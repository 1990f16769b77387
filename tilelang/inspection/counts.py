"""Which instructions are worth counting, under which name, and how many of each are there?

Names are those of PTX as far as they go, for machine code too, so that one expectation holds on
every architecture: `mma`, `cp.async`, `ld.global.b128`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

WIDTHS: Final = (8, 16, 32, 64, 128, 256)
_ACCESSES: Final = {
    "cp.async": "copies from global to shared memory that do not wait",
    "ld.global": "loads from global memory",
    "st.global": "stores to global memory",
    "ld.shared": "loads from shared memory",
    "st.shared": "stores to shared memory",
    "ld.local": "loads from memory of the thread: spilled registers, and arrays with runtime index",
    "st.local": "stores to memory of the thread",
    "ld.generic": "loads through a pointer of unknown memory",
    "st.generic": "stores through a pointer of unknown memory",
}
_OTHERS: Final = {
    "mma": "matrix instructions",
    "wgmma": "those of them that a warp group does together",
    "tcgen05.mma": "those of them that accumulate in tensor memory",
    "ldmatrix": "loads of matrix fragments from shared memory",
    "stmatrix": "stores of matrix fragments to shared memory",
    "cp.async.commit": "ends of groups of asynchronous copies",
    "cp.async.wait": "waits for groups of asynchronous copies",
    "tma": "copies of the tensor memory accelerator",
    "ld.global.nc": "loads from global memory that is read only while the kernel runs",
    "ld.global.plain": "the other loads from global memory",
    "atomic": "atomic operations and reductions in memory",
    "barrier": "barriers of the threads of a block",
    "mbarrier": "operations on mbarriers",
    "shuffle": "exchanges within a warp",
    "instructions": "all instructions",
}
# Every name there is, with its meaning; accesses have their widths in bits besides.
NAMES: Final[Mapping[str, str]] = {
    **_OTHERS,
    **_ACCESSES,
    **{f"{n}.b{w}": f"{text}, {w} bits at a time" for n, text in _ACCESSES.items() for w in WIDTHS},
}


@dataclass(frozen=True, slots=True)
class Counts:
    """How often each name occurs: pairs in the order of `NAMES`, none of them zero."""

    pairs: tuple[tuple[str, int], ...] = ()

    def __post_init__(self) -> None:
        for name, number in self.pairs:
            if name not in NAMES or number < 1:
                raise ValueError(f"{number} of {name!r} is no count")

    def __getitem__(self, name: str) -> int:
        if name not in NAMES:
            raise KeyError(name)
        return dict(self.pairs).get(name, 0)

    def __bool__(self) -> bool:
        return bool(self.pairs)

    def __add__(self, other: Counts) -> Counts:
        return _made(Counter(dict(self.pairs)) + Counter(dict(other.pairs)))

    def __str__(self) -> str:
        return ", ".join(f"{number} {name}" for name, number in self.pairs)


def counted(opcodes: Iterable[str], classify: str = "sass") -> Counts:
    """The counts of instructions with these opcodes, modifiers included."""
    names = of_sass if classify == "sass" else of_ptx
    found: Counter[str] = Counter()
    for opcode in opcodes:
        found.update(names(opcode))
    return _made(found)


def _made(found: Mapping[str, int]) -> Counts:
    return Counts(tuple((name, found[name]) for name in NAMES if found.get(name)))


# --- machine code ---

# HMMA, IMMA, DMMA, QMMA (fp8), OMMA (fp4), BMMA; with a G those of warp groups; UTC*MMA of tcgen05.
_MMA: Final = re.compile(r"(UTC)\w*MMA|[HIDQOB](G)?MMA")
_SASS_ACCESS: Final = {
    "LDG": "ld.global", "STG": "st.global", "LDS": "ld.shared", "STS": "st.shared",
    "LDL": "ld.local", "STL": "st.local", "LD": "ld.generic", "ST": "st.generic",
    "LDGSTS": "cp.async",
}  # fmt: skip
_SASS_OTHER: Final = {
    "LDSM": "ldmatrix", "STSM": "stmatrix", "LDGDEPBAR": "cp.async.commit",
    "BAR": "barrier", "SYNCS": "mbarrier", "SHFL": "shuffle", "UBLKCP": "tma",
    "UTMALDG": "tma", "UTMASTG": "tma", "UTMAREDG": "tma", "UBLKRED": "tma",
    "ATOM": "atomic", "ATOMG": "atomic", "ATOMS": "atomic", "RED": "atomic", "REDG": "atomic",
    "REDAS": "atomic",
}  # fmt: skip
_SASS_WIDTH: Final = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}


def of_sass(opcode: str) -> Iterator[str]:
    """The names a machine instruction counts under."""
    yield "instructions"
    name, *modifiers = opcode.split(".")
    access = _SASS_ACCESS.get(name)
    if access is not None:
        width = next((_SASS_WIDTH[m] for m in modifiers if m in _SASS_WIDTH), 32)
        yield from _access(access, width, "CONSTANT" in modifiers)
    elif name in _SASS_OTHER:
        yield _SASS_OTHER[name]
    elif name == "DEPBAR" and "LE" in modifiers:
        # Of copies, those of the tensor memory accelerator too.
        yield "cp.async.wait"
    elif (matrix := _MMA.fullmatch(name)) is not None:
        yield "mma"
        if matrix[1] or matrix[2]:
            yield "tcgen05.mma" if matrix[1] else "wgmma"


def _access(access: str, width: int, read_only: bool) -> Iterator[str]:
    yield access
    yield f"{access}.b{width}"
    if access == "ld.global":
        yield "ld.global.nc" if read_only else "ld.global.plain"


# --- PTX ---

_PTX_ACCESS: Final = re.compile(r"(ld|st)(?:\.\w+)*?\.(global|shared|local)\b")
_PTX_VECTOR: Final = re.compile(r"\.v([248])\b")
_PTX_TYPE: Final = re.compile(r"\.(?:[busf]|bf|f16x|e4m3x|e5m2x)(8|16|32|64|128)\b")
_PTX_OTHER: Final = (
    ("cp.async.bulk.wait", "cp.async.wait"), ("cp.async.bulk.commit", ""),
    ("cp.async.bulk.", "tma"), ("cp.async.wait", "cp.async.wait"),
    ("cp.async.commit", "cp.async.commit"), ("cp.reduce.async.bulk", "tma"),
    ("mma.", "mma"), ("wmma.mma", "mma"), ("wgmma.mma_async", "wgmma"),
    ("tcgen05.mma", "tcgen05.mma"),
    ("ldmatrix", "ldmatrix"), ("stmatrix", "stmatrix"), ("mbarrier", "mbarrier"),
    ("bar.warp", ""), ("barrier.cluster", ""), ("bar.", "barrier"), ("barrier.", "barrier"),
    ("shfl", "shuffle"), ("atom", "atomic"), ("red.", "atomic"),
)  # fmt: skip


def of_ptx(opcode: str) -> Iterator[str]:
    """The names a PTX instruction counts under; `opcode` of cp.async ends in its size (`, 16`)."""
    yield "instructions"
    if opcode.startswith(("cp.async.ca", "cp.async.cg")):
        size = int(opcode.rpartition(" ")[2])
        yield from _access("cp.async", 8 * size, False)
        return
    for start, name in _PTX_OTHER:
        if opcode.startswith(start):
            if name in ("wgmma", "tcgen05.mma"):
                yield "mma"
            if name:
                yield name
            return
    found = _PTX_ACCESS.match(opcode)
    if found is not None:
        vector, kind = _PTX_VECTOR.search(opcode), _PTX_TYPE.search(opcode)
        width = int(kind[1]) if kind else 32
        width *= int(vector[1]) if vector else 1
        yield from _access(f"{found[1]}.{found[2]}", width, ".nc" in opcode)
