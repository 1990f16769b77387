"""The language: `import tilelang.language as T`. Made by `python -m tilelang.language.stubs`."""

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final
from typing import no_type_check as macro
from typing import no_type_check as prim_func

from tilelang.dtypes import DType as DType
from tilelang.dtypes import dtype as dtype
from tilelang.language import fp8 as fp8
from tilelang.language import types as types
from tilelang.language.catalog import LanguageFunction
from tilelang.language.gemm_operands import GemmWarpPolicy as GemmWarpPolicy
from tilelang.language.primfunc import PrimFunc as PrimFunc
from tilelang.language.tile_scheduler import PersistentTileScheduler as PersistentTileScheduler
from tilelang.language.types import Ref as Ref
from tilelang.language.warp_schedule import WSID as WSID
from tilelang.language.warp_schedule import WSPipeline as WSPipeline
from tilelang.language.warp_schedule import WSRole as WSRole
from tilelang.language.warp_schedule import WSSchedule as WSSchedule
from tilelang.language.warp_schedule import WSScope as WSScope
from tilelang.language.warp_schedule import WSSync as WSSync
from tilelang.layout.fragment import Fragment as Fragment
from tilelang.layout.layout import Layout as Layout
from tilelang.program.buffer import Buffer as Buffer

MYPY: bool  # mypy takes it to be true, and nobody else
if MYPY:
    from tilelang.language._seen_by_mypy import FragmentBuffer as FragmentBuffer
    from tilelang.language._seen_by_mypy import LocalBuffer as LocalBuffer
    from tilelang.language._seen_by_mypy import SharedBuffer as SharedBuffer
    from tilelang.language._seen_by_mypy import StridedTensor as StridedTensor
    from tilelang.language._seen_by_mypy import Tensor as Tensor
    from tilelang.language._seen_by_mypy import ptr as ptr
else:
    from tilelang.language._seen_by_pyright import FragmentBuffer as FragmentBuffer
    from tilelang.language._seen_by_pyright import LocalBuffer as LocalBuffer
    from tilelang.language._seen_by_pyright import SharedBuffer as SharedBuffer
    from tilelang.language._seen_by_pyright import StridedTensor as StridedTensor
    from tilelang.language._seen_by_pyright import Tensor as Tensor
    from tilelang.language._seen_by_pyright import ptr as ptr

FAMILIES: Final[tuple[ModuleType, ...]]
FUNCTIONS: dict[str, LanguageFunction]
CONSTANTS: dict[str, Any]

class _Frame:
    """What `with` opens. It lets exceptions pass."""

    def __enter__(self) -> Any: ...
    def __exit__(self, *error: object) -> None: ...

def And(a: Any, b: Any, span: Any = None) -> Any:
    """Whether both conditions hold, as `a and b`."""

def CUDASourceCodeKernel(*blocks: Any, threads: Any = None, source_code_or_path: Any = None, entry_name: Any = 'main_kernel', cluster_dims: Any = None, prelude: Any = None) -> _Frame:
    """Launches a `__global__` function of CUDA source: nothing in it is checked or changed."""

def Cast(dtype: Any, value: Any, span: Any = None) -> Any:
    """Converts a value, dtype first; as `T.cast(value, dtype)`."""

def ClusterKernel(*blocks: Any, cluster_dims: Any, threads: Any = None, prelude: Any = None) -> _Frame:
    """As `T.Kernel`, with blocks grouped into clusters of `cluster_dims` (PTX ISA, clusters)."""

def Kernel(*blocks: Any, threads: Any = None, prelude: Any = None, cluster_dims: Any = None, is_cpu: Any = False) -> _Frame:
    """Launches a grid of blocks; `with … as (bx, by)` names the block indices."""

def Not(a: Any, span: Any = None) -> Any:
    """Whether a condition does not hold, as `not a`."""

def Or(a: Any, b: Any, span: Any = None) -> Any:
    """Whether at least one condition holds, as `a or b`."""

def Parallel(*extents: Any, coalesced_width: Any = None, loop_layout: Any = None, prefer_async: Any = None, annotations: Any = None) -> Iterator[Any]:
    """An elementwise loop nest, spread over threads and vectorised by the compiler."""

def Persistent(domain: Any, wave_size: Any, index: Any, group_size: Any = 8, num_stages: Any = None, annotations: Any = None) -> Iterator[Any]:
    """Tiles of `domain` dealt to `wave_size` resident blocks, grouped for cache reuse."""

def Pipelined(start: Any, stop: Any = None, num_stages: Any = 0, order: Any = None, stage: Any = None, sync: Any = None, group: Any = None, annotations: Any = None) -> Iterator[Any]:
    """A sequential loop whose copies run ahead of the work that uses them."""

def Select(condition: Any, true_value: Any, false_value: Any, span: Any = None) -> Any:
    """`true_value` where the condition holds, else `false_value`; both are evaluated."""

def Serial(start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None) -> Iterator[Any]:
    """A sequential loop over `[start, stop)`, or `[0, start)`; `range` is the same."""

def Unroll(start: Any, stop: Any = None, step: Any = None, *, explicit: Any = False, unroll_factor: Any = None, annotations: Any = None) -> Iterator[Any]:
    """A loop the target unrolls; `explicit` unrolls before planning."""

def Vectorized(start: Any, stop: Any = None, *, annotations: Any = None) -> Iterator[Any]:
    """A loop emitted as one vector operation; the extent is a constant."""

def __cos(x: Any) -> Any:
    """Approximate cosine of x in radians, with the fast instruction of the target."""

def __exp(x: Any) -> Any:
    """Approximate e to the power of x, with the fast instruction of the target."""

def __exp10(x: Any) -> Any:
    """Approximate 10 to the power of x, with the fast instruction of the target."""

def __log(x: Any) -> Any:
    """Approximate natural logarithm, with the fast instruction of the target."""

def __log10(x: Any) -> Any:
    """Approximate logarithm to base 10, with the fast instruction of the target."""

def __log2(x: Any) -> Any:
    """Approximate logarithm to base 2, with the fast instruction of the target."""

def __sin(x: Any) -> Any:
    """Approximate sine of x in radians, with the fast instruction of the target."""

def __tan(x: Any) -> Any:
    """Approximate tangent of x in radians, with the fast instruction of the target."""

def abs(x: Any) -> Any:
    """Absolute value of a float or integer."""

def abs2(x: Any) -> Any:
    """Absolute value of x, for both lanes of a pair in one instruction."""

def access_ptr(base: Any, access_type: Any = 'r', *extents: Any, offset: Any = 0, extent: Any = None, ignore_last_ndim: Any = 0) -> Any:
    """A pointer to an element or region, with what is done through it, for extern calls and PTX."""

def acos(x: Any) -> Any:
    """Arc cosine in radians."""

