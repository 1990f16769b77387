"""Which compiler is this, and on which processor does it run?

Answers that decide whether two machines make the same code of the same kernel. Finding them reads
every source file of the compiler, so they are noted in the cache folder, under a stamp of those
files: sizes, times, and the change times that nothing but a change sets.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).parent.parent
# What takes part in making code of a traced kernel.
_FOLDERS: Final = ("codegen", "passes", "ops", "ir", "analysis", "layout", "layouts", "program")
_FILES: Final = ("runtime/clang.py", "runtime/cuda_build.py", "runtime/cuda_compiler.py",
                 "runtime/device_build.py", "runtime/nvrtc.py", "runtime/toolchain_cuda.py",
                 "runtime/toolchain_hip.py", "runtime/toolchain_metal.py")  # fmt: skip
_PACKAGES: Final = ("apache-tvm", "apache-tvm-ffi")


@cache
def compiler_digest() -> str:
    """What our part of a binary depends on: our own sources, and the version of TVM.

    Contents, not times, so that machines that share a cache agree.
    """
    return _known()[0]


@cache
def tool_versions() -> tuple[str, ...]:
    """The packages that turn generated code into a binary."""
    return _known()[1]


@cache
def host_identity() -> str:
    """Which instructions this processor has, as far as the system tells without LLVM."""
    text = f"{platform.system()} {platform.machine()}"
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.split(":")[0].strip() in ("model name", "flags", "Features", "CPU part"):
                text += line
            if not line.strip():
                break
    except OSError:
        text += platform.processor()
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _known() -> tuple[str, tuple[str, ...]]:
    """Digest and versions, as noted or found."""
    from tilelang.runtime.cache import cache_root

    stamp = _stamp()
    name = hashlib.sha256(str(_PACKAGE).encode()).hexdigest()[:16]
    note = cache_root() / f"compiler-{name}.json"
    try:
        noted = json.loads(note.read_text(encoding="utf-8"))
        if noted["stamp"] == stamp:
            return str(noted["digest"]), tuple(str(v) for v in noted["versions"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    versions = tuple(f"{p} {v}" for p in _PACKAGES if (v := version_of(p)) is not None)
    digest = _digest(versions)
    _write(note, json.dumps({"stamp": stamp, "digest": digest, "versions": versions}))
    return digest, versions


def _digest(versions: tuple[str, ...]) -> str:
    digest = hashlib.sha256(repr(versions).encode())
    for path, _ in sorted(_sources()):
        digest.update(os.path.basename(path).encode() + Path(path).read_bytes())
    return digest.hexdigest()


def _stamp() -> str:
    """A hash that differs once any of the files, or what is installed beside them, has changed."""
    digest = hashlib.sha256()
    for path, found in sorted(_sources(), key=lambda row: row[0]):
        facts = (path, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino)
        digest.update(repr(facts).encode())
    # The first is the folder of the author's program, which changes with each file written there.
    for folder in sys.path if sys.flags.safe_path else sys.path[1:]:
        try:
            found = os.stat(folder or ".")
        except OSError:
            continue
        digest.update(repr((folder, found.st_mtime_ns, found.st_ctime_ns)).encode())
    return digest.hexdigest()


def _sources() -> Iterator[tuple[str, os.stat_result]]:
    yield from ((e.path, e.stat()) for e in os.scandir(_PACKAGE) if e.name.endswith(".py"))
    yield from ((str(_PACKAGE / name), os.stat(_PACKAGE / name)) for name in _FILES)
    waiting = [str(_PACKAGE / name) for name in _FOLDERS]
    while waiting:
        for entry in os.scandir(waiting.pop()):
            if entry.is_dir():
                waiting.append(entry.path)
            elif entry.name.endswith((".py", ".h")):
                yield entry.path, entry.stat()


def version_of(package: str) -> str | None:
    """The installed version of a package, by the name of the folder that describes it.

    `importlib.metadata`, which reads that folder, takes longer to import than a kernel to load.
    """
    start, end = f"{package.replace('-', '_')}-", ".dist-info"
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith(start) and name.endswith(end):
                return name[len(start) : -len(end)]
    import importlib.metadata

    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _write(path: Path, text: str) -> None:
    """At once, and only if it can be: this saves time and nothing else."""
    aside = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        aside.write_text(text, encoding="utf-8")
        aside.replace(path)
    except OSError:
        return
