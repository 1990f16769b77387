"""What runs at once, against NVIDIA's own calculator."""

from __future__ import annotations

import pytest

from tilelang.occupancy import MULTIPROCESSORS, multiprocessor_of, occupancy_of
from tilelang.target import ARCHS, parse_target


@pytest.mark.parametrize("arch", ARCHS["cuda"])
def test_every_architecture_has_a_row(arch: str) -> None:
    target = parse_target(f"cuda:{arch}")
    row = multiprocessor_of(target)
    assert row is not None
    # One block that takes all it may fits, and its limit follows from what there is.
    assert target.capabilities.shared_bytes == row.shared_bytes - row.reserved


def test_no_row_is_left_over() -> None:
    assert set(MULTIPROCESSORS) == {a.rstrip("af") for a in ARCHS["cuda"]}
    assert multiprocessor_of(parse_target("cpu")) is None
    assert occupancy_of(parse_target("cpu"), threads=32, registers=0, shared=0) is None


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared", "blocks", "limited_by"),
    [
        ("sm_80", 128, 32, 0, 16, ("threads", "registers")),
        ("sm_80", 256, 255, 0, 1, ("registers",)),
        ("sm_80", 128, 168, 49152, 3, ("registers", "shared memory")),
        ("sm_80", 128, 128, 49152, 3, ("shared memory",)),
        ("sm_80", 32, 16, 0, 32, ("blocks",)),
        ("sm_80", 1024, 64, 0, 1, ("registers",)),
        ("sm_80", 1024, 32, 0, 2, ("threads", "registers")),
        ("sm_86", 128, 40, 0, 12, ("threads", "registers")),
        ("sm_86", 128, 96, 49152, 2, ("shared memory",)),
        ("sm_89", 32, 16, 0, 24, ("blocks",)),
        ("sm_90a", 128, 96, 32768, 5, ("registers",)),
        ("sm_90a", 384, 168, 230000, 1, ("registers", "shared memory")),
        ("sm_90a", 256, 128, 0, 2, ("registers",)),
        ("sm_100a", 128, 64, 16384, 8, ("registers",)),
        ("sm_120a", 128, 32, 0, 12, ("threads",)),
        # A warp takes registers from one quarter of the file: 9 fit, and not 65536 / 6912.
        ("sm_80", 32, 216, 0, 8, ("registers",)),
        ("sm_75", 128, 64, 0, 8, ("threads", "registers")),
        ("sm_80", 128, 32, 167936, 0, ("shared memory",)),
    ],
)
def test_blocks(
    arch: str, threads: int, registers: int, shared: int, blocks: int, limited_by: tuple[str, ...]
) -> None:
    found = occupancy_of(
        parse_target(f"cuda:{arch}"), threads=threads, registers=registers, shared=shared
    )
    assert found is not None
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.warps == blocks * -(-threads // 32)
    assert found.percent == 100 * found.warps // found.most_warps