def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine."""

def activemask() -> Any:
    """One bit per lane that executes this statement (PTX ISA, activemask)."""

def add2(x: Any, y: Any) -> Any:
    """X + y, for both lanes of a pair in one instruction."""

def address_of(buffer_load: Any, span: Any = None) -> Any:
    """A pointer to an element."""

def all(*conditions: Any) -> Any:
    """Whether all conditions hold."""

def all_of(buffer: Any) -> Any:
    """Whether all elements of a buffer or region are not zero."""

def all_sync(predicate: Any, mask: Any = 4294967295) -> Any:
    """Whether the predicate holds in all named lanes (PTX ISA, vote.sync.all)."""

def alloc_barrier(arrive_count: Any) -> Buffer:
    """An array of mbarriers in shared memory, one per listed arrive count (PTX ISA, mbarrier)."""

def alloc_cluster_barrier(arrive_count: Any) -> Buffer:
    """Like `alloc_barrier`, reachable from the other blocks of the cluster."""

def alloc_fragment(shape: Any, dtype: Any = 'float32', scope: Any = 'local.fragment') -> Buffer:
    """A tile in registers, spread over all threads of a block; indexed as one array."""

def alloc_global(shape: Any, dtype: Any = 'float32', scope: Any = 'global') -> Buffer:
    """Scratch in global memory that lives as long as the launch."""

def alloc_local(shape: Any, dtype: Any = 'float32', scope: Any = 'local') -> Buffer:
    """A private array of each thread."""

def alloc_reducer(shape: Any, dtype: Any = 'float32', op: Any = 'sum', replication: Any = None) -> Buffer:
    """A write-only accumulator of logical shape, combined across threads when finalised."""

def alloc_shared(shape: Any, dtype: Any = 'float32', scope: Any = 'shared.dyn') -> Buffer:
    """A tile in the memory all threads of a block share."""

def alloc_tmem(shape: Any, dtype: Any) -> Buffer:
    """A tile in tensor memory (PTX ISA, tcgen05), at most 512 columns a block."""

def alloc_var(dtype: Any, *args: Any, scope: Any = 'local.var', init: Any = None) -> Any:
    """A mutable scalar of each thread; assigning to its Python name stores."""

def alloc_wgmma_desc() -> Buffer:
    """A descriptor of a shared tile for `T.ptx_wgmma_ss` (PTX ISA, wgmma matrix descriptor)."""

def annotate_compile_flags(flags: Any) -> Any:
    """Adds flags for the device compiler of this kernel; flags of the caller come after."""

def annotate_consumer_reg_alloc(reg_count: Any = 240) -> Any:
    """Registers that consumer warp groups get (PTX ISA, setmaxnreg.inc)."""

def annotate_l2_hit_ratio(l2_hit_ratio_map: Any) -> Any:
    """Asks for a part of the L2 cache to be kept for tensors (CUDA, access policy window)."""

def annotate_layout(layout_map: Any) -> Any:
    """Fixes where the elements of buffers lie, instead of letting the compiler choose."""

def annotate_pass_configs(configs: Any) -> Any:
    """Sets compile options of this kernel; options of the caller win."""

def annotate_producer_reg_dealloc(reg_count: Any = 24) -> Any:
    """Registers that producer warp groups keep (PTX ISA, setmaxnreg.dec)."""

def annotate_restrict_buffers(*buffers: Any) -> Any:
    """Promises that these tensors do not overlap any other in memory."""

def annotate_safe_value(safe_value_map: Any) -> Any:
    """Says what reads outside a buffer give, instead of 0."""

def annotate_ws_pipeline_depth(depth: Any) -> Any:
    """How many tiles a warp-specialised pipeline keeps in flight."""

def annotate_ws_schedule(schedule: Any) -> Any:
    """Specialises warps as a schedule says, instead of letting the compiler decide."""

def any(*conditions: Any) -> Any:
    """Whether any condition holds."""

def any_of(buffer: Any) -> Any:
    """Whether any element of a buffer or region is not zero."""

def any_sync(predicate: Any, mask: Any = 4294967295) -> Any:
    """Whether the predicate holds in any named lane (PTX ISA, vote.sync.any)."""

def asin(x: Any) -> Any:
    """Arc sine in radians."""

def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine."""

def assume(cond: Any = None) -> Any:
    """Promises a condition to the compiler, which may drop guards because of it."""

def async_copy(src: Any, dst: Any, *, coalesced_width: Any = None, annotations: Any = None, loop_layout: Any = None) -> None:
    """Starts a copy from global to shared memory and does not wait (PTX ISA, cp.async)."""

def atan(x: Any) -> Any:
    """Arc tangent in radians."""

def atan2(x: Any, y: Any) -> Any:
    """Angle of the point (y, x) in radians."""

def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent."""

def atomic_add(dst: Any, value: Any, memory_order: Any = None, return_prev: Any = False, use_tma: Any = False, annotations: Any = None) -> Any:
    """Adds to an element, or a tile to a tile, atomically."""

def atomic_addx2(dst: Any, value: Any, return_prev: Any = False) -> Any:
    """Adds two neighbouring elements at once, atomically."""

def atomic_addx4(dst: Any, value: Any, return_prev: Any = False) -> Any:
    """Adds four neighbouring elements at once, atomically."""

def atomic_and(dst: Any, value: Any, memory_order: Any = None, return_prev: Any = False) -> Any:
    """Clears bits of an integer element, atomically."""

def atomic_load(src: Any, memory_order: Any = 'seq_cst') -> Any:
    """Reads an element that other threads may be writing."""

def atomic_max(dst: Any, value: Any, memory_order: Any = None, return_prev: Any = False, annotations: Any = None) -> Any:
    """Keeps the larger of an element and `value`, atomically; tiles elementwise."""

def atomic_min(dst: Any, value: Any, memory_order: Any = None, return_prev: Any = False, annotations: Any = None) -> Any:
    """Keeps the smaller of an element and `value`, atomically; tiles elementwise."""

def atomic_or(dst: Any, value: Any, memory_order: Any = None, return_prev: Any = False) -> Any:
    """Sets bits of an integer element, atomically."""

def atomic_store(dst: Any, src: Any, memory_order: Any = 'seq_cst') -> Any:
    """Writes an element that other threads may be reading."""

def atomic_xor(dst: Any, value: Any, memory_order: Any = None, return_prev: Any = False) -> Any:
    """Flips bits of an integer element, atomically."""

def attr(node: Any, key: Any, value: Any) -> _Frame:
    """`with T.attr(node, key, value):` an attribute on the body."""

def ballot(predicate: Any) -> Any:
    """One bit per lane of the warp: whether the predicate holds there."""

def ballot_sync(predicate: Any, mask: Any = 4294967295) -> Any:
    """One bit per lane: whether the predicate holds there (PTX ISA, vote.sync.ballot)."""

def barrier_arrive(mbarrier: Any, cta_id: Any = None) -> Any:
    """As `T.mbarrier_arrive`."""

def barrier_wait(mbarrier: Any, parity: Any) -> Any:
    """As `T.mbarrier_wait_parity`."""

bf16: Final[DType]
bfloat16: Final[DType]
bfloat16x16: Final[DType]
bfloat16x2: Final[DType]
bfloat16x32: Final[DType]
bfloat16x4: Final[DType]
bfloat16x64: Final[DType]
bfloat16x8: Final[DType]
def bitwise_and(x: Any, y: Any, span: Any = None) -> Any:
    """`x & y`."""

def bitwise_not(x: Any, span: Any = None) -> Any:
    """`~x`."""

def bitwise_or(x: Any, y: Any, span: Any = None) -> Any:
    """`x | y`."""

def bitwise_xor(x: Any, y: Any, span: Any = None) -> Any:
    """`x ^ y`."""

def block_rank_in_cluster() -> Any:
    """The rank of this block in its cluster (PTX ISA, %cluster_ctarank); int32."""

bool: Final[DType]
boolx16: Final[DType]
boolx2: Final[DType]
boolx32: Final[DType]
boolx4: Final[DType]
boolx64: Final[DType]
boolx8: Final[DType]
def call_extern(dtype: Any, func_name: Any, *args: Any, span: Any = None) -> Any:
    """Calls a C function that the generated source can see, and the compiler cannot see into."""

def call_intrin(dtype: Any, func_name: Any, *args: Any, annotations: Any = None, span: Any = None) -> Any:
    """Calls an intrinsic of the target by name."""

def call_pure_extern(dtype: Any, func_name: Any, *args: Any, span: Any = None) -> Any:
    """As `T.call_extern`, of a function that only computes its result from its arguments."""

def cast(value: Any, dtype: Any, round: Any = '', sat: Any = True, rbits: Any = None, span: Any = None) -> Any:
    """Converts a value to another dtype, to nearest even, saturating for fp8, fp6 and fp4."""

def cbrt(x: Any) -> Any:
    """Cube root."""

def ceil(x: Any, span: Any = None) -> Any:
    """Smallest integral value not below x."""

def ceildiv(lhs: Any, rhs: Any, span: Any = None) -> Any:
    """Division rounded up: the number of tiles of `rhs` that cover `lhs`."""

char: Final[DType]
def clamp(dst: Any, min_val: Any, max_val: Any) -> Any:
    """The nearest value between two bounds: `min(max(dst, min_val), max_val)`."""

def clc_get_first_ctaid_x(result: Any) -> Any:
    """The x index of the block that was handed over (clusterlaunchcontrol.query_cancel); int32."""

def clc_is_canceled(result: Any) -> Any:
    """Whether a tile was handed over (PTX ISA, clusterlaunchcontrol.query_cancel); bool."""

def clc_try_cancel(result: Any, mbarrier: Any) -> Any:
    """Asks for the next tile of a persistent launch (PTX ISA, clusterlaunchcontrol.try_cancel)."""

def clc_try_cancel_multicast(result: Any, mbarrier: Any) -> Any:
    """As `T.clc_try_cancel`, the answer goes to all blocks of the cluster."""

def clear(buffer: Any, annotations: Any = None) -> None:
    """Sets every element of a buffer, region or element to 0."""

def cluster_arrive(relaxed: Any = False) -> Any:
    """Arrives at the barrier of the cluster without waiting (PTX ISA, barrier.cluster.arrive)."""

def cluster_sync() -> Any:
    """Waits until all threads of all blocks of the cluster are here."""

def cluster_wait() -> Any:
    """Waits for the barrier of the cluster (PTX ISA, barrier.cluster.wait)."""

def clz(x: Any) -> Any:
    """How many leading bits are zero."""

def comm_reducer(combine: Any, identity: Any) -> Any:
    """A way to combine two values in any order, for `T.tvm_thread_allreduce`."""

def const(name: Any, dtype: Any = 'int32') -> Any:
    """Compile-time dimensions of an eager kernel, taken from the tensors it is called with."""

def copy(src: Any, dst: Any, *, coalesced_width: Any = None, disable_tma: Any = False, eviction_policy: Any = None, prefer_instruction: Any = None, annotations: Any = None, loop_layout: Any = None) -> None:
    """Moves a tile from `src` to `dst`, converting the dtype; done when the call returns."""

def copy_cluster(src: Any, dst: Any, *, dst_block: Any = None, cluster_mask: Any = None, remote_barrier: Any = None, eviction_policy: Any = None, coalesced_width: Any = None, annotations: Any = None, loop_layout: Any = None) -> None:
    """Copies between the blocks of a cluster (PTX ISA, distributed shared memory)."""

def copysign(x: Any, y: Any) -> Any:
    """X with the sign of y."""

def cos(x: Any) -> Any:
    """Cosine of x in radians."""

def cosh(x: Any) -> Any:
    """Hyperbolic cosine."""

def cp_async_barrier_noinc(barrier: Any) -> Any:
    """Arrives at an mbarrier when this thread's cp.async are done (cp.async.mbarrier.arrive.noinc)."""

