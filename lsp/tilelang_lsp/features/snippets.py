"""Which whole patterns can be put in? Each compiles as it stands, once its names fit.

`{T}` becomes the file's own name for the language; `$1` and `${1:text}` are the places to fill in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Snippet:
    """A pattern: `name` is what is typed, `where` a statement inside a launch, or a definition."""

    name: str
    about: str
    where: str
    text: str


SNIPPETS: Final = (
    Snippet(
        "kernel", "an eager kernel of its own", "top",
        """@tilelang.jit
def ${1:kernel}(A, ${2:block_M}=64, ${3:block_N}=64):
    M, N = {T}.const("M, N")
    A: {T}.Tensor((M, N), {T}.float16)
    B = {T}.empty((M, N), {T}.float16)
    with {T}.Kernel({T}.ceildiv(N, $3), {T}.ceildiv(M, $2), threads=128) as (bx, by):
        tile = {T}.alloc_shared(($2, $3), {T}.float16)
        {T}.copy(A[by * $2, bx * $3], tile)
        {T}.copy(tile, B[by * $2, bx * $3])
    return B
$0""",
    ),
    Snippet(
        "gemm_loop", "a pipelined GEMM loop", "launch",
        """{T}.clear(${3:C_local})
for k in {T}.Pipelined({T}.ceildiv(${4:K}, ${5:block_K}), num_stages=${6:3}):
    {T}.copy(${1:A}[${7:by * block_M}, k * $5], ${8:A_shared})
    {T}.copy(${2:B}[k * $5, ${9:bx * block_N}], ${10:B_shared})
    {T}.gemm($8, $10, $3)
$0""",
    ),
    Snippet(
        "gemm_tiles", "the tiles of a GEMM", "launch",
        """A_shared = {T}.alloc_shared((${1:block_M}, ${3:block_K}), {T}.float16)
B_shared = {T}.alloc_shared(($3, ${2:block_N}), {T}.float16)
C_local = {T}.alloc_fragment(($1, $2), {T}.float32)
$0""",
    ),
    Snippet(
        "parallel", "a loop over the elements of a tile", "launch",
        "for i, j in {T}.Parallel(${1:block_M}, ${2:block_N}):\n    ${3:C_local}[i, j] = $0",
    ),
    Snippet(
        "softmax", "the online softmax of a tile of scores", "launch",
        """{T}.copy(${2:peak}, ${3:old_peak})
{T}.reduce_max(${1:scores}, $2, dim=1, clear=False)
for i in {T}.Parallel(${4:block_M}):
    ${5:shrink}[i] = {T}.exp2(($3[i] - $2[i]) * ${6:scale})
for i, j in {T}.Parallel($4, ${7:block_N}):
    $1[i, j] = {T}.exp2(($1[i, j] - $2[i]) * $6)
{T}.reduce_sum($1, ${8:block_sum}, dim=1)
for i in {T}.Parallel($4):
    ${9:total}[i] = $9[i] * $5[i] + $8[i]
$0""",
    ),
    Snippet(
        "macro", "a macro", "top",
        "@{T}.macro\ndef ${1:name}(${2:buffer}):\n    $0",
    ),
)  # fmt: skip
