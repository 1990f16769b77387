"""Wherever a kernel calls code of its own, it is told that nothing looks into it."""

from __future__ import annotations

import pytest

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static

KERNEL = """
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=64) as bx:
            tx = T.get_thread_binding()
            s = T.alloc_shared((64,), "float32")
            {body}
            A[tx] = s[tx]
"""
CALL = 'T.call_extern("int32", "own", B[0])'
PLACES = {
    "a loop": f"for i in T.serial({CALL}):\n                A[i] = 0.0",
    "a region": f"T.copy(A[{CALL} : {CALL} + 32], s[0:32])",
    "an assertion": f"T.device_assert({CALL} > 0)",
    "a promise": f"T.assume({CALL} > 0)",
    "a variable": f'v = T.alloc_var("int32", init={CALL})\n            B[tx] = v',
    "a condition": f"if {CALL} > 0:\n                A[tx] = 0.0",
    "a store": f"B[tx] = {CALL}",
    "a name": f"k = {CALL}\n            B[tx] = k",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_call_of_foreign_code_anywhere(place: str) -> None:
    text = kernel_text(KERNEL.replace("{body}", PLACES[place]))
    (parsed,) = parse_static(text, "kernel.py", target="cuda:sm_80")
    found = [(d.code, d.message) for d in parsed.diagnostics if d.code != "TL222"]
    assert ("TL418", "the compiler cannot see into `own`: its accesses, barriers and speed are not "
            "looked at") in found, found  # fmt: skip
    assert not any(d.is_error for d in parsed.diagnostics), found
