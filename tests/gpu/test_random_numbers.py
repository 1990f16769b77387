"""Random numbers compile for a GPU, and their second writing agrees with the published vectors."""

from __future__ import annotations

import pytest

from tests.gpu.lowering import source_of
from tests.gpu.random_numbers import CASES, philox
from tests.kernels.case import KernelCase
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target

# Random123, kat_vectors: philox4x32-10.
VECTORS = (
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344), (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
)  # fmt: skip


@pytest.mark.parametrize(("counter", "key", "wanted"), VECTORS)
def test_published_vectors(
    counter: tuple[int, ...], key: tuple[int, ...], wanted: tuple[int, ...]
) -> None:
    assert tuple(philox(list(counter), list(key))) == wanted


@pytest.mark.skipif(find_nvrtc() is None, reason="NVRTC is not installed")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiles(case: KernelCase) -> None:
    source = source_of(case.make(**case.kernel_params()).function)
    binary = compile_cuda(source, parse_target("cuda:sm_80"))
    assert not binary.warnings
    assert "#include <tl/random.h>" in source.text
