"""Which kernels can be put in whole? A name, what it is, and the text; see `snippets.py`."""

from __future__ import annotations

from typing import Final

_KERNEL: Final = """@{tilelang}.jit
def ${1:kernel}(A, ${2:block_M}=64, ${3:block_N}=64):
    M, N = {T}.const("M, N")
    A: {T}.Tensor((M, N), {T}.float16)
    B = {T}.empty((M, N), {T}.float16)
    with {T}.Kernel({T}.ceildiv(N, $3), {T}.ceildiv(M, $2), threads=128) as (bx, by):
        tile = {T}.alloc_shared(($2, $3), {T}.float16)
        {T}.copy(A[by * $2, bx * $3], tile)
        {T}.copy(tile, B[by * $2, bx * $3])
    return B
$0"""

_FACTORY: Final = """@{tilelang}.jit(out_idx=[-1])
def ${1:copy}(M, N, block_M=64, block_N=64, dtype={T}.float16):
    @{T}.prim_func
    def main(A: {T}.Tensor((M, N), dtype), B: {T}.Tensor((M, N), dtype)):
        with {T}.Kernel({T}.ceildiv(N, block_N), {T}.ceildiv(M, block_M), threads=128) as (bx, by):
            tile = {T}.alloc_shared((block_M, block_N), dtype)
            {T}.copy(A[by * block_M, bx * block_N], tile)
            {T}.copy(tile, B[by * block_M, bx * block_N])

    return main
$0"""

_ELEMENTWISE: Final = """@{tilelang}.jit
def ${1:add}(A, B, block_M=64, block_N=64):
    M, N = {T}.const("M, N")
    A: {T}.Tensor((M, N), {T}.float32)
    B: {T}.Tensor((M, N), {T}.float32)
    C = {T}.empty((M, N), {T}.float32)
    with {T}.Kernel({T}.ceildiv(N, block_N), {T}.ceildiv(M, block_M), threads=128) as (bx, by):
        for i, j in {T}.Parallel(block_M, block_N):
            y, x = by * block_M + i, bx * block_N + j
            C[y, x] = ${2:A[y, x] + B[y, x]}
    return C
$0"""

_GEMM: Final = """@{tilelang}.jit
def ${1:matmul}(A, B, block_M=${2:128}, block_N=${3:128}, block_K=${4:32}, num_stages=${5:3}):
    M, N, K = {T}.const("M, N, K")
    A: {T}.Tensor((M, K), {T}.float16)
    B: {T}.Tensor((K, N), {T}.float16)
    C = {T}.empty((M, N), {T}.float16)
    with {T}.Kernel({T}.ceildiv(N, block_N), {T}.ceildiv(M, block_M), threads=128) as (bx, by):
        A_shared = {T}.alloc_shared((block_M, block_K), {T}.float16)
        B_shared = {T}.alloc_shared((block_K, block_N), {T}.float16)
        C_local = {T}.alloc_fragment((block_M, block_N), {T}.float32)
        {T}.clear(C_local)
        for k in {T}.Pipelined({T}.ceildiv(K, block_K), num_stages=num_stages):
            {T}.copy(A[by * block_M, k * block_K], A_shared)
            {T}.copy(B[k * block_K, bx * block_N], B_shared)
            {T}.gemm(A_shared, B_shared, C_local)
        {T}.copy(C_local, C[by * block_M, bx * block_N])
    return C
$0"""

_SPLIT_K: Final = """@{tilelang}.jit
def ${1:matmul_split_k}(A, B, C, split=${2:4}, block_M=64, block_N=64, block_K=32):
    # C holds zeros at first: every part of K adds to it.
    M, N, K = {T}.const("M, N, K")
    A: {T}.Tensor((M, K), {T}.float16)
    B: {T}.Tensor((K, N), {T}.float16)
    C: {T}.Tensor((M, N), {T}.float32)
    tiles = {T}.ceildiv(K, block_K * split)
    with {T}.Kernel({T}.ceildiv(N, block_N), {T}.ceildiv(M, block_M), split, threads=128) as (
        bx, by, bz,
    ):
        A_shared = {T}.alloc_shared((block_M, block_K), {T}.float16)
        B_shared = {T}.alloc_shared((block_K, block_N), {T}.float16)
        C_local = {T}.alloc_fragment((block_M, block_N), {T}.float32)
        {T}.clear(C_local)
        for k in {T}.Pipelined(tiles, num_stages=${3:3}):
            start = (bz * tiles + k) * block_K
            {T}.copy(A[by * block_M, start], A_shared)
            {T}.copy(B[start, bx * block_N], B_shared)
            {T}.gemm(A_shared, B_shared, C_local)
        {T}.atomic_add(C[by * block_M, bx * block_N], C_local)
$0"""

_REDUCTION: Final = """@{tilelang}.jit
def ${1:row_sum}(A, block_M=32, block_N=${2:128}):
    M, N = {T}.const("M, N")
    A: {T}.Tensor((M, N), {T}.float32)
    B = {T}.empty((M,), {T}.float32)
    with {T}.Kernel({T}.ceildiv(M, block_M), threads=128) as bx:
        tile = {T}.alloc_shared((block_M, block_N), {T}.float32)
        values = {T}.alloc_fragment((block_M, block_N), {T}.float32)
        total = {T}.alloc_fragment((block_M,), {T}.float32)
        {T}.clear(total)
        for k in {T}.Pipelined({T}.ceildiv(N, block_N), num_stages=2):
            {T}.copy(A[bx * block_M, k * block_N], tile)
            {T}.copy(tile, values)
            {T}.reduce_sum(values, total, dim=1, clear=False)
        {T}.copy(total, B[bx * block_M])
    return B
$0"""

