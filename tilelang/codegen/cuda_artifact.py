"""What does a kernel compiled for CUDA consist of?

A frozen value without TVM in it: generated source with its launches (`device_source`), and one
binary per architecture. The manifest travels as JSON beside the binaries, so a cached or exported
kernel runs in a process that has neither TVM nor a compiler.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilelang.codegen.cuda_binary import CudaBinary, specificity, split_arch
from tilelang.codegen.device_source import DeviceSource, KernelLaunch, Slot

SCHEMA: Final = 1
MANIFEST: Final = "manifest.json"
SOURCE: Final = "kernel.cu"


@dataclass(frozen=True, slots=True)
class CudaArtifact:
    """A compiled kernel: source, launches, and binaries of which any that fits is loaded."""

    device: DeviceSource
    binaries: tuple[CudaBinary, ...] = ()

    def __post_init__(self) -> None:
        if len(set(self.archs)) != len(self.archs):
            raise ValueError(f"two binaries for one architecture: {self.archs}")

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
        return self.device.shared_memory_bytes

    def alignments(self) -> dict[str, int]:
        """What the code assumes of the address of each buffer argument, in bytes."""
        return self.device.alignments()

    def binary_for(self, capability: tuple[int, int]) -> CudaBinary | None:
        """The most specific binary that runs on a device; None if none does."""
        fitting = [b for b in self.binaries if b.runs_on(capability)]
        return max(fitting, key=specificity, default=None)

    def ptx_for(self, capability: tuple[int, int]) -> CudaBinary | None:
        """The newest binary whose PTX a driver can compile for a device; not of `a` spellings."""
        older = [b for b in self.binaries if b.ptx and b.is_portable
                 and split_arch(b.arch)[:2] <= capability]  # fmt: skip
        return max(older, key=specificity, default=None)

    def manifest(self) -> dict[str, Any]:
        """Everything but source and binaries, as plain JSON values."""
        return {
            "schema": SCHEMA,
            "kind": "cuda",
            "binaries": [b.facts() for b in self.binaries],
            "device": self.device.manifest(),
        }

    def files(self) -> dict[str, bytes]:
        """Source and binaries, as the files of a folder."""
        found = {SOURCE: self.source.encode()}
        for binary in self.binaries:
            found[binary.file] = binary.cubin
            found[binary.ptx_file] = binary.ptx.encode()
        return found

    @staticmethod
    def from_files(manifest: Mapping[str, Any], read: Callable[[str], bytes]) -> CudaArtifact:
        """The artifact that `manifest()` and `files()` made; ValueError for another schema."""
        if manifest.get("schema") != SCHEMA or manifest.get("kind") != "cuda":
            raise ValueError(f"manifest schema {manifest.get('schema')!r} is not {SCHEMA}")
        binaries = []
        for facts in manifest["binaries"]:
            named = CudaBinary.from_facts(facts, b"", "")
            ptx = read(named.ptx_file).decode()
            binaries.append(CudaBinary.from_facts(facts, read(named.file), ptx))
        source = read(SOURCE).decode()
        return CudaArtifact(DeviceSource.from_manifest(source, manifest["device"]), tuple(binaries))

    def save(self, folder: Path) -> None:
        """Write it to a folder; raises OSError."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in self.files().items():
            (folder / name).write_bytes(data)
        (folder / MANIFEST).write_text(json.dumps(self.manifest(), indent=1), encoding="utf-8")

    @staticmethod
    def load(folder: Path) -> CudaArtifact:
        """Read what `save` wrote; raises OSError, or ValueError for another schema."""
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        return CudaArtifact.from_files(manifest, lambda name: (folder / name).read_bytes())
