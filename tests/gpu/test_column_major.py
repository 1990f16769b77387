"""A tensor stored by columns is read along them, in vectors, whatever happens to it in shared
memory."""

from __future__ import annotations

import re

import pytest

from tests.gpu.gemms import columns_of_b
from tests.gpu.lowering import source_of


@pytest.mark.parametrize(
    ("dtype", "accum", "read"),
    [
        ("float16", "float32", r"tl::load<8>\(&B\["),
        ("int8", "int32", r"tl::load<16>\(&B\["),
        # Wide enough to be copied one by one without waiting.
        ("float32", "float32", r"tl::cp_async<4>\(.*&B\["),
    ],
)
def test_columns(dtype: str, accum: str, read: str) -> None:
    text = source_of(columns_of_b(dtype, accum).function).text
    assert re.search(read, text), text
    # Asynchronous copies go to shared memory, never to registers.
    assert not re.search(r"tl::cp_async<\d+>\(tl::at\(B_s_r", text)
