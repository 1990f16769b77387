"""Positions, barriers, votes, annotations, GPU instructions and meta objects."""

from __future__ import annotations

from typing import Any

import pytest

import tilelang.language as T
from tests.support.markers import kernel_text
from tests.support.tiles import check_tiles, diagnostics_in, statements, tile_kernel
from tilelang.language.frontend import parse_static
from tilelang.program.context import Reject, Trace, tracing
from tilelang.program.stmt import Annotate, Evaluate, walk_statements

# (name, statement, program text)
PROGRAMS = [
    ("thread index", "I[0] = T.get_thread_binding()", "I[0] = tx"),
    ("absent axis", "I[0] = T.get_thread_binding(1)", "I[0] = 0"),
    ("block index", "I[0] = T.get_block_binding()", "I[0] = bx"),
    ("all thread axes", "(column,) = T.get_thread_bindings()\nI[0] = column",
     "I[0] = tx"),
    ("barrier", "T.sync_threads()", "T.sync_threads()"),
    ("named barrier", "T.sync_threads(3, 64)", "T.sync_threads(3, 64)"),
    ("end of a thread", "if bx > 1:\n    T.thread_return()", "if bx > 1:\n    T.thread_return()"),
    ("print a value", "T.print(bx, msg='block')", "T.print(bx)"),
    ("print a buffer", "T.clear(g)\nT.print(g)", "T.fill(g, 0.0)\nT.print_buffer(g)"),
    ("device assert", "T.device_assert(bx < 4, 'grid')", "assert bx < 4, 'grid'"),
    ("assume", "T.assume(n % 4 == 0)", "T.assume(n % 4 == 0)"),
    ("lane", "I[0] = T.get_lane_idx()", "I[0] = T.get_lane_idx()"),
    ("shuffle", "y = T.shfl_xor(x, 4)", "y = T.shfl_xor(x, 4, 4294967295)"),
    ("vote", "I[0] = T.any_sync(n)", "I[0] = T.any_sync(n != 0, 4294967295)"),
    ("ballot", "I[0] = T.ballot_sync(n > 0)",
     "I[0] = T.cast(T.ballot_sync(n > 0, 4294967295), 'int32')"),
    ("warp sum", "y = T.warp_reduce_sum(x)", "y = T.warp_reduce_sum(x)"),
    ("extern call", "T.call_extern('int32', 'touch', V[0], T.access_ptr(s[0, 0], 'r', 8))",
     "T.call_extern(V[0], T.access_ptr(s[0, 0:8]))"),
    ("evaluate", "T.evaluate(T.call_extern('int32', 'tick'))", "T.call_extern()"),
    ("coordinates", "i, j = T.index_to_coordinates(bx, (8, 4))\nI[i] = j",
     "i = bx // 4\nj = bx % 4\nI[i] = j"),
    ("elect", "if T.shuffle_elect(128):\n    I[0] = 1", "if T.shuffle_elect():\n    I[0] = 1"),
    ("dot product of bytes", "T.dp4a(J[0], J[4], k[0])", "T.dp4a(J[0:4], J[4:8], k[0])"),
    ("wide load", "v = T.ldg128(V[4])\nT.stg128(V[8], v, bx > 0)",
     "v = T.ldg128(V[4:8])\nT.stg128(V[8:12], v, bx > 0)"),
    ("random", "T.rng_init(42)\nI[0] = T.rng_rand()",
     "rng = T.alloc_local((16,), 'uint32')\nT.rng_init(rng, 42, 0)\n"
     "I[0] = T.cast(T.rng_rand(rng), 'int32')"),
    ("barrier wait", "T.mbarrier_wait_parity(full[1], n & 1)",
     "T.mbarrier_wait_parity(full[1], n & 1)"),
    ("first barrier of a buffer", "T.barrier_arrive(full)", "T.mbarrier_arrive(full[0])"),
    ("TMA", "T.tma_copy(A[0, 0], s, barrier=full[0])", "T.tma_copy(A[0:32, 0:64], s, full[0])"),
    ("multicast", "T.copy_cluster(A[0, 0], s, cluster_mask=3)",
     "T.copy_cluster(A[0:32, 0:64], s, cluster_mask=3)"),
    ("push to a peer", "T.copy_cluster(s, s, dst_block=1, remote_barrier=full[0])",
     "T.copy_cluster(s, s, 1, full[0])"),
    ("tcgen05", "T.tcgen05_gemm(s, t, tm, mbar=full[0], clear_accum=True)",
     "T.tcgen05_gemm(s, t, tm, True, full[0], policy=T.GemmWarpPolicy.Square)"),
    ("wgmma", "T.wgmma_gemm(s, t, f)\nT.wait_wgmma(0)",
     "T.gemm(s, t, f, False, policy=T.GemmWarpPolicy.Square, k_pack=1, instruction='wgmma')\n"
     "T.wait_wgmma()"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), [pytest.param(*r[1:], id=r[0]) for r in PROGRAMS])
