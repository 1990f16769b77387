"""Parts of the language that need a kernel each: views, eager forms, atomics, nesting, warps."""

from __future__ import annotations

import tilelang
from tests.kernels import cpu_atomic, eager_forms, nested_loops, reshape, warp_reduce
from tests.kernels.case import KernelCase, RejectCase

_RESHAPE = "test_tilelang_language_reshape"
RESHAPE = (
    KernelCase(
        name="reshape_shared",
        row=_RESHAPE,
        tier=2,
        style="prim_func",
        make=reshape.reshape_shared_then_reduce,
        inputs=reshape.inputs_flat,
        reference=reshape.reference_sum,
        params={"rows": 24, "columns": 32},
        out_idx=(1,),
    ),
    KernelCase(
        name="reshape_fragment",
        row=_RESHAPE,
        tier=2,
        style="prim_func",
        make=reshape.reshape_fragment_then_reduce,
        inputs=reshape.inputs_flat,
        reference=reshape.reference_max,
        params={"rows": 24, "columns": 32},
        out_idx=(1,),
    ),
    KernelCase(
        name="reshape_flatten",
        row=_RESHAPE,
        tier=2,
        style="prim_func",
        make=reshape.flatten_shared,
        inputs=reshape.inputs_2d,
        reference=reshape.reference_flatten,
        params={"rows": 15, "columns": 21},
        out_idx=(1,),
    ),
    KernelCase(
        name="view_bits",
        row=_RESHAPE,
        tier=2,
        style="prim_func",
        make=reshape.view_bits,
        inputs=reshape.inputs_bits,
        reference=reshape.reference_bits,
        params={"N": 64},
        out_idx=(1,),
    ),
)

_EAGER = "test_tilelang_language_eager_jit"
EAGER = (
    KernelCase(
        name="eager_gemm",
        row=_EAGER,
        tier=2,
        style="eager",
        make=eager_forms.gemm_const_dims,
        inputs=eager_forms.inputs_gemm,
        reference=eager_forms.reference_gemm,
        sizes={"M": 51, "N": 70, "K": 45},
        device_sizes={"M": 1024, "N": 1024, "K": 1024},
    ),
    KernelCase(
        name="eager_signature",
        row=_EAGER,
        tier=2,
        style="eager",
        make=eager_forms.annotated_in_signature,
        inputs=eager_forms.inputs_signature,
        reference=eager_forms.reference_signature,
    ),
    KernelCase(
        name="eager_runtime_scalar",
        row=_EAGER,
        tier=2,
        style="eager",
        make=eager_forms.runtime_scalar,
        inputs=eager_forms.inputs_vector,
        reference=eager_forms.reference_scale,
        sizes={"N": 203},
    ),
    KernelCase(
        name="eager_several_outputs",
        row=_EAGER,
        tier=2,
        style="eager",
        make=eager_forms.several_outputs,
        inputs=eager_forms.inputs_matrix,
        reference=eager_forms.reference_outputs,
        sizes={"M": 45, "N": 37},
        device_sizes={"M": 1024, "N": 256},
    ),
    KernelCase(
        name="eager_dynamic_rows",
        row=_EAGER,
        tier=2,
        style="eager",
        make=eager_forms.dynamic_rows,
        inputs=eager_forms.inputs_matrix,
        reference=eager_forms.reference_increment,
        sizes={"M": 45, "N": 37},
    ),
    KernelCase(
        name="eager_strided",
        row=_EAGER,
        tier=2,
        style="eager",
        make=eager_forms.strided_rows,
        inputs=eager_forms.inputs_strided,
        reference=eager_forms.reference_identity,
        sizes={"M": 13, "N": 20, "stride": 32},
        targets=("cpu",),
    ),
    KernelCase(
        name="eager_pointer_table",
        row=_EAGER,
        tier=2,
        style="eager",
        make=eager_forms.sum_of_pointed,
        inputs=eager_forms.inputs_pointers,
        reference=eager_forms.reference_pointers,
        sizes={"count": 5, "width": 48},
        targets=("cpu",),
    ),
)

