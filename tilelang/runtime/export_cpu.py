"""Which C runs a kernel that was compiled for the CPU, and refuses a processor it is not for?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.program.buffer import Buffer
from tilelang.runtime.export_signature import SignatureCode, quoted
from tilelang_diagnostics import failure

# Where a processor says that it has what LLVM may use by itself, in LLVM's names. For x86: leaf and
# subleaf of CPUID, register (eax, ebx, ecx, edx), bit, and what the system must save for it (XCR0).
_YMM, _ZMM, _APX = 0x6, 0xE6, 1 << 19
_X86: Final[Mapping[str, tuple[int, int, int, int, int]]] = {
    **{n: (1, 0, 2, bit, 0) for n, bit in {
        "sse3": 0, "pclmul": 1, "ssse3": 9, "cx16": 13, "sse4.1": 19, "sse4.2": 20, "crc32": 20,
        "movbe": 22, "popcnt": 23, "aes": 25}.items()},
    **{n: (1, 0, 2, bit, _YMM) for n, bit in {"fma": 12, "avx": 28, "f16c": 29}.items()},
    **{n: (7, 0, 1, bit, 0) for n, bit in {"bmi": 3, "bmi2": 8, "adx": 19, "sha": 29}.items()},
    "avx2": (7, 0, 1, 5, _YMM),
    **{f"avx512{n}": (7, 0, 1, bit, _ZMM) for n, bit in {
        "f": 16, "dq": 17, "ifma": 21, "pf": 26, "er": 27, "cd": 28, "bw": 30, "vl": 31}.items()},
    **{f"avx512{n}": (7, 0, 2, bit, _ZMM) for n, bit in {
        "vbmi": 1, "vbmi2": 6, "vnni": 11, "bitalg": 12, "vpopcntdq": 14}.items()},
    **{f"avx512{n}": (7, 0, 3, bit, _ZMM) for n, bit in {"vp2intersect": 8, "fp16": 23}.items()},
    "gfni": (7, 0, 2, 8, 0), "vaes": (7, 0, 2, 9, _YMM), "vpclmulqdq": (7, 0, 2, 10, _YMM),
    **{f"avx{n}": (7, 1, 0, bit, _YMM) for n, bit in {"vnni": 4, "ifma": 23}.items()},
    "avx512bf16": (7, 1, 0, 5, _ZMM), "cmpccxadd": (7, 1, 0, 7, 0), "raoint": (7, 1, 0, 3, 0),
    **{f"avx{n}": (7, 1, 3, bit, _YMM) for n, bit in {
        "vnniint8": 4, "neconvert": 5, "vnniint16": 10}.items()},
    # The version of AVX10 is a number; 2 has this bit.
    "avx10.1": (7, 1, 3, 19, _ZMM), "avx10.2": (0x24, 0, 1, 1, _ZMM),
    **dict.fromkeys(
        ("ccmp", "cf", "egpr", "ndd", "nf", "ppx", "push2pop2", "zu"), (7, 1, 3, 21, _APX)),
    **{n: (0x80000001, 0, 2, bit, 0) for n, bit in {"lzcnt": 5, "sse4a": 6, "tbm": 21}.items()},
    **{n: (0x80000001, 0, 2, bit, _YMM) for n, bit in {"xop": 11, "fma4": 16}.items()},
}  # fmt: skip
# For ARM: the number of the word of `getauxval` (AT_HWCAP, AT_HWCAP2), and a bit of it.
_ARM: Final[Mapping[str, tuple[int, int, int, int, int]]] = {
    **{n: (0, 0, 0, bit, 0) for n, bit in {
        "fp-armv8": 0, "neon": 1, "aes": 3, "sha2": 6, "crc": 7, "lse": 8, "fullfp16": 10,
        "rdm": 12, "jsconv": 13, "complxnum": 14, "rcpc": 15, "sha3": 17, "sm4": 19, "dotprod": 20,
        "sve": 22, "fp16fml": 23, "lse2": 25, "rcpc-immo": 26, "flagm": 27, "sb": 29,
        "pauth": 30}.items()},
    **{n: (1, 0, 0, bit, 0) for n, bit in {
        "sve2": 1, "sve-aes": 2, "sve-bitperm": 4, "sve-sha3": 5, "sve-sm4": 6, "altnzcv": 7,
        "fptoint": 8, "i8mm": 13, "bf16": 14, "bti": 17, "cssc": 34, "sve2p1": 36, "mops": 43,
        "hbc": 44, "sve-b16b16": 45, "rcpc3": 46, "faminmax": 50}.items()},
}  # fmt: skip


def object_file(stem: str) -> str:
    """What the object code of a variant is called."""
    return f"{stem}.o"


def cpu_declarations(code: SignatureCode, artifact: CpuArtifact) -> Iterator[str]:
    """The functions of the object code, and what its assertions say."""
    rows = ", ".join(
        f"{{{quoted(n)}, {', '.join(map(str, place))}}}" for n, place in needs_of(artifact).items()
    )
    yield f"static const tl_feature {code.prefix}_needs[] = {{{rows or '{0}'}}};"
    yield f"static int {code.prefix}_fits;"
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
    yield (f"if (TL_RARE(tl_other_cpu(late, {function}, {cpu}, {code.prefix}_needs, "
           f"{len(needs_of(artifact))}, &{code.prefix}_fits))) return -2;")  # fmt: skip
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


def needs_of(artifact: CpuArtifact) -> dict[str, tuple[int, int, int, int, int]]:
    """What a processor has to have for the code of `artifact`, and where it says so.

    TL807 for a kind of processor that cannot be asked.
    """
    from tilelang.ir.llvm import features_of

    if artifact.triple.startswith(("x86_64", "amd64")):
        known = _X86
    elif artifact.triple.startswith(("aarch64", "arm64")) and "linux" in artifact.triple:
        known = _ARM
    else:
        raise failure(
            "TL807",
            f"`{artifact.name}` is compiled for {artifact.cpu} ({artifact.triple}), and how an "
            "exported kernel finds out there whether a processor is one is not known",
            help="export it on x86-64, or on Linux for ARM",
        )
    return {n: known[n] for n in features_of(artifact.cpu, artifact.triple) if n in known}
