"""Matrix products of tiles: `T.gemm` and the forms that name an instruction."""

from __future__ import annotations

from typing import Any

from tilelang.language.catalog import BLACKWELL, HOPPER_ONLY, language_function
from tilelang.language.gemm_operands import (
    TENSOR_MEMORY,
    GemmWarpPolicy,
    check_product,
    check_scopes,
    checked,
    clear_flag,
    matrix,
    warp_policy,
)
from tilelang.language.operands import (
    SHARED,
    ScalarLike,
    TileLike,
    declared,
    emit_tile,
    is_true,
    mbarrier,
    options,
    refuse_in_parallel,
    require_scope,
    static_bool,
    static_int,
    tile,
)
from tilelang.program import arith, operators
from tilelang.program.context import reject


@language_function("tile")
def gemm(
    A: TileLike,
    B: TileLike,
    C: TileLike,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: ScalarLike = False,
    k_pack: int = 1,
    mbar: Any = None,
    annotations: Any = None,
) -> None:
    """Multiplies tiles and accumulates: `C += A @ B` (`C = A @ B` with `clear_accum`).

    The matrix instruction is that of the target; waiting for it is implicit.

    Args:
        A: M x K, or K x M with `transpose_A`, shared or fragment;
        B: K x N, or N x K with `transpose_B`, shared or fragment, of A's dtype;
        C: M x N accumulator, a fragment of float32, float16, float64 or int32;
        policy: how warps divide M x N; clear_accum: bool or expression such as `k == 0`;
        k_pack: K steps of one matrix instruction packed together, 1 or 2 (ROCm);
        mbar: mbarrier that the tensor core arrives at (tcgen05).

    >>> T.gemm(A_shared, B_shared, C_local, transpose_B=True)
    """
    operands = checked("gemm", A, B, C, transpose_A, transpose_B)
    options("gemm", annotations)
    packed = static_int("gemm", "k_pack", k_pack, 1, 2)
    barrier = () if mbar is None else (mbarrier("gemm", "mbar", mbar),)
    emit_tile("gemm", (*operands, clear_flag(clear_accum), *barrier), {
        "transpose_A": is_true(transpose_A), "transpose_B": is_true(transpose_B),
        "policy": warp_policy("gemm", policy), "k_pack": packed, "instruction": None,
    })  # fmt: skip


@language_function("tile", targets=HOPPER_ONLY)
def wgmma_gemm(
    A: TileLike,
    B: TileLike,
    C: TileLike,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: ScalarLike = False,
    annotations: Any = None,
) -> None:
    """As `T.gemm`, but asynchronous WGMMA (PTX ISA, wgmma.mma_async); wait with `T.wait_wgmma`.

    Args:
        A: M x K, shared or fragment; B: K x N, shared; C: M x N fragment.

    >>> T.wgmma_gemm(A_shared, B_shared, C_local)
    """
    operands = checked("wgmma_gemm", A, B, C, transpose_A, transpose_B)
    require_scope("wgmma_gemm", "B", operands[1], SHARED, "WGMMA reads B from shared memory")
    options("wgmma_gemm", annotations)
    emit_tile("gemm", (*operands, clear_flag(clear_accum)), {
        "transpose_A": is_true(transpose_A), "transpose_B": is_true(transpose_B),
        "policy": warp_policy("wgmma_gemm", policy), "k_pack": 1, "instruction": "wgmma",
    })  # fmt: skip


@language_function("tile", targets=BLACKWELL)
def tcgen05_gemm(
    A: TileLike,
    B: TileLike,
    C: TileLike,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: ScalarLike = False,
    *,
    mbar: Any,
    use_2cta: bool = False,
    annotations: Any = None,
) -> None:
    """As `T.gemm`, but asynchronous and into tensor memory (PTX ISA, tcgen05.mma).

    Args:
        A: M x K, shared or tensor memory; B: K x N, shared; C: M x N, tensor memory;
        mbar: mbarrier that signals completion, or None; use_2cta: two blocks share the product.

    >>> T.tcgen05_gemm(A_shared, B_shared, C_tmem, mbar=done, clear_accum=k == 0)
    """
    operands = checked(
        "tcgen05_gemm", A, B, C, transpose_A, transpose_B, half_of_b=is_true(use_2cta)
    )
    help = "allocate it with `T.alloc_tmem((M, N), 'float32')`"
    require_scope("tcgen05_gemm", "C", operands[2], TENSOR_MEMORY, help)
    options("tcgen05_gemm", annotations)
    barrier = () if mbar is None else (mbarrier("tcgen05_gemm", "mbar", mbar),)
    emit_tile("tcgen05_gemm", (*operands, clear_flag(clear_accum), *barrier), {
        "transpose_A": is_true(transpose_A), "transpose_B": is_true(transpose_B),
        "policy": warp_policy("tcgen05_gemm", policy),
        "use_2cta": static_bool("tcgen05_gemm", "use_2cta", use_2cta),
    })  # fmt: skip


