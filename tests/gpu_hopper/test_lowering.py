"""What hand-written Hopper kernels become: who starts copies, and which barriers there are."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang.language as T
from tests.gpu.lowering import lowered, source_of
from tests.gpu_hopper.copies import reused, through
from tests.gpu_hopper.groups import pipelined
from tests.gpu_hopper.lowering import outline
from tests.gpu_hopper.products import product, slices
from tilelang.layout.swizzle import make_half_bank_swizzled_layout
from tilelang.layouts.infer import infer_layouts

ARCH = "sm_90a"
START = ["[", "mbarrier_init", "fence_mbarrier_init", "]", "sync_threads"]


def ring(producers: str, store: str = "copy") -> Any:
    """Two stages: warp group 1 loads, warp group 0 multiplies."""

    @T.prim_func
    def main(
        A: T.Tensor((128, 256), "float16"), B: T.Tensor((256, 128), "float16"),
        C: T.Tensor((128, 128), "float16"),
    ):  # fmt: skip
        with T.Kernel(1, threads=256) as bx:
            A_s = T.alloc_shared((2, 128, 64), "float16")
            B_s = T.alloc_shared((2, 64, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            C_s = T.alloc_shared((128, 128), "float16")
            full = T.alloc_barrier([128, 128])
            free = T.alloc_barrier([128, 128])
            with T.ws(0):
                T.clear(C_l)
            for k in range(4):
                with T.ws(1):
                    T.barrier_wait(free[k % 2], ((k // 2) & 1) ^ 1)
                    if producers == "tma":
                        T.tma_copy(A[0, k * 64], A_s[k % 2, :, :], barrier=full[k % 2])
                        T.tma_copy(B[k * 64, 0], B_s[k % 2, :, :], barrier=full[k % 2])
                    else:
                        T.copy(A[0:128, k * 64 : k * 64 + 64], A_s[k % 2, :, :])
                        T.copy(B[k * 64 : k * 64 + 64, 0:128], B_s[k % 2, :, :])
                    T.barrier_arrive(full[k % 2])
                with T.ws(0):
                    T.barrier_wait(full[k % 2], (k // 2) & 1)
                    T.wgmma_gemm(A_s[k % 2, :, :], B_s[k % 2, :, :], C_l)
                    T.wait_wgmma(0)
                    T.barrier_arrive(free[k % 2])
            with T.ws(0):
                T.copy(C_l, C_s)
                if store == "tma":
                    T.tma_copy(C_s, C)
                else:
                    T.copy(C_s, C)

    return main


def wgmmas(count: int) -> list[str]:
    return [
        "wgmma_fence_operand", "wgmma_fence", *["wgmma_ss_k16_f32_f16_f16"] * count,
        "wgmma_commit",
    ]  # fmt: skip


WAITED = ["wgmma_wait 0", "wgmma_fence_operand"]


def test_groups_signal_by_mbarriers_alone() -> None:
    """No barrier of the block after the first, and one of the group before its tile is read."""
    inits = ["mbarrier_init"] * 4
    assert outline(lowered(ring("copy").function, ARCH)) == [
        "[", *inits, "fence_mbarrier_init", "]", "sync_threads",
        "(",
        "[", "mbarrier_wait_parity", *["(", "(", "store", ")", ")"] * 2,
        "fence_proxy_async", "mbarrier_arrive", "]",
        "[", "mbarrier_wait_parity", *wgmmas(8), *WAITED, "mbarrier_arrive", "]",
        ")",
        "[", "(", "(", "store", ")", ")", "sync_threads 128", "]",
    ]  # fmt: skip


def test_one_thread_of_the_group_starts_copies() -> None:
    inits = ["mbarrier_init"] * 4
    assert outline(lowered(ring("tma", "tma").function, ARCH)) == [
        "[", *inits, "fence_mbarrier_init", "]", "sync_threads",
        "(",
        "[", "mbarrier_wait_parity",
        "[", "mbarrier_expect_tx", "tma_load", "]",
        "[", "mbarrier_expect_tx", "(", "tma_load", ")", "]",
        "mbarrier_arrive", "]",
        "[", "mbarrier_wait_parity", *wgmmas(8), *WAITED, "mbarrier_arrive", "]",
        ")",
        "[", "(", "(", "store", ")", ")", "fence_proxy_async", "sync_threads 128",
        "[", "(", "tma_store", ")", "bulk_commit", "]", "]",
        "bulk_wait 0",
    ]  # fmt: skip


def test_stores_are_kept_from_tiles_still_read() -> None:
    """The next round waits for the engine, then for the thread that waited."""
    assert outline(lowered(reused(32, 64).function, ARCH)) == [
        "(", "bulk_wait 0", "sync_threads", "(", "store", ")",
        "fence_proxy_async", "sync_threads", "[", "tma_store", "bulk_commit", "]", ")",
        "bulk_wait 0",
    ]  # fmt: skip


def test_a_block_that_loads_again_waits_for_its_readers() -> None:
    made = product(64, 64, 128, (64, 64, 64)).function
    assert outline(lowered(made, ARCH)) == [
        *START,
        "(",
        "sync_threads", "[", "mbarrier_expect_tx", "tma_load", "]",
        "[", "mbarrier_expect_tx", "tma_load", "]",
        "mbarrier_arrive", "mbarrier_wait_parity", *wgmmas(4), *WAITED,
        ")",
    ]  # fmt: skip


def test_products_under_way_are_not_pinned() -> None:
    """Only the wait for all of them is one that sums can be read after."""
    found = outline(lowered(slices(64, 64, 128, 2).function, ARCH))
    assert found[found.index("sync_threads") + 1 :] == [
        "(", *wgmmas(4), "wgmma_wait 1", ")", *WAITED,
    ]  # fmt: skip


def test_maps_are_shared_by_copies_of_equal_boxes() -> None:
    maps = source_of(ring("tma", "tma").function, ARCH).maps
    assert [(m.name, m.source, m.box, m.swizzle) for m in maps] == [
        ("A_map", "A", (64, 128), 128), ("B_map", "B", (64, 64), 128),
        ("C_map", "C", (64, 128), 128),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "tile", "dtype", "box", "swizzle"),
    [
        ((1000,), (256,), "float16", (256,), 0),
        ((3000,), (1024,), "float32", (256,), 0),
        ((100, 72), (32, 64), "float16", (64, 32), 128),
        ((600, 128), (512, 128), "float16", (64, 256), 128),
        ((50, 20), (16, 12), "float32", (12, 16), 0),
        ((90, 304), (64, 96), "int8", (32, 64), 32),
        ((7, 40, 72), (1, 16, 32), "float16", (32, 16, 1), 64),
        ((2, 50, 3, 64), (1, 32, 1, 64), "float16", (64, 1, 32, 1), 128),
    ],
)
def test_boxes(
    shape: tuple[int, ...], tile: tuple[int, ...], dtype: str, box: tuple[int, ...], swizzle: int
) -> None:
    """One run of shared memory each: columns of a swizzled row, at most 256 a side."""
    found = source_of(through(shape, tile, dtype).function, ARCH).maps
    assert {(m.box, m.swizzle) for m in found} == {(box, swizzle)}
    assert {m.shape for m in found} == {shape[::-1]}


def test_every_byte_is_announced() -> None:
    text = source_of(through((600, 128), (512, 128), "float16").function, ARCH).text
    assert "tl::mbarrier_expect_tx(full[0], 131072);" in text


def test_registers_are_reallocated_from_a_known_number() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=256) as bx:
            with T.ws(0):
                T.set_max_nreg(24, 0)
            with T.ws(1):
                T.set_max_nreg(240, 1)
            A[0] = 1

    text = source_of(main.function, ARCH).text
    assert "__launch_bounds__(256, 1)" in text
    assert "tl::set_max_nreg<24, 0>();" in text and "tl::set_max_nreg<240, 1>();" in text


def test_the_leader_is_the_first_thread_that_gets_there() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(1, threads=128) as bx:
            S = T.alloc_shared((64, 64), "float16")
            full = T.alloc_barrier(32)
            tx = T.get_thread_binding()
            if tx >= 96:
                T.tma_copy(A, S, barrier=full)
                T.barrier_arrive(full)
            T.barrier_wait(full, 0)

    assert "if (tx == 96) {" in source_of(main.function, ARCH).text


def test_swizzled_tiles_start_where_the_pattern_starts() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), B: T.Tensor((5,), "float32")):
        with T.Kernel(1, threads=128) as bx:
            first = T.alloc_shared((5,), "float32")
            S = T.alloc_shared((64, 64), "float16")
            full = T.alloc_barrier(128)
            T.copy(B, first)
            T.tma_copy(A, S, barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, 0)
            T.copy(first, B)
            T.copy(S, A)

    text = source_of(main.function, ARCH).text
    place = text.partition("S = (tl::float16*)(shared_memory")[2].partition(")")[0]
    assert int(place.strip(" +") or 0) % 1024 == 0


def test_a_barrier_of_a_warp_group_is_its_own() -> None:
    """`T.sync_threads` in a group, and what we add, have other numbers than the author's."""

    @T.prim_func
    def main(A: T.Tensor((64, 64), "float32"), B: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256) as bx:
            S = T.alloc_shared((64, 64), "float32")
            with T.ws(1):
                T.sync_threads(1, 128)
                T.copy(A, S)
                T.sync_threads()
                for i, j in T.Parallel(64, 64):
                    B[i, j] = S[j, i]
                for i, j in T.Parallel(64, 64):
                    S[i, j] = S[j, i]

    text = source_of(main.function, ARCH).text
    found = [line.strip() for line in text.split("\n") if "sync_threads" in line]
    assert found[:3] == [
        "tl::sync_threads(1, 128);", "tl::sync_threads(15, 128);", "tl::sync_threads(2, 128);",
    ]  # fmt: skip


