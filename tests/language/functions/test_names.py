"""Every name that kernels use exists, and says what it does, what it takes and how it is called."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

import tilelang.language as T
from tilelang.language.catalog import LanguageFunction

# The names public kernels use, most used first; dtypes have their own table.
NAMES = (
    "Tensor",
    "copy",
    "alloc_fragment",
    "alloc_shared",
    "Parallel",
    "prim_func",
    "Kernel",
    "ceildiv",
    "gemm",
    "clear",
    "serial",
    "Pipelined",
    "fill",
    "if_then_else",
    "exp2",
    "get_thread_binding",
    "GemmWarpPolicy.FullRow",
    "mbarrier_wait_parity",
    "infinity",
    "alloc_local",
    "reduce_sum",
    "const",
    "empty",
    "alloc_barrier",
    "Buffer",
    "alloc_var",
    "dynamic",
    "WSID",
    "alloc_tmem",
    "cast",
    "dtype",
    "max",
    "reduce_max",
    "vectorized",
    "tma_copy",
    "atomic_add",
    "annotate_layout",
    "unroll",
    "mbarrier_arrive",
    "evaluate",
    "min",
    "barrier_arrive",
    "tcgen05_gemm",
    "access_ptr",
    "WSRole",
    "use_swizzle",
    "sync_threads",
    "WSScope",
    "barrier_wait",
    "alloc_reducer",
    "finalize_reducer",
    "WSSync.producer_acquire",
    "alloc_cluster_barrier",
    "log2",
    "WSSync.producer_commit",
    "WSSync.consumer_release",
    "WSSync.consumer_wait",
    "launch_thread",
    "wgmma_gemm",
    "reducer_update",
    "thread_binding",
    "reducer_init",
    "WSPipeline",
    "GemmWarpPolicy.FullCol",
    "grid",
    "Layout",
    "reinterpret",
    "tvm_access_ptr",
    "exp",
    "WSSchedule",
    "WSScope.ROOT",
    "macro",
    "annotate_ws_schedule",
    "assume",
    "ptx_wgmma_ss",
    "Fragment",
    "tcgen05_mma_arrive",
    "fp8.determine_fp8_type",
    "warpgroup_arrive",
    "StridedTensor",
    "call_extern",
    "ptx_cp_async",
    "Select",
    "set_max_nreg",
    "wait_wgmma",
    "ClusterKernel",
    "ws",
    "floordiv",
    "PersistentTileScheduler",
    "ptr",
    "FragmentBuffer",
    "func_attr",
    "make_tensor",
    "reduce_absmax",
    "fence_proxy_async",
    "Cast",
    "shuffle_elect",
    "ws_op",
    "block_rank_in_cluster",
    "reshape",
    "cumsum",
    "ptx_arrive_barrier",
    "ptx_wait_group",
    "symbolic",
    "GemmWarpPolicy.Square",
    "ptx_init_barrier_thread_count",
    "reduce_min",
    "attr",
    "Serial",
    "atomic_addx4",
    "tma_load",
    "ptx_commit_group",
    "tcgen05_cp_warpx4",
    "tcgen05_sf_warp_transpose",
    "async_copy",
    "atomic_addx2",
    "SharedBuffer",
    "view",
    "tvm_storage_sync",
    "mbarrier_expect_tx",
    "cluster_sync",
    "disable_warp_group_reg_alloc",
    "gemm_sp",
    "cummax",
    "atomic_max",
    "shift_left",
    "Persistent",
    "atomic_load",
    "call_intrin",
    "extract_lane",
    "clamp",
    "alloc_global",
    "floormod",
    "rsqrt",
    "device_assert",
    "print",
    "initialize_wgmma_descriptor",
    "atomic_min",
    "im2col",
    "tcgen05_gemm_blockscaled",
    "atomic_store",
    "address_of",
    "pdl_sync",
    "log",
    "dp4a",
    "tcgen05_before_thread_sync",
    "tcgen05_after_thread_sync",
    "pdl_trigger",
    "transpose",
    "tma_store_wait",
    "import_source",
    "rng_init",
    "rng_rand",
    "reduce_abssum",
    "copy_cluster",
    "annotate_safe_value",
    "annotate_pass_configs",
    "ldg64",
    "ldg128",
    "any_sync",
    "get_block_binding",
    "ceil",
    "sync_grid",
    "cp_async_barrier_noinc",
    "parallel",
    "__tan",
    "sin",
    "round",
    "ieee_add",
    "ptx_fence_barrier_init",
    "warpgroup_fence_operand",
    "shift_right",
    "deallocate_tmem",
    "annotate_compile_flags",
    "ldg256",
    "rng_rand_float",
    "ballot_sync",
    "annotate_producer_reg_dealloc",
    "annotate_consumer_reg_alloc",
    "clc_is_canceled",
    "clc_get_first_ctaid_x",
    "reduce_bitand",
    "__exp",
    "__exp10",
    "__log",
    "__log2",
    "__log10",
    "__cos",
    "__sin",
    "cos",
    "tan",
    "ieee_frsqrt",
    "sync_warp",
    "bitwise_xor",
    "fma2",
    "annotate_l2_hit_ratio",
    "all_of",
    "any_of",
    "get_warp_idx_sync",
    "stg32",
    "stg64",
    "stg128",
    "syncthreads_and",
    "syncthreads_or",
    "fp8.determine_torch_fp8_type",
    "index_to_coordinates",
    "mma_gemm_blockscaled",
    "no_set_max_nreg",
    "mbarrier_arrive_expect_tx",
    "clc_try_cancel_multicast",
    "sigmoid",
    "reduce_bitor",
)

FUNCTIONS = [*T.FUNCTIONS.values(), T.fp8.determine_fp8_type, T.fp8.determine_torch_fp8_type]


def resolve(name: str) -> Any:
    value: Any = T
    for part in name.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("name", NAMES)
def test_exists_with_documentation(name: str) -> None:
    value = resolve(name)
    doc = value.doc if isinstance(value, LanguageFunction) else inspect.getdoc(value)
    assert doc


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.name)
def test_documentation_is_complete(function: LanguageFunction) -> None:
    """A first line that is a sentence, every required argument named, and an example."""
    doc = function.doc
    first = doc.split("\n")[0]
    assert first.endswith((".", ":")) or ":" in first, first
    required = [
        p.name for p in function.signature.parameters.values()
        if p.default is p.empty and p.kind is not p.VAR_KEYWORD
    ]  # fmt: skip
    if function.function.__module__ in OURS:
        missing = [p for p in required if not re.search(rf"\b{p}\b", doc)]
        assert not missing, f"{missing} not explained in:\n{doc}"
    example = [line for line in doc.split("\n") if line.startswith((">>> ", "... "))]
    assert example, doc
    if function.function.__module__ in OURS:
        ast.parse(runnable(example))


# Families whose arguments and examples are checked word by word.
OURS = frozenset(
    f"tilelang.language.{module}"
    for module in (
        "tile_copy", "async_copies", "tile_gemm", "tile_reduce", "tile_scan", "reducers",
        "questions", "views", "atomics", "maths", "fast_maths", "integers", "casts", "threads",
        "warps", "annotations", "gpu_barriers", "gpu_tensor_cores", "gpu_memory", "foreign",
        "warp_schedule", "fp8", "utilities",
    )
)  # fmt: skip


def runnable(example: list[str]) -> str:
    """The example as a complete statement: headers get a body."""
    text = "\n".join(line[4:] for line in example)
    return f"{text} pass" if text.endswith(":") else text


def test_names_are_unique() -> None:
    names = [f.name for family in T.FAMILIES for f in family.FUNCTIONS]
    assert sorted(names) == sorted(set(names))
