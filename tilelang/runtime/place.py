"""Where do the tensors of a call have to be, and how must their addresses be aligned?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tilelang.program.buffer import Buffer

PlaceKind = Literal["cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Place:
    """The memory a compiled kernel works on.

    `alignment` is what its code assumes of the address of a parameter, by name, where that is
    more than one element.
    """

    kind: PlaceKind = "cpu"
    alignment: Mapping[str, int] = field(default_factory=dict)

    def holds(self, device: str) -> bool:
        """Whether a tensor on `device` (`cpu`, `cuda:1`) is in this kind of memory."""
        return device.partition(":")[0] == self.kind

    def alignment_of(self, buffer: Buffer) -> int:
        """What the address of `buffer` has to be a multiple of, in bytes."""
        return max(buffer.dtype.scalar.bytes, self.alignment.get(buffer.name, 1), 1)


CPU: Final = Place()


def place_of(artifact: Any) -> Place:
    """Where the kernel of an artifact finds its tensors."""
    alignments = getattr(artifact, "alignments", None)
    return CPU if alignments is None else Place("cuda", alignments())


def device_index(device: str) -> int:
    """The number of `cuda:1`; 0 where there is none."""
    _, _, index = device.partition(":")
    return int(index) if index.isdigit() else 0