def test_groups_keep_their_own_threads_apart() -> None:
    """Signals order what groups do to each other; each turns its tile in shared memory itself."""

    @T.prim_func
    def main(A: T.Tensor((512, 64), "float32"), B: T.Tensor((512, 64), "float32")):
        with T.Kernel(1, threads=256) as bx:
            S = T.alloc_shared((64, 64), "float32")
            R = T.alloc_shared((64, 64), "float32")
            full = T.alloc_barrier(128)
            free = T.alloc_barrier(128)
            for k in range(8):
                with T.ws(1):
                    T.barrier_wait(free, (k & 1) ^ 1)
                    T.copy(A[k * 64, 0], S)
                    T.barrier_arrive(full)
                with T.ws(0):
                    T.barrier_wait(full, k & 1)
                    for i, j in T.Parallel(64, 64):
                        R[j, i] = S[i, j]
                    T.barrier_arrive(free)
                    T.copy(R, B[k * 64, 0])

    copied = ["(", "(", "store", ")", ")"]
    assert outline(lowered(main.function, ARCH)) == [
        "[", "mbarrier_init", "mbarrier_init", "fence_mbarrier_init", "]", "sync_threads",
        "(",
        "[", "mbarrier_wait_parity", *copied, "mbarrier_arrive", "]",
        "[", "mbarrier_wait_parity", "sync_threads 128", *copied, "mbarrier_arrive",
        "sync_threads 128", "]",
        ")",
    ]  # fmt: skip