def test_program(body: str, expected: str) -> None:
    assert statements(body) == expected


# (name, body with markers, part of the help)
ERRORS: list[tuple[str, str, str]] = [
    (
        "axis",
        """
        I[0] = T.get_thread_binding(3)
        #                           ^ error[TL117] `dim=3` of
     """,
        "",
    ),
    (
        "named barrier count",
        """
        T.sync_threads(1, 100)
     #  ^^^^^^^^^^^^^^^^^^^^^^ error[TL511] `arrive_count=100`
     """,
        "whole warps",
    ),
    (
        "named barrier number",
        """
        T.sync_threads(16)
     #  ^^^^^^^^^^^^^^^^^^ error[TL511] outside 0 … 15
     """,
        "",
    ),
    (
        "predicate",
        """
        I[0] = T.any_sync(x)
        #      ^^^^^^^^^^^^^ error[TL236] integer or bool predicate, got float32
     """,
        "x != 0",
    ),
    (
        "segment",
        """
        y = T.warp_reduce_sum(x, 12)
        #   ^^^^^^^^^^^^^^^^^^^^^^^^ error[TL117] not a power of two
     """,
        "",
    ),
    (
        "random before init",
        """
        I[0] = T.rng_rand()
        #      ^^^^^^^^^^^^ error[TL188] `T.rng_rand` before `T.rng_init`
     """,
        "T.rng_init(seed)",
    ),
    (
        "dp4a dtype",
        """
        T.dp4a(V[0], J[0], k[0])
        #      ^^^^ error[TL236] `A` of `T.dp4a` must be int8, `V` is float32
     """,
        "int8 by int8",
    ),
    (
        "wide load of another memory",
        """
        y = T.extract_lane(T.ldg128(l[0]), 0)
        #                           ^^^^ error[TL208] `l`, which is in local memory
     """,
        "global memory",
    ),
    (
        "unaligned wide load",
        """
        y = T.extract_lane(T.ldg128(V[2]), 0)
        #                           ^^^^ error[TL117] starts at element 2, not a multiple of 4
     """,
        "aligned",
    ),
    (
        "parity",
        """
        T.mbarrier_wait_parity(full[0], 2)
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL511] a parity of 2
     """,
        "phase & 1",
    ),
    (
        "not a barrier",
        """
        T.mbarrier_arrive(I[0])
        #                 ^^^^ error[TL208] `I`, which is in global memory
     """,
        "T.alloc_barrier",
    ),
    (
        "TMA without barrier",
        """
        T.tma_copy(A[0, 0], s)
     #  ^^^^^^^^^^^^^^^^^^^^^^ error[TL113] needs `barrier=`
     """,
        "barrier=full[stage]",
    ),
    (
        "TMA within shared memory",
        """
        T.tma_copy(s, w[0, :, :])
        #             ^^^^^^^^^^ error[TL208] `w`, which is in shared memory
     """,
        "global memory",
    ),
    (
        "asynchronous store",
        """
        T.async_copy(s, A[0, 0])
     #               ^ error[TL208] `src` of `T.async_copy` is `s`
     """,
        "T.copy",
    ),
    (
        "tcgen05 accumulator",
        """
        T.tcgen05_gemm(s, t, f, mbar=None)
     #                       ^ error[TL208] `f`, which is in fragment memory
     """,
        "T.alloc_tmem",
    ),
    (
        "cluster copy without receiver",
        """
        T.copy_cluster(A[0, 0], s)
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL117] either `dst_block` or `cluster_mask`
     """,
        "multicasts",
    ),
    (
        "registers",
        """
        T.set_max_nreg(100, 1)
     #  ^^^^^^^^^^^^^^^^^^^^^^ error[TL117] not a multiple of 8
     """,
        "104",
    ),
    (
        "swizzle order",
        """
        T.use_swizzle(8, order="rows")
     #                         ^^^^^^ error[TL117] did you mean `row`?
     """,
        "'mlx'",
    ),
    (
        "swizzle of nothing",
        """
        T.use_swizzle(0)
     #                ^ error[TL117] a panel of `T.use_swizzle` has 0 blocks
     """,
        "`enable=False`",
    ),
    (
        "layout shape",
        """
        T.annotate_layout({s: T.Layout((64, 32), lambda i, j: (i, j))})
     #                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL308]
     """,
        "(32, 64)",
    ),
    (
        "layout rank",
        """
        T.annotate_layout({s: lambda i: i})
     #                    ^^^^^^^^^^^^^^^^ error[TL308] takes 1 index
     """,
        "2 indices",
    ),
    (
        "layout without threads",
        """
        T.annotate_layout({f: T.Layout((32, 32), lambda i, j: i + j)})
     #                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL303] names no threads
     """,
        "T.Fragment",
    ),
    (
        "layout of an element",
        """
        T.annotate_layout({s[0, 0]: lambda i, j: (i, j)})
     #                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL116] `s` itself is meant
     """,
        "whole buffers",
    ),
    (
        "layout that is no index",
        """
        T.annotate_layout({s: lambda i, j: "i"})
     #                    ^^^^^^^^^^^^^^^^^^^^^ error[TL311] gives no index
     """,
        "tuple of integers",
    ),
    (
        "hit ratio",
        """
        T.annotate_l2_hit_ratio({A: 2})
     #                          ^^^^^^ error[TL117] not in (0, 1]
     """,
        "",
    ),
    (
        "extern name",
        """
        T.call_extern("int32", 5)
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL116] `func_name`
     """,
        "dtype comes first",
    ),
    (
        "raw thread axis",
        """
        with T.launch_thread("threadIdx.x", 128) as tx:
        #    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL130] T.launch_thread
            I[0] = 1
     """,
        "threads=128",
    ),
]