def cummax(src: Any, dst: Any = None, dim: Any = 0, reverse: Any = False, annotations: Any = None) -> None:
    """Inclusive running maximum along one dimension, in place when `dst` is left out."""

def cumsum(src: Any, dst: Any = None, dim: Any = 0, reverse: Any = False, annotations: Any = None) -> None:
    """Inclusive running sum along one dimension, in place when `dst` is left out."""

def deallocate_tmem(tmem: Any) -> Any:
    """Frees a tensor-memory tile now instead of at the end of the block (PTX ISA, tcgen05.dealloc)."""

def device_assert(condition: Any, msg: Any = '', no_stack_info: Any = False) -> Any:
    """Stops the kernel with a message when a condition is false."""

def disable_warp_group_reg_alloc() -> Any:
    """Leaves the registers of warp groups as the launch gives them."""

double: Final[DType]
def dp4a(A: Any, B: Any, C: Any) -> Any:
    """Adds the product of two vectors of four int8 to an int32: `C += dot(A, B)` (PTX ISA, dp4a)."""

def dynamic(name: Any, dtype: Any = 'int32') -> Any:
    """Run-time dimensions: one kernel for all their values, bound from tensor shapes."""

def empty(*shape: Any, dtype: Any = None) -> Any:
    """An output tensor: allocated by the runtime, returned by the kernel."""

def erf(x: Any) -> Any:
    """Error function."""

def evaluate(value: Any) -> Any:
    """Evaluates an expression for its effect."""

def exp(x: Any) -> Any:
    """E to the power of x."""

def exp10(x: Any) -> Any:
    """10 to the power of x."""

def exp2(x: Any) -> Any:
    """2 to the power of x."""

def expm1(x: Any) -> Any:
    """E to the power of x, minus 1, exact near 0."""

def extract_lane(vector: Any, lane: Any, span: Any = None) -> Any:
    """One lane of a vector value."""

def fabs(x: Any) -> Any:
    """Absolute value, as `T.abs`."""

def fence_proxy_async() -> Any:
    """Orders ordinary shared-memory writes before TMA and WGMMA reads (PTX ISA, fence.proxy.async)."""

def fill(buffer: Any, value: Any, annotations: Any = None) -> None:
    """Sets every element of a buffer, region or element to `value`."""

def finalize_reducer(reducer: Any, dst: Any = None, batch: Any = 1, annotations: Any = None) -> None:
    """Combines the contributions of all threads and writes them to `dst`."""

float: Final[DType]
float16: Final[DType]
float16x16: Final[DType]
float16x2: Final[DType]
float16x32: Final[DType]
float16x4: Final[DType]
float16x64: Final[DType]
float16x8: Final[DType]
float32: Final[DType]
float32x16: Final[DType]
float32x2: Final[DType]
float32x32: Final[DType]
float32x4: Final[DType]
float32x64: Final[DType]
float32x8: Final[DType]
float4_e2m1_unpacked: Final[DType]
float4_e2m1_unpackedx16: Final[DType]
float4_e2m1_unpackedx2: Final[DType]
float4_e2m1_unpackedx32: Final[DType]
float4_e2m1_unpackedx4: Final[DType]
float4_e2m1_unpackedx64: Final[DType]
float4_e2m1_unpackedx8: Final[DType]
float4_e2m1fn: Final[DType]
float4_e2m1fnx16: Final[DType]
float4_e2m1fnx2: Final[DType]
float4_e2m1fnx32: Final[DType]
float4_e2m1fnx4: Final[DType]
float4_e2m1fnx64: Final[DType]
float4_e2m1fnx8: Final[DType]
float64: Final[DType]
float64x16: Final[DType]
float64x2: Final[DType]
float64x32: Final[DType]
float64x4: Final[DType]
float64x64: Final[DType]
float64x8: Final[DType]
float6_e2m3fn: Final[DType]
float6_e2m3fnx16: Final[DType]
float6_e2m3fnx2: Final[DType]
float6_e2m3fnx32: Final[DType]
float6_e2m3fnx4: Final[DType]
float6_e2m3fnx64: Final[DType]
float6_e2m3fnx8: Final[DType]
float6_e3m2fn: Final[DType]
float6_e3m2fnx16: Final[DType]
float6_e3m2fnx2: Final[DType]
float6_e3m2fnx32: Final[DType]
float6_e3m2fnx4: Final[DType]
float6_e3m2fnx64: Final[DType]
float6_e3m2fnx8: Final[DType]
float8_e3m4: Final[DType]
float8_e3m4x16: Final[DType]
float8_e3m4x2: Final[DType]
float8_e3m4x32: Final[DType]
float8_e3m4x4: Final[DType]
float8_e3m4x64: Final[DType]
float8_e3m4x8: Final[DType]
float8_e4m3: Final[DType]
float8_e4m3b11fnuz: Final[DType]
float8_e4m3b11fnuzx16: Final[DType]
float8_e4m3b11fnuzx2: Final[DType]
float8_e4m3b11fnuzx32: Final[DType]
float8_e4m3b11fnuzx4: Final[DType]
float8_e4m3b11fnuzx64: Final[DType]
float8_e4m3b11fnuzx8: Final[DType]
float8_e4m3fn: Final[DType]
float8_e4m3fnuz: Final[DType]
float8_e4m3fnuzx16: Final[DType]
float8_e4m3fnuzx2: Final[DType]
float8_e4m3fnuzx32: Final[DType]
float8_e4m3fnuzx4: Final[DType]
float8_e4m3fnuzx64: Final[DType]
float8_e4m3fnuzx8: Final[DType]
float8_e4m3fnx16: Final[DType]
float8_e4m3fnx2: Final[DType]
float8_e4m3fnx32: Final[DType]
float8_e4m3fnx4: Final[DType]
float8_e4m3fnx64: Final[DType]
float8_e4m3fnx8: Final[DType]
float8_e4m3x16: Final[DType]
float8_e4m3x2: Final[DType]
float8_e4m3x32: Final[DType]
float8_e4m3x4: Final[DType]
float8_e4m3x64: Final[DType]
float8_e4m3x8: Final[DType]
float8_e5m2: Final[DType]
float8_e5m2fnuz: Final[DType]
float8_e5m2fnuzx16: Final[DType]
float8_e5m2fnuzx2: Final[DType]
float8_e5m2fnuzx32: Final[DType]
float8_e5m2fnuzx4: Final[DType]
float8_e5m2fnuzx64: Final[DType]
float8_e5m2fnuzx8: Final[DType]
float8_e5m2x16: Final[DType]
float8_e5m2x2: Final[DType]
float8_e5m2x32: Final[DType]
float8_e5m2x4: Final[DType]
float8_e5m2x64: Final[DType]
float8_e5m2x8: Final[DType]
float8_e8m0fnu: Final[DType]
float8_e8m0fnux16: Final[DType]
float8_e8m0fnux2: Final[DType]
float8_e8m0fnux32: Final[DType]
float8_e8m0fnux4: Final[DType]
float8_e8m0fnux64: Final[DType]
float8_e8m0fnux8: Final[DType]
def floor(x: Any, span: Any = None) -> Any:
    """Largest integral value not above x."""

