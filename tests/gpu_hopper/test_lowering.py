"""What hand-written Hopper kernels become: who starts copies, which barriers and fences there are."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang.language as T
from tests.gpu.lowering import lowered, source_of
from tests.gpu_hopper.copies import reused, through
from tests.gpu_hopper.lowering import outline
from tests.gpu_hopper.products import product, slices

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
    found = source_of(through(shape, tile, dtype, ()).function, ARCH).maps
    assert {(m.box, m.swizzle) for m in found} == {(box, swizzle)}
    assert {m.shape for m in found} == {shape[::-1]}


def test_every_byte_is_announced() -> None:
    text = source_of(through((600, 128), (512, 128), "float16", ()).function, ARCH).text
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
