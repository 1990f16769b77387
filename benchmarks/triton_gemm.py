"""What does Triton make of the same GEMM for sm_80? The other side of `gpu_speed`.

    python benchmarks/triton_gemm.py BUNDLE        needs Triton only; no GPU, no PyTorch

Triton's matmul tutorial without masks (the sizes divide), compiled by `triton.compile` for
`GPUTarget("cuda", 80, 32)`. The PTX is what travels: like ours, it is translated by the driver.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

# block M, N, K, stages, warps
CONFIGS = (
    (128, 256, 64, 3, 8),
    (256, 128, 64, 3, 8),
    (128, 256, 32, 4, 8),
    (256, 128, 32, 4, 8),
    (128, 128, 64, 3, 4),
    (128, 128, 32, 4, 4),
    (128, 128, 64, 3, 8),
    (128, 64, 64, 4, 4),
    (64, 256, 32, 4, 4),
    (128, 128, 32, 3, 4),
)


@triton.jit
def triton_gemm(
    a, b, c, M, N, K, lda, ldb, ldc,
    TRANSPOSED: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    pid = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    per_group = GROUP * blocks_n
    first = pid // per_group * GROUP
    rows = min(blocks_m - first, GROUP)
    block_m, block_n = first + pid % per_group % rows, pid % per_group // rows
    m = block_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = block_n * BLOCK_N + tl.arange(0, BLOCK_N)
    k = tl.arange(0, BLOCK_K)
    a_at = a + m[:, None] * lda + k[None, :]
    if TRANSPOSED:
        b_at = b + k[:, None] + n[None, :] * ldb
    else:
        b_at = b + k[:, None] * ldb + n[None, :]
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for _ in range(tl.cdiv(K, BLOCK_K)):
        total = tl.dot(tl.load(a_at), tl.load(b_at), total)
        a_at += BLOCK_K
        b_at += BLOCK_K if TRANSPOSED else BLOCK_K * ldb
    tl.store(c + m[:, None] * ldc + n[None, :], total.to(tl.float16))


def build(bundle: Path) -> None:
    """Write PTX files and `triton.json` beside them."""
    rows = []
    for transposed in (False, True):
        for config in CONFIGS:
            made = _compiled(config, transposed)
            layout = "nt" if transposed else "nn"
            name = f"triton_{layout}_{'_'.join(map(str, config))}.ptx"
            ptx = made.asm["ptx"]
            (bundle / name).write_text(ptx)
            entry = re.search(r"\.entry\s+(\w+)\s*\(([^)]*)\)", ptx)
            assert entry is not None
            m, n, k, stages, warps = config
            rows.append({
                "layout": layout, "file": name, "symbol": entry[1],
                "params": entry[2].count(".param"), "tile": [m, n],
                "shared": made.metadata.shared, "threads": warps * 32,
                "config": f"{m}x{n}x{k} s{stages} w{warps}",
            })  # fmt: skip
    (bundle / "triton.json").write_text(json.dumps({"version": triton.__version__, "rows": rows}))


def _compiled(config: tuple[int, ...], transposed: bool) -> Any:
    block_m, block_n, block_k, stages, warps = config
    signature = {"a": "*fp16", "b": "*fp16", "c": "*fp16"}
    signature |= dict.fromkeys(("M", "N", "K", "lda", "ldb", "ldc"), "i32")
    constants = {
        "TRANSPOSED": transposed, "BLOCK_M": block_m, "BLOCK_N": block_n, "BLOCK_K": block_k,
        "GROUP": 8,
    }  # fmt: skip
    signature |= dict.fromkeys(constants, "constexpr")
    known = {(n,): [["tt.divisibility", 16]] for n in range(9)}
    source = ASTSource(triton_gemm, signature, constants, known)
    options = {"num_warps": warps, "num_stages": stages}
    return triton.compile(source, target=GPUTarget("cuda", 80, 32), options=options)


if __name__ == "__main__":
    build(Path(sys.argv[1]))
