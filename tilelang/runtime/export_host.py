"""Which C makes a function of tvm-ffi out of compiled kernels?

One file: the part all have (`runtime/host/*.h`), then for each function its signatures, binaries
and launches, then what tvm-ffi calls:

    int __tvm_ffi_scale(void *self, const TVMFFIAny *args, int32_t count, TVMFFIAny *result)

A function may have several variants, which differ in the shapes they take: the first one that the
arguments fit is run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.program.buffer import Buffer
from tilelang.runtime.export_cpu import cpu_declarations, cpu_launch
from tilelang.runtime.export_cuda import alignments_of, cuda_declarations, cuda_launch
from tilelang.runtime.export_signature import (
    SignatureCode,
    quoted,
    signature_code,
    signature_text,
)
from tilelang.runtime.signature import Signature

HOST: Final = Path(__file__).parent / "host"


@dataclass(frozen=True, slots=True)
class Variant:
    """One signature and what was compiled for it: for CUDA one artifact per architecture.

    `stem` begins the names of its files.
    """

    stem: str
    signature: Signature
    artifacts: tuple[CudaArtifact, ...] | tuple[CpuArtifact]

    @property
    def place(self) -> str:
        """Where its tensors are: `cpu` or `cuda`."""
        return "cuda" if isinstance(self.artifacts[0], CudaArtifact) else "cpu"

    @property
    def alignment(self) -> dict[Buffer, int]:
        """What every build assumes of each address, in bytes: one element at least."""
        found = {p: p.dtype.scalar.bytes for p in self.signature.slots if isinstance(p, Buffer)}
        builds = [alignments_of(self.signature, a) for a in self.artifacts
                  if isinstance(a, CudaArtifact)]  # fmt: skip
        return {b: min((x[b] for x in builds), default=size) for b, size in found.items()}


@dataclass(frozen=True, slots=True)
class Function:
    """One exported name."""

    name: str
    variants: tuple[Variant, ...]

    def __post_init__(self) -> None:
        if len({len(v.signature.slots) for v in self.variants}) != 1:
            raise ValueError(f"variants of {self.name} take different numbers of arguments")


def host_source(functions: Sequence[Function]) -> str:
    """The C file. Machine code is included from the files the variants name."""
    places = {v.place for f in functions for v in f.variants}
    parts = [(HOST / "arguments.h").read_text(encoding="utf-8")]
    parts += [(HOST / f"{p}.h").read_text(encoding="utf-8") for p in sorted(places)]
    for number, function in enumerate(functions):
        parts.append("\n".join(_function(number, function)) + "\n")
    return "\n".join(parts)


def _function(number: int, function: Function) -> Iterator[str]:
    yield f"/* --- {function.name} {'-' * max(1, 90 - len(function.name))} */"
    names = []
    for index, variant in enumerate(function.variants):
        prefix = f"k{number}" if len(function.variants) == 1 else f"k{number}_{index}"
        names.append(f"{prefix}_call")
        code = signature_code(
            variant.signature, function.name, prefix, variant.place, variant.alignment
        )
        yield ""
        yield from code.declarations()
        yield from _variant(code, variant)
    yield ""
    yield from _entry(function, names)


def _variant(code: SignatureCode, variant: Variant) -> Iterator[str]:
    """The function of one variant: -1 and `e` if arguments do not fit, -2 and `late` if what
    follows fails, -3 if that has been raised already."""
    cuda = [a for a in variant.artifacts if isinstance(a, CudaArtifact)]
    cpu = [a for a in variant.artifacts if isinstance(a, CpuArtifact)]
    if cuda:
        yield from cuda_declarations(code, cuda, variant.stem)
    else:
        yield from cpu_declarations(code, cpu[0])
    yield f"static int {code.prefix}_call(tl_error *e, const TVMFFIAny *args, tl_error *late) {{"
    yield from (f"  {line}" for line in code.lines())
    body = cuda_launch(code, cuda) if cuda else cpu_launch(code, cpu[0])
    yield from (f"  {line}" for line in body)
    yield "}"


def _entry(function: Function, calls: Sequence[str]) -> Iterator[str]:
    name, first = function.name, function.variants[0].signature
    count = len(first.slots)
    listed = f"`{name}({', '.join(p.name for p in first.slots)})`"
    yield (f"TVM_FFI_DLL_EXPORT int __tvm_ffi_{name}(void *self, const TVMFFIAny *args, int32_t "
           "count, TVMFFIAny *result) {")  # fmt: skip
    yield "  (void)self;"
    yield (f"  if (TL_RARE(count != {count})) return tl_wrong_count({quoted(name)}, {count}, "
           f"count, {quoted(listed)});")  # fmt: skip
    yield "  tl_error wrong, late;"
    if len(calls) == 1:
        yield f"  int status = {calls[0]}(&wrong, args, &late);"
    else:
        yield from _dispatch(name, calls)
    yield "  if (TL_RARE(status == -1)) return tl_raise(&wrong);"
    yield "  if (TL_RARE(status == -2)) return tl_raise(&late);"
    yield "  return TL_RARE(status != 0) ? -1 : tl_none(result);"
    yield "}"
    text = "\n".join(signature_text(v.signature, name) for v in function.variants)
    yield ""
    yield (f"TVM_FFI_DLL_EXPORT int __tvm_ffi__doc_{name}(void *self, const TVMFFIAny *args, "
           "int32_t count, TVMFFIAny *result) {")  # fmt: skip
    yield "  (void)self, (void)args, (void)count;"
    yield f"  return tl_string(result, {quoted(text)});"
    yield "}"


def _dispatch(name: str, calls: Sequence[str]) -> Iterator[str]:
    """Try each variant in silence; when none fits, ask each for its reason."""
    yield "  int status = -1;"
    for call in calls:
        yield f"  if (status == -1) status = {call}(NULL, args, &late);"
    yield "  if (TL_RARE(status == -1)) {"
    yield "    size_t used;"
    yield (f'    tl_fail(&wrong, "ValueError", "none of the {len(calls)} variants of `%s` takes '
           f'these arguments", {quoted(name)});')  # fmt: skip
    yield "    tl_error one;"
    for number, call in enumerate(calls, 1):
        yield f"    if ({call}(&one, args, &late) == -1) {{"
        yield "      used = strlen(wrong.text);"
        yield ('      snprintf(wrong.text + used, sizeof wrong.text - used, "\\n'
               f'  {number}. %s", one.text);')  # fmt: skip
        yield "    }"
    yield "  }"