@pytest.mark.parametrize(("body", "help"), [pytest.param(*row[1:], id=row[0]) for row in ERRORS])
def test_diagnostics(body: str, help: str) -> None:
    check_tiles(body, help)


def test_two_layouts_of_one_buffer() -> None:
    (found,) = check_tiles("""
        T.annotate_layout({s: lambda i, j: (i, j)})
        T.annotate_layout({s: lambda i, j: (j, i)})
     #  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ error[TL312] `s` is given two layouts
     """)
    assert [label.text for label in found.labels][-1] == "the first one"


@pytest.mark.parametrize(
    "body",
    [
        "T.ptx_commit_group()", "T.pdl_sync()", "T.dp4a(J[0], J[4], k[0])",
        "T.tma_store_wait()", "T.rng_init(1)",
        "T.cluster_sync()", "T.set_max_nreg(24, 0)", "T.fence_proxy_async()",
    ],
)  # fmt: skip
def test_gpu_names_are_refused_by_name_on_the_cpu(body: str) -> None:
    name = body.replace("y = ", "").split("(")[0]
    said = [d for d in diagnostics_in(body, "cpu") if d.startswith("TL401")]
    assert any(f"`{name}` is not available on target `cpu`" in d for d in said), said


def annotation(body: str) -> Any:
    """The value of the only annotation of `body`, by key."""
    (parsed,) = parse_static(kernel_text(tile_kernel(body)), "kernel.py")
    assert parsed.function is not None, parsed.diagnostics
    found = [s for s in walk_statements(parsed.function.body) if isinstance(s, Annotate)]
    return {s.key: s.value for s in found}


def test_layouts_become_values() -> None:
    body = "T.annotate_layout({s: lambda i, j: (i, j ^ (i % 8))})\nT.clear(s)"
    value = annotation(body)["layout"]
    ((buffer, layout),) = value.items()
    assert (buffer.name, layout(9, 0)) == ("s", (9, 1))


def test_safe_values_have_the_dtype_of_the_buffer() -> None:
    ((buffer, value),) = annotation("T.annotate_safe_value({A: -1})")["safe_value"].items()
    assert (buffer.name, value.value, value.dtype.name) == ("A", -1.0, "float16")


def test_swizzle() -> None:
    assert annotation("T.use_swizzle(10, order='column')") == {"swizzle": (10, "column")}
    assert annotation("T.use_swizzle(10, enable=False)") == {}