def floordiv(a: Any, b: Any, span: Any = None) -> Any:
    """Division rounded down, as Python's `//`."""

def floormod(a: Any, b: Any, span: Any = None) -> Any:
    """Remainder with the sign of `b`, as Python's `%`."""

def fma(x: Any, y: Any, z: Any) -> Any:
    """x * y + z with one rounding."""

def fma2(x: Any, y: Any, z: Any) -> Any:
    """X * y + z with one rounding, for both lanes of a pair in one instruction."""

def fmod(x: Any, y: Any) -> Any:
    """Remainder with the sign of x."""

fp16: Final[DType]
fp32: Final[DType]
def func_attr(attrs: Any) -> Any:
    """Attaches attributes to the kernel function."""

def gemm(A: Any, B: Any, C: Any, transpose_A: Any = False, transpose_B: Any = False, policy: Any = ..., clear_accum: Any = False, k_pack: Any = 1, mbar: Any = None, annotations: Any = None) -> None:
    """Multiplies tiles and accumulates: `C += A @ B` (`C = A @ B` with `clear_accum`)."""

def gemm_blockscaled(A: Any, B: Any, C: Any, SFA: Any, SFB: Any, transpose_A: Any = False, transpose_B: Any = False, policy: Any = ..., clear_accum: Any = False, *, k_start: Any, sf_a_granularity_k: Any, sf_b_granularity_k: Any, sf_layout: Any = None, annotations: Any = None) -> None:
    """Multiplies fp8, fp6 or fp4 tiles that carry one scale per group along K."""

def gemm_sp(A_sparse: Any, E: Any, B: Any, C: Any, transpose_A: Any = False, transpose_E: Any = False, transpose_B: Any = False, policy: Any = ..., clear_accum: Any = False, k_pack: Any = 1, wg_wait: Any = 0, annotations: Any = None) -> None:
    """Multiplies a 2:4 sparse tile: of every four elements of A along K, two are stored."""

def get_block_binding(dim: Any = 0) -> Any:
    """The index of this block in the grid along one axis."""

def get_block_bindings() -> Any:
    """The indices of this block in the grid, one per grid axis of the launch."""

def get_cluster_dims(dim: Any = 0) -> Any:
    """How many blocks a cluster has along one axis (PTX ISA, %cluster_nctaid); int32."""

def get_cluster_extent(dim: Any = 0) -> Any:
    """How many clusters the grid has along one axis (PTX ISA, %nclusterid); int32."""

def get_cluster_id(dim: Any = 0) -> Any:
    """Which cluster of the grid this block is in (PTX ISA, %clusterid); int32."""

def get_cluster_size() -> Any:
    """How many blocks a cluster has (PTX ISA, %cluster_nctarank); int32."""

def get_lane_idx(warp_size: Any = None) -> Any:
    """The position of this thread in its warp."""

def get_thread_binding(dim: Any = 0) -> Any:
    """The index of this thread in its block along one axis."""

def get_thread_bindings() -> Any:
    """The indices of this thread in its block, one per thread axis of the launch."""

def get_thread_extent(dim: Any = 0) -> Any:
    """How many threads a block has along one axis."""

def get_warp_group_idx(warp_size: Any = None, warps_per_group: Any = None) -> Any:
    """The number of this thread's warp group (four warps) in the block."""

def get_warp_idx(warp_size: Any = None) -> Any:
    """The number of this thread's warp in the block, without telling the compiler it is uniform."""

def get_warp_idx_sync(warp_size: Any = None) -> Any:
    """The number of this thread's warp in the block, uniform across the warp."""

def grid(*extents: Any) -> Iterator[Any]:
    """Nested sequential loops, one variable per extent."""

half: Final[DType]
handle: Final[DType]
def hypot(x: Any, y: Any) -> Any:
    """Length of (x, y)."""

def ieee_add(x: Any, y: Any, rounding_mode: Any = 'rn') -> Any:
    """X + y, rounded as named and never fused or approximated."""

def ieee_fdiv(x: Any, y: Any, rounding_mode: Any = 'rn') -> Any:
    """X / y, rounded as named and never fused or approximated."""

def ieee_fmaf(x: Any, y: Any, z: Any, rounding_mode: Any = 'rn') -> Any:
    """X * y + z with one rounding, rounded as named and never fused or approximated."""

def ieee_frcp(x: Any, rounding_mode: Any = 'rn') -> Any:
    """1 / x, rounded as named and never fused or approximated."""

def ieee_frsqrt(x: Any) -> Any:
    """Reciprocal square root, rounded to nearest even (CUDA, __frsqrt_rn)."""

def ieee_fsqrt(x: Any, rounding_mode: Any = 'rn') -> Any:
    """Square root of x, rounded as named and never fused or approximated."""

def ieee_mul(x: Any, y: Any, rounding_mode: Any = 'rn') -> Any:
    """X * y, rounded as named and never fused or approximated."""

def ieee_sub(x: Any, y: Any, rounding_mode: Any = 'rn') -> Any:
    """X - y, rounded as named and never fused or approximated."""

def if_then_else(cond: Any, t: Any, f: Any, span: Any = None) -> Any:
    """`t` where the condition holds, else `f`; only the taken side is evaluated."""

def im2col(img: Any, col: Any, nhw_step: Any, c_step: Any, kernel: Any, stride: Any, dilation: Any, pad: Any, eviction_policy: Any = None, annotations: Any = None) -> None:
    """Gathers a tile of convolution windows, so that a gemm with the filter convolves."""

def import_source(source: Any) -> Any:
    """Puts C source text in front of the generated kernel."""

def index_to_coordinates(index: Any, shape: Any) -> Any:
    """The coordinates of an element from its row-major position."""

def infinity(dtype: Any, span: Any = None) -> Any:
    """Positive infinity of a float dtype."""

def initialize_wgmma_descriptor(descriptor: Any, start_address: Any, layout_type_: Any = 0, leading_byte_offset: Any = 0, stride_byte_offset: Any = 0) -> Any:
    """Fills a WGMMA matrix descriptor (PTX ISA, wgmma matrix descriptor format)."""