@language_function("tile", targets=("cuda:sm_80", "hip:gfx942"))
def gemm_sp(
    A_sparse: TileLike,
    E: TileLike,
    B: TileLike,
    C: TileLike,
    transpose_A: bool = False,
    transpose_E: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: ScalarLike = False,
    k_pack: int = 1,
    wg_wait: int = 0,
    annotations: Any = None,
) -> None:
    """Multiplies a 2:4 sparse tile: of every four elements of A along K, two are stored.

    Args:
        A_sparse: M x K/2, the kept elements; E: their positions (PTX ISA, mma.sp metadata);
        B: K x N; C: M x N accumulator; wg_wait: WGMMA groups that may stay in flight.

    >>> T.gemm_sp(A_shared, E_shared, B_shared, C_local)
    """
    function = "gemm_sp"
    refuse_in_parallel(function)
    a = matrix(function, "A_sparse", A_sparse, transpose_A)
    b = matrix(function, "B", B, transpose_B)
    c = matrix(function, "C", C, False)
    metadata = tile(function, "E", E)
    options(function, annotations)
    check_scopes(function, a, b, c)
    if a.transposed is not None and b.transposed is not None:
        if arith.surely_different(operators.binary("*", a.columns, 2), b.rows):
            reject(
                "TL204",
                f"`T.gemm_sp`: `{a.name}` keeps {a.columns} elements of K, `{b.name}` has "
                f"K = {b.rows}, which is not twice that",
                labels=declared(a.region, b.region),
                help="A stores two of every four elements along K",
            )
        check_product(function, a, b, c)
    emit_tile("gemm_sp", (a.region, metadata, b.region, c.region, clear_flag(clear_accum)), {
        "transpose_A": is_true(transpose_A), "transpose_E": is_true(transpose_E),
        "transpose_B": is_true(transpose_B), "policy": warp_policy(function, policy),
        "k_pack": static_int(function, "k_pack", k_pack, 1, 2),
        "wg_wait": static_int(function, "wg_wait", wg_wait, -1, 7),
    })  # fmt: skip


@language_function("tile", targets=("cuda:sm_100", "cuda:sm_120"))
def gemm_blockscaled(
    A: TileLike,
    B: TileLike,
    C: TileLike,
    SFA: TileLike,
    SFB: TileLike,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: ScalarLike = False,
    *,
    k_start: Any,
    sf_a_granularity_k: int,
    sf_b_granularity_k: int,
    sf_layout: Any = None,
    annotations: Any = None,
) -> None:
    """Multiplies fp8, fp6 or fp4 tiles that carry one scale per group along K.

    Args:
        A: M x K; B: K x N; C: M x N accumulator; SFA, SFB: scales (e8m0 or e4m3);
        k_start: first K element of this tile; sf_a_granularity_k, sf_b_granularity_k: elements
        of K that share one scale.

    >>> T.gemm_blockscaled(A, B, C, SFA, SFB, k_start=k * 128, sf_a_granularity_k=32,
    ...                    sf_b_granularity_k=32)
    """
    _blockscaled("gemm_blockscaled", (A, B, C, SFA, SFB), transpose_A, transpose_B, policy, {
        "clear_accum": clear_accum, "k_start": k_start, "mbar": None, "use_2cta": False,
        "granularity": (sf_a_granularity_k, sf_b_granularity_k), "sf_layout": sf_layout,
        "instruction": None,
    })  # fmt: skip


