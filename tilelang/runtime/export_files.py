"""Which files is an export, and what does its manifest say of them?

    scale.so                  what runs
    scale.c                   its host side, from which it was linked
    scale.sm_90a.cu           generated source
    scale.sm_90a.map.json     the Python line of each of its lines
    scale.sm_90a.cubin, .ptx  what it was compiled to
    manifest.json             target, flags, versions, hashes

In a folder the manifest is `manifest.json`; beside a file of a given name, every name begins with
that of the file. The shared object alone is enough to run.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function as TracedFunction
from tilelang.runtime.cache import KernelCache
from tilelang.runtime.export_cpu import object_file
from tilelang.runtime.export_cuda import binary_file
from tilelang.runtime.export_host import Function, Variant, host_source
from tilelang.runtime.export_link import link_host
from tilelang.runtime.export_signature import signature_text
from tilelang.runtime.fingerprint import fingerprint
from tilelang.runtime.identity import compiler_digest, tool_versions
from tilelang.target import Target
from tilelang.version import VERSION
from tilelang_diagnostics import CompileError, failure

SCHEMA: Final = 1
KIND: Final = "tilelang-export"
MANIFEST: Final = "manifest.json"
_LIBRARIES: Final = (".so", ".dylib", ".dll")


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things go. `prefix` begins the name of every file beside a library with a name."""

    folder: Path
    library: str
    prefix: str

    @staticmethod
    def of(path: Path, names: Sequence[str]) -> Layout:
        """The layout for a path the user gave: a library, or a folder."""
        if path.suffix in _LIBRARIES:
            return Layout(path.parent, path.name, f"{path.stem}.")
        if path.suffix and not path.is_dir():
            raise failure(
                "TL810",
                f"an export cannot be {path}: the suffix {path.suffix} is no shared object's",
                help=f"name a file {path.with_suffix('.so')}, or a folder {path.with_suffix('')}",
            )
        return Layout(path, f"{names[0] if len(names) == 1 else 'kernels'}.so", "")

    @property
    def manifest(self) -> str:
        return f"{self.prefix}{MANIFEST}"

    @property
    def host(self) -> str:
        return f"{Path(self.library).stem}.c"

    def stem(self, name: str, variant: int | None) -> str:
        """What the files of one variant of a function begin with."""
        own = name if variant is None else f"{name}.{variant}"
        return own if self.prefix in ("", f"{own}.") else f"{self.prefix}{own}"


@dataclass(frozen=True, slots=True)
class Made:
    """One kernel of an export, as it was compiled."""

    name: str
    function: TracedFunction
    target: Target
    options: CompileOptions
    artifact: Artifact


def write_export(
    layout: Layout, functions: Sequence[Function], made: Sequence[Made],
    request: Mapping[str, Any] | None,
) -> Path:  # fmt: skip
    """Write the library and everything beside it; returns the path of the library.

    Raises CompileError: TL810 where nothing can be written, TL416 for a damaged binary.
    """
    try:
        layout.folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=layout.folder, prefix=".export-") as scratch:
            return _write(layout, Path(scratch), functions, made, request)
    except CompileError:
        raise  # a missing compiler is an OSError too
    except OSError as error:
        reason = error.strerror or str(error)
        raise failure("TL810", f"{layout.folder} cannot be written: {reason}") from None


def digest_of(path: Path) -> str:
    """The hash of a file as manifests give it; raises OSError."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest_if_there(path: Path) -> str | None:
    """None for code that is in no file: a notebook's, or a test's."""
    try:
        return digest_of(path)
    except OSError:
        return None


def program_of(function: TracedFunction) -> dict[str, Any]:
    """What identifies the source of a kernel: its typed program, and the lines it stands at."""
    mark = fingerprint(function)
    if mark is None:
        return {"digest": None, "lines": []}
    return {"digest": mark.digest, "lines": [line for _, line in mark.origins]}


def options_of(options: CompileOptions) -> dict[str, Any]:
    """Compile options as JSON values."""
    return {"changed": {k: _plain(v) for k, v in options.changed},
            "compile_flags": list(options.compile_flags)}  # fmt: skip


def toolchain() -> dict[str, Any]:
    """What compiled it: this compiler's own sources, and the packages it uses."""
    return {"tilelang": VERSION, "sources": compiler_digest(), "packages": list(tool_versions())}


