"""How do compiled kernels leave this installation?

    kernel.export("build/matmul.so")                    # for its own target
    tilelang.export([small, large], "build", targets="cuda:sm_80,cuda:sm_90a")

As one shared object that runs where only `apache-tvm-ffi` is installed: no compiler, no TVM, none
of this package.

    tvm_ffi.load_module("build/matmul.so")["matmul"](a, b, c)

Kernels of one name become one function: those that take the same arguments are builds for several
architectures, chosen by the device, the others are variants, chosen by the arguments. Every
parameter is passed, in order, results last.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_artifact import DeviceArtifact
from tilelang.program.stmt import Function as TracedFunction
from tilelang.runtime.build import build
from tilelang.runtime.devices import resolve
from tilelang.runtime.export_files import Layout, Made, write_export
from tilelang.runtime.export_host import Function, Variant
from tilelang.runtime.export_signature import checks_of, signature_text
from tilelang.runtime.signature import Signature, make_signature
from tilelang.target import Target
from tilelang_diagnostics import failure, with_article
from tilelang_diagnostics.model import Diagnostic

if TYPE_CHECKING:
    from tilelang.options import CompileOptions
    from tilelang.runtime.kernel import JITKernel

Kernels: TypeAlias = "JITKernel | Iterable[JITKernel] | Mapping[str, Any]"
Targets: TypeAlias = "str | Target | Iterable[str | Target] | None"


def export(kernels: Kernels, path: str | Path, *, targets: Targets = None) -> Path:
    """Write `kernels` as one shared object; returns its path.

    Args:
        kernels: a kernel, several, or a dict from the name of a function to its kernels.
        path: `…/name.so` for that file, a name without a suffix for a folder. Beside the shared
            object lie the generated sources, their source maps and a manifest.
        targets: architectures to compile each kernel for, `cuda:sm_80,cuda:sm_90a` or a list of
            them; by default each is written as it was compiled.

    Raises CompileError: TL728 for kernels that cannot be in one file, TL807 without a C compiler,
    TL810 for a path that cannot be written.
    """
    wanted = target_list(targets)
    made = [m for name, kernel in _named(kernels) for m in _compiled(name, kernel, wanted)]
    return write_artifacts(made, Path(path))


@dataclass(frozen=True, slots=True)
class Product:
    """One kernel compiled for one target, on its way into an export."""

    name: str
    function: TracedFunction
    signature: Signature
    target: Target
    options: CompileOptions
    artifact: Artifact
    diagnostics: tuple[Diagnostic, ...] = ()


def compile_product(
    name: str, function: TracedFunction, target: Target, options: CompileOptions
) -> Product:
    """`function` compiled for `target`, or found in the cache."""
    compiled = build(function, target, options).compiled
    return Product(name, function, make_signature(function), target, options,
                   compiled.artifact, compiled.diagnostics)  # fmt: skip


def write_artifacts(
    products: Iterable[Product], path: Path, request: Mapping[str, Any] | None = None
) -> Path:
    """Write everything as one shared object. `request` says in the manifest how to make it anew."""
    rows = list(products)
    if not rows:
        raise _refuse("there is nothing to export", "pass at least one kernel")
    if sys.platform != "linux" and any(isinstance(p.artifact, CudaArtifact) for p in rows):
        raise failure("TL807", "shared objects with CUDA kernels are made on Linux only, so far",
                      help="export there, or write binaries with --emit cubin")  # fmt: skip
    for product in rows:
        if isinstance(product.artifact, DeviceArtifact):
            raise _refuse(f"`{product.name}` is compiled for {product.target}, which has no "
                          "launcher in this version",
                          f"write its source with --emit {product.target.kind}")  # fmt: skip
    layout = Layout.of(path, tuple(dict.fromkeys(p.name for p in rows)))
    made = [Made(p.name, p.function, p.target, p.options, p.artifact) for p in rows]
    functions = tuple(_functions(rows, layout))
    return write_export(layout, functions, made, request)


def target_list(targets: Targets) -> tuple[Target, ...]:
    """The targets named by a comma-separated string or a list."""
    if targets is None:
        return ()
    if isinstance(targets, str):
        parts: list[Any] = [part.strip() for part in targets.split(",")]
    else:
        parts = [targets] if isinstance(targets, (Target, Mapping)) else list(targets)
    return tuple(dict.fromkeys(resolve(part).target for part in parts))


def _named(kernels: Kernels) -> Iterator[tuple[str, JITKernel]]:
    from tilelang.runtime.kernel import JITKernel

    if isinstance(kernels, JITKernel):
        yield kernels.name, kernels
    elif isinstance(kernels, Mapping):
        for name, value in kernels.items():
            if not isinstance(name, str) or not name.isidentifier():
                raise _refuse(f"{name!r} cannot be the name of an exported function",
                              "use a Python identifier")  # fmt: skip
            for _, kernel in _named(value):
                yield name, kernel
    elif isinstance(kernels, Iterable):
        for value in kernels:
            yield from _named(value)
    else:
        raise failure(
            "TL173",
            f"{with_article(type(kernels).__name__)} is not a compiled kernel",
            help="pass what tilelang.compile(...) returned, or f.compile(...) of a @tilelang.jit",
        )


def _compiled(name: str, kernel: JITKernel, targets: tuple[Target, ...]) -> Iterator[Product]:
    for target in targets or (kernel.target,):
        if target == kernel.target:
            yield Product(name, kernel.function, make_signature(kernel.function), target,
                          kernel.options, kernel.artifact)  # fmt: skip
        else:
            yield compile_product(name, kernel.function, target, kernel.options)


def _functions(rows: list[Product], layout: Layout) -> Iterator[Function]:
    """Kernels by name, and those of one name by the arguments they take."""
    names = list(dict.fromkeys(p.name for p in rows))
    for name in names:
        by_signature: dict[Hashable, list[Product]] = {}
        for product in (p for p in rows if p.name == name):
            key = signature_text(product.signature, name), checks_of(product.signature)
            by_signature.setdefault(key, []).append(product)
        counts = {len(group[0].signature.slots) for group in by_signature.values()}
        if len(counts) > 1:
            raise _refuse(
                f"kernels called `{name}` take different numbers of arguments",
                "give each its own name: export({'name': kernel, …}, path)",
            )
        many = len(by_signature) > 1
        yield Function(name, tuple(
            Variant(layout.stem(name, n if many else None), group[0].signature, _artifacts(group))
            for n, group in enumerate(by_signature.values())
        ))  # fmt: skip
    _check_objects(rows)


def _artifacts(group: list[Product]) -> tuple[CudaArtifact, ...] | tuple[CpuArtifact]:
    cuda = tuple(p.artifact for p in group if isinstance(p.artifact, CudaArtifact))
    cpu = tuple(p.artifact for p in group if isinstance(p.artifact, CpuArtifact))
    text = signature_text(group[0].signature, group[0].name)
    if cuda and cpu:
        raise _refuse(f"{text} is compiled for the CPU and for CUDA",
                      "export them to two files")  # fmt: skip
    archs = [arch for artifact in cuda for arch in artifact.archs] or ["cpu"] * len(cpu)
    twice = next((arch for arch in archs if archs.count(arch) > 1), None)
    if twice is not None:
        raise _refuse(f"two kernels are both {text} for {twice}",
                      "give each its own name: export({'name': kernel, …}, path)")  # fmt: skip
    return cuda or (cpu[0],)


def _check_objects(rows: list[Product]) -> None:
    """Object code for the CPU brings its symbols along, which are named after the kernel."""
    cpu = [p.artifact for p in rows if isinstance(p.artifact, CpuArtifact)]
    seen: set[str] = set()
    for artifact in cpu:
        if artifact.info_symbol in seen:
            raise _refuse(
                f"two CPU kernels are both called `{artifact.name}`, and so are the functions in "
                "their object code",
                "rename one, or export them to two files",
            )
        seen.add(artifact.info_symbol)


def _refuse(message: str, help: str) -> Exception:
    return failure("TL728", message, help=help)