@language_function("tile", targets=("cuda:sm_120",))
def mma_gemm_blockscaled(
    A: TileLike,
    B: TileLike,
    C: TileLike,
    SFA: TileLike,
    SFB: TileLike,
    transpose_A: bool = False,
    transpose_B: bool = False,
    policy: GemmWarpPolicy = GemmWarpPolicy.Square,
    clear_accum: ScalarLike = False,
    *,
    k_start: Any,
    sf_a_granularity_k: int,
    sf_b_granularity_k: int,
    sf_layout: Any = None,
) -> None:
    """As `T.gemm_blockscaled`, with warp-level matrix instructions (PTX ISA, mma block_scale).

    Args:
        A, B, C, SFA, SFB, k_start, sf_a_granularity_k, sf_b_granularity_k: as
        `T.gemm_blockscaled`; C is a fragment.

    >>> T.mma_gemm_blockscaled(A, B, C, SFA, SFB, k_start=0, sf_a_granularity_k=32,
    ...                        sf_b_granularity_k=32)
    """
    _blockscaled("mma_gemm_blockscaled", (A, B, C, SFA, SFB), transpose_A, transpose_B, policy, {
        "clear_accum": clear_accum, "k_start": k_start, "mbar": None, "use_2cta": False,
        "granularity": (sf_a_granularity_k, sf_b_granularity_k), "sf_layout": sf_layout,
        "instruction": "mma",
    })  # fmt: skip


@language_function("tile", targets=BLACKWELL)
def tcgen05_gemm_blockscaled(
    A: TileLike,
    B: TileLike,
    C: TileLike,
    SFA_tmem: TileLike,
    SFB_tmem: TileLike,
    transpose_A: bool = False,
    transpose_B: bool = False,
    clear_accum: ScalarLike = False,
    wg_wait: int = 0,
    mbar: Any = None,
    *,
    k_start: Any,
    sf_a_granularity_k: int,
    sf_b_granularity_k: int,
    use_2cta: bool = False,
) -> None:
    """As `T.gemm_blockscaled`, asynchronous and into tensor memory (PTX ISA, tcgen05.mma).

    Args:
        A, B, C, k_start, sf_a_granularity_k, sf_b_granularity_k: as `T.gemm_blockscaled`;
        SFA_tmem, SFB_tmem: scales in tensor memory; mbar: mbarrier that signals completion.

    >>> T.tcgen05_gemm_blockscaled(A, B, C, SFA, SFB, mbar=done, k_start=0,
    ...                            sf_a_granularity_k=32, sf_b_granularity_k=32)
    """
    static_int("tcgen05_gemm_blockscaled", "wg_wait", wg_wait, -1, 7)
    tiles = (A, B, C, SFA_tmem, SFB_tmem)
    _blockscaled("tcgen05_gemm_blockscaled", tiles, transpose_A, transpose_B,
                 GemmWarpPolicy.Square, {
        "clear_accum": clear_accum, "k_start": k_start, "mbar": mbar, "use_2cta": use_2cta,
        "granularity": (sf_a_granularity_k, sf_b_granularity_k), "sf_layout": None,
        "instruction": "tcgen05",
    })  # fmt: skip


def _blockscaled(
    function: str, tiles: tuple[Any, ...], transpose_A: Any, transpose_B: Any, policy: Any,
    given: dict[str, Any],
) -> None:  # fmt: skip
    a, b, c, scale_a, scale_b = tiles
    operands = checked(function, a, b, c, transpose_A, transpose_B)
    scales = (tile(function, "SFA", scale_a), tile(function, "SFB", scale_b))
    group_a, group_b = (
        static_int(function, f"sf_{s}_granularity_k", g, 1, 1 << 16)
        for s, g in zip("ab", given["granularity"], strict=True)
    )
    barrier = () if given["mbar"] is None else (mbarrier(function, "mbar", given["mbar"]),)
    start = operators.as_expr(given["k_start"])
    emit_tile(
        "gemm_blockscaled",
        (*operands, *scales, clear_flag(given["clear_accum"]), start, *barrier),
        {
            "transpose_A": is_true(transpose_A), "transpose_B": is_true(transpose_B),
            "policy": warp_policy(function, policy), "sf_a_granularity_k": group_a,
            "sf_b_granularity_k": group_b,
            "use_2cta": static_bool(function, "use_2cta", given["use_2cta"]),
            "sf_layout": given["sf_layout"], "instruction": given["instruction"],
        },
    )  # fmt: skip


FUNCTIONS = (
    gemm, wgmma_gemm, tcgen05_gemm, gemm_sp, gemm_blockscaled, mma_gemm_blockscaled,
    tcgen05_gemm_blockscaled,
)  # fmt: skip
CONSTANTS = {"GemmWarpPolicy": GemmWarpPolicy}