def _write(
    layout: Layout, scratch: Path, functions: Sequence[Function], made: Sequence[Made],
    request: Mapping[str, Any] | None,
) -> Path:  # fmt: skip
    contents: dict[str, bytes] = {layout.host: host_source(functions).encode()}
    for function in functions:
        for variant in function.variants:
            contents |= dict(_files(variant, layout.folder))
    for name, data in contents.items():
        (scratch / name).write_bytes(data)
    objects = [n for n in contents if n.endswith(".o")]
    link_host(scratch, layout.host, layout.library, objects)
    contents[layout.library] = (scratch / layout.library).read_bytes()
    manifest = _manifest(layout, functions, made, contents, request)
    (scratch / layout.manifest).write_text(
        json.dumps(manifest, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    _remove_stale(layout, contents)
    # The library last: who waits for it finds the rest already there.
    for name in (*(n for n in contents if n != layout.library), layout.manifest, layout.library):
        os.replace(scratch / name, layout.folder / name)
    return layout.folder / layout.library


def _files(variant: Variant, folder: Path) -> Iterator[tuple[str, bytes]]:
    for artifact in variant.artifacts:
        match artifact:
            case CudaArtifact():
                for binary in artifact.binaries:
                    if not binary.is_whole:
                        raise failure("TL416", f"the binary of `{artifact.name}` for {binary.arch} "
                                      "is damaged: it is no whole ELF file",
                                      help="compile it again")  # fmt: skip
                    base = f"{variant.stem}.{binary.arch}"
                    yield f"{base}.cu", artifact.source.encode()
                    yield f"{base}.map.json", _map(artifact, f"{base}.cu", folder)
                    yield binary_file(variant.stem, binary.arch), binary.cubin
                    yield f"{base}.ptx", binary.ptx.encode()
            case CpuArtifact():
                yield object_file(variant.stem), _object_code(artifact)
                yield f"{variant.stem}.ll", artifact.source.encode()


def _object_code(artifact: CpuArtifact) -> bytes:
    # A kernel from the cache was loaded as a library, and left its object code there.
    found = artifact.object_code or KernelCache().find_object(artifact)
    if found:
        return bytes(found)
    raise failure(
        "TL728",
        f"`{artifact.name}` came from a cache entry that has been dropped since",
        help="compile it again",
    )


def _map(artifact: CudaArtifact, source: str, folder: Path) -> bytes:
    """The source map, with files as they are found from the folder."""
    rows = artifact.device.source.to_json()
    for row in rows:
        for place in (*row["spans"], *row["calls"]):
            place["file"] = relative(place["file"], folder)
    found = {"schema": SCHEMA, "source": source, "lines": rows}
    return (json.dumps(found, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def relative(file: str, folder: Path) -> str:
    """The way from `folder` to `file`, with slashes, so that both can be moved together."""
    if file.startswith("<"):
        return file
    try:
        return Path(os.path.relpath(file, folder.resolve())).as_posix()
    except ValueError:  # another drive
        return Path(file).as_posix()


def _manifest(
    layout: Layout, functions: Sequence[Function], made: Sequence[Made],
    contents: Mapping[str, bytes], request: Mapping[str, Any] | None,
) -> dict[str, Any]:  # fmt: skip
    return {
        "schema": SCHEMA,
        "kind": KIND,
        "library": layout.library,
        "made_by": toolchain(),
        "request": None if request is None else dict(request),
        "functions": [
            {
                "name": function.name,
                "arguments": [
                    signature_text(v.signature, function.name) for v in function.variants
                ],
                "builds": [
                    _build(m, v, layout.folder)
                    for v in function.variants
                    for m in made
                    if any(m.artifact is a for a in v.artifacts) and m.name == function.name
                ],
            }
            for function in functions
        ],
        "files": {n: hashlib.sha256(d).hexdigest() for n, d in sorted(contents.items())},
    }


def _build(made: Made, variant: Variant, folder: Path) -> dict[str, Any]:
    artifact = made.artifact
    found: dict[str, Any] = {
        "target": str(made.target),
        "arguments": signature_text(variant.signature, made.name),
        "program": program_of(made.function),
        "options": options_of(made.options),
    }
    if made.function.span is not None:
        found["file"] = relative(made.function.span.file, folder)
        found["file_sha256"] = _digest_if_there(Path(made.function.span.file))
    match artifact:
        case CudaArtifact():
            (binary,) = artifact.binaries
            found |= {
                "source": f"{variant.stem}.{binary.arch}.cu",
                "binary": binary_file(variant.stem, binary.arch),
                "compiler": binary.compiler,
                "flags": list(binary.flags),
                "resources": [asdict(r) for r in binary.resources],
                "launches": [
                    {"symbol": x.symbol, "grid": x.grid, "block": x.block,
                     "shared_memory_bytes": x.static_shared + x.dynamic_shared,
                     "cooperative": x.cooperative, "cluster": x.cluster}
                    for x in artifact.launches
                ],
            }  # fmt: skip
        case CpuArtifact():
            found |= {
                "source": f"{variant.stem}.ll",
                "binary": object_file(variant.stem),
                "compiler": f"LLVM for {artifact.triple}, {artifact.cpu}",
                "flags": [],
            }
    return found


def _remove_stale(layout: Layout, contents: Mapping[str, bytes]) -> None:
    """Files of an earlier export to the same place, which its manifest lists."""
    try:
        old = json.loads((layout.folder / layout.manifest).read_text(encoding="utf-8"))
        names = list(old["files"]) if old.get("kind") == KIND else []
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for name in names:
        if name not in contents and Path(name).name == name:
            (layout.folder / name).unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
