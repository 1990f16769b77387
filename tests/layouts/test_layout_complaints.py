"""What kernel authors complained of, as the front end says it for a GPU: code, span and help.

«Marks» in a wrong kernel stand around the text that the finding points at; the right kernel beside
it gives nothing. The numbers are those of public issues of tile-ai/tilelang.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.layouts.marked import check_marked, plain
from tests.support.markers import check_clean, diagnostics_of, kernel_text


@dataclass(frozen=True)
class Case:
    """A complaint: both kernels, what is said, and words that notes and labels must hold."""

    name: str
    wrong: str
    says: str
    help: str
    right: str
    also: tuple[str, ...] = ()
    target: str = "cuda:sm_80"
    on_cpu: tuple[str, ...] = ()


def two_gemms(threads: int, policy: str, store: str = "acc_s_cast[i, j]") -> str:
    """An accumulator converted to float16 for a second gemm."""
    return f"""
    @T.prim_func
    def main(Q: T.Tensor((64, 64), "float16"), K: T.Tensor((64, 64), "float16"),
             O: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads={threads}):
            Q_shared = T.alloc_shared((64, 64), "float16")
            K_shared = T.alloc_shared((64, 64), "float16")
            acc_s = T.alloc_fragment((64, 64), "float32")
            acc_s_cast = T.alloc_fragment((64, 64), "float16")
            acc_o = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, Q_shared)
            T.copy(K, K_shared)
            T.clear(acc_s)
            T.gemm(Q_shared, K_shared, acc_s, transpose_B=True, policy=T.GemmWarpPolicy.{policy})
            for i, j in T.Parallel(64, 64):
                {store} = acc_s[i, j]
            T.clear(acc_o)
            T.gemm(acc_s_cast, K_shared, acc_o, policy=T.GemmWarpPolicy.{policy})
            T.copy(acc_o, O)
    """


PINNED_SCATTER = """
    @T.prim_func
    def main(X: T.Tensor((16, 448), "int32"), Y: T.Tensor((16, 14), "int32")):
        with T.Kernel(1, threads=128):
            A = T.alloc_fragment((16, 14), "int32")
            B = T.alloc_fragment((16, 448), "int32")
            T.annotate_layout({B: T.Fragment((16, 448), lambda i, j: (j % 128, i * 4 + j // 128))})
            T.copy(X, B)
            T.clear(A)
            for i, j in T.Parallel(16, 448, loop_layout=T.Fragment(
                (16, 448), lambda i, j: (j % 128, i * 4 + j // 128)
            )):
                «A[i, j // 32] += B[i, j]»
            T.copy(A, Y)
"""
REDUCED = """
    @T.prim_func
    def main(X: T.Tensor((16, 448), "int32"), Y: T.Tensor((16, 14), "int32")):
        with T.Kernel(1, threads=128):
            A = T.alloc_fragment((16, 14), "int32")
            B = T.alloc_fragment((16, 448), "int32")
            T.copy(X, B)
            T.reduce_sum(T.reshape(B, (16, 14, 32)), A, dim=2)
            T.copy(A, Y)
"""


def widths(n: int, loop: str, threads: int = 128) -> str:
    """A fragment of `n` elements on a block of `threads`."""
    return f"""
    @T.prim_func
    def main(A: T.Tensor(({n},), "float32"), B: T.Tensor(({n},), "float32")):
        with T.Kernel(1, threads={threads}):
            x = T.alloc_fragment(({n},), "float32")
            {loop}
                x[i] = A[i] * 2
            T.copy(x, B)
    """


def neighbours(scope: str, read: str) -> str:
    return f"""
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            fa = T.alloc_{scope}((128,), "float32")
            T.copy(A, fa)
            for i in T.Parallel(128):
                B[i] = fa[i] + {read}
    """


def part(loop: str, value: str) -> str:
    return f"""
    @T.prim_func
    def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32")):
        with T.Kernel(1, threads=128):
            x = T.alloc_fragment((256,), "float32")
            {loop}
                x[i] = {value}
            for i in T.Parallel(256):
                B[i] = x[i]
    """


def siblings(first: str, second: str) -> str:
    return f"""
    @T.prim_func
    def main(A: T.Tensor((16, 32), "float16"), B: T.Tensor((32, 64), "float16"),
             C: T.Tensor((16, 32), "float32")):
        with T.Kernel(1, threads=128):
            A_shared = T.alloc_shared((16, 32), "float16")
            B_shared = T.alloc_shared((32, 64), "float16")
            acc = T.alloc_fragment((16, 64), "float32")
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.clear(acc)
            T.gemm(A_shared, B_shared, acc, policy=T.GemmWarpPolicy.FullRow)
            for i, j in T.Parallel(16, 32):
                C[i, j] = {first} * {second}
    """


def product(
    m: int, n: int, k: int, threads: int, gemm: str = "T.gemm(A_shared, B_shared, C_local)",
    dtype: str = "float16",
) -> str:  # fmt: skip
    return f"""
    @T.prim_func
    def main(A: T.Tensor(({m}, {k}), "{dtype}"), B: T.Tensor(({k}, {n}), "{dtype}"),
             C: T.Tensor(({m}, {n}), "float32")):
        with T.Kernel(1, threads={threads}):
            A_shared = T.alloc_shared(({m}, {k}), "{dtype}")
            B_shared = T.alloc_shared(({k}, {n}), "{dtype}")
            C_local = T.alloc_fragment(({m}, {n}), "float32")
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            T.clear(C_local)
            {gemm}
            T.copy(C_local, C)
    """


def warp_groups(second: str, declared: str = "") -> str:
    """Two gemms of a specialised kernel."""
    return f"""
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
             C: T.Tensor((2, 64, 64), "float32")):
        with T.Kernel(1, threads=256):
            A_shared = T.alloc_shared((64, 64), "float16")
            B_shared = T.alloc_shared((64, 64), "float16")
            acc_o = T.alloc_fragment((64, 64), "float32")
            {declared}
            T.copy(A, A_shared)
            T.copy(B, B_shared)
            with T.ws(0):
                T.clear(acc_o)
                T.gemm(A_shared, B_shared, acc_o)
                T.copy(acc_o, C[0, :, :])
            with T.ws(1):
                {second}
    """


GEMM = "«T.gemm(A_shared, B_shared, C_local)»"


def wide_copy(first: int, copy: str) -> str:
    region = f"A[0:4, {first}:{first + 32}]"
    return f"""
    @T.prim_func
    def main(A: T.Tensor((4, 96), "float32"), B: T.Tensor((4, 96), "float32")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((4, 32), "float32")
            {copy.format(region)}
            T.copy(s, B[0:4, 0:32])
    """


def columns(layout: str, read: str = "tile[i, j]") -> str:
    """A 32 x 32 tile of float32, written by rows and read by columns."""
    return f"""
    @T.prim_func
    def main(A: T.Tensor((32, 32), "float32"), B: T.Tensor((32, 32), "float32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_shared((32, 32), "float32")
            {layout}
            T.copy(A, tile)
            for j in T.serial(32):
                for i in T.Parallel(32):
                    B[j, i] = {read}
    """


def strided(body: str, strides: str) -> str:
    return f"""
    @T.prim_func
    def main(B: T.StridedTensor((256, 64), {strides}, "float16"),
             C: T.Tensor((256, 64), "float16")):
        with T.Kernel(1, threads=128):
            s = T.alloc_shared((256, 64), "float16")
            {body}
            T.copy(s, C)
    """


def owner(condition: str, store: str) -> str:
    return f"""
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=128):
            tx = T.get_thread_binding()
            x = T.alloc_fragment((128,), "float32")
            T.copy(A, x)
            if {condition}:
                {store} = 1.0
            T.copy(x, B)
    """


CASES = (
    Case(
        "1165: 64 rows for 8 warps",
        two_gemms(256, "FullRow", "«acc_s_cast[i, j]»"),
        "remark[TL307] `acc_s_cast` goes through shared memory for acc_s_cast[i, j]: from "
        "thread=rep*128 + i//16*32 + i%8*4 + j//2%4 to t=j//32*128 + i//16*32 + i%8*4 + j//2%4",
        "use threads=128, so that each warp computes whole rows, or go through shared memory",
        two_gemms(128, "FullRow"),
        (
            "`acc_s` is t=j//32*128 + i//16*32 + i%8*4 + j//2%4 here",
            "`acc_s_cast` is thread=rep*128 + i//16*32 + i%8*4 + j//2%4 here",
            "`acc_s_cast[0, 0]`: threads 0, 128 hold it, thread 0 needs it",
            "costs a thread about 72 instructions",
        ),
    ),
    Case(
        "1165: warps in a square",
        two_gemms(128, "Square", "«acc_s_cast[i, j]»"),
        "remark[TL307] `acc_s_cast` goes through shared memory",
        "policy=T.GemmWarpPolicy.FullRow for both gemms",
        two_gemms(128, "FullRow"),
        ("`acc_s_cast[0, 0]`: threads 0, 64 hold it, thread 0 needs it",),
    ),
    Case(
        "1374: 32 neighbours of a row in 32 threads",
        PINNED_SCATTER,
        "error[TL301] `A[i, j // 32]` is updated by threads 0 to 31 at once, and no layout of `A`",
        "combine in a `T.alloc_reducer` instead of `A`, or `T.reshape`",
        REDUCED,
        ("thread=j%128, slot=i*4 + j//128",),
        on_cpu=("TL240",),
    ),
    *(
        Case(
            f"{n} elements on {threads} threads",
            widths(n, f"«for i in T.Parallel({n})»:", threads),
            f"remark[TL309] {n} iterations on {threads} threads leave {idle} of {places} places",
            help,
            widths(right[0], f"for i in T.Parallel({right[0]}):", right[1]),
        )
        for n, threads, idle, places, help, right in (
            (
                256,
                48,
                128,
                384,
                "use threads=32 or 64: whole warps of 32 that divide 256 evenly, "
                "while 48 threads leave 16 of the 32 lanes of the last warp",
                (256, 64),
            ),
            (
                229,
                48,
                11,
                240,
                "use threads=64 and make the extent 192, 256 or 320: 48 threads "
                "leave 16 of the 32 lanes",
                (192, 64),
            ),
            (
                192,
                128,
                64,
                256,
                "make the extent 128, 256 or 384, or use threads=96 or 192: whole "
                "warps of 32 that divide 192 evenly",
                (192, 96),
            ),
            (2048, 1000, 1952, 4000, "use threads=512 or 1024: whole warps of 32", (2048, 1024)),
        )
    ),
    *(
        Case(
            f"2398: {n} elements on 128 threads",
            widths(n, f"«for i in T.Parallel({n})»:"),
            f"remark[TL309] {n} iterations on 128 threads leave {idle} of {places} places idle",
            f"make the extent {legal}",
            widths(n // 128 * 128, f"for i in T.Parallel({n // 128 * 128}):"),
        )
        for n, idle, places, legal in (
            (192, 64, 256, "128, 256 or 384"),
            (229, 27, 256, "128, 256 or 384"),
            (257, 127, 384, "256, 384 or 512"),
        )
    ),
    Case(
        "3005: a neighbour in another thread",
        neighbours("fragment", "«fa[(i + 1) % 128]»"),
        "remark[TL307] `fa` goes through shared memory within each warp for fa[(i + 1) % 128]: "
        "from thread=i//4, slot=i%4",
        "keep `fa` in shared memory",
        neighbours("shared", "fa[(i + 1) % 128]"),
        ("the same iteration touches `fa[i]`", "`fa[4]`: thread 1 holds it, thread 0 needs it"),
    ),
    Case(
        "a neighbour that another iteration overwrites",
        neighbours("fragment", "0")
        .replace("B[i] = fa[i] + 0", "fa[i] = «fa[(i + 1) % 128]»")
        .rstrip()
        + "\n            T.copy(fa, B)\n",
        "error[TL304] `fa[(i + 1) % 128]` is read while another thread may be writing it",
        "first copy `fa` to shared memory",
        neighbours("shared", "fa[(i + 1) % 128]"),
        ("another iteration writes it here", "`fa[3]`: thread 0 holds it, thread 1 needs it"),
    ),
    Case(
        "2957: 100 of 256 elements",
        part("«for i in T.Parallel(100)»:", "A[i]"),
        "warning[TL305] the first loop over `x` covers 100 of its 256 elements",
        "loop over 256 and guard the body with a condition on i",
        part("for i in T.Parallel(256):", "T.if_then_else(i < 100, A[i], 0)"),
        ("this one goes over all of it",),
    ),
    Case(
        "2311: halves of a row in other warps",
        siblings("acc[i, j]", "«acc[i, j + 32]»"),
        "remark[TL307] `acc` goes through shared memory for acc[i, j + 32]: from thread=j//16*32 + "
        "i%8*4 + j//2%4",
        "keep `acc` in shared memory",
        siblings("acc[i, 2 * j]", "acc[i, 2 * j + 1]"),
        ("the same iteration touches `acc[i, j]`",),
    ),
    Case(
        "1554, 2537: N=104 for 12 warps",
        product(16, 104, 32, 384, GEMM),
        "error[TL314] no grid of 12 warps covers the 16x104 tile `C_local` with whole 16x8",
        "use 32 or 416 threads, or make N 96 or 192",
        product(16, 96, 32, 384),
        ("384 threads are 12 warps",),
    ),
    Case(
        "2918: fewer threads than a warp",
        product(16, 32, 32, 16, GEMM),
        "error[TL408] `T.gemm` into `C_local` runs on 16 threads, which are no whole number of",
        "use 32 threads",
        product(16, 32, 32, 32),
    ),
    Case(
        "2918: fewer threads than a wavefront of CDNA",
        product(16, 32, 32, 32, GEMM),
        "error[TL408] `T.gemm` into `C_local` runs on 32 threads, which are no whole number of "
        "warps of 64",
        "use 64 threads",
        product(16, 32, 32, 64),
        ("a warp of hip:gfx942 has 64 threads",),
        target="hip:gfx942",
    ),
    Case(
        "2547: two warp groups and one accumulator",
        warp_groups("«T.gemm(B_shared, A_shared, acc_o)»"),
        "error[TL301] `acc_o` cannot be in the registers of warp group 0, for T.gemm(A_shared, "
        "B_shared, acc_o), and of warp group 1, for T.gemm(B_shared, A_shared, acc_o)",
        "give each warp group a fragment of its own",
        warp_groups(
            "T.clear(acc_1)\n                T.gemm(B_shared, A_shared, acc_1)\n"
            "                T.copy(acc_1, C[1, :, :])",
            'acc_1 = T.alloc_fragment((64, 64), "float32")',
        ),
        ("warp group 0 works on it",),
        target="cuda:sm_90",
        on_cpu=("TL401",),
    ),
    Case(
        "3032: K below the instruction's",
        product(16, 32, 4, 32, GEMM),
        "error[TL410] K = 4 of `T.gemm` into `C_local` is below the 8 elements of float16 that the "
        "shallowest matrix instruction takes",
        "make K 8, or a multiple of it",
        product(16, 32, 8, 32),
        ("cuda:sm_80 has m16n8k16 and m16n8k8",),
    ),
    Case(
        "K between two multiples",
        product(16, 32, 20, 32, GEMM),
        "error[TL410] K = 20 of `T.gemm` into `C_local` is no multiple of the 8 elements",
        "make K a multiple of 8: 16 or 24",
        product(16, 32, 24, 32),
    ),
    Case(
        "S5: a 20 x 20 accumulator",
        product(20, 20, 32, 32, GEMM),
        "error[TL409] M = 20 and N = 20 of `T.gemm` into `C_local` are no multiples of the 16x8",
        "the nearest legal sizes are M 16 or 32 and N 16 or 24",
        product(32, 16, 32, 32),
    ),
    Case(
        "3007: coalesced_width of 32 bytes",
        wide_copy(0, "«T.copy({}, s, coalesced_width=8)»"),
        "warning[TL604] coalesced_width=8 of T.copy(A[0:4, 0:32], s) is clamped to 4: 4 float32",
        "write coalesced_width=4",
        wide_copy(0, "T.copy({}, s, coalesced_width=4)"),
    ),
    Case(
        "3007: coalesced_width beyond the alignment",
        wide_copy(2, "«T.copy({}, s, coalesced_width=4)»"),
        "warning[TL604] coalesced_width=4 of T.copy(A[0:4, 2:34], s) is clamped to 2: `A` is",
        "write coalesced_width=2",
        wide_copy(2, "T.copy({}, s, coalesced_width=2)"),
    ),
    Case(
        "a row-major tile read by columns, and one xored by its author",
        columns("T.annotate_layout({tile: lambda i, j: (i, j)})", "«tile[i, j]»"),
        "remark[TL306] 32-way bank conflicts when `tile` is read by tile[i, j]: its layout is "
        "`lambda i, j: (i, j)`",
        "leave out the layout of `tile` and the compiler swizzles it",
        columns("T.annotate_layout({tile: lambda i, j: (i, j ^ i)})"),
        ("`tile` is given this layout",),
    ),
    Case(
        "rows padded by too much, and the choice left to the compiler",
        columns(
            "T.annotate_layout({tile: T.Layout((32, 32), lambda i, j: i * 36 + j)})", "«tile[i, j]»"
        ),
        "remark[TL306] 4-way bank conflicts when `tile` is read by tile[i, j]: its layout is "
        "`lambda i, j: i*36 + j`",
        "leave out the layout of `tile` and the compiler swizzles it",
        columns(""),
    ),
    Case(
        "S10: rows of a column-major tensor, one at a time and as a tile",
        strided("for r in T.serial(256):\n                «T.copy(B[r, :], s[r, :])»", "(1, 256)"),
        "remark[TL601] neighbours along the fastest axis of `B` lie 256 elements apart, which "
        "wastes 94% of the memory traffic",
        "store `B` with unit stride along one of these axes",
        strided("T.copy(B, s)", "(1, 256)"),
        ("every element of 2 bytes takes a sector of 32",),
    ),
    Case(
        "S10: no unit stride at all",
        strided("«T.copy(B, s)»", "(128, 2)"),
        "remark[TL601] neighbours along the fastest axis of `B` lie 2 elements apart, which wastes "
        "50%",
        "unit stride",
        strided("T.copy(B, s)", "(64, 1)"),
    ),
    Case(
        "303: fp8 on a GPU without it",
        product(16, 32, 32, 32, GEMM, "float8_e4m3fn"),
        "error[TL412] cuda:sm_86 cannot multiply float8_e4m3fn",
        "compile for cuda:sm_89 or later, or convert the operands to float16",
        product(16, 32, 32, 32),
        ("needs cuda:sm_89",),
        target="cuda:sm_86",
    ),
    Case(
        "threads that do not own the element",
        owner("tx < 2", "«x[40]»"),
        "error[TL310] `x[40]` lives in thread 40, but threads 0, 1 write it",
        "write it in `T.Parallel`",
        owner("tx < 64", "x[40]"),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_wrong(case: Case) -> None:
    one, shown = check_marked(case.wrong, case.says, case.target, case.on_cpu)
    assert case.help in (one.help or ""), shown
    said = " | ".join([*one.notes, one.label, *(label.text for label in one.labels)])
    for words in case.also:
        assert words in said, shown


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_right(case: Case) -> None:
    check_clean(case.right, target=case.target)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_cpu_takes_all_of_them(case: Case) -> None:
    """No thread layouts, no matrix instructions, no banks: any tile will do."""
    found = diagnostics_of(plain(kernel_text(case.wrong)), target="cpu")
    assert {d.code for d in found} == set(case.on_cpu)
