"""What Hopper cannot do, or what an older GPU has not, is refused by name where it is written."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tilelang.codegen.cuda import CudaError, print_cuda
from tilelang.compiler import lower_function
from tilelang.language.frontend import parse_static
from tilelang.options import CompileOptions
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError, raise_for
from tilelang_diagnostics.model import Diagnostic

HEAD = "import tilelang.language as T\n\n\n"


@dataclass(frozen=True)
class Refused:
    """A kernel body, its parameters, and what is said of it: `at` is the text that is marked."""

    name: str
    code: str
    at: str
    words: tuple[str, ...]
    body: str
    params: str = 'A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")'
    target: str = "cuda:sm_90a"
    threads: int = 128


def copy(shape: str, call: str, dtype: str = "float16") -> str:
    return f'S = T.alloc_shared({shape}, "{dtype}")\nfull = T.alloc_barrier(128)\n{call}'


def gemm(
    a: str = "(64, 64)", b: str = "(64, 64)", c: str = "(64, 64)", dtype: str = "float16",
    sums: str = "float32", more: str = "", before: str = "",
) -> str:  # fmt: skip
    return (
        f'A_s = T.alloc_shared({a}, "{dtype}")\nB_s = T.alloc_shared({b}, "{dtype}")\n'
        f'C_l = T.alloc_fragment({c}, "{sums}")\n{before}'
        f"T.wgmma_gemm(A_s, B_s, C_l{more})\nT.wait_wgmma(0)\n"
    )


TENSOR = 'A: T.Tensor({}, "{}")'
CASES = (
    # Targets.
    *(
        Refused(f"tma on {arch}", "TL402", "T.tma_copy(S, A)", ("`T.tma_copy`", "cuda:sm_90"),
                'S = T.alloc_shared((64, 64), "float16")\nT.tma_copy(S, A)',
                target=f"cuda:{arch}")
        for arch in ("sm_80", "sm_86", "sm_89")
    ),
    Refused("barriers on sm_80", "TL402", "T.alloc_barrier(1)", ("`T.alloc_barrier`",),
            "full = T.alloc_barrier(1)", target="cuda:sm_80"),
    *(
        Refused(f"wgmma on {arch}", "TL402", "T.wait_wgmma(0)",
                ("`T.wait_wgmma`", "cuda:sm_90a", arch), "T.wait_wgmma(0)", target=f"cuda:{arch}")
        for arch in ("sm_80", "sm_89", "sm_90", "sm_100a", "sm_120a")
    ),
    *(
        Refused(f"wgmma_gemm on {arch}", "TL402", "T.wgmma_gemm(A_s, B_s, C_l)",
                ("`T.wgmma_gemm`", "cuda:sm_90a"), gemm().replace("T.wait_wgmma(0)\n", ""),
                target=f"cuda:{arch}")
        for arch in ("sm_80", "sm_90")
    ),
    Refused("registers without a", "TL402", "T.set_max_nreg(24, 0)",
            ("`T.set_max_nreg`", "cuda:sm_90a"), "T.set_max_nreg(24, 0)", target="cuda:sm_90"),
    # Warp groups.
    Refused("warp group that is not there", "TL408", "T.ws(1)", ("warp group 1", "128 … 255"),
            "with T.ws(1):\n    A[0, 0] = 1"),
    Refused("warp groups apart", "TL117", "T.ws(0, 2)", ("0, 2", "neighbours"),
            "with T.ws(0, 2):\n    A[0, 0] = 1", threads=384),
    Refused("warp group of the thread", "TL152", "T.ws(tx)", ("`warp_group_idx`",),
            "tx = T.get_thread_binding()\nwith T.ws(tx):\n    A[0, 0] = 1"),
    # The copy engine.
    Refused("rows of 200 bytes", "TL419", "T.tma_copy(A[0, 0], S, barrier=full)",
            ("`A`", "`S`", "200 bytes apart", "16"),
            copy("(32, 64)", "T.tma_copy(A[0, 0], S, barrier=full)"),
            TENSOR.format("(100, 100)", "float16")),
    Refused("long rows", "TL419", "T.tma_copy(A[0, 0], S, barrier=full)",
            ("a row of 264 elements", "256"),
            copy("(8, 264)", "T.tma_copy(A[0, 0], S, barrier=full)"),
            TENSOR.format("(100, 272)", "float16")),
    Refused("within 16 bytes", "TL419", "T.tma_copy(A[0:32, 12:44], S, barrier=full)",
            ("within a row of `A`", "16 bytes"),
            copy("(32, 32)", "T.tma_copy(A[0:32, 12:44], S, barrier=full)")),
    Refused("narrow rows", "TL419", "T.tma_copy(A[0, 0], S, barrier=full)",
            ("4 elements", "8 bytes", "16"),
            copy("(8, 4)", "T.tma_copy(A[0, 0], S, barrier=full)"),
            TENSOR.format("(100, 272)", "float16")),
    Refused("conversion", "TL419", "T.tma_copy(A, S, barrier=full)",
            ("float16 is not float32",),
            copy("(64, 64)", "T.tma_copy(A, S, barrier=full)", "float32")),
    Refused("a column", "TL419", "T.tma_copy(A[0:64, 0:1], S[0:64], barrier=full)",
            ("not contiguous in `A`",),
            copy("(64,)", "T.tma_copy(A[0:64, 0:1], S[0:64], barrier=full)")),
    Refused("six dimensions", "TL419", "T.tma_copy(A[0, 0, 0, 0, 0, 0], S, barrier=full)",
            ("6 dimensions", "5"),
            copy("(8, 64)", "T.tma_copy(A[0, 0, 0, 0, 0, 0], S, barrier=full)"),
            TENSOR.format("(2, 2, 2, 2, 8, 64)", "float16")),
    Refused("another tensor", "TL419", "T.tma_copy(W, S, barrier=full)",
            ("`W` is no argument",),
            'W = T.alloc_global((64, 64), "float16")\n'
            + copy("(64, 64)", "T.tma_copy(W, S, barrier=full)")),
    Refused("a layout of the author", "TL419", "T.tma_copy(A, S, barrier=full)",
            ("`S` is laid out", "no swizzle of TMA"),
            copy("(64, 64)", "T.annotate_layout({S: T.Layout((64, 64), lambda i, j: (j, i))})\n"
                 "T.tma_copy(A, S, barrier=full)")),
    Refused("a nonzero safe value", "TL419", "T.tma_copy(A[0, 0], S, barrier=full)",
            ("safe value", "zeros"),
            copy("(64, 64)", "T.annotate_safe_value({A: 1.0})\n"
                 "T.tma_copy(A[0, 0], S, barrier=full)")),
    Refused("within a swizzle", "TL419", "T.tma_copy(A[0:32, 0:32], S[4:36, 0:32], barrier=full)",
            ("rows of `S`", "whole groups of 8"),
            copy("(64, 32)", "T.tma_copy(A[0:32, 0:32], S[4:36, 0:32], barrier=full)")),
    Refused("multicast", "TL401", "T.tma_copy(A, S, barrier=full, cluster_mask=3)",
            ("`cluster_mask`",),
            copy("(64, 64)", "T.tma_copy(A, S, barrier=full, cluster_mask=3)")),
    Refused("a leader only data knows", "TL510", "T.tma_copy(A, S, barrier=full)",
            ("which thread",),
            "tx = T.get_thread_binding()\n" + copy("(64, 64)", "if A[tx % 64, 0] > 0:\n"
            "    T.tma_copy(A, S, barrier=full)")),
    Refused("barriers of clusters", "TL401", "T.alloc_cluster_barrier([1])",
            ("`T.alloc_cluster_barrier`", "`far`"), "far = T.alloc_cluster_barrier([1])"),
    # Products.
    Refused("32 rows", "TL409", "T.wgmma_gemm(A_s, B_s, C_l)", ("M = 32", "64"),
            gemm("(32, 64)", c="(32, 64)")),
    Refused("K of 24", "TL410", "T.wgmma_gemm(A_s, B_s, C_l)", ("K = 24", "16"),
            gemm("(64, 24)", "(24, 64)")),
    Refused("float64", "TL412", "T.wgmma_gemm(A_s, B_s, C_l)",
            ("WGMMA cannot multiply float64", "`C_l`"), gemm(dtype="float64", sums="float64")),
    Refused("int8 across K", "TL411", "T.wgmma_gemm(A_s, B_s, C_l)",
            ("int8 only along K", "`B_s`"), gemm(dtype="int8", sums="int32")),
    Refused("half a warp group", "TL408", "T.wgmma_gemm(A_s, B_s, C_l)",
            ("64 threads", "warp groups of 128"), gemm(), threads=64),
    Refused("three warp groups", "TL314", "T.wgmma_gemm(A_s, B_s, C_l)",
            ("3 warp groups", "64x64", "`C_l`"), gemm(), threads=384),
    Refused("rows of 16 bytes", "TL411", "T.wgmma_gemm(A_s, B_s, C_l)",
            ("8 x float16 of `B_s`", "no swizzle"), gemm(b="(64, 8)", c="(64, 8)")),
    Refused("an operand laid out by hand", "TL411", "T.wgmma_gemm(A_s, B_s, C_l)",
            ("`A_s`", "swizzles"),
            gemm(before="T.annotate_layout({A_s: T.Layout((64, 64), lambda i, j: (j, i))})\n")),
)  # fmt: skip


def source(case: Refused) -> str:
    lines = "".join(f"        {line}\n" for line in case.body.rstrip().split("\n"))
    return (
        f"{HEAD}@T.prim_func\ndef main({case.params}):\n"
        f"    with T.Kernel(1, threads={case.threads}) as bx:\n{lines}"
    )


def found_in(text: str, target: str) -> tuple[Diagnostic, ...]:
    """The errors of a file that holds one kernel."""
    (parsed,) = parse_static(text, "k.py", target=target)
    errors = tuple(d for d in parsed.diagnostics if d.is_error)
    if errors:
        return errors
    assert parsed.function is not None
    try:
        lowered = lower_function(parsed.function, parse_target(target), CompileOptions())
        raise_for(lowered.diagnostics)
        print_cuda(lowered.func)
    except (CompileError, CudaError) as error:
        return tuple(d for d in error.diagnostics if d.is_error)
    return ()


def marked(text: str, found: Diagnostic) -> str:
    span = found.span
    assert span is not None
    lines = text.split("\n")[span.line - 1 : span.end_line]
    lines[-1] = lines[-1][: span.end_column - 1]
    lines[0] = lines[0][span.column - 1 :]
    return "\n".join(lines)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_refused(case: Refused) -> None:
    text = source(case)
    found = [d for d in found_in(text, case.target) if marked(text, d) == case.at]
    shown = [(d.code, d.message, marked(text, d)) for d in found_in(text, case.target)]
    assert [d.code for d in found] == [case.code], shown
    said = f"{found[0].message} {found[0].label or ''}"
    assert all(word in said for word in case.words), said
    assert found[0].help


def test_sums_that_nobody_waits_for_are_warned_of() -> None:
    case = Refused("", "TL512", "", (), gemm().replace("T.wait_wgmma(0)", "T.copy(C_l, A)"))
    text = source(case)
    (parsed,) = parse_static(text, "k.py", target=case.target)
    found = [d for d in parsed.diagnostics if d.code == "TL512"]
    assert [marked(text, d) for d in found] == ["T.wgmma_gemm(A_s, B_s, C_l)"]
    assert "products into `C_l`" in found[0].message


def test_sums_that_are_waited_for_are_not() -> None:
    case = Refused("", "", "", (), gemm() + "T.copy(C_l, A)")
    (parsed,) = parse_static(source(case), "k.py", target=case.target)
    assert not [d for d in parsed.diagnostics if d.code == "TL512"]


def test_tiles_that_nobody_waits_for_are_warned_of() -> None:
    case = Refused("", "", "", (), copy("(64, 64)", "T.tma_copy(A, S, barrier=full)\n"
                                        "T.barrier_arrive(full)\nT.copy(S, B)"))  # fmt: skip
    text = source(case)
    (parsed,) = parse_static(text, "k.py", target=case.target)
    found = [d for d in parsed.diagnostics if d.code == "TL512"]
    assert [marked(text, d) for d in found] == ["T.tma_copy(A, S, barrier=full)"]
    assert found[0].help is not None and "T.barrier_wait" in found[0].help


@pytest.mark.parametrize(("consumers", "total"), [(2, None), (3, 24 + 3 * 240)])
def test_warp_groups_that_ask_for_too_many_registers(consumers: int, total: int | None) -> None:
    groups = ", ".join(str(n + 1) for n in range(consumers))
    body = (
        "with T.ws(0):\n    T.set_max_nreg(24, 0)\n"
        f"with T.ws({groups}):\n    T.set_max_nreg(240, 1)\nA[0, 0] = 1"
    )
    case = Refused("", "", "", (), body, threads=128 * (consumers + 1))
    text = source(case)
    (parsed,) = parse_static(text, "k.py", target=case.target)
    found = [d for d in parsed.diagnostics if d.code == "TL407"]
    if total is None:
        assert not found
        return
    assert [marked(text, d) for d in found] == ["T.set_max_nreg(240, 1)"]
    assert f"are {total * 128} registers, and a block has 65536" in found[0].message


@pytest.mark.parametrize(
    ("target", "names"),
    [
        ("cuda:sm_80", ["alloc_barrier", "set_max_nreg", "tma_copy", "mbarrier_arrive",
                        "mbarrier_wait_parity", "wgmma_gemm", "wait_wgmma"]),
        ("cuda:sm_90", ["set_max_nreg", "wgmma_gemm", "wait_wgmma"]),
        ("cuda:sm_100a", ["wgmma_gemm", "wait_wgmma"]),
    ],
)  # fmt: skip
def test_kernels_traced_for_another_target_are_refused_as_well(
    target: str, names: list[str]
) -> None:
    body = (
        "full = T.alloc_barrier(128)\nT.set_max_nreg(24, 0)\n"
        'A_s = T.alloc_shared((64, 64), "float16")\n'
        'C_l = T.alloc_fragment((64, 64), "float32")\n'
        "T.tma_copy(A, A_s, barrier=full)\nT.barrier_arrive(full)\nT.barrier_wait(full, 0)\n"
        "T.wgmma_gemm(A_s, A_s, C_l)\nT.wait_wgmma(0)\nT.copy(C_l, B)"
    )
    (parsed,) = parse_static(source(Refused("", "", "", (), body)), "k.py", target="cuda:sm_90a")
    assert parsed.function is not None
    with pytest.raises(CompileError) as refused:
        lower_function(parsed.function, parse_target(target), CompileOptions())
    found = [d for d in refused.value.diagnostics if d.is_error]
    assert [d.message.split("`")[1].removeprefix("T.") for d in found] == names
    assert {d.code for d in found} == {"TL402"} and all(d.span and d.help for d in found)