int: Final[DType]
int16: Final[DType]
int16x16: Final[DType]
int16x2: Final[DType]
int16x32: Final[DType]
int16x4: Final[DType]
int16x64: Final[DType]
int16x8: Final[DType]
int32: Final[DType]
int32x16: Final[DType]
int32x2: Final[DType]
int32x32: Final[DType]
int32x4: Final[DType]
int32x64: Final[DType]
int32x8: Final[DType]
int4: Final[DType]
int4x16: Final[DType]
int4x2: Final[DType]
int4x32: Final[DType]
int4x4: Final[DType]
int4x64: Final[DType]
int4x8: Final[DType]
int64: Final[DType]
int64x16: Final[DType]
int64x2: Final[DType]
int64x32: Final[DType]
int64x4: Final[DType]
int64x64: Final[DType]
int64x8: Final[DType]
int8: Final[DType]
int8x16: Final[DType]
int8x2: Final[DType]
int8x32: Final[DType]
int8x4: Final[DType]
int8x64: Final[DType]
int8x8: Final[DType]
def isfinite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN."""

def isinf(x: Any) -> Any:
    """Whether x is infinite."""

def isnan(x: Any) -> Any:
    """Whether x is not a number."""

def launch_thread(thread: Any, extent: Any) -> Any:
    """Not part of the language: a raw thread axis. Threads come from `T.Kernel(…, threads=n)`."""

def ldexp(x: Any, exponent: Any) -> Any:
    """x * 2 ** exponent."""

def ldg128(src: Any, pred: Any = None) -> Any:
    """Reads 128 bits of global memory with one instruction (PTX ISA, ld.global)."""

def ldg256(src: Any, pred: Any = None) -> Any:
    """Reads 256 bits of global memory with one instruction (PTX ISA, ld.global)."""

def ldg32(src: Any, pred: Any = None) -> Any:
    """Reads 32 bits of global memory with one instruction (PTX ISA, ld.global)."""

def ldg64(src: Any, pred: Any = None) -> Any:
    """Reads 64 bits of global memory with one instruction (PTX ISA, ld.global)."""

def lds128(src: Any) -> Any:
    """Reads 128 bits of shared memory with one instruction (PTX ISA, ld.shared)."""

def lds32(src: Any) -> Any:
    """Reads 32 bits of shared memory with one instruction (PTX ISA, ld.shared)."""

def lds64(src: Any) -> Any:
    """Reads 64 bits of shared memory with one instruction (PTX ISA, ld.shared)."""

def likely(cond: Any, span: Any = None) -> Any:
    """The condition itself, marked as usually true."""

def log(x: Any) -> Any:
    """Natural logarithm."""

def log10(x: Any) -> Any:
    """Logarithm to base 10."""

def log1p(x: Any) -> Any:
    """Natural logarithm of 1 + x, exact near 0."""

def log2(x: Any) -> Any:
    """Logarithm to base 2."""

long: Final[DType]
def make_tensor(ptr: Any, shape: Any, dtype: Any = 'float32', strides: Any = None) -> Any:
    """A tensor over memory at an address."""

def match_all_sync(value: Any, mask: Any = 4294967295) -> Any:
    """All named lanes when they have one value, else 0 (PTX ISA, match.all.sync)."""

def match_any_sync(value: Any, mask: Any = 4294967295) -> Any:
    """The lanes that have the same value as this one (PTX ISA, match.any.sync)."""

def max(a: Any, b: Any) -> Any:
    """The larger of two values."""

def max2(x: Any, y: Any) -> Any:
    """Larger of x and y, for both lanes of a pair in one instruction."""

def max_value(dtype: Any, span: Any = None) -> Any:
    """The largest finite value of a dtype."""

def mbarrier_arrive(mbarrier: Any, cta_id: Any = None) -> Any:
    """Arrives once at an mbarrier, here or in another block of the cluster (mbarrier.arrive)."""

def mbarrier_arrive_expect_tx(mbarrier: Any, tx: Any) -> Any:
    """Announces bytes and arrives once (PTX ISA, mbarrier.arrive.expect_tx)."""

def mbarrier_expect_tx(mbarrier: Any, tx: Any) -> Any:
    """Announces bytes that the current phase also waits for (PTX ISA, mbarrier.expect_tx)."""

def mbarrier_wait_parity(mbarrier: Any, parity: Any) -> Any:
    """Waits until the phase of an mbarrier with this parity is over (PTX ISA, mbarrier.try_wait)."""

def min(a: Any, b: Any) -> Any:
    """The smaller of two values."""

def min2(x: Any, y: Any) -> Any:
    """Smaller of x and y, for both lanes of a pair in one instruction."""

def min_value(dtype: Any, span: Any = None) -> Any:
    """The smallest (most negative) finite value of a dtype."""

def mma_gemm_blockscaled(A: Any, B: Any, C: Any, SFA: Any, SFB: Any, transpose_A: Any = False, transpose_B: Any = False, policy: Any = ..., clear_accum: Any = False, *, k_start: Any, sf_a_granularity_k: Any, sf_b_granularity_k: Any, sf_layout: Any = None) -> None:
    """As `T.gemm_blockscaled`, with warp-level matrix instructions (PTX ISA, mma block_scale)."""

def mul2(x: Any, y: Any) -> Any:
    """X * y, for both lanes of a pair in one instruction."""

def nearbyint(x: Any, span: Any = None) -> Any:
    """Nearest integral value, ties to even."""

def nextafter(x: Any, y: Any) -> Any:
    """The next value after x toward y."""

def no_set_max_nreg() -> Any:
    """As `T.disable_warp_group_reg_alloc`."""

def parallel(start: Any, stop: Any = None, *, annotations: Any = None) -> Iterator[Any]:
    """A loop whose iterations are spread over CPU cores; elementwise loops are `T.Parallel`."""

def pdl_sync() -> Any:
    """Waits for the kernel before this one (PTX ISA, griddepcontrol.wait)."""

def pdl_trigger() -> Any:
    """Lets the kernel after this one start (PTX ISA, griddepcontrol.launch_dependents)."""

def popcount(x: Any) -> Any:
    """How many bits are set."""

def pow(x: Any, y: Any, span: Any = None) -> Any:
    """x to the power of y."""

def power(x: Any, y: Any, span: Any = None) -> Any:
    """x to the power of y, as `T.pow`."""

def print(obj: Any = None, msg: Any = '', warp_group_id: Any = 0, warp_id: Any = 0) -> Any:
    """Prints a value, a whole buffer (by one thread) or a message from the device."""

def ptx_arrive_barrier(barrier_id: Any) -> Any:
    """Arrives once at an mbarrier (PTX ISA, mbarrier.arrive)."""

def ptx_commit_group() -> Any:
    """Closes a group of cp.async (PTX ISA, cp.async.commit_group)."""

def ptx_cp_async(dst_access_ptr: Any, src_access_ptr: Any, num_elems: Any, predicate: Any = None) -> Any:
    """Starts copying a few elements from global to shared memory (PTX ISA, cp.async)."""

def ptx_fence_barrier_init() -> Any:
    """Makes initialised mbarriers visible to the cluster (PTX ISA, fence.mbarrier_init)."""

def ptx_init_barrier_thread_count(barrier_id: Any, thread_count: Any) -> Any:
    """Initialises an mbarrier by hand (PTX ISA, mbarrier.init); `T.alloc_barrier` does it for you."""

def ptx_wait_group(num: Any) -> Any:
    """Waits until at most `num` groups of cp.async are in flight (PTX ISA, cp.async.wait_group)."""

def ptx_wgmma_ss(dtype: Any, wgmma_prefix: Any, a_is_k_major: Any, b_is_k_major: Any, a_dtype_abbrv: Any, b_dtype_abbrv: Any, accum_dtype_abbrv: Any, A_desc: Any, A_offset: Any, B_desc: Any, B_offset: Any, C_data: Any, C_offset: Any, scale_out: Any, scale_in_a: Any, scale_in_b: Any) -> Any:
    """One WGMMA with both operands in shared memory (PTX ISA, wgmma.mma_async)."""

def reciprocal(x: Any) -> Any:
    """1 / x."""

def reduce(buffer: Any, out: Any, reduce_type: Any, dim: Any = -1, clear: Any = True, batch: Any = 1, nan_propagate: Any = False, annotations: Any = None) -> None:
    """Reduces one dimension of a tile; `T.reduce_sum` and its like name the kind."""

def reduce_absmax(buffer: Any, out: Any, dim: Any = -1, clear: Any = True, batch: Any = 1, nan_propagate: Any = False, annotations: Any = None) -> None:
    """The largest absolute value along one dimension: `out[i] = max(abs(buffer[i, :]))`."""

def reduce_abssum(buffer: Any, out: Any, dim: Any = -1, batch: Any = 1, annotations: Any = None) -> None:
    """Sums absolute values along one dimension: `out[i] = sum(abs(buffer[i, :]))`."""

def reduce_bitand(buffer: Any, out: Any, dim: Any = -1, clear: Any = True, batch: Any = 1, annotations: Any = None) -> None:
    """Bitwise and along one dimension of integers."""

def reduce_bitor(buffer: Any, out: Any, dim: Any = -1, clear: Any = True, batch: Any = 1, annotations: Any = None) -> None:
    """Bitwise or along one dimension of integers."""

def reduce_bitxor(buffer: Any, out: Any, dim: Any = -1, clear: Any = True, batch: Any = 1, annotations: Any = None) -> None:
    """Bitwise exclusive or along one dimension of integers."""

def reduce_max(buffer: Any, out: Any, dim: Any = -1, clear: Any = True, batch: Any = 1, nan_propagate: Any = False, annotations: Any = None) -> None:
    """The largest element along one dimension: `out[i] = max(buffer[i, :])`."""

def reduce_min(buffer: Any, out: Any, dim: Any = -1, clear: Any = True, batch: Any = 1, nan_propagate: Any = False, annotations: Any = None) -> None:
    """The smallest element along one dimension: `out[i] = min(buffer[i, :])`."""

def reduce_sum(buffer: Any, out: Any, dim: Any = -1, clear: Any = True, batch: Any = 1, annotations: Any = None) -> None:
    """Sums along one dimension: `out[i] = sum(buffer[i, :])`."""

def reducer_init(reducer: Any, init: Any = None) -> None:
    """Starts accumulating into a reducer; every element begins at the neutral value."""

def reducer_update(target: Any, value: Any) -> Any:
    """Contributes `value` to one element, once per iteration of the enclosing `T.Parallel`."""

def reinterpret(value: Any, dtype: Any, span: Any = None) -> Any:
    """The same bits as another dtype of the same width."""

def reshape(src: Any, shape: Any) -> Buffer:
    """The same elements in row-major order under another shape; nothing moves."""

def rint(x: Any, span: Any = None) -> Any:
    """Nearest integral value, ties to even."""

def rng_init(seed: Any, seq: Any = None, off: Any = 0, generator: Any = 'curandStatePhilox4_32_10_t') -> Any:
    """Starts the random number generator of this thread (cuRAND, curand_init)."""

def rng_rand() -> Any:
    """32 random bits (cuRAND, curand); uint32."""

def rng_rand_float(bit: Any = 32, dist: Any = 'uniform') -> Any:
    """A random float (cuRAND, curand_uniform and curand_normal)."""

def round(x: Any, rounding_mode: Any = 'ties-to-even', span: Any = None) -> Any:
    """Nearest integral value, as a value of the same dtype."""

def rsqrt(x: Any) -> Any:
    """Reciprocal square root."""

def serial(start: Any, stop: Any = None, step: Any = None, *, annotations: Any = None) -> Iterator[Any]:
    """A sequential loop over `[start, stop)`, or `[0, start)`; `range` is the same."""

def set_max_nreg(reg_count: Any, is_inc: Any) -> Any:
    """Changes how many registers this warp group has (PTX ISA, setmaxnreg)."""

def shfl_down(value: Any, delta: Any, width: Any = 32, mask: Any = 4294967295) -> Any:
    """The value of the lane `delta` above (PTX ISA, shfl.sync.down)."""

def shfl_sync(value: Any, src_lane: Any, width: Any = 32, mask: Any = 4294967295) -> Any:
    """The value another lane has (PTX ISA, shfl.sync.idx)."""

def shfl_up(value: Any, delta: Any, width: Any = 32, mask: Any = 4294967295) -> Any:
    """The value of the lane `delta` below (PTX ISA, shfl.sync.up)."""

def shfl_xor(value: Any, lane_mask: Any, width: Any = 32, mask: Any = 4294967295) -> Any:
    """The value of the lane whose number differs in the bits of `lane_mask` (shfl.sync.bfly)."""

def shift_left(x: Any, y: Any, span: Any = None) -> Any:
    """`x << y`."""

def shift_right(x: Any, y: Any, span: Any = None) -> Any:
    """`x >> y`; arithmetic for signed, logical for unsigned integers."""

short: Final[DType]
def shuffle_elect(thread_extent: Any) -> Any:
    """True in exactly one thread of each group (PTX ISA, elect.sync)."""

def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""

def sin(x: Any) -> Any:
    """Sine of x in radians."""

def sinh(x: Any) -> Any:
    """Hyperbolic sine."""

def sqrt(x: Any) -> Any:
    """Square root."""

def stg128(dst: Any, value: Any, pred: Any = None) -> Any:
    """Writes 128 bits of global memory with one instruction (PTX ISA, st.global)."""

def stg256(dst: Any, value: Any, pred: Any = None) -> Any:
    """Writes 256 bits of global memory with one instruction (PTX ISA, st.global)."""

def stg32(dst: Any, value: Any, pred: Any = None) -> Any:
    """Writes 32 bits of global memory with one instruction (PTX ISA, st.global)."""

def stg64(dst: Any, value: Any, pred: Any = None) -> Any:
    """Writes 64 bits of global memory with one instruction (PTX ISA, st.global)."""

def sts128(dst: Any, value: Any) -> Any:
    """Writes 128 bits of shared memory with one instruction (PTX ISA, st.shared)."""

def sts32(dst: Any, value: Any) -> Any:
    """Writes 32 bits of shared memory with one instruction (PTX ISA, st.shared)."""

def sts64(dst: Any, value: Any) -> Any:
    """Writes 64 bits of shared memory with one instruction (PTX ISA, st.shared)."""

def sub2(x: Any, y: Any) -> Any:
    """X - y, for both lanes of a pair in one instruction."""

def symbolic(name: Any, dtype: Any = 'int32') -> Any:
    """The old spelling of `T.dynamic`."""

def sync_global() -> Any:
    """Deprecated spelling of `T.sync_grid`."""

def sync_grid() -> Any:
    """Waits until all threads of all blocks are here; the launch becomes cooperative."""

def sync_threads(barrier_id: Any = None, arrive_count: Any = None) -> Any:
    """Waits until all threads of the block are here (PTX ISA, bar.sync)."""

def sync_warp(mask: Any = None) -> Any:
    """Waits until the named lanes of the warp are here (PTX ISA, bar.warp.sync)."""

def syncthreads_and(predicate: Any) -> Any:
    """Barrier of the block; whether the predicate held in all threads (PTX ISA, barrier.red.and)."""

def syncthreads_count(predicate: Any) -> Any:
    """Barrier of the block; in how many threads the predicate held (PTX ISA, barrier.red.popc)."""

def syncthreads_or(predicate: Any) -> Any:
    """Barrier of the block; whether the predicate held in any thread (PTX ISA, barrier.red.or)."""

def tan(x: Any) -> Any:
    """Tangent of x in radians."""

def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""

def tcgen05_after_thread_sync() -> Any:
    """Orders tcgen05 work after the last barrier (PTX ISA, tcgen05.fence::after_thread_sync)."""

def tcgen05_before_thread_sync() -> Any:
    """Orders tcgen05 work before the next barrier (PTX ISA, tcgen05.fence::before_thread_sync)."""

def tcgen05_cp_warpx4(smem_src: Any, tmem_dst: Any, tmem_col_offset: Any = 0, *, use_2cta: Any = False) -> Any:
    """Copies scale factors to tensor memory, for all four warps (PTX ISA, tcgen05.cp .warpx4)."""

def tcgen05_gemm(A: Any, B: Any, C: Any, transpose_A: Any = False, transpose_B: Any = False, policy: Any = ..., clear_accum: Any = False, *, mbar: Any, use_2cta: Any = False, annotations: Any = None) -> None:
    """As `T.gemm`, but asynchronous and into tensor memory (PTX ISA, tcgen05.mma)."""

def tcgen05_gemm_blockscaled(A: Any, B: Any, C: Any, SFA_tmem: Any, SFB_tmem: Any, transpose_A: Any = False, transpose_B: Any = False, clear_accum: Any = False, wg_wait: Any = 0, mbar: Any = None, *, k_start: Any, sf_a_granularity_k: Any, sf_b_granularity_k: Any, use_2cta: Any = False) -> None:
    """As `T.gemm_blockscaled`, asynchronous and into tensor memory (PTX ISA, tcgen05.mma)."""

def tcgen05_mma_arrive(mbar: Any, arrive_2cta: Any = False) -> Any:
    """Arrives at an mbarrier when the tcgen05 work so far is done (PTX ISA, tcgen05.commit)."""

def tcgen05_sf_warp_transpose(smem_src: Any) -> Any:
    """Reorders scale factors in shared memory into the order tcgen05.cp expects."""

tfloat32: Final[DType]
tfloat32x16: Final[DType]
tfloat32x2: Final[DType]
tfloat32x32: Final[DType]
tfloat32x4: Final[DType]
tfloat32x64: Final[DType]
tfloat32x8: Final[DType]
def thread_binding(start: Any, stop: Any = None, thread: Any = None, *, annotations: Any = None) -> Iterator[Any]:
    """A loop whose iterations are the threads of one launch axis."""

def thread_return() -> Any:
    """Ends this thread; `return` cannot be used inside device branches."""

def tma_copy(src: Any, dst: Any, *, barrier: Any = None, cluster_mask: Any = None, leader_scope_threads: Any = None, eviction_policy: Any = None, annotations: Any = None) -> None:
    """Starts a bulk tensor copy (PTX ISA, cp.async.bulk.tensor) and does not wait."""

def tma_load(*args: Any) -> Any:
    """One bulk tensor load by hand (PTX ISA, cp.async.bulk.tensor); `T.tma_copy` is the tile form."""

def tma_store(*args: Any) -> Any:
    """One bulk tensor store by hand (PTX ISA, cp.async.bulk.tensor); `T.tma_copy` is the tile form."""

def tma_store_arrive() -> Any:
    """Closes a group of bulk stores (PTX ISA, cp.async.bulk.commit_group)."""

def tma_store_wait(count: Any = 0, read: Any = True) -> Any:
    """Waits until at most `count` groups of bulk stores are in flight (cp.async.bulk.wait_group)."""

def transpose(src: Any, dst: Any, annotations: Any = None) -> None:
    """Copies with the last two dimensions swapped: `dst[..., j, i] = src[..., i, j]`."""

def trunc(x: Any, span: Any = None) -> Any:
    """X without its fraction."""

def truncdiv(a: Any, b: Any, span: Any = None) -> Any:
    """Division rounded toward 0, as C's `/`."""

