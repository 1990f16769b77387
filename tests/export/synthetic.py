"""Artifacts put together by hand: exporting them needs no device compiler."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.export import kernels
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary
from tilelang.codegen.device_source import DeviceSource, KernelLaunch, KernelParam, Slot
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.options import CompileOptions
from tilelang.program.buffer import Buffer
from tilelang.runtime.export import Product, write_artifacts
from tilelang.runtime.signature import make_signature
from tilelang.target import Target


def code_of(arch: str) -> bytes:
    """The shortest whole ELF file, of a length that tells architectures apart."""
    head = bytearray(b"\x7fELF" + bytes(60))
    head[0x28:0x30] = (64 + int(arch[3:5])).to_bytes(8, "little")
    return bytes(head) + bytes(int(arch[3:5]))


def product(
    name: str, launches: Sequence[KernelLaunch] | None = None, archs: Sequence[str] = ("sm_90a",),
    exported: str | None = None, **more: Any,
) -> list[Product]:  # fmt: skip
    """A kernel of `kernels`, as if it had been compiled to `launches` for each of `archs`."""
    function = kernels.named(name)
    signature = make_signature(function)
    slots, taken = [], set()
    for p in (*signature.slots, *signature.dims):
        own, count = p.name, 0
        while own in taken:
            count += 1
            own = f"{p.name}_{count}"
        taken.add(own)
        kind: Any = (
            "buffer" if isinstance(p, Buffer) else "scalar" if p in signature.params else "dim"
        )
        slots.append(Slot(kind, own, p.dtype.name))
    params = tuple(KernelParam(x.kind, x.name, x.dtype) for x in slots)
    launches = launches or (KernelLaunch(f"{name}_kernel", params, (1, 1, 1), (32, 1, 1)),)
    source = SourceMap((Line(f"// {name}"),))
    device = DeviceSource(name, "cuda", source, tuple(slots), tuple(launches), **more)
    return [
        Product(exported or name, function, signature, Target("cuda", arch), CompileOptions(),
                CudaArtifact(device, (CudaBinary(arch, code_of(arch)),)))
        for arch in archs
    ]  # fmt: skip


def export(folder: Path, *products: list[Product]) -> Path:
    return write_artifacts([p for group in products for p in group], folder)
