"""`T.gemm` is done by warp groups where its tiles can lie so, and else it is told why not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.gpu_hopper.lowering import outline
from tilelang.choices import Rejected
from tilelang.compiler import lower_function
from tilelang.language.frontend import parse_static
from tilelang.layouts.infer import infer_layouts
from tilelang.options import make_options
from tilelang.pipeline import run_pipeline
from tilelang.program.stmt import Function
from tilelang.target import parse_target
from tilelang_diagnostics import raise_for

HEAD = "import tilelang.language as T\n\n\n"


def kernel(body: str, threads: int = 128) -> Function:
    """A kernel of one block over 128 x 128 tensors; the body has `A`, `B`, `C` and `tx`."""
    lines = "".join(f"        {line}\n" for line in body.splitlines())
    text = (
        f"{HEAD}@T.prim_func\ndef main(\n"
        '    A: T.Tensor((128, 128), "float16"), B: T.Tensor((128, 128), "float16"),\n'
        '    C: T.Tensor((128, 128), "float32"),\n):\n'
        f"    with T.Kernel(1, threads={threads}) as bx:\n"
        f"        tx = T.get_thread_binding()\n{lines}"
    )
    (parsed,) = parse_static(text, "kernel.py", target="cuda:sm_90a")
    raise_for(parsed.diagnostics)
    assert parsed.function is not None
    return parsed.function


def gemm(
    a: str = "(64, 64)", b: str = "(64, 64)", c: str = "(64, 64)", dtype: str = "float16",
    sums: str = "float32", call: str = "T.gemm(A_s, B_s, C_l)", before: str = "", after: str = "",
    a_in: str = "shared", b_in: str = "shared",
) -> str:  # fmt: skip
    return (
        f'A_s = T.alloc_{a_in}({a}, "{dtype}")\nB_s = T.alloc_{b_in}({b}, "{dtype}")\n'
        f'C_l = T.alloc_fragment({c}, "{sums}")\n{before}T.clear(A_s)\nT.clear(B_s)\nT.clear(C_l)\n'
        f"{call}\n{after}for i, j in T.Parallel(8, 8):\n    C[i, j] = C_l[i, j]\n"
    )


def instructions(function: Function, target: str = "cuda:sm_90a", **configs: bool) -> Counter[str]:
    """The matrix instructions by their kind."""
    options = make_options({f"tl.{k}": v for k, v in configs.items()}, None)
    found = outline(lower_function(function, parse_target(target), options).func)
    kinds = ("wgmma_ss", "wgmma_rs", "wgmma_wait", "mma_m")
    return Counter(kind for word in found for kind in kinds if word.startswith(kind))


# Body, threads; then the matrix instructions of a thread.
TAKEN = {
    "plain": (gemm(), 128, {"wgmma_ss": 4, "wgmma_wait": 1}),
    "two groups": (gemm(a="(128, 64)", c="(128, 64)"), 256, {"wgmma_ss": 4, "wgmma_wait": 1}),
    "A in registers": (gemm(a_in="fragment"), 128, {"wgmma_rs": 4, "wgmma_wait": 1}),
    "both transposed": (
        gemm(call="T.gemm(A_s, B_s, C_l, transpose_A=True, transpose_B=True)"), 128,
        {"wgmma_ss": 4, "wgmma_wait": 1},
    ),
    "a stage of a tile": (
        gemm(a="(2, 64, 64)", b="(2, 64, 64)", call="T.gemm(A_s[1, :, :], B_s[1, :, :], C_l)"), 128,
        {"wgmma_ss": 4, "wgmma_wait": 1},
    ),
    "two products of one sum": (
        gemm(call="T.gemm(A_s, B_s, C_l)\nT.gemm(A_s, B_s, C_l)"), 128,
        {"wgmma_ss": 8, "wgmma_wait": 2},
    ),
    "by one group of several": (
        gemm(call="with T.ws(1):\n    T.gemm(A_s, B_s, C_l)").replace("T.clear(C_l)\n", "").replace(
            "for i, j in T.Parallel(8, 8):\n    C[i, j] = C_l[i, j]\n",
            "with T.ws(1):\n    for i, j in T.Parallel(8, 8):\n        C[i, j] = C_l[i, j]\n"),
        256, {"wgmma_ss": 4, "wgmma_wait": 1},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_it_is_taken(name: str) -> None:
    body, threads, expected = TAKEN[name]
    assert instructions(kernel(body, threads)) == expected


# Body, threads; then why not.
NOT_TAKEN = {
    "rows": (
        gemm(a="(32, 64)", c="(32, 64)"), 128,
        "M = 32 of `T.gemm` into `C_l` is no multiple of the 64 that one instruction takes",
    ),
    "depth": (
        gemm(a="(64, 24)", b="(24, 64)"), 128,
        "K = 24 of `T.gemm` into `C_l` is no multiple of the 16 that one instruction takes",
    ),
    "threads": (
        gemm(), 64,
        "`T.gemm` into `C_l` runs on 64 threads, which are no whole number of warp groups of 128",
    ),
    "B in registers": (gemm(b_in="fragment"), 128, "`B_s` is not in shared memory"),
    "float32": (gemm(dtype="float32"), 128, "it would round float32 without care"),
    "int8 down its columns": (
        gemm(dtype="int8", sums="int32").replace("= C_l[i, j]", '= T.cast(C_l[i, j], "float32")'),
        128,
        "WGMMA reads int8 only along K, and `B_s` is stored the other way round",
    ),
    "padded rows": (
        gemm(a="(64, 72)", call="T.gemm(A_s[:, 0:64], B_s, C_l)"), 128,
        "rows of 72 x float16 of `A_s` fit no swizzle that WGMMA reads",
    ),
    "a part": (
        gemm(a="(64, 128)", call="T.gemm(A_s[:, 32:96], B_s, C_l)"), 128,
        "the part of `A_s` may start within a swizzled block",
    ),
    "an address": (
        gemm(after='T.call_extern("handle", "use", T.address_of(A_s[0, 0]))\n'), 128,
        "its tiles cannot lie as it needs them",
    ),
    "a layout of the author's": (
        gemm(before="T.annotate_layout({A_s: T.Layout((64, 64), lambda i, j: (i, j))})\n"), 128,
        "its tiles cannot lie as it needs them",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_TAKEN)
def test_it_is_told_why_not(name: str) -> None:
    body, threads, why = NOT_TAKEN[name]
    function = kernel(body, threads)
    products = [p for x in infer_layouts(function, "cuda:sm_90a").launches for p in x.products]
    assert [(p.groups, p.why_not) for p in products] == [(None, why)]
    assert set(instructions(function)) <= {"mma_m"}


def test_the_reason_is_a_note_of_the_compilation() -> None:
    from tilelang.ir import attrs
    from tilelang.ir.emit import emit
    from tilelang.passes.context import PassContext

    body, threads, why = NOT_TAKEN["rows"]
    function = kernel(body, threads)
    context = PassContext("cuda:sm_90a")
    context.layouts = infer_layouts(function, "cuda:sm_90a")
    run_pipeline(emit(function).with_attr(attrs.TARGET, "cuda:sm_90a"), context)
    (note,) = [n for n in context.choices.notes if n.kind == "gemm"]
    assert note.rejected[0] == Rejected("WGMMA", why)


def test_other_targets_and_the_option_take_warps() -> None:
    function = kernel(gemm())
    assert set(instructions(function, disable_wgmma=True)) == {"mma_m"}
    for target in ("cuda:sm_80", "cuda:sm_90", "cuda:sm_100a", "cuda:sm_120a"):
        assert set(instructions(function, target)) == {"mma_m"}