def truncmod(a: Any, b: Any, span: Any = None) -> Any:
    """Remainder with the sign of `a`, as C's `%`."""

def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any = 3) -> Any:
    """A pointer into a buffer by flat offset; `T.access_ptr` is the readable form."""

def tvm_storage_sync(scope: Any = 'shared') -> Any:
    """Waits until all threads of the block see the writes to a memory scope."""

def tvm_thread_allreduce(size: Any, value: Any, predicate: Any, destination: Any, *axes: Any, dtype: Any = 'handle') -> Any:
    """Combines the values of the threads along axes of the block; all of them get the result."""

uchar: Final[DType]
uint: Final[DType]
uint1: Final[DType]
uint16: Final[DType]
uint16x16: Final[DType]
uint16x2: Final[DType]
uint16x32: Final[DType]
uint16x4: Final[DType]
uint16x64: Final[DType]
uint16x8: Final[DType]
uint1x16: Final[DType]
uint1x2: Final[DType]
uint1x32: Final[DType]
uint1x4: Final[DType]
uint1x64: Final[DType]
uint1x8: Final[DType]
uint2: Final[DType]
uint2x16: Final[DType]
uint2x2: Final[DType]
uint2x32: Final[DType]
uint2x4: Final[DType]
uint2x64: Final[DType]
uint2x8: Final[DType]
uint32: Final[DType]
uint32x16: Final[DType]
uint32x2: Final[DType]
uint32x32: Final[DType]
uint32x4: Final[DType]
uint32x64: Final[DType]
uint32x8: Final[DType]
uint4: Final[DType]
uint4x16: Final[DType]
uint4x2: Final[DType]
uint4x32: Final[DType]
uint4x4: Final[DType]
uint4x64: Final[DType]
uint4x8: Final[DType]
uint64: Final[DType]
uint64x16: Final[DType]
uint64x2: Final[DType]
uint64x32: Final[DType]
uint64x4: Final[DType]
uint64x64: Final[DType]
uint64x8: Final[DType]
uint8: Final[DType]
uint8x16: Final[DType]
uint8x2: Final[DType]
uint8x32: Final[DType]
uint8x4: Final[DType]
uint8x64: Final[DType]
uint8x8: Final[DType]
ulong: Final[DType]
def unroll(start: Any, stop: Any = None, step: Any = None, *, explicit: Any = False, unroll_factor: Any = None, annotations: Any = None) -> Iterator[Any]:
    """A loop the target unrolls; `explicit` unrolls before planning."""

