"""Does what an export left on disk still follow from its source, its options and the compiler?

Nothing is compiled: the kernel is traced again and compared with what the manifest says of it, and
files with their hashes. Each difference is one TL814.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Final

from tilelang.cli.files import choose
from tilelang.cli.output import table
from tilelang.cli.specialise import specialise
from tilelang.language.settings import parse_settings
from tilelang.options import CompileOptions, PassConfigKey, make_options
from tilelang.program.stmt import Function
from tilelang.runtime.cuda_compiler import identity
from tilelang.runtime.devices import resolve_quietly
from tilelang.runtime.export_files import (
    KIND,
    MANIFEST,
    SCHEMA,
    Layout,
    digest_of,
    options_of,
    program_of,
    toolchain,
)
from tilelang.target import ARCHS
from tilelang_diagnostics import CompileError, diagnose, error_for, failure
from tilelang_diagnostics.model import Diagnostic

# What is read of a manifest, and of which types it is.
_BUILD: Final = {
    "target": str, "compiler": str, "program": {"digest": (str, NoneType), "lines": [int]},
    "options": {"changed": dict, "compile_flags": [str]},
}  # fmt: skip
_SHAPE: Final = {
    "made_by": {"tilelang": str, "sources": str, "packages": [str]}, "files": dict,
    "request": (dict, NoneType), "functions": [{"name": str, "builds": [_BUILD]}],
}  # fmt: skip
_REQUEST: Final = {"file": str, "kernel": str, "set": [str], "line_directives": bool}


def check_export(path: Path) -> int:
    """What `tilelang compile --check PATH` does; raises CompileError with every difference."""
    resolve_quietly()  # the targets are those of the export
    manifest_path = _manifest_path(path)
    manifest = _read(manifest_path)
    found = [
        *_files(manifest_path.parent, manifest),
        *_compiler(manifest),
        *_source(manifest_path.parent, manifest),
    ]
    if found:
        raise error_for(tuple(found))
    table([("up to date", str(path)), ("files", str(len(manifest["files"])))])
    return 0


def _manifest_path(path: Path) -> Path:
    """The manifest of a folder, or of a library with a name."""
    if path.name.endswith(MANIFEST):
        return path
    layout = Layout.of(path, ())
    return layout.folder / layout.manifest


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise failure(
            "TL814",
            f"there is no export to check: {path} cannot be read: {reason}",
            help="name the folder that --emit dir wrote, or the file that --emit so wrote",
        ) from None
    except ValueError as error:
        raise _stale(f"{path} is no manifest any more: {error}") from None
    if not isinstance(found, dict) or found.get("kind") != KIND or found.get("schema") != SCHEMA:
        raise _stale(f"{path} is not a manifest that this version writes")
    missing = _missing(found, _SHAPE, "") or (
        None if found["request"] is None else _missing(found["request"], _REQUEST, "")
    )
    if missing is not None:
        raise _stale(f"{path} is damaged: what it says of {missing} is missing or wrong")
    return found


def _missing(value: Any, shape: Any, name: str) -> str | None:
    """The first part of `value` that is not of its type, or not there."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return name
        found = (_missing(value.get(key), part, key) for key, part in shape.items())
    elif isinstance(shape, list):
        if not isinstance(value, list):
            return name
        found = (_missing(item, shape[0], name) for item in value)
    else:
        return None if isinstance(value, shape) else name
    return next((part for part in found if part is not None), None)


def _files(folder: Path, manifest: Mapping[str, Any]) -> Iterator[Diagnostic]:
    for name, digest in manifest["files"].items():
        try:
            same = digest_of(folder / name) == digest
        except OSError:
            yield _difference(f"{folder / name} is missing")
            continue
        if not same:
            yield _difference(
                f"{folder / name} is not what was exported: it was edited or cut short"
            )


