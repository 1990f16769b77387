"""What does a kernel consist of that is printed in a dialect without a launcher of its own?

A frozen value without TVM in it: generated source with its launches (`device_source`), and what the
compiler of the dialect made of it. Like `cuda_artifact`, for any other kind of device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from tilelang.codegen.device_source import DeviceSource, KernelLaunch, Slot

SCHEMA: Final = 1


@dataclass(frozen=True, slots=True)
class DeviceCode:
    """What a compiler made of one source for one target.

    `object` are the bytes a driver loads and `assembly` the same for people, either empty where
    the compiler gives none. `resources` are its own figures, by kernel and name.
    """

    compiler: str = ""
    flags: tuple[str, ...] = ()
    object: bytes = b""
    assembly: str = ""
    resources: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceArtifact:
    """A printed kernel, and its code for `target`; `suffix` is that of its source file."""

    device: DeviceSource
    target: str
    suffix: str
    code: DeviceCode

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
        """The generated source."""
        return self.device.text

    @property
    def shared_memory_bytes(self) -> int:
        """Shared memory of a block, static and dynamic, of its largest kernel."""
        return self.device.shared_memory_bytes

    def alignments(self) -> dict[str, int]:
        """What the code assumes of the address of each buffer argument, in bytes."""
        return self.device.alignments()

    def manifest(self) -> dict[str, Any]:
        """Everything but source and code, as plain JSON values."""
        facts = {k: v for k, v in asdict(self.code).items() if k not in ("object", "assembly")}
        return {
            "schema": SCHEMA, "kind": "device", "target": self.target, "suffix": self.suffix,
            "code": facts, "device": self.device.manifest(),
        }  # fmt: skip

    def files(self) -> dict[str, bytes]:
        """Source and code, as the files of a folder."""
        return {
            f"kernel.{self.suffix}": self.source.encode(),
            "kernel.co": self.code.object,
            "kernel.s": self.code.assembly.encode(),
        }

    @staticmethod
    def from_files(manifest: Mapping[str, Any], read: Callable[[str], bytes]) -> DeviceArtifact:
        """The artifact that `manifest()` and `files()` made; ValueError for another schema."""
        if manifest.get("schema") != SCHEMA or manifest.get("kind") != "device":
            raise ValueError(f"manifest schema {manifest.get('schema')!r} is not {SCHEMA}")
        facts = manifest["code"]
        code = DeviceCode(
            facts["compiler"], tuple(facts["flags"]), read("kernel.co"),
            read("kernel.s").decode(), facts["resources"], tuple(facts["warnings"]),
        )  # fmt: skip
        source = read(f"kernel.{manifest['suffix']}").decode()
        device = DeviceSource.from_manifest(source, manifest["device"])
        return DeviceArtifact(device, manifest["target"], manifest["suffix"], code)