def test_function_options() -> None:
    body = "T.annotate_pass_configs({'tl.enable_fast_math': True})\nT.annotate_compile_flags('-O3')"
    (parsed,) = parse_static(kernel_text(tile_kernel(body)), "kernel.py")
    assert parsed.function is not None
    assert parsed.function.attr("pass_configs") == {"tl.enable_fast_math": True}
    assert parsed.function.attr("compile_flags") == ("-O3",)


def test_print_keeps_its_message() -> None:
    (parsed,) = parse_static(kernel_text(tile_kernel("T.print(bx, msg='block')")), "kernel.py")
    assert parsed.function is not None
    (printed,) = (s for s in walk_statements(parsed.function.body) if isinstance(s, Evaluate))
    assert dict(printed.value.attrs) == {"msg": "block"}  # type: ignore[attr-defined]


@pytest.mark.parametrize("column_major", [True, False])
@pytest.mark.parametrize(("rows", "columns", "panel"), [(3, 5, 2), (4, 4, 4), (5, 3, 1), (2, 7, 8)])
def test_scheduler_visits_every_tile_once(
    rows: int, columns: int, panel: int, column_major: bool
) -> None:
    with tracing(Trace()):
        scheduler = T.PersistentTileScheduler(
            rows, columns, 4, swizzle_size=panel, column_major=column_major, stateful=False
        )
        tiles = [
            tuple(int(getattr(c, "value", c)) for c in scheduler.coord(t))
            for t in range(rows * columns)
        ]
    assert sorted(tiles) == [(i, j) for i in range(rows) for j in range(columns)]


def test_scheduler_walks_a_panel_row_by_row() -> None:
    with tracing(Trace()):
        scheduler = T.PersistentTileScheduler(2, 4, 1, swizzle_size=2, stateful=False)
        order = [tuple(getattr(c, "value", c) for c in scheduler.coord(t)) for t in range(8)]
    assert order == [(0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (0, 3), (1, 2), (1, 3)]


def test_scheduler_takes_its_workers_from_the_launch() -> None:
    body = """
        sch = T.PersistentTileScheduler(4, 4)
        sch.init(bx)
        while sch.valid():
            V[sch.m_idx] = 1
            sch.next_tile()
    """
    assert "tile_index = tile_index + 4" in statements(body)


def test_fp8_format_follows_the_target() -> None:
    def on(target: str | None) -> tuple[str, str]:
        trace = Trace()
        trace.target = target
        with tracing(trace):
            return T.fp8.determine_fp8_type(), T.fp8.determine_fp8_type("e5m2")

    assert on("cuda:sm_90") == ("float8_e4m3fn", "float8_e5m2")
    assert on("hip:gfx942") == ("float8_e4m3fnuz", "float8_e5m2fnuz")
    assert on("hip:gfx950") == ("float8_e4m3fn", "float8_e5m2")


# (construction, part of the message)
SCHEDULES = [
    ("T.WSRole('p', warps_lo=0, warps_hi=3)", "`warps_hi=3` of role `p` is not a multiple of 4"),
    ("T.WSRole('p', warps_lo=4, warps_hi=4)", "role `p` has no warps"),
    ("T.WSRole('p', warps_lo=0, warps_hi=4, max_nreg=30)", "`max_nreg=30`"),
    ("T.WSPipeline('t', [], depth=0)", "`depth=0`"),
    ("T.WSSchedule(8, [T.WSRole('p', warps_lo=0, warps_hi=12)], [], [])", "ends at warp 12"),
    ("T.WSSchedule(8, [T.WSRole('p', warps_lo=0, warps_hi=8), "
     "T.WSRole('c', warps_lo=4, warps_hi=8)], [], [])", "warp 4 is in roles `p` and `c`"),
    ("T.WSSchedule(4, [T.WSRole('prod', warps_lo=0, warps_hi=4)], [], "
     "[T.WSScope(T.WSScope.ROOT, {'prd': []})])", "did you mean `prod`?"),
    ("T.WSSchedule(4, [T.WSRole('p', warps_lo=0, warps_hi=4)], [], "
     "[T.WSScope('k', {'p': [T.WSSync.producer_acquire('tiles')]})])",
     "no pipeline is called `tiles`"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), SCHEDULES)
def test_schedules_are_checked(text: str, message: str) -> None:
    with tracing(Trace()), pytest.raises(Reject) as caught:
        eval(text, {"T": T})
    assert message in caught.value.diagnostic.message
