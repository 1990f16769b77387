"""Which C runs a kernel that was compiled for the CPU, and refuses a processor it is not for?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.program.buffer import Buffer
from tilelang.runtime.export_signature import SignatureCode, quoted

# What LLVM may use where a processor has it: names of /proc/cpuinfo and of GCC and Clang.
_FEATURES: Final = {
    "sse4_2": "sse4.2", "avx": "avx", "avx2": "avx2", "fma": "fma", "bmi1": "bmi", "bmi2": "bmi2",
    "avx512f": "avx512f", "avx512dq": "avx512dq", "avx512bw": "avx512bw", "avx512vl": "avx512vl",
    "avx512_vnni": "avx512vnni", "avx512_bf16": "avx512bf16",
}  # fmt: skip


def object_file(stem: str) -> str:
    """What the object code of a variant is called."""
    return f"{stem}.o"


def cpu_declarations(code: SignatureCode, artifact: CpuArtifact) -> Iterator[str]:
    """The functions of the object code, and what its assertions say."""
    yield f"extern void {artifact.info_symbol}(const int64_t *, int64_t *);"
    for launch in artifact.launches:
        yield (f"extern void {launch.symbol}(int64_t *, int64_t, int64_t, const int64_t *, void *, "
               "int64_t *);")  # fmt: skip
    grids = ", ".join(
        f"{{{x.symbol}, {x.scratch_bytes}, {int(x.serial)}, 0}}" for x in artifact.launches
    )
    messages = ", ".join(quoted(m.text) for m in artifact.messages)
    yield f"static tl_grid {code.prefix}_grids[] = {{{grids or '{0}'}}};"
    yield f"static const char *const {code.prefix}_messages[] = {{{messages or 'NULL'}}};"
    yield (f"static const tl_cpu_kernel {code.prefix}_kernel = {{{quoted(code.function)}, "
           f"{artifact.info_symbol}, {code.prefix}_grids, {len(artifact.slots)}, "
           f"{len(artifact.launches)}, {artifact.workspaces}, "
           f"{code.prefix}_messages}};")  # fmt: skip


def cpu_launch(code: SignatureCode, artifact: CpuArtifact) -> Iterator[str]:
    """Check the processor, fill the slots, run."""
    function, cpu = quoted(code.function), quoted(artifact.cpu)
    yield "(void)leader;"
    for feature in cpu_features() if artifact.triple.startswith("x86_64") else ():
        yield (f'if (TL_RARE(!__builtin_cpu_supports("{feature}"))) {{ tl_other_cpu(late, '
               f'{function}, {cpu}, "{feature}"); return -2; }}')  # fmt: skip
    count = len(artifact.slots)
    yield f"int64_t slots[{max(1, count + artifact.workspaces)}];"
    yield f"int64_t sizes[{1 + len(artifact.launches) + artifact.workspaces}];"
    parameters = (*code.signature.slots, *code.signature.dims)
    for number, parameter in enumerate(parameters):
        if isinstance(parameter, Buffer):
            tensor = code.names.tensors[parameter]
            yield f"slots[{number}] = (int64_t)(intptr_t)tl_address({tensor});"
            continue
        value = code.names.values[parameter]
        is_double = parameter.dtype.is_float
        yield f"slots[{number}] = {f'tl_bits({value})' if is_double else value};"
    yield f"return tl_call(late, &{code.prefix}_kernel, slots, sizes) == 0 ? 0 : -2;"


@cache
def cpu_features() -> tuple[str, ...]:
    """What this processor has of `_FEATURES`: code compiled here may need all of it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return ()
    flags = next((line.partition(":")[2].split() for line in lines if line.startswith("flags")), [])
    return tuple(name for flag, name in _FEATURES.items() if flag in flags)
