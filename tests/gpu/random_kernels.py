"""Random kernels for the GPU: gemms over types, tiles, transposes, operands and threads, and the
straight-line programs over tiles of `tests.property.test_random_kernels`."""

from __future__ import annotations

import linecache
import random
from typing import Any

from tests.gpu import gemms
from tests.kernels.case import KernelCase
from tests.property import test_random_kernels as programs

SEED = 20261130
_TYPES = (
    ("float16", "float32", None), ("bfloat16", "float32", None), ("float32", "float32", "float16"),
    ("int8", "int32", None), ("float8_e4m3fn", "float32", "float16"), ("float64", "float64", None),
    ("float16", "float16", "bfloat16"),
)  # fmt: skip


def random_gemm(number: int) -> KernelCase:
    """A gemm whose tile some grid of its warps covers."""
    rng = random.Random(SEED + number)
    dtype, accum, precision = rng.choice(_TYPES)
    m_warps, n_warps = rng.choice(((1, 1), (2, 1), (1, 2), (2, 2), (4, 1), (1, 4), (4, 2)))
    block_M = 16 * m_warps * rng.randint(1, 3)
    block_N = 8 * n_warps * rng.randint(1, 4)
    block_K = 32 * rng.randint(1, 2)
    return KernelCase(
        name=f"random_gemm_{number}", row="random", tier=1, style="prim_func", make=gemms.gemm,
        inputs=gemms.inputs, reference=gemms.reference,
        params={
            "M": rng.randint(1, 100), "N": rng.randint(1, 100), "K": rng.randint(1, 130),
            "tile": (block_M, block_N, block_K), "dtype": dtype, "accum": accum, "out": accum,
            "transpose_A": rng.random() < 0.5, "transpose_B": rng.random() < 0.5,
            "threads": 32 * m_warps * n_warps, "policy": 0,
            "a_in": rng.choice(("shared", "shared", "fragment")),
            "b_in": rng.choice(("shared", "shared", "fragment")),
            "c_in": rng.choice(("fragment", "shared")),
        },
        out_idx=(2,), targets=("cuda:sm_80",), precision=(precision,), needs_torch=True,
    )  # fmt: skip


def random_tiles(number: int) -> KernelCase:
    """A random program over tiles."""
    program = programs.random_program(random.Random(SEED + number))
    threads = random.Random(number).choice((32, 64, 96, 128, 256))
    text, outputs = programs.kernel_text(program)
    text = text.replace("threads=128", f"threads={threads}")

    def make() -> Any:
        path = f"<random tiles {number}>"
        linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
        scope: dict[str, Any] = {}
        exec(compile(text, path, "exec"), scope)
        return scope["main"]

    # Errors are relative to the whole tile there, and to each element here.
    loose = any(program.tiles[t].dtype.kind == "f" for t in outputs)
    return KernelCase(
        name=f"random_tiles_{number}", row="random", tier=1, style="prim_func", make=make,
        inputs=lambda _rng: tuple(program.inputs),
        reference=lambda *_: tuple(program.tiles[t] for t in outputs),
        out_idx=tuple(range(-len(outputs), 0)), targets=("cuda:sm_80",),
        precision=tuple(
            "float16" if loose and program.tiles[t].dtype.kind == "f" else None for t in outputs
        ),
    )  # fmt: skip
