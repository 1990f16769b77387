"""What came out of compiling CUDA source for one architecture?"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

_ARCH: Final = re.compile(r"sm_(\d+)([af]?)")
_ELF_HEADER: Final = 64


@dataclass(frozen=True, slots=True)
class KernelResources:
    """What one kernel takes, as ptxas reports it; sizes are bytes of a thread or block."""

    kernel: str
    registers: int = 0
    stack: int = 0
    spill_stores: int = 0
    spill_loads: int = 0
    shared: int = 0
    barriers: int = 0


@dataclass(frozen=True, slots=True)
class CudaBinary:
    """Machine code of one source for one architecture. `compiler` names who made it, and how."""

    arch: str
    cubin: bytes
    ptx: str = ""
    compiler: str = ""
    flags: tuple[str, ...] = ()
    resources: tuple[KernelResources, ...] = ()
    warnings: tuple[str, ...] = ()
    log: str = ""

    def __post_init__(self) -> None:
        split_arch(self.arch)

    @property
    def file(self) -> str:
        """What the machine code is called in a folder."""
        return f"kernel.{self.arch}.cubin"

    @property
    def ptx_file(self) -> str:
        """What the PTX it was made from is called in a folder."""
        return f"kernel.{self.arch}.ptx"

    @property
    def spills(self) -> int:
        """Bytes that threads of its kernels move for want of registers."""
        return sum(r.spill_stores + r.spill_loads for r in self.resources)

    def resources_of(self, kernel: str) -> KernelResources:
        """The row of one kernel."""
        return next(r for r in self.resources if r.kernel == kernel)

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Whether a device of compute capability `capability` can execute it.

        CUDA programming guide, binary compatibility: code for X.y runs on X.z with z >= y; code
        for the `a` spelling on X.y alone; for the `f` spelling within its family, which so far
        is its major number.
        """
        major, minor, suffix = split_arch(self.arch)
        if suffix == "a":
            return capability == (major, minor)
        return capability[0] == major and capability[1] >= minor

    @property
    def is_whole(self) -> bool:
        """Whether the machine code is an ELF file that has not lost its end.

        The driver takes its length from its headers and reads on where it should stop.
        """
        code = self.cubin
        if len(code) < _ELF_HEADER or code[:4] != b"\x7fELF":
            return False
        sections = int.from_bytes(code[0x28:0x30], "little")
        size, count = (int.from_bytes(code[n : n + 2], "little") for n in (0x3A, 0x3C))
        segments = int.from_bytes(code[0x20:0x28], "little")
        entry, entries = (int.from_bytes(code[n : n + 2], "little") for n in (0x36, 0x38))
        ends = (sections + size * count, segments + entry * entries)
        return max(ends) <= len(code)

    @property
    def is_portable(self) -> bool:
        """Whether its PTX may be compiled for newer architectures."""
        return not split_arch(self.arch)[2]

    def facts(self) -> dict[str, Any]:
        """What the compiler said, as JSON values; neither machine code nor PTX."""
        found = asdict(self)
        del found["cubin"], found["ptx"]
        return found

    @staticmethod
    def from_facts(facts: Mapping[str, Any], cubin: bytes, ptx: str) -> CudaBinary:
        """The binary `facts()` described."""
        return CudaBinary(
            facts["arch"],
            cubin,
            ptx,
            facts["compiler"],
            tuple(facts["flags"]),
            tuple(KernelResources(**row) for row in facts["resources"]),
            tuple(facts["warnings"]),
            facts["log"],
        )


def split_arch(arch: str) -> tuple[int, int, str]:
    """Major, minor and suffix of `sm_90a`; raises ValueError."""
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise ValueError(f"{arch!r} is not an architecture")
    number = int(match[1])
    return number // 10, number % 10, match[2]


def specificity(binary: CudaBinary) -> tuple[int, int, int]:
    """Sorts binaries: the most specific one of those that run on a device is the best."""
    major, minor, suffix = split_arch(binary.arch)
    return major, minor, ("", "f", "a").index(suffix)