_ATOMIC = "test_tilelang_cpu_atomic"
CPU_ATOMIC = (
    KernelCase(
        name="atomic_scalars",
        row=_ATOMIC,
        tier=2,
        style="prim_func",
        make=cpu_atomic.atomic_scalars,
        inputs=cpu_atomic.inputs_scalars,
        reference=cpu_atomic.reference_scalars,
        params={"N": 301},
        mutates=(1,),
    ),
    KernelCase(
        name="atomic_float_sum",
        row=_ATOMIC,
        tier=2,
        style="prim_func",
        make=cpu_atomic.atomic_float_sum,
        inputs=cpu_atomic.inputs_float_sum,
        reference=cpu_atomic.reference_float_sum,
        params={"M": 61, "N": 24, "block": 8},
        mutates=(1,),
    ),
    KernelCase(
        name="atomic_region",
        row=_ATOMIC,
        tier=2,
        style="prim_func",
        make=cpu_atomic.atomic_region,
        inputs=cpu_atomic.inputs_region,
        reference=cpu_atomic.reference_float_sum,
        params={"M": 21, "N": 32, "parts": 5},
        mutates=(1,),
    ),
    KernelCase(
        name="atomic_vectors",
        row=_ATOMIC,
        tier=2,
        style="prim_func",
        make=cpu_atomic.atomic_vectors,
        inputs=cpu_atomic.inputs_vectors,
        reference=cpu_atomic.reference_vectors,
        params={"N": 32, "parts": 3},
        mutates=(2, 3),
    ),
    KernelCase(
        name="atomic_tickets",
        row=_ATOMIC,
        tier=2,
        style="prim_func",
        make=cpu_atomic.atomic_tickets,
        inputs=cpu_atomic.inputs_tickets,
        reference=cpu_atomic.reference_tickets,
        params={"N": 211},
        mutates=(0, 1, 2),
        canonical=cpu_atomic.sort_tickets,
    ),
    KernelCase(
        name="atomic_load_store",
        row=_ATOMIC,
        tier=2,
        style="prim_func",
        make=cpu_atomic.atomic_load_store,
        inputs=cpu_atomic.inputs_load_store,
        reference=cpu_atomic.reference_load_store,
        params={"N": 97},
        mutates=(1,),
    ),
)

_NESTED = "test_tilelang_nested_loop_checker"
NESTED = (
    KernelCase(
        name="serial_in_parallel",
        row=_NESTED,
        tier=2,
        style="lazy",
        make=nested_loops.serial_in_parallel,
        inputs=nested_loops.inputs,
        reference=nested_loops.reference_row_sums,
        params={"M": 19, "N": 23},
    ),
    KernelCase(
        name="parallel_directly_nested",
        row=_NESTED,
        tier=2,
        style="lazy",
        make=nested_loops.parallel_directly_nested,
        inputs=nested_loops.inputs,
        reference=nested_loops.reference_double,
        params={"M": 19, "N": 23},
    ),
    KernelCase(
        name="parallel_in_pipelined",
        row=_NESTED,
        tier=2,
        style="lazy",
        make=nested_loops.parallel_in_pipelined,
        inputs=nested_loops.inputs,
        reference=nested_loops.reference_halving,
        params={"M": 16, "N": 57, "block": 16},
    ),
    KernelCase(
        name="pipelined_in_serial",
        row=_NESTED,
        tier=2,
        style="lazy",
        make=nested_loops.pipelined_in_serial,
        inputs=nested_loops.inputs,
        reference=nested_loops.reference_row_sums,
        params={"M": 16, "N": 57, "repeat": 3},
    ),
)

WARP_REDUCE = tuple(
    KernelCase(
        name=f"warp_reduce_{kind}_{threads}",
        row="test_tilelang_language_warp_reduce",
        tier=2,
        style="lazy",
        make=warp_reduce.warp_reduce,
        inputs=warp_reduce.inputs,
        reference=warp_reduce.reference,
        params={"kind": kind, "threads": threads},
    )
    for kind in ("sum", "max", "min", "bitand", "bitor")
    for threads in (32, 64)
)

REJECTED = (
    RejectCase(
        "reshape_to_other_size",
        _RESHAPE,
        lambda: tilelang.compile(reshape.reshape_to_other_size(), target="cpu"),
        "TL213",
        ("A_shared", "(64,)", "(8, 9)"),
    ),
    RejectCase(
        "atomic_add_with_tma",
        _ATOMIC,
        lambda: tilelang.compile(cpu_atomic.atomic_add_with_tma(), target="cpu"),
        "TL401",
        ("use_tma",),
    ),
    RejectCase(
        "atomic_region_with_return",
        _ATOMIC,
        lambda: tilelang.compile(cpu_atomic.atomic_region_with_return(), target="cpu"),
        "TL117",
        ("return_prev",),
    ),
    RejectCase(
        "parallel_nested_with_statements",
        _NESTED,
        nested_loops.parallel_nested_with_statements,
        "TL242",
        ("T.Parallel",),
    ),
    RejectCase(
        "pipelined_in_parallel",
        _NESTED,
        nested_loops.pipelined_in_parallel,
        "TL243",
        ("T.Pipelined", "T.Parallel"),
    ),
    RejectCase(
        "tile_op_in_parallel",
        _NESTED,
        nested_loops.tile_op_in_parallel,
        "TL241",
        ("T.copy", "T.Parallel"),
    ),
    RejectCase(
        "local_indexed_by_parallel",
        _NESTED,
        nested_loops.local_indexed_by_parallel,
        "TL244",
        ("`mine`",),
    ),
)

KERNELS = (*RESHAPE, *EAGER, *CPU_ATOMIC, *NESTED, *WARP_REDUCE)