def use_swizzle(panel_size: Any, order: Any = 'row', enable: Any = True) -> Any:
    """Launches blocks in panels, so that neighbours in time share rows and columns in L2."""

ushort: Final[DType]
def vectorized(start: Any, stop: Any = None, *, annotations: Any = None) -> Iterator[Any]:
    """A loop emitted as one vector operation; the extent is a constant."""

def view(src: Any, shape: Any = None, dtype: Any = None, strides: Any = None) -> Buffer:
    """The same bytes under another shape, dtype or strides; nothing moves."""

def wait_wgmma(id: Any) -> Any:
    """Waits until at most `id` groups of WGMMA are in flight (PTX ISA, wgmma.wait_group)."""

def warp_reduce_bitand(value: Any, logical_width: Any = None) -> Any:
    """Bitwise and over the lanes of a warp, known to all of them."""

def warp_reduce_bitor(value: Any, logical_width: Any = None) -> Any:
    """Bitwise or over the lanes of a warp, known to all of them."""

def warp_reduce_bitxor(value: Any, logical_width: Any = None) -> Any:
    """Bitwise exclusive or over the lanes of a warp, known to all of them."""

def warp_reduce_max(value: Any, logical_width: Any = None) -> Any:
    """The largest value of the lanes of a warp, known to all of them."""

def warp_reduce_min(value: Any, logical_width: Any = None) -> Any:
    """The smallest value of the lanes of a warp, known to all of them."""

def warp_reduce_sum(value: Any, logical_width: Any = None) -> Any:
    """The sum over the lanes of a warp, known to all of them."""

def warpgroup_arrive() -> Any:
    """Orders register writes before the next WGMMA (PTX ISA, wgmma.fence)."""

def warpgroup_commit_batch() -> Any:
    """Closes a group of WGMMA (PTX ISA, wgmma.commit_group)."""

def warpgroup_fence_operand(buffer_or_ptr: Any, offset: Any = 0, num_regs: Any = None, dtype: Any = None) -> Any:
    """Keeps accumulator registers in place between WGMMAs."""

def warpgroup_wait(num_mma: Any) -> Any:
    """As `T.wait_wgmma`."""

def wgmma_gemm(A: Any, B: Any, C: Any, transpose_A: Any = False, transpose_B: Any = False, policy: Any = ..., clear_accum: Any = False, annotations: Any = None) -> None:
    """As `T.gemm`, but asynchronous WGMMA (PTX ISA, wgmma.mma_async); wait with `T.wait_wgmma`."""

def ws(*warp_group_idx: Any) -> _Frame:
    """`with T.ws(0):` the body is for these 128-thread warp groups only."""

