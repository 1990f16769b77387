"""What does the driver get to see of a call? Launches are decoded from memory by a fake driver."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime_cuda.fake_driver import FakeLibrary, value_of
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary
from tilelang.codegen.device_source import (
    DeviceSource,
    HostCheck,
    KernelLaunch,
    KernelParam,
    Slot,
    TensorMap,
    Workspace,
)
from tilelang.codegen.host_expr import HostExpr, evaluate
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.runtime import cuda, cuda_driver
from tilelang.runtime.cuda import load_cuda
from tilelang.runtime.cuda_plan import launch_lines, make_plan
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Span

SLOTS = (Slot("buffer", "A", "float32"), Slot("scalar", "s", "float32"), Slot("dim", "n", "int32"))
PARAMS = (
    KernelParam("buffer", "A", "float32", 16, True),
    KernelParam("scalar", "s", "float32"),
    KernelParam("dim", "n", "int32"),
)
BLOCKS: HostExpr = ("//", ("+", "n", 255), 256)
LAUNCH = KernelLaunch("k_kernel", PARAMS, (BLOCKS, 1, 1), (256, 1, 1), 1024)


def artifact(
    *launches: KernelLaunch, slots: Sequence[Slot] = SLOTS, archs: Sequence[str] = ("sm_90a",),
    **more: Any,
) -> CudaArtifact:  # fmt: skip
    source = SourceMap((Line("// k"),))
    device = DeviceSource("k", "cuda", source, tuple(slots), launches or (LAUNCH,), **more)
    return CudaArtifact(device, tuple(CudaBinary(a, code_for(a)) for a in archs))


def code_for(arch: str) -> bytes:
    """The shortest ELF file there is, with a name at its end."""
    return b"\x7fELF" + bytes(60) + arch.encode()


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    """The fake in place of libcuda, in a process without PyTorch."""
    return use(monkeypatch, FakeLibrary(formats=("Q", "f", "i")))


def use(monkeypatch: pytest.MonkeyPatch, library: FakeLibrary) -> FakeLibrary:
    made = cuda_driver.Driver(library)
    monkeypatch.setattr(cuda, "driver", lambda: made)
    monkeypatch.setitem(sys.modules, "torch", None)
    cuda._recent.clear()
    return library


def refusal(call: Any) -> tuple[str, str]:
    with pytest.raises(CompileError) as caught:
        call()
    (found,) = caught.value.diagnostics
    return found.code, found.message


def test_grid_block_and_parameters(driver: FakeLibrary) -> None:
    load_cuda(artifact()).run([0x7000, 1.5, 1000])
    (seen,) = driver.launches
    assert (seen.grid, seen.block, seen.shared) == ((4, 1, 1), (256, 1, 1), 1024)
    assert seen.parameters == (0x7000, 1.5, 1000)
    assert (seen.attributes, seen.stream, seen.context) == ((), 0, 0x90)
    assert driver.loaded == [code_for("sm_90a")]


def test_an_empty_grid_launches_nothing(driver: FakeLibrary) -> None:
    kernel = load_cuda(artifact())
    kernel.run([0x7000, 1.0, 0])
    assert driver.launches == []
    load_cuda(artifact(replace(LAUNCH, grid=(0, 1, 1)))).run([1, 1.0, 5])
    assert driver.launches == []


def test_every_launch_in_order_and_the_binary_is_loaded_once(driver: FakeLibrary) -> None:
    two = [replace(LAUNCH, symbol=f"k_kernel_{n}", grid=(n + 1, "n", 1)) for n in range(2)]
    kernel = load_cuda(artifact(*two))
    kernel.run([1, 2.0, 3])
    kernel.run([1, 2.0, 4])
    assert [x.grid for x in driver.launches] == [(1, 3, 1), (2, 3, 1), (1, 4, 1), (2, 4, 1)]
    assert len({x.function for x in driver.launches}) == 2
    assert len(driver.loaded) == 1


def test_parameters_are_aligned_as_c_aligns_them(monkeypatch: pytest.MonkeyPatch) -> None:
    dtypes = ("int8", "float64", "bool", "int64", "float16", "bfloat16", "uint32", "int16", "uint8")
    formats = ("b", "d", "?", "q", "e", "H", "I", "h", "B")
    slots = [Slot("scalar", f"s{n}", d) for n, d in enumerate(dtypes)]
    params = tuple(KernelParam("scalar", f"s{n}", d) for n, d in enumerate(dtypes))
    driver = use(monkeypatch, FakeLibrary(formats=formats))
    launch = KernelLaunch("k_kernel", params, (1, 1, 1), (32, 1, 1))
    load_cuda(artifact(launch, slots=slots)).run([-3, 0.1, True, 1 << 40, 1.5, 1.0, 7, -300, 200])
    expected = (-3, 0.1, True, 1 << 40, 1.5, 0x3F80, 7, -300, 200)
    assert driver.launches[0].parameters == expected


@pytest.mark.parametrize(
    ("value", "bits"),
    [(1.0, 0x3F80), (-2.0, 0xC000), (1.00390625, 0x3F80), (1.01171875, 0x3F82),
     (math.inf, 0x7F80), (1e39, 0x7F80), (-1e300, 0xFF80), (math.nan, 0x7FC0), (3.3895e38, 0x7F7F)],
)  # fmt: skip
def test_bfloat16_rounds_to_nearest_even(
    monkeypatch: pytest.MonkeyPatch, value: float, bits: int
) -> None:
    driver = use(monkeypatch, FakeLibrary(formats=("H",)))
    launch = replace(LAUNCH, params=(KernelParam("scalar", "s", "bfloat16"),), grid=(1, 1, 1))
    load_cuda(artifact(launch)).run([1, value, 1])
    assert driver.launches[0].parameters == (bits,)


@pytest.mark.parametrize(
    ("dtype", "form", "value", "held"),
    [("float32", "f", 1e39, math.inf), ("float32", "f", -1e39, -math.inf),
     ("float16", "e", 65520.0, math.inf), ("float16", "e", 65519.0, 65504.0),
     ("float64", "d", 1e300, 1e300)],
)  # fmt: skip
def test_a_float_too_large_for_its_dtype_is_infinite(
    monkeypatch: pytest.MonkeyPatch, dtype: str, form: str, value: float, held: float
) -> None:
    driver = use(monkeypatch, FakeLibrary(formats=(form,)))
    launch = replace(LAUNCH, params=(KernelParam("scalar", "s", dtype),), grid=(1, 1, 1))
    load_cuda(artifact(launch)).run([1, value, 1])
    assert driver.launches[0].parameters == (held,)


def test_a_size_that_does_not_fit_beside_a_float_that_does_not(driver: FakeLibrary) -> None:
    kernel = load_cuda(artifact(replace(LAUNCH, grid=(1, 1, 1))))
    assert refusal(lambda: kernel.run([1, 1e39, 1 << 33]))[0] == "TL718"


def test_launch_attributes(driver: FakeLibrary) -> None:
    load_cuda(artifact(replace(LAUNCH, cooperative=True, cluster=(2, 1, 1)))).run([1, 1.0, 5])
    assert driver.launches[0].attributes == ((2, 1, 0, 0, 0), (4, 2, 1, 1, 0))


def test_more_than_48_kib_of_shared_memory_is_asked_for(driver: FakeLibrary) -> None:
    load_cuda(artifact(replace(LAUNCH, dynamic_shared=49152))).run([1, 1.0, 5])
    assert driver.attributes == []
    load_cuda(artifact(replace(LAUNCH, dynamic_shared=200_000))).run([1, 1.0, 5])
    assert driver.attributes == [(8, 200_000)]
    # What is static counts too, and only what is dynamic is asked for.
    load_cuda(artifact(replace(LAUNCH, dynamic_shared=49152, static_shared=8))).run([1, 1.0, 5])
    assert driver.attributes[1:] == [(8, 49152)]


def test_each_device_has_its_own_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    devices = (((9, 0), 232448), ((8, 0), 166912))
    driver = use(monkeypatch, FakeLibrary(devices, ("Q", "f", "i")))
    kernel = load_cuda(artifact(archs=("sm_80", "sm_90a")))
    for device in (0, 1, 0):
        kernel.run([1, 1.0, 5], device)
    assert [x.context for x in driver.launches] == [0x90, 0x91, 0x90]
    assert driver.loaded == [code_for("sm_90a"), code_for("sm_80")]
    assert len({x.function for x in driver.launches}) == 2


def test_a_thread_without_a_context_gets_one(driver: FakeLibrary) -> None:
    driver.results["cuLaunchKernelEx"] = [201]
    load_cuda(artifact()).run([1, 1.0, 5])
    assert len(driver.launches) == 1


def test_threads_do_not_share_parameter_memory(driver: FakeLibrary) -> None:
    kernel = load_cuda(artifact())
    kernel.run([1, 0.0, 256])
    decode = driver._cuLaunchKernelEx
    meeting = threading.Barrier(4)

    def slow(*args: Any) -> None:
        meeting.wait(10)  # every thread has packed its numbers
        decode(*args)

    driver.cuLaunchKernelEx._call = slow
    threads = [threading.Thread(target=kernel.run, args=([n, 0.0, n * 256],)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen = sorted((x.grid[0], x.parameters[0]) for x in driver.launches[1:])
    assert seen == [(n, n) for n in range(1, 5)]


def test_tensor_maps_are_encoded_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    found = TensorMap("m", "A", "float16", ("*", "n", 2), (64, "n"), (128,), (64, 16), 128)
    params = (KernelParam("dim", "n", "int32"), KernelParam("map", "m", "handle"))
    driver = use(monkeypatch, FakeLibrary(formats=("i", "128s")))
    launch = replace(LAUNCH, params=params, grid=(1, 1, 1))
    kernel = load_cuda(artifact(launch, maps=(found,)))
    for n in (100, 100, 200):
        kernel.run([0x4000, 0.0, n])
    assert driver.encoded[0] == {
        "kind": 6, "address": 0x4000 + 200, "shape": (64, 100), "strides": (128,), "box": (64, 16),
        "steps": (1, 1), "swizzle": 3, "promotion": 2,
    }  # fmt: skip
    assert [x.parameters for x in driver.launches] == [
        (100, b"\1" * 128), (100, b"\1" * 128), (200, b"\2" * 128)
    ]  # fmt: skip


def test_tma_is_told_of_an_empty_tensor_as_of_one_that_nobody_reads(driver: FakeLibrary) -> None:
    found = TensorMap("m", "A", "float16", 0, (64, "n"), (128,), (64, 16))
    load_cuda(artifact(LAUNCH, maps=(found,))).run([0x4000, 0.0, 0])
    assert [(x["shape"], x["address"]) for x in driver.encoded] == [((64, 1), 0)]


def test_a_tensor_tma_cannot_read(driver: FakeLibrary) -> None:
    found = TensorMap("m", "A", "float16", 0, (64, "n"), (100,), (64, 16))
    driver.results["cuTensorMapEncodeTiled"] = [1]
    kernel = load_cuda(artifact(LAUNCH, maps=(found,)))
    code, message = refusal(lambda: kernel.run([0x4000, 0.0, 5]))
    assert code == "TL706" and "argument `A` of `k` cannot be read by TMA" in message


def test_without_pytorch_a_workspace_comes_from_the_driver(driver: FakeLibrary) -> None:
    asked: list[int] = []
    freed: list[int] = []

    def allocate(out: Any, size: Any) -> None:
        asked.append(value_of(size))
        out._obj.value = 0x7000

    driver._cuMemAlloc_v2 = allocate
    driver._cuMemFree_v2 = lambda address: freed.append(value_of(address))
    kernel = load_cuda(artifact(LAUNCH, workspaces=(Workspace("w", "float32", ("*", "n", 4)),)))
    kernel.run([1, 1.0, 5])
    assert (asked, freed) == ([5 * 4], [0x7000]) and len(driver.launches) == 1


def test_no_room_for_a_workspace(driver: FakeLibrary) -> None:
    driver.results["cuMemAlloc_v2"] = [2]
    kernel = load_cuda(artifact(LAUNCH, workspaces=(Workspace("w", "float32", ("*", "n", 4)),)))
    assert refusal(lambda: kernel.run([1, 1.0, 5]))[0] == "TL813"
    assert not driver.launches


# What goes wrong.


def test_no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Any:
        raise cuda_driver.NoDriver("the CUDA driver library libcuda.so.1 is not here")

    monkeypatch.setattr(cuda, "driver", none)
    code, message = refusal(lambda: load_cuda(artifact()).run([1, 1.0, 5]))
    assert code == "TL805" and message.startswith("`k` needs an NVIDIA GPU, but the CUDA driver")


@pytest.mark.parametrize(
    ("library", "why"),
    [(FakeLibrary(version=11080), "the driver is for CUDA 11.8, and kernels need 12.0 or later"),
     (FakeLibrary(devices=()), "the CUDA driver sees no device")],
)  # fmt: skip
def test_a_driver_that_cannot_be_used(library: FakeLibrary, why: str) -> None:
    with pytest.raises(cuda_driver.NoDriver, match=why):
        cuda_driver.Driver(library)


def test_no_such_device(driver: FakeLibrary) -> None:
    kernel = load_cuda(artifact())
    assert refusal(lambda: kernel.run([1, 1.0, 5], 3))[0] == "TL805"


@pytest.mark.parametrize(
    ("arch", "capability", "runs"),
    [("sm_80", (8, 0), True), ("sm_80", (8, 6), True), ("sm_86", (8, 0), False),
     ("sm_80", (9, 0), False), ("sm_90", (9, 0), True), ("sm_90a", (9, 0), True),
     ("sm_100a", (10, 3), False), ("sm_100f", (10, 3), True), ("sm_100", (10, 3), True),
     ("sm_120a", (12, 0), True), ("sm_90a", (10, 0), False)],
)  # fmt: skip
def test_which_device_runs_which_code(
    arch: str, capability: tuple[int, int], runs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = use(monkeypatch, FakeLibrary(((capability, 232448),)))
    kernel = load_cuda(artifact(archs=(arch,)))
    if runs:
        kernel.run([1, 1.0, 5])
        assert len(driver.launches) == 1
    else:
        code, message = refusal(lambda: kernel.run([1, 1.0, 5]))
        number = f"sm_{capability[0]}{capability[1]}"
        assert (code, message) == (
            "TL416", f"`k` was compiled for {arch}; cuda:0, Test GPU 0, is {number}"
        )  # fmt: skip


def test_code_that_has_lost_its_end_never_reaches_the_driver(driver: FakeLibrary) -> None:
    whole = b"\x7fELF" + bytes(36) + (64).to_bytes(8, "little") + bytes(10) + b"\x40\0\x02\0\0\0"
    whole += bytes(128)
    assert len(whole) == 64 + 128 and CudaBinary("sm_90a", whole).is_whole
    for damage in (b"", b"not code", whole[:30], whole[:-1], whole[:100]):
        found = replace(artifact(), binaries=(CudaBinary("sm_90a", damage),))
        code, message = refusal(lambda: load_cuda(found).run([1, 1.0, 5]))  # noqa: B023
        assert code == "TL416" and "is damaged: it is no whole ELF file" in message
    assert driver.loaded == []


def test_code_for_an_older_device_through_its_ptx(driver: FakeLibrary) -> None:
    older = CudaBinary("sm_80", code_for("sm_80"), ptx=".version 8.0")
    found = replace(artifact(), binaries=(older,))
    assert refusal(lambda: load_cuda(found).run([1, 1.0, 5]))[0] == "TL416"
    load_cuda(found, from_ptx=True).run([1, 1.0, 5])
    assert driver.loaded == [b".version 8.0\0"]


def test_the_most_specific_code_is_chosen() -> None:
    found = artifact(archs=("sm_90", "sm_90a", "sm_80", "sm_86"))
    assert found.binary_for((9, 0)).arch == "sm_90a"  # type: ignore[union-attr]
    assert found.binary_for((8, 9)).arch == "sm_86"  # type: ignore[union-attr]
    assert found.binary_for((7, 5)) is None


def test_too_much_shared_memory_for_this_device(driver: FakeLibrary) -> None:
    launch = replace(LAUNCH, dynamic_shared=230_000, static_shared=4096)
    code, message = refusal(lambda: load_cuda(artifact(launch)).run([1, 1.0, 5]))
    assert (
        code == "TL406" and "needs 234096 bytes of shared memory; Test GPU 0 (sm_90) has" in message
    )


@pytest.mark.parametrize(
    ("function", "result", "code", "words"),
    [
        ("cuLibraryLoadData", 200, "TL416", "the driver, which is for CUDA 13.0, does not take"),
        ("cuLibraryLoadData", 700, "TL812", "`k` cannot be loaded on cuda:0 (CUDA_ERROR_ILLEGAL"),
        ("cuLaunchKernelEx", 701, "TL812", "256 threads): CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"),
        ("cuLaunchKernelEx", 720, "TL812", "1 blocks have to run at once for T.sync_grid; at "
         "most 8 fit"),
        ("cuLaunchKernelEx", 700, "TL812", "a kernel failed while it ran, noticed at `k`"),
    ],
)  # fmt: skip
def test_driver_errors_have_a_name_and_a_place(
    driver: FakeLibrary, function: str, result: int, code: str, words: str
) -> None:
    driver.results[function] = [result]
    found = refusal(lambda: load_cuda(artifact()).run([1, 1.0, 5]))
    assert found[0] == code and words in found[1]


def test_a_grid_beyond_the_hardware(driver: FakeLibrary) -> None:
    driver.results["cuLaunchKernelEx"] = [1]
    kernel = load_cuda(artifact(replace(LAUNCH, grid=(1, "n", 1))))
    code, message = refusal(lambda: kernel.run([1, 1.0, 70_000]))
    assert (code, message) == (
        "TL414", "70000 blocks along y of `k`; Test GPU 0 takes at most 65535"
    )  # fmt: skip


def test_a_size_that_does_not_fit_its_parameter(driver: FakeLibrary) -> None:
    kernel = load_cuda(artifact(replace(LAUNCH, grid=(1, 1, 1))))
    code, message = refusal(lambda: kernel.run([1, 1.0, 1 << 33]))
    assert (code, message) == ("TL718", "n of `k` is 8589934592, which does not fit int32")


def test_a_scalar_that_cannot_be_passed(driver: FakeLibrary) -> None:
    params = (KernelParam("scalar", "s", "float8_e4m3fn"),)
    kernel = load_cuda(artifact(replace(LAUNCH, params=params)))
    assert refusal(lambda: kernel.run([1, 1.0, 5]))[0] == "TL718"


def test_an_assumption_is_checked_before_anything_is_launched(driver: FakeLibrary) -> None:
    check = HostCheck(("==", ("%", "n", 4), 0), "n is a multiple of 4", Span("k.py", 3, 5, 3, 20))
    kernel = load_cuda(artifact(LAUNCH, checks=(check,)))
    kernel.run([1, 1.0, 8])
    with pytest.raises(CompileError) as caught:
        kernel.run([1, 1.0, 9])
    assert (caught.value.diagnostics[0].code, caught.value.diagnostics[0].span) == (
        "TL721", check.span
    )  # fmt: skip
    assert len(driver.launches) == 1


def test_an_artifact_survives_a_folder(tmp_path: Path) -> None:
    check = HostCheck(("<", "n", 9), "small", Span("k.py", 3, 5, 3, 20))
    found = TensorMap("m", "A", "float16", ("*", "n", 2), (64, "n"), (128,), (64, 16), 128)
    whole = artifact(
        replace(LAUNCH, cluster=(2, 1, 1)), archs=("sm_80", "sm_90a"), checks=(check,),
        maps=(found,), workspaces=(Workspace("w", "float32", ("*", "n", 4)),),
    )  # fmt: skip
    whole.save(tmp_path / "k")
    assert CudaArtifact.load(tmp_path / "k") == whole
    assert whole.alignments() == {"A": 16}


# The generated code computes what the expressions mean.

_NUMBERS = st.integers(-50, 50)
_EXPRESSIONS = st.recursive(
    st.one_of(_NUMBERS, st.sampled_from(["a", "b"])),
    lambda inner: st.one_of(
        st.tuples(
            st.sampled_from(["+", "-", "*", "min", "max", "<", "==", "and", "or"]), inner, inner
        ),
        st.tuples(st.sampled_from(["//", "%", "trunc/", "trunc%"]), inner,
                  st.sampled_from([1, 3, -4, 7])),
        st.tuples(st.just("if"), inner, inner, inner),
        st.tuples(st.just("not"), inner),
    ),
    max_leaves=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(_EXPRESSIONS, _NUMBERS, _NUMBERS)
def test_grids_are_computed_as_the_host_expression_says(expr: Any, a: int, b: int) -> None:
    slots = (Slot("scalar", "a", "int32"), Slot("scalar", "b", "int32"))
    launch = KernelLaunch("k", (), (("max", ("+", 0, expr), 1), 1, 1), (32, 1, 1))
    device = DeviceSource("k", "cuda", SourceMap(()), slots, (launch,))
    seen: list[Any] = []
    names = {
        "frames0": [], "frame0": lambda: (None, 0, None, None), "functions0": {0: None},
        "pack0": lambda memory, start, *numbers: seen.append(numbers[0]), "note": lambda name: None,
        "stream": lambda d: 0, "driver_launch": lambda *args: 0, "launched0": None,
    }  # fmt: skip
    make_plan(launch_lines(device, [(0, 0)], ["v0", "v1"]), 2, names)([a, b], 0)
    assert seen == [max(int(evaluate(expr, {"a": a, "b": b})), 1)]