def _compiler(manifest: Mapping[str, Any]) -> Iterator[Diagnostic]:
    then, now = manifest["made_by"], toolchain()
    if then["tilelang"] != now["tilelang"]:
        yield _difference(f"it was compiled by tilelang {then['tilelang']}, and this is "
                          f"{now['tilelang']}")  # fmt: skip
    elif then["packages"] != now["packages"]:
        pairs = zip(then["packages"], now["packages"], strict=False)
        changed = (f"{a} is now {b}" for a, b in pairs if a != b)
        yield _difference(f"it was compiled with other packages: {', '.join(changed)}")
    elif then["sources"] != now["sources"]:
        yield _difference(
            f"the sources of the compiler are not those that compiled it, though both are "
            f"tilelang {now['tilelang']}"
        )
    used = {
        b["compiler"] for f in manifest["functions"] for b in f["builds"]
        if b["target"].startswith("cuda")
    }  # fmt: skip
    for other in sorted(used):
        try:
            here, _ = identity(CompileOptions(), "nvrtc" if other.startswith("NVRTC") else "nvcc")
        except CompileError:
            continue  # there is none here, and none is needed to check
        if here != other:
            yield _difference(f"it was compiled by {other}, and this machine has {here}")


def _source(folder: Path, manifest: Mapping[str, Any]) -> Iterator[Diagnostic]:
    request = manifest["request"]
    builds = [(f["name"], b) for f in manifest["functions"] for b in f["builds"]]
    if request is None:
        yield from _unrequested(folder, builds)
        return
    file = Path(os.path.normpath(folder / request["file"]))
    try:
        chosen = choose(f"{file}::{request['kernel']}")
        special = specialise(chosen, parse_settings(request["set"]))
    except CompileError as error:
        first = error.diagnostics[0]
        yield _difference(f"{file}::{request['kernel']} gives no kernel any more: {first.message}")
        return
    options = special.options
    if request["line_directives"]:
        options = make_options({PassConfigKey.TL_EMIT_LINE_DIRECTIVES: True}).with_defaults(options)
    for name, build in builds:
        changed = _changed(name, build, special.function, options)
        if changed is not None:
            yield changed
            return
    known = {f"{kind}:{arch}" if arch else kind for kind, archs in ARCHS.items() for arch in archs}
    for _, build in builds:
        if build["target"] not in known:
            yield _difference(f"this version knows no target {build['target']}")


def _changed(
    name: str, build: Mapping[str, Any], function: Function, options: CompileOptions
) -> Diagnostic | None:
    """The first thing that differs between a build and what would be built now."""
    then, now = build["program"], program_of(function)
    if then["digest"] != now["digest"] or now["digest"] is None:
        return _difference(f"the source of `{name}` has changed since it was exported", function)
    if build["options"] != options_of(options):
        return _difference(
            f"the compile options of `{name}` have changed: "
            f"{_options_text(build['options'])} became {_options_text(options_of(options))}",
            function,
        )
    if then["lines"] != now["lines"]:
        return _difference(
            f"`{name}` has moved from line {then['lines'][0]} to line {now['lines'][0]}: the "
            "source map and the positions in messages are those of before",
            function,
        )
    return None


def _unrequested(folder: Path, builds: list[tuple[str, Any]]) -> Iterator[Diagnostic]:
    """Kernels that a program exported: their files are all that can be compared."""
    for file, digest in dict.fromkeys((b.get("file"), b.get("file_sha256")) for _, b in builds):
        if file is None or digest is None:
            continue
        try:
            same = digest_of(folder / file) == digest
        except OSError:
            yield _difference(
                f"{folder / file}, where its kernel was written, is not there any more"
            )
            continue
        if not same:
            yield _difference(
                f"{folder / file} has changed since a program exported its kernel from it"
            )


def _options_text(options: Mapping[str, Any]) -> str:
    parts = [f"{k}={v}" for k, v in options["changed"].items()] + list(options["compile_flags"])
    return " ".join(parts) or "the defaults"


def _difference(message: str, function: Function | None = None) -> Diagnostic:
    return diagnose(
        "TL814", message, None if function is None else function.span, help="export it again"
    )


def _stale(message: str) -> CompileError:
    return failure("TL814", message, help="export it again")