def test_swizzles_of_the_author_are_what_descriptors_say() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier(128)
            T.annotate_layout({A_s: make_half_bank_swizzled_layout(A_s)})
            T.tma_copy(A, A_s, barrier=full)
            T.tma_copy(B, B_s, barrier=full)
            T.barrier_arrive(full)
            T.barrier_wait(full, 0)
            T.wgmma_gemm(A_s, B_s, C_l, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(C_l, C)

    source = source_of(main.function, ARCH)
    assert {m.source: (m.box, m.swizzle) for m in source.maps} == {
        "A": ((32, 64), 64), "B": ((64, 64), 128),
    }  # fmt: skip
    # Columns, then swizzle, leading and stride bytes and order of either operand.
    assert "<64, 64, 16, 512, 0, 128, 8192, 1024, 1>(&C_l[0], &A_s[0]" in source.text


def test_layouts_say_which_engines_they_are_for() -> None:
    (launch,) = infer_layouts(ring("tma", "tma").function, "cuda:sm_90a").launches
    reasons = {entry.name: entry.why for entry in launch.buffers}
    assert reasons["A_s"].startswith("128-byte swizzle, the best of what T.wgmma_gemm(")
    assert " and T.tma_copy(" in reasons["A_s"]
    assert reasons["C_s"].startswith("128-byte swizzle, the best of what T.tma_copy(C_s")


def test_registers_are_pinned_by_hand_too() -> None:
    @T.prim_func
    def main(C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128) as bx:
            C_l = T.alloc_fragment((64, 64), "float32")
            T.clear(C_l)
            T.warpgroup_fence_operand(C_l)
            T.warpgroup_fence_operand(C_l, 8, 16)
            T.copy(C_l, C)

    text = source_of(main.function, ARCH).text
    assert "tl::wgmma_fence_operand(&C_l[0], 32);" in text
    assert "tl::wgmma_fence_operand(&C_l[8], 16);" in text


def test_asynchronous_copies_are_fenced_once_they_have_arrived() -> None:
    """In a pipeline once a step: after the wait, before the barrier."""
    found = outline(lowered(pipelined(64, 128, 512, 3).function, ARCH))
    step = found[found.index("cp_async_wait 1") :]
    assert step[:3] == ["cp_async_wait 1", "fence_proxy_async", "sync_threads"]
    assert found.count("fence_proxy_async") == 1


def test_each_wait_of_the_author_is_followed_by_a_fence() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16"),
        C: T.Tensor((64, 64), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=128) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            T.async_copy(A, A_s)
            T.async_copy(B, B_s)
            T.ptx_wait_group(1)
            T.sync_threads()
            T.wgmma_gemm(A_s, A_s, C_l, clear_accum=True)
            T.ptx_wait_group(0)
            T.sync_threads()
            T.wgmma_gemm(A_s, B_s, C_l)
            T.wait_wgmma(0)
            T.copy(C_l, C)

    copied = ["(", "cp_async", ")", "cp_async_commit"]
    assert outline(lowered(main.function, ARCH)) == [
        *copied, *copied,
        "cp_async_wait 1", "fence_proxy_async", "sync_threads", *wgmmas(4),
        "cp_async_wait 0", "fence_proxy_async", "sync_threads", *wgmmas(4), *WAITED,
    ]  # fmt: skip


def test_copies_that_arrive_by_themselves_are_fenced_by_who_waits() -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256) as bx:
            A_s = T.alloc_shared((64, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            full = T.alloc_barrier(128)
            with T.ws(1):
                T.async_copy(A, A_s)
                T.cp_async_barrier_noinc(full)
            with T.ws(0):
                T.barrier_wait(full, 0)
                T.wgmma_gemm(A_s, A_s, C_l, clear_accum=True)
                T.wait_wgmma(0)
                T.copy(C_l, C)

    assert outline(lowered(main.function, ARCH)) == [
        *START,
        "[", "(", "cp_async", ")", "cp_async_commit", "cp_async_barrier_noinc", "]",
        "[", "mbarrier_wait_parity", "wgmma_fence_operand", "fence_proxy_async", *wgmmas(4)[1:],
        *WAITED, "]",
    ]  # fmt: skip
