"""Comparisons: how they are read, what they are about, and what a miss says."""

from __future__ import annotations

import pytest

from tests.inspect.conftest import Inspect
from tests.support.cuda import needs_nvdisasm, needs_nvrtc
from tilelang.inspection.expect import BadExpectation, Expectation, misses, parse_expectations


def test_reading() -> None:
    assert parse_expectations("cp.async>=4, mma > 0,spills=0,") == (
        Expectation("cp.async", ">=", 4), Expectation("mma", ">", 0),
        Expectation("spills", "==", 0),
    )  # fmt: skip
    assert str(Expectation("loop.barrier", "<=", 1)) == "loop.barrier<=1"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mmma>0", "nothing is counted under `mmma`; did you mean `mma`?"),
        ("cp.asnc>=1", "nothing is counted under `cp.asnc`; did you mean `cp.async`?"),
        ("loop.bariers<2", "did you mean `loop.barrier`?"),
        ("loop.registers<2", "nothing is counted under `loop.registers`"),
        ("ld.global.b129>0", "did you mean `ld.global.b128`"),
        ("mma", "'mma' is no comparison, such as mma>0"),
        ("mma>x", "'mma>x' is no comparison"),
        ("mma>>1", "'mma>>1' is no comparison"),
        ("mma>1.5", "is no comparison"),
        ("", "nothing is expected"),
        (" , ", "nothing is expected"),
    ],
)
def test_what_cannot_be_read(text: str, said: str) -> None:
    with pytest.raises(BadExpectation) as caught:
        parse_expectations(text)
    assert said in str(caught.value)


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("matmul", "mma==16,mma>=16,mma<=16,mma!=15,mma>15,mma<17"),
        ("matmul", "cp.async==12,cp.async.b128==12,loop.cp.async==4,loop.barrier<=1"),
        ("matmul", "shared==24576,shared.static==0,shared.dynamic==24576,spills==0,stack==0"),
        ("matmul", "registers>32,registers<256,occupancy>0,blocks>=1,loops==1,conflicts==1"),
        ("matmul", "ld.global==0,ld.local==0,st.local==0,atomic==0,remarks==0"),
        ("columns", "conflicts==32,remarks>=1"),
        # Counts are of both kernels together.
        ("two_launches", "st.global==2,ld.global==2,loops==0,loop.ld.global==0"),
        ("sums", "loops>=2,loop.barrier==1,barrier==1"),
    ],
)
def test_what_holds(inspect: Inspect, name: str, expected: str) -> None:
    assert list(misses(inspect(name), parse_expectations(expected))) == []


@needs_nvrtc
@needs_nvdisasm
def test_a_miss_names_what_was_found(inspect: Inspect) -> None:
    expected = parse_expectations("mma>=64,cp.async>0,loop.ldmatrix>8")
    assert [(d.code, d.message) for d in misses(inspect("matmul"), expected)] == [
        ("TL610", "`mma>=64` was expected of matmul for cuda:sm_80: mma is 16"),
        ("TL610", "`loop.ldmatrix>8` was expected of matmul for cuda:sm_80: loop.ldmatrix is 8"),
    ]
