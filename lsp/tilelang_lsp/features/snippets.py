"""Which whole patterns can be put in? Each compiles as it stands, once its names fit.

`{T}` becomes the file's own name for the language, `{tilelang}` that of the package; `$1` and
`${1:text}` are the places to fill in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tilelang_lsp.features.whole_kernels import WHOLE


@dataclass(frozen=True, slots=True)
class Snippet:
    """A pattern: `name` is what is typed, `where` a statement inside a launch, or a definition."""

    name: str
    about: str
    where: str
    text: str


_STATEMENTS: Final = (
    (
        "gemm_loop", "a pipelined GEMM loop",
        """{T}.clear(${3:C_local})
for k in {T}.Pipelined({T}.ceildiv(${4:K}, ${5:block_K}), num_stages=${6:3}):
    {T}.copy(${1:A}[${7:by * block_M}, k * $5], ${8:A_shared})
    {T}.copy(${2:B}[k * $5, ${9:bx * block_N}], ${10:B_shared})
    {T}.gemm($8, $10, $3)
$0""",
    ),
    (
        "gemm_tiles", "the tiles of a GEMM",
        """A_shared = {T}.alloc_shared((${1:block_M}, ${3:block_K}), {T}.float16)
B_shared = {T}.alloc_shared(($3, ${2:block_N}), {T}.float16)
C_local = {T}.alloc_fragment(($1, $2), {T}.float32)
$0""",
    ),
    (
        "parallel", "a loop over the elements of a tile",
        "for i, j in {T}.Parallel(${1:block_M}, ${2:block_N}):\n    ${3:C_local}[i, j] = $0",
    ),
    (
        "epilogue", "bias and ReLU on an accumulator that is still in registers",
        """for i, j in {T}.Parallel(${1:block_M}, ${2:block_N}):
    ${3:C_local}[i, j] = {T}.max($3[i, j] + ${4:bias}[${5:bx * block_N} + j], 0)
{T}.copy($3, ${6:C}[${7:by * block_M}, $5])
$0""",
    ),
    (
        "softmax", "the online softmax of a tile of scores",
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
    (
        "reduce_rows", "the sum of each row of a tile",
        """${1:row_sum} = {T}.alloc_fragment((${2:block_M},), {T}.float32)
{T}.reduce_sum(${3:C_local}, $1, dim=1)
$0""",
    ),
    (
        "load_tile", "a shared tile and the copy that fills it",
        """${1:tile} = {T}.alloc_shared((${2:block_M}, ${3:block_N}), {T}.float16)
{T}.copy(${4:A}[${5:by * block_M}, ${6:bx * block_N}], $1)
$0""",
    ),
    (
        "swizzled", "a swizzled layout for a shared tile",
        """{T}.annotate_layout({${1:A_shared}: {tilelang}.layout.make_swizzled_layout($1)})
$0""",
    ),
)  # fmt: skip

SNIPPETS: Final = (
    *(Snippet(name, about, "top", text) for name, about, text in WHOLE),
    *(Snippet(name, about, "launch", text) for name, about, text in _STATEMENTS),
)


def without_places(snippet: str) -> str:
    """A pattern with its suggestions written out."""
    named = dict(re.findall(r"\$\{(\d+):([^}]*)\}", snippet))
    text = re.sub(r"\$\{\d+:([^}]*)\}", r"\1", snippet)
    return re.sub(r"\$(\d+)", lambda m: named.get(m[1], ""), text)
