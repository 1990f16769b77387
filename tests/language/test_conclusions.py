"""What concludes from what a kernel does not do is silent where some of it could not be read."""

from __future__ import annotations

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static

KERNEL = """
    def make(pick):
        @T.prim_func
        def main(A: T.Tensor(({size},), "float32"), B: T.Tensor((64,), "float32")):
            with T.Kernel(2, threads=64):
                s = T.alloc_shared((64,), "float32")
                for k in T.Pipelined(4, num_stages=2):
                    T.copy({source}, s)
                    T.copy(s, B)
        return main
"""


def codes(source: str, size: str = "64") -> set[str]:
    text = kernel_text(KERNEL.replace("{source}", source).replace("{size}", size))
    return {d.code for p in parse_static(text, "kernel.py", target="cuda:sm_80")
            for d in p.diagnostics}  # fmt: skip


def test_a_pipeline_that_loads_nothing() -> None:
    assert "TL507" in codes("s")
    assert "TL507" not in codes("A")
    # Nobody knows what it is, or how large.
    assert "TL507" not in codes("pick(A)")
    assert "TL507" not in codes("A[0:64]", size="sum(pick)")
