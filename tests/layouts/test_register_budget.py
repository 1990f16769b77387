"""What lives at once in registers: counted over statements, loops included (TL407)."""

from __future__ import annotations

import pytest

from tests.support.markers import diagnostics_of, kernel_text


def kernel(threads: int, body: str) -> str:
    return f"""
    @T.prim_func
    def main(A: T.Tensor((256, 128), "float32"), B: T.Tensor((256, 128), "float32")):
        with T.Kernel(1, threads={threads}):
            x = T.alloc_fragment((256, 128), "float32")
            y = T.alloc_fragment((256, 128), "float32")
{body}
    """


AFTER_EACH_OTHER = """
            T.copy(A, x)
            T.copy(x, B)
            T.copy(A, y)
            T.copy(y, B)
"""
AT_ONCE = """
            T.copy(A, x)
            T.copy(A, y)
            T.copy(x, B)
            T.copy(y, B)
"""
CARRIED = """
            T.copy(A, x)
            for k in T.serial(4):
                T.copy(x, B)
                T.copy(A, y)
                T.copy(y, B)
"""


@pytest.mark.parametrize(
    ("threads", "body", "registers"),
    [
        (256, AFTER_EACH_OTHER, None),
        (256, AT_ONCE, 256),
        (256, CARRIED, 256),
        (128, AFTER_EACH_OTHER, 256),
        (512, AT_ONCE, None),
    ],
)
def test_registers_of_a_thread(threads: int, body: str, registers: int | None) -> None:
    found = diagnostics_of(kernel_text(kernel(threads, body)), target="cuda:sm_80")
    said = [d.message for d in found if d.code == "TL407"]
    if registers is None:
        assert not said
    else:
        assert len(said) == 1
        assert f"take {registers} registers of a thread" in said[0]
