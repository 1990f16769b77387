"""What small kernels become: the source of `goldens/`, rewritten by `--update`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.lowering import lowered, source_of
from tests.gpu.lowering_kernels import KERNELS
from tilelang.ir import tirx
from tilelang.ir.device_ops import op_of_call
from tilelang.ir.homes import FRAGMENT
from tilelang.ir.visit import collect

GOLDENS = Path(__file__).parent / "goldens"


@pytest.mark.parametrize("name", KERNELS)
def test_source(name: str, update: bool) -> None:
    text = source_of(KERNELS[name].function).text
    golden = GOLDENS / f"{name}.cu"
    if update:
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(text)
    assert text == golden.read_text()


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_of_tiles_is_left(name: str) -> None:
    func = lowered(KERNELS[name].function)
    for stmt in collect(func.body, tirx.AllocBuffer):
        assert str(stmt.buffer.scope()) != FRAGMENT
        assert len(stmt.buffer.shape) == 1
    assert all(int(s.kind) != int(tirx.ForKind.PARALLEL) for s in collect(func.body, tirx.For))


def calls(name: str) -> list[str]:
    """The device operations of a kernel, in order."""
    func = lowered(KERNELS[name].function)
    found = [op_of_call(c) for c in collect(func.body, tirx.Call)]
    return [op.name for op in found if op is not None]


def test_reduction_exchanges_as_often_as_lanes_share_a_row() -> None:
    # 128 columns in vectors of 4 lie on the 32 lanes of a warp: five exchanges.
    assert calls("row_sums").count("shfl_xor") == 5
    assert "sync_threads" not in calls("row_sums")


def test_product_reads_operands_by_matrices() -> None:
    found = calls("product")
    assert {"ldmatrix_x4", "mma_m16n8k16_f32_f16_f16"} <= set(found)
    assert found.count("sync_threads") == 1


def test_what_lies_right_is_not_moved() -> None:
    assert "sync_threads" not in calls("through_registers")
    assert calls("moved").count("sync_threads") == 2