_SOFTMAX: Final = """@{tilelang}.jit
def ${1:softmax}(A, block_M=${2:16}):
    M, N = {T}.const("M, N")
    A: {T}.Tensor((M, N), {T}.float32)
    B = {T}.empty((M, N), {T}.float32)
    with {T}.Kernel({T}.ceildiv(M, block_M), threads=128) as bx:
        rows = {T}.alloc_fragment((block_M, N), {T}.float32)
        peak = {T}.alloc_fragment((block_M,), {T}.float32)
        total = {T}.alloc_fragment((block_M,), {T}.float32)
        {T}.copy(A[bx * block_M, 0], rows)
        {T}.reduce_max(rows, peak, dim=1)
        for i, j in {T}.Parallel(block_M, N):
            rows[i, j] = {T}.exp(rows[i, j] - peak[i])
        {T}.reduce_sum(rows, total, dim=1)
        for i, j in {T}.Parallel(block_M, N):
            rows[i, j] = rows[i, j] / total[i]
        {T}.copy(rows, B[bx * block_M, 0])
    return B
$0"""

_ATTENTION: Final = """@{tilelang}.jit
def ${1:attention}(Q, K, V, block_M=64, block_N=64, num_stages=${2:2}):
    batch, heads, seq_len, dim = {T}.const("batch, heads, seq_len, dim")
    Q: {T}.Tensor((batch, heads, seq_len, dim), {T}.float16)
    K: {T}.Tensor((batch, heads, seq_len, dim), {T}.float16)
    V: {T}.Tensor((batch, heads, seq_len, dim), {T}.float16)
    O = {T}.empty((batch, heads, seq_len, dim), {T}.float16)
    scale = 1.44269504 / dim**0.5  # exp(x) is exp2(x * log2(e))
    with {T}.Kernel({T}.ceildiv(seq_len, block_M), heads, batch, threads=128) as (bx, by, bz):
        Q_shared = {T}.alloc_shared((block_M, dim), {T}.float16)
        K_shared = {T}.alloc_shared((block_N, dim), {T}.float16)
        V_shared = {T}.alloc_shared((block_N, dim), {T}.float16)
        scores = {T}.alloc_fragment((block_M, block_N), {T}.float32)
        weights = {T}.alloc_fragment((block_M, block_N), {T}.float16)
        out = {T}.alloc_fragment((block_M, dim), {T}.float32)
        peak = {T}.alloc_fragment((block_M,), {T}.float32)
        old_peak = {T}.alloc_fragment((block_M,), {T}.float32)
        shrink = {T}.alloc_fragment((block_M,), {T}.float32)
        block_sum = {T}.alloc_fragment((block_M,), {T}.float32)
        total = {T}.alloc_fragment((block_M,), {T}.float32)
        {T}.copy(Q[bz, by, bx * block_M, 0], Q_shared)
        {T}.clear(out)
        {T}.clear(total)
        {T}.fill(peak, -1e30)
        for k in {T}.Pipelined({T}.ceildiv(seq_len, block_N), num_stages=num_stages):
            {T}.copy(K[bz, by, k * block_N, 0], K_shared)
            {T}.copy(V[bz, by, k * block_N, 0], V_shared)
            for i, j in {T}.Parallel(block_M, block_N):
                inside = k * block_N + j < seq_len
                scores[i, j] = {T}.if_then_else(inside, 0, -{T}.infinity("float32"))
            {T}.gemm(
                Q_shared, K_shared, scores, transpose_B=True, policy={T}.GemmWarpPolicy.FullRow
            )
            {T}.copy(peak, old_peak)
            {T}.reduce_max(scores, peak, dim=1, clear=False)
            for i in {T}.Parallel(block_M):
                shrink[i] = {T}.exp2((old_peak[i] - peak[i]) * scale)
            for i, j in {T}.Parallel(block_M, block_N):
                scores[i, j] = {T}.exp2((scores[i, j] - peak[i]) * scale)
            {T}.reduce_sum(scores, block_sum, dim=1)
            for i in {T}.Parallel(block_M):
                total[i] = total[i] * shrink[i] + block_sum[i]
            for i, j in {T}.Parallel(block_M, dim):
                out[i, j] = out[i, j] * shrink[i]
            {T}.copy(scores, weights)
            {T}.gemm(weights, V_shared, out, policy={T}.GemmWarpPolicy.FullRow)
        for i, j in {T}.Parallel(block_M, dim):
            out[i, j] = out[i, j] / total[i]
        {T}.copy(out, O[bz, by, bx * block_M, 0])
    return O
$0"""

WHOLE: Final = (
    ("kernel", "an eager kernel of its own", _KERNEL),
    ("kernel_factory", "a function that makes a kernel for given sizes", _FACTORY),
    ("elementwise", "an operation on each element of tensors", _ELEMENTWISE),
    ("gemm", "a whole pipelined matrix product", _GEMM),
    ("gemm_split_k", "a matrix product whose K is split over blocks", _SPLIT_K),
    ("row_reduction", "the sum of each row, in a pipeline", _REDUCTION),
    ("softmax_rows", "the softmax of each row", _SOFTMAX),
    ("flash_attention", "attention by an online softmax", _ATTENTION),
    ("macro", "a macro", "@{T}.macro\ndef ${1:name}(${2:buffer}):\n    $0"),
)
