"""How does a compiled kernel lie in the cache: which files, which facts, under which name?

What depends on where the kernel stands in its file (positions of assertions, the source map) is
kept apart from what its code decides, so that moving a kernel compiles nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any, assert_never

from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cpu_artifact import CpuArtifact, CpuMessage
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary
from tilelang.codegen.device_artifact import DeviceArtifact, DeviceCode
from tilelang.codegen.device_source import DeviceSource, HostCheck
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.runtime.fingerprint import Origin, rebase
from tilelang.runtime.store import Entry
from tilelang_diagnostics.model import Frame, Span

Origins = tuple[Origin, ...]


def files_of(artifact: Artifact, scratch: Path) -> dict[str, bytes | Path]:
    """The files of an entry; `scratch` is a folder to make some in."""
    match artifact:
        case CpuArtifact():
            files: dict[str, bytes | Path] = {
                "kernel.o": artifact.object_code,
                "kernel.ll": artifact.source.encode(),
            }
            library = _link(artifact, scratch / "kernel.so")
            return files if library is None else {**files, "kernel.so": library}
        case CudaArtifact():
            return {**artifact.files()}
        case DeviceArtifact():
            return {**artifact.files()}
        case _:
            assert_never(artifact)


def without_places(artifact: Artifact) -> Artifact:
    """`artifact` without what depends on where the kernel stands, and without binaries."""
    match artifact:
        case CpuArtifact():
            return replace(artifact, messages=(), object_code=b"")
        case CudaArtifact():
            device = _bare(artifact.device)
            binaries = tuple(
                CudaBinary(b.arch, b"", compiler=b.compiler, flags=b.flags)
                for b in artifact.binaries
            )
            return replace(artifact, device=device, binaries=binaries)
        case DeviceArtifact():
            code = DeviceCode(artifact.code.compiler, artifact.code.flags)
            return replace(artifact, device=_bare(artifact.device), code=code)
        case _:
            assert_never(artifact)


def manifest_of(artifact: Artifact) -> dict[str, Any]:
    """The manifest of an entry: without places, with what the compiler said."""
    plain = without_places(artifact)
    if isinstance(plain, CudaArtifact) and isinstance(artifact, CudaArtifact):
        plain = replace(plain, binaries=artifact.binaries)
    if isinstance(plain, DeviceArtifact) and isinstance(artifact, DeviceArtifact):
        plain = replace(plain, code=artifact.code)
    return plain.manifest()


def places_of(artifact: Artifact) -> Any:
    """What `without_places` drops, as JSON values."""
    match artifact:
        case CpuArtifact():
            return [asdict(m) for m in artifact.messages]
        case CudaArtifact() | DeviceArtifact():
            spans = [None if c.span is None else asdict(c.span) for c in artifact.device.checks]
            return {"map": artifact.device.source.to_json(), "checks": spans}
        case _:
            assert_never(artifact)


def artifact_of(entry: Entry, places: Any, old: Origins, new: Origins) -> Artifact:
    """The artifact of an entry, its places moved to where the kernel is now.

    Raises KeyError, TypeError, ValueError or OSError for an entry of another making.
    """
    manifest: Mapping[str, Any] = entry.meta["artifact"]
    if manifest.get("kind") == "cuda":
        cuda = CudaArtifact.from_files(manifest, entry.read)
        return replace(cuda, device=_with_places(cuda.device, places, old, new))
    if manifest.get("kind") == "device":
        found = DeviceArtifact.from_files(manifest, entry.read)
        return replace(found, device=_with_places(found.device, places, old, new))
    linked = "kernel.so" in entry.files
    cpu = CpuArtifact.from_manifest(
        {**manifest, "messages": places},
        b"" if linked else entry.read("kernel.o"),
        entry.read("kernel.ll").decode(),
    )
    return replace(cpu, messages=tuple(_moved_message(m, old, new) for m in cpu.messages))


def library_of(entry: Entry) -> Path | None:
    """The shared library of an entry, if it was linked to one."""
    return entry.path / "kernel.so" if "kernel.so" in entry.files else None


def binary_of(entry: Entry, artifact: Artifact) -> Any:
    """The compiled code of `artifact`, which has all but that; raises OSError."""
    match artifact:
        case CpuArtifact():
            return entry.read("kernel.o")
        case CudaArtifact():
            return CudaArtifact.from_files(entry.meta["artifact"], entry.read).binaries
        case DeviceArtifact():
            return DeviceArtifact.from_files(entry.meta["artifact"], entry.read).code
        case _:
            assert_never(artifact)


def code_identity(artifact: Artifact) -> tuple[Any, ...]:
    """Everything that decides the bytes of the binary and how it is called."""
    plain = without_places(artifact)
    settings = _llvm_settings() if isinstance(artifact, CpuArtifact) else _device_headers()
    return plain.source, plain.manifest(), settings


@cache
def _llvm_settings() -> str:
    """What LLVM is told to do with the generated code, which is a matter of one file."""
    return hashlib.sha256((_PACKAGE / "ir" / "llvm.py").read_bytes()).hexdigest()


@cache
def _device_headers() -> str:
    """The device functions that generated source calls."""
    digest = hashlib.sha256()
    for path in sorted((_PACKAGE / "codegen" / "headers").rglob("*.h")):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()


_PACKAGE = Path(__file__).parent.parent


def _bare(device: DeviceSource) -> DeviceSource:
    """Without places in the user's files."""
    bare = tuple(Line(line.text) for line in device.source.lines)
    checks = tuple(replace(c, span=None) for c in device.checks)
    return replace(device, source=SourceMap(bare), checks=checks)


def _moved_message(message: CpuMessage, old: Origins, new: Origins) -> CpuMessage:
    if message.line <= 0:
        return message
    span = Span(
        message.file, message.line, max(1, message.column),
        max(message.line, message.end_line), max(1, message.end_column),
    )  # fmt: skip
    moved = rebase(span, old, new) or span
    return replace(message, file=moved.file, line=moved.line, end_line=moved.end_line)


def _with_places(device: DeviceSource, places: Any, old: Origins, new: Origins) -> DeviceSource:
    source = SourceMap.from_json(device.text, places["map"])
    checks = tuple(
        replace(check, span=rebase(None if span is None else Span(**span), old, new))
        for check, span in zip(device.checks, places["checks"], strict=True)
    )
    if old != new:
        source = SourceMap(tuple(_moved_line(line, old, new) for line in source.lines))
    return replace(device, source=source, checks=tuple[HostCheck, ...](checks))


def _moved_line(line: Line, old: Origins, new: Origins) -> Line:
    spans = tuple(rebase(s, old, new) or s for s in line.spans)
    calls = tuple(Frame(f.function, rebase(f.span, old, new) or f.span) for f in line.calls)
    return Line(line.text, spans, calls)


def _link(artifact: CpuArtifact, destination: Path) -> Path | None:
    from tilelang.runtime.cpu import link_cpu

    return destination if link_cpu(artifact, destination) else None