def ws_op(op_id: Any) -> _Frame:
    """`with T.ws_op(T.WSID("name")):` names statements for a schedule."""


__all__ = [
    "And",
    "Buffer",
    "CUDASourceCodeKernel",
    "Cast",
    "ClusterKernel",
    "DType",
    "Fragment",
    "FragmentBuffer",
    "GemmWarpPolicy",
    "Kernel",
    "Layout",
    "LocalBuffer",
    "Not",
    "Or",
    "Parallel",
    "Persistent",
    "PersistentTileScheduler",
    "Pipelined",
    "PrimFunc",
    "Ref",
    "Select",
    "SharedBuffer",
    "StridedTensor",
    "Tensor",
    "WSID",
    "WSPipeline",
    "WSRole",
    "WSSchedule",
    "WSScope",
    "WSSync",
    "__cos",
    "__exp",
    "__exp10",
    "__log",
    "__log10",
    "__log2",
    "__sin",
    "__tan",
    "abs",
    "abs2",
    "access_ptr",
    "acos",
    "acosh",
    "activemask",
    "add2",
    "address_of",
    "all",
    "all_of",
    "all_sync",
    "alloc_barrier",
    "alloc_cluster_barrier",
    "alloc_fragment",
    "alloc_global",
    "alloc_local",
    "alloc_reducer",
    "alloc_shared",
    "alloc_tmem",
    "alloc_var",
    "alloc_wgmma_desc",
    "annotate_compile_flags",
    "annotate_consumer_reg_alloc",
    "annotate_l2_hit_ratio",
    "annotate_layout",
    "annotate_pass_configs",
    "annotate_producer_reg_dealloc",
    "annotate_restrict_buffers",
    "annotate_safe_value",
    "annotate_ws_pipeline_depth",
    "annotate_ws_schedule",
    "any",
    "any_of",
    "any_sync",
    "asin",
    "asinh",
    "assume",
    "async_copy",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "atomic_addx2",
    "atomic_addx4",
    "atomic_and",
    "atomic_load",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_store",
    "atomic_xor",
    "attr",
    "ballot",
    "ballot_sync",
    "barrier_arrive",
    "barrier_wait",
    "bf16",
    "bfloat16",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "block_rank_in_cluster",
    "bool",
    "call_extern",
    "call_intrin",
    "call_pure_extern",
    "cast",
    "cbrt",
    "ceil",
    "ceildiv",
    "char",
    "clamp",
    "clc_get_first_ctaid_x",
    "clc_is_canceled",
    "clc_try_cancel",
    "clc_try_cancel_multicast",
    "clear",
    "cluster_arrive",
    "cluster_sync",
    "cluster_wait",
    "clz",
    "comm_reducer",
    "const",
    "copy",
    "copy_cluster",
    "copysign",
    "cos",
    "cosh",
    "cp_async_barrier_noinc",
    "cummax",
    "cumsum",
    "deallocate_tmem",
    "device_assert",
    "disable_warp_group_reg_alloc",
    "double",
    "dp4a",
    "dtype",
    "dynamic",
    "empty",
    "erf",
    "evaluate",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "extract_lane",
    "fabs",
    "fence_proxy_async",
    "fill",
    "finalize_reducer",
    "float",
    "float16",
    "float32",
    "float4_e2m1_unpacked",
    "float4_e2m1fn",
    "float64",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "floor",
    "floordiv",
    "floormod",
    "fma",
    "fma2",
    "fmod",
    "fp16",
    "fp32",
    "fp8",
    "func_attr",
    "gemm",
    "gemm_blockscaled",
    "gemm_sp",
    "get_block_binding",
    "get_block_bindings",
    "get_cluster_dims",
    "get_cluster_extent",
    "get_cluster_id",
    "get_cluster_size",
    "get_lane_idx",
    "get_thread_binding",
    "get_thread_bindings",
    "get_thread_extent",
    "get_warp_group_idx",
    "get_warp_idx",
    "get_warp_idx_sync",
    "grid",
    "half",
    "handle",
    "hypot",
    "ieee_add",
    "ieee_fdiv",
    "ieee_fmaf",
    "ieee_frcp",
    "ieee_frsqrt",
    "ieee_fsqrt",
    "ieee_mul",
    "ieee_sub",
    "if_then_else",
    "im2col",
    "import_source",
    "index_to_coordinates",
    "infinity",
    "initialize_wgmma_descriptor",
    "int",
    "int16",
    "int32",
    "int4",
    "int64",
    "int8",
    "isfinite",
    "isinf",
    "isnan",
    "launch_thread",
    "ldexp",
    "ldg128",
    "ldg256",
    "ldg32",
    "ldg64",
    "lds128",
    "lds32",
    "lds64",
    "likely",
    "log",
    "log10",
    "log1p",
    "log2",
    "long",
    "macro",
    "make_tensor",
    "match_all_sync",
    "match_any_sync",
    "max",
    "max2",
    "max_value",
    "mbarrier_arrive",
    "mbarrier_arrive_expect_tx",
    "mbarrier_expect_tx",
    "mbarrier_wait_parity",
    "min",
    "min2",
    "min_value",
    "mma_gemm_blockscaled",
    "mul2",
    "nearbyint",
    "nextafter",
    "no_set_max_nreg",
    "parallel",
    "pdl_sync",
    "pdl_trigger",
    "popcount",
    "pow",
    "power",
    "prim_func",
    "print",
    "ptr",
    "ptx_arrive_barrier",
    "ptx_commit_group",
    "ptx_cp_async",
    "ptx_fence_barrier_init",
    "ptx_init_barrier_thread_count",
    "ptx_wait_group",
    "ptx_wgmma_ss",
    "reciprocal",
    "reduce",
    "reduce_absmax",
    "reduce_abssum",
    "reduce_bitand",
    "reduce_bitor",
    "reduce_bitxor",
    "reduce_max",
    "reduce_min",
    "reduce_sum",
    "reducer_init",
    "reducer_update",
    "reinterpret",
    "reshape",
    "rint",
    "rng_init",
    "rng_rand",
    "rng_rand_float",
    "round",
    "rsqrt",
    "serial",
    "set_max_nreg",
    "shfl_down",
    "shfl_sync",
    "shfl_up",
    "shfl_xor",
    "shift_left",
    "shift_right",
    "short",
    "shuffle_elect",
    "sigmoid",
    "sin",
    "sinh",
    "sqrt",
    "stg128",
    "stg256",
    "stg32",
    "stg64",
    "sts128",
    "sts32",
    "sts64",
    "sub2",
    "symbolic",
    "sync_global",
    "sync_grid",
    "sync_threads",
    "sync_warp",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "tan",
    "tanh",
    "tcgen05_after_thread_sync",
    "tcgen05_before_thread_sync",
    "tcgen05_cp_warpx4",
    "tcgen05_gemm",
    "tcgen05_gemm_blockscaled",
    "tcgen05_mma_arrive",
    "tcgen05_sf_warp_transpose",
    "tfloat32",
    "thread_binding",
    "thread_return",
    "tma_copy",
    "tma_load",
    "tma_store",
    "tma_store_arrive",
    "tma_store_wait",
    "transpose",
    "trunc",
    "truncdiv",
    "truncmod",
    "tvm_access_ptr",
    "tvm_storage_sync",
    "tvm_thread_allreduce",
    "types",
    "uchar",
    "uint",
    "uint1",
    "uint16",
    "uint2",
    "uint32",
    "uint4",
    "uint64",
    "uint8",
    "ulong",
    "unroll",
    "use_swizzle",
    "ushort",
    "vectorized",
    "view",
    "wait_wgmma",
    "warp_reduce_bitand",
    "warp_reduce_bitor",
    "warp_reduce_bitxor",
    "warp_reduce_max",
    "warp_reduce_min",
    "warp_reduce_sum",
    "warpgroup_arrive",
    "warpgroup_commit_batch",
    "warpgroup_fence_operand",
    "warpgroup_wait",
    "wgmma_gemm",
    "ws",
    "ws_op",
]
