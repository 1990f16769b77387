"""Which C holds the CUDA binaries of an exported kernel, and launches it?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary, split_arch
from tilelang.codegen.device_source import KernelLaunch, KernelParam, Slot, TensorMap
from tilelang.codegen.host_expr import HostExpr, c_text
from tilelang.dtypes import dtype as dtype_of
from tilelang.program.buffer import Buffer
from tilelang.runtime.cuda_tensor_map import PROMOTIONS, SWIZZLES, data_type
from tilelang.runtime.export_dims import renamed
from tilelang.runtime.export_signature import SignatureCode, place_text, quoted
from tilelang.runtime.signature import Signature
from tilelang_diagnostics import failure

# The C type a scalar is passed as, and how it is made from an int64_t or double.
_SCALARS: Final[Mapping[str, tuple[str, str]]] = {
    "bool": ("uint8_t", "(uint8_t)({} != 0)"), "float32": ("float", "(float){}"),
    "tfloat32": ("float", "(float){}"), "float64": ("double", "(double){}"),
    "float16": ("uint16_t", "tl_to_float16({})"), "bfloat16": ("uint16_t", "tl_to_bfloat16({})"),
    "handle": ("uint64_t", "(uint64_t){}"),
    **{f"{u}int{b}": (f"{u}int{b}_t", f"({u}int{b}_t){{}}") for u in ("", "u")
       for b in (8, 16, 32, 64)},
}  # fmt: skip


def binary_file(stem: str, arch: str) -> str:
    """What the machine code of a variant for one architecture is called."""
    return f"{stem}.{arch}.cubin"


def binaries_of(artifacts: Sequence[CudaArtifact]) -> list[tuple[CudaArtifact, CudaBinary]]:
    """Every binary, with the artifact that says how it is launched."""
    return [(a, b) for a in artifacts for b in a.binaries]


def alignments_of(signature: Signature, artifact: CudaArtifact) -> dict[Buffer, int]:
    """What the code of an artifact assumes of the address of each buffer, in bytes."""
    wanted = artifact.alignments()
    parameters = (*signature.slots, *signature.dims)
    return {
        p: max(p.dtype.scalar.bytes, wanted.get(slot.name, 1), 1)
        for slot, p in zip(artifact.slots, parameters, strict=True)
        if isinstance(p, Buffer)
    }


def cuda_declarations(
    code: SignatureCode, artifacts: Sequence[CudaArtifact], stem: str
) -> Iterator[str]:
    """The machine code of one variant, its kernels, and where they are remembered once loaded."""
    rows = []
    for number, (artifact, binary) in enumerate(binaries_of(artifacts)):
        name = f"{code.prefix}_{number}"
        launches = artifact.launches
        yield f"extern const unsigned char {name}_code[];"
        file = quoted(binary_file(stem, binary.arch))
        yield (f'__asm__(".section .rodata\\n.balign 64\\n.global {name}_code\\n'
               f'.hidden {name}_code\\n{name}_code:\\n'
               f'.incbin " {quoted(file)} "\\n.previous");')  # fmt: skip
        kernels = ", ".join(
            f"{{{quoted(x.symbol)}, {x.static_shared}, {x.dynamic_shared}, {x.threads}}}"
            for x in launches
        )
        yield f"static const tl_kernel {name}_kernels[] = {{{kernels}}};"
        yield f"static void *{name}_functions[{max(1, len(launches))}][TL_DEVICES];"
        major, minor, suffix = split_arch(binary.arch)
        rows.append(
            f"{{{quoted(binary.arch)}, {major}, {minor}, {repr(suffix) if suffix else 0}, "
            f"{name}_code, {len(launches)}, {name}_kernels, NULL, {name}_functions}}"
        )
    archs = ", ".join(b.arch for _, b in binaries_of(artifacts))
    yield f"static tl_binary {code.prefix}_binaries[] = {{{', '.join(rows)}}};"
    yield (f"static tl_program {code.prefix}_program = {{{quoted(code.function)}, {quoted(archs)}, "
           f"{len(rows)}, {code.prefix}_binaries, {{0}}}};")  # fmt: skip


def cuda_launch(code: SignatureCode, artifacts: Sequence[CudaArtifact]) -> Iterator[str]:
    """Choose the binary for the device of the arguments, and queue its kernels."""
    yield f"int which = tl_prepare(late, &{code.prefix}_program, device < 0 ? 0 : device);"
    yield "if (TL_RARE(which < 0)) return -2;"
    yield "if (device < 0) device = 0;"
    yield f"const tl_binary *binary = &{code.prefix}_binaries[which];"
    yield "int status = 0;"
    yield "switch (which) {"
    number = 0
    blocks: list[tuple[list[str], list[str]]] = []
    for artifact in artifacts:
        body = list(_Launches(code, artifact).lines())
        for binary in artifact.binaries:
            label = f"  case {number}: /* {binary.arch} */"
            same = next((labels for labels, text in blocks if text == body), None)
            if same is not None:
                same.append(label)
            else:
                blocks.append(([label], body))
            number += 1
    for labels, text in blocks:
        yield from labels
        yield "  {"
        yield from (f"    {line}" for line in text)
        yield "    break;"
        yield "  }"
    yield "}"
    yield "return status == 0 ? 0 : status == -1 ? -2 : -3;"


@dataclass(frozen=True, slots=True)
class _Launches:
    """The launches of one artifact. The values of its slots are C variables of the signature."""

    code: SignatureCode
    artifact: CudaArtifact

    def lines(self) -> Iterator[str]:
        device, function = self.artifact.device, quoted(self.code.function)
        yield from self.alignments()
        for check in device.checks:
            said = check.message.replace("%", "%%") + place_text(check.span)
            form = quoted(f"[TL721] the arguments break an assumption of `%s`: {said}")
            yield (f"if (TL_RARE(!{self.c(check.condition)})) {{ "
                   f'tl_fail(late, "ValueError", {form}, {function}); return -2; }}')  # fmt: skip
        yield "int entered = tl_enter(device);"
        for number, workspace in enumerate(device.workspaces):
            yield f"TVMFFIObjectHandle w{number} = NULL;"
            yield f"void *m_{number} = NULL;"
            yield (f"if (status == 0) status = tl_workspace(late, {function}, device, "
                   f"{self.c(workspace.bytes)}, &w{number}, &m_{number});")  # fmt: skip
        for number, found in enumerate(device.maps):
            yield from self.tensor_map(number, found)
        if device.launches:
            yield "void *stream = TVMFFIEnvGetStream(kDLCUDA, device);"
        for number, launch in enumerate(device.launches):
            yield from self.launch(number, launch)
        # Freed here, used later: the allocator keeps to the order of the stream.
        for number in range(len(device.workspaces)):
            yield f"if (w{number} != NULL) TVMFFIObjectDecRef(w{number});"
        yield "tl_leave(entered);"

    def alignments(self) -> Iterator[str]:
        """What this build assumes beyond what all do."""
        for buffer, size in alignments_of(self.code.signature, self.artifact).items():
            if size > self.code.alignment.get(buffer, 1):
                yield self.code.aligned(buffer, size, "late", -2)

    def tensor_map(self, number: int, found: TensorMap) -> Iterator[str]:
        rank = len(found.shape)
        yield f"_Alignas(64) unsigned char map{number}[128];"
        for what, row in (("shape", found.shape), ("strides", found.strides)):
            text = ", ".join(f"(uint64_t){self.c(e)}" for e in row) or "0"
            yield f"const uint64_t map{number}_{what}[] = {{{text}}};"
        yield f"static const unsigned map{number}_box[] = {{{', '.join(map(str, found.box))}}};"
        yield (f"if (status == 0) status = tl_encode(late, {quoted(self.code.function)}, "
               f"{quoted(found.source)}, map{number}, {data_type(found.dtype)}, {rank}, "
               f"(char *){self.memory(found.source)} + {self.c(found.offset)}, map{number}_shape, "
               f"map{number}_strides, map{number}_box, {SWIZZLES[found.swizzle]}, "
               f"{PROMOTIONS[found.l2_promotion]});")  # fmt: skip

    def launch(self, number: int, launch: KernelLaunch) -> Iterator[str]:
        yield "if (status == 0) {"
        grid = ", ".join(self.c(e) for e in launch.grid)
        yield f"  const int64_t grid[3] = {{{grid}}};"
        attributes = list(_attributes(launch))
        if attributes:
            rows = ", ".join(attributes)
            yield f"  static const tl_attribute attributes[] = {{{rows}}};"
        x, y, z = launch.block
        yield (f"  tl_config config = {{{{0}}, {{{x}, {y}, {z}}}, {launch.dynamic_shared}, stream, "
               f"{'attributes' if attributes else 'NULL'}, {len(attributes)}}};")  # fmt: skip
        pointers = []
        for position, param in enumerate(launch.params):
            name = f"p{position}"
            pointers.append(f"&{name}" if param.kind != "map" else self.map_name(param))
            yield from (f"  {line}" for line in self.param(name, param))
        yield f"  void *params[] = {{{', '.join(pointers) or 'NULL'}}};"
        yield (f"  if (status == 0) status = tl_launch(late, &{self.code.prefix}_program, binary, "
               f"{number}, device, grid, &config, params);")  # fmt: skip
        yield "}"

    def param(self, name: str, param: KernelParam) -> Iterator[str]:
        match param.kind:
            case "buffer" | "workspace":
                yield f"void *{name} = {self.memory(param.source)};"
            case "scalar" | "dim":
                value = self.names()[param.source]
                found = _SCALARS.get(dtype_of(param.dtype).name)
                if found is None:
                    raise failure(
                        "TL718",
                        f"the scalar parameter {param.source} of `{self.artifact.name}` has dtype "
                        f"{param.dtype}, which cannot be passed to a kernel",
                        help="pass it as float32, or in a tensor of one element",
                    )
                kind, form = found
                if param.kind == "dim" and kind in ("int32_t", "int16_t", "int8_t"):
                    bits = kind.removeprefix("int").removesuffix("_t")
                    yield (f"if (tl_fits(late, {quoted(self.code.function)}, "
                           f"{quoted(param.source)}, {value}, {bits})) status = -1;")  # fmt: skip
                yield f"{kind} {name} = {form.format(value)};"
            case _:
                return

    # Names.

    def parameters(self) -> tuple[object, ...]:
        """The parameter or dimension of each slot, by position."""
        return (*self.code.signature.slots, *self.code.signature.dims)

    def names(self) -> dict[str, str]:
        """What the values of slots are called in C."""
        found = {}
        for slot, parameter in zip(self.artifact.slots, self.parameters(), strict=True):
            if not isinstance(parameter, Buffer):
                found[slot.name] = self.code.names.values[parameter]  # type: ignore[index]
        return found

    def memory(self, source: str) -> str:
        """The address of a buffer slot or a workspace."""
        for number, workspace in enumerate(self.artifact.device.workspaces):
            if workspace.name == source:
                return f"m_{number}"
        slots: Sequence[Slot] = self.artifact.slots
        for slot, parameter in zip(slots, self.parameters(), strict=True):
            if slot.name == source and isinstance(parameter, Buffer):
                return f"tl_address({self.code.names.tensors[parameter]})"
        raise ValueError(f"{source} is no memory of {self.artifact.name}")

    def map_name(self, param: KernelParam) -> str:
        maps = self.artifact.device.maps
        return f"map{next(n for n, m in enumerate(maps) if m.name == param.source)}"

    def c(self, expr: HostExpr) -> str:
        return c_text(renamed(expr, self.names()))


def _attributes(launch: KernelLaunch) -> Iterator[str]:
    if launch.cooperative:
        yield "{TL_COOPERATIVE, 0, {.flag = 1}}"
    if launch.cluster is not None:
        x, y, z = launch.cluster
        yield f"{{TL_CLUSTER, 0, {{.dim = {{{x}, {y}, {z}}}}}}}"
