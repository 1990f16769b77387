"""What does a kernel compiled for CUDA consist of?

A frozen value without TVM in it: generated source with its launches (`device_source`), and one
binary per architecture. The manifest travels as JSON beside the binaries, so a cached or exported
kernel runs in a process that has neither TVM nor a compiler.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilelang.codegen.device_source import DeviceSource, KernelLaunch, Slot

SCHEMA: Final = 1
MANIFEST: Final = "manifest.json"
SOURCE: Final = "kernel.cu"
_ARCH: Final = re.compile(r"sm_(\d+)([af]?)")


@dataclass(frozen=True, slots=True)
class CudaBinary:
    """Machine code for one architecture, `sm_80` or `sm_90a`."""

    arch: str
    cubin: bytes

    def __post_init__(self) -> None:
        if not _ARCH.fullmatch(self.arch):
            raise ValueError(f"{self.arch!r} is not an architecture")

    @property
    def file(self) -> str:
        """What it is called in a folder."""
        return f"kernel.{self.arch}.cubin"

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


@dataclass(frozen=True, slots=True)
class CudaArtifact:
    """A compiled kernel: source, launches, and binaries of which any that fits is loaded.

    `compiler` and `flags` say what made the binaries, for audit and for the cache.
    """

    device: DeviceSource
    binaries: tuple[CudaBinary, ...] = ()
    compiler: str = ""
    flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        archs = [b.arch for b in self.binaries]
        if len(set(archs)) != len(archs):
            raise ValueError(f"two binaries for one architecture: {archs}")

    @property
    def name(self) -> str:
        """The name of the kernel."""
        return self.device.name

    @property
    def slots(self) -> tuple[Slot, ...]:
        """What the host needs for a call, in order."""
        return self.device.slots

    @property
    def launches(self) -> tuple[KernelLaunch, ...]:
        """The kernels, in launch order."""
        return self.device.launches

    @property
    def source(self) -> str:
        """The generated CUDA C++."""
        return self.device.text

    @property
    def archs(self) -> tuple[str, ...]:
        """The architectures there is code for."""
        return tuple(b.arch for b in self.binaries)

    @property
    def shared_memory_bytes(self) -> int:
        """Shared memory of a block, static and dynamic, of its largest kernel."""
        return max((x.static_shared + x.dynamic_shared for x in self.launches), default=0)

    def alignments(self) -> dict[str, int]:
        """What the code assumes of the address of each buffer argument, in bytes."""
        found: dict[str, int] = {}
        for launch in self.launches:
            for param in launch.params:
                if param.kind == "buffer":
                    found[param.source] = max(param.alignment, found.get(param.source, 1))
        return found

    def binary_for(self, capability: tuple[int, int]) -> CudaBinary | None:
        """The most specific binary that runs on a device; None if none does."""
        fitting = [b for b in self.binaries if b.runs_on(capability)]
        return max(fitting, key=_how_specific, default=None)

    def manifest(self) -> dict[str, Any]:
        """Everything but source and binaries, as plain JSON values."""
        return {
            "schema": SCHEMA,
            "kind": "cuda",
            "archs": list(self.archs),
            "compiler": self.compiler,
            "flags": list(self.flags),
            "device": self.device.manifest(),
        }

    @staticmethod
    def from_manifest(
        manifest: Mapping[str, Any], source: str, cubins: Mapping[str, bytes]
    ) -> CudaArtifact:
        """The artifact `manifest()` described, with binaries by architecture."""
        if manifest.get("schema") != SCHEMA or manifest.get("kind") != "cuda":
            raise ValueError(f"manifest schema {manifest.get('schema')!r} is not {SCHEMA}")
        return CudaArtifact(
            DeviceSource.from_manifest(source, manifest["device"]),
            tuple(CudaBinary(arch, cubins[arch]) for arch in manifest["archs"]),
            manifest["compiler"],
            tuple(manifest["flags"]),
        )

    def files(self) -> dict[str, bytes]:
        """The files of a folder that holds the artifact."""
        text = json.dumps(self.manifest(), indent=1)
        return {
            MANIFEST: text.encode(),
            SOURCE: self.source.encode(),
            **{b.file: b.cubin for b in self.binaries},
        }

    def save(self, folder: Path) -> None:
        """Write `files()`; raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files().items():
            (folder / name).write_bytes(data)

    @staticmethod
    def load(folder: Path) -> CudaArtifact:
        """Read what `save` wrote; raises OSError, or ValueError for another schema."""
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        cubins = {a: (folder / f"kernel.{a}.cubin").read_bytes() for a in manifest["archs"]}
        source = (folder / SOURCE).read_text(encoding="utf-8")
        return CudaArtifact.from_manifest(manifest, source, cubins)


def split_arch(arch: str) -> tuple[int, int, str]:
    """Major, minor and suffix of `sm_90a`."""
    match = _ARCH.fullmatch(arch)
    if match is None:
        raise ValueError(f"{arch!r} is not an architecture")
    number = int(match[1])
    return number // 10, number % 10, match[2]


def _how_specific(binary: CudaBinary) -> tuple[int, int, int]:
    major, minor, suffix = split_arch(binary.arch)
    return major, minor, ("", "f", "a").index(suffix)
