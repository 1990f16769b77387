"""What an exported function does with its arguments, seen by a driver that only remembers."""

from __future__ import annotations

import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.export import kernels
from tests.export.conftest import A100, FLOAT32, H200, INT8, Host, docs_of, tensor
from tests.export.synthetic import code_of, export, product
from tilelang.codegen.device_source import (
    HostCheck,
    KernelLaunch,
    KernelParam,
    TensorMap,
    Workspace,
)
from tilelang.runtime.export_signature import checks_of, quoted
from tilelang.runtime.signature import make_signature
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Span

A, B = (KernelParam("buffer", name, "float16", 16) for name in "AB")
FACTOR, N = KernelParam("scalar", "factor", "float32"), KernelParam("dim", "n", "int32")
SCALE = KernelLaunch(
    "scale_kernel", (A, B, FACTOR, N), (("//", ("+", "n", 15), 16), 1, 1), (128, 1, 1), 2048
)
FORMATS = "ppfi"


def call(*args: Any, function: str = "scale", **more: Any) -> dict[str, Any]:
    return {"function": function, "args": list(args), "formats": FORMATS, **more}


def good(rows: int = 17, **more: Any) -> list[Any]:
    return [tensor(rows, 64, address=0x1000, **more), tensor(rows, 64, address=0x2000, **more), 2.5]


@pytest.fixture(scope="module")
def scale(tmp_path_factory: pytest.TempPathFactory, compiler: str) -> Path:
    archs = ("sm_80", "sm_86", "sm_90a")
    return export(tmp_path_factory.mktemp("scale"), product("scale", [SCALE], archs))


def test_a_launch(scale: Path, host: Host) -> None:
    (answer,) = host(scale, [call(*good())])
    assert answer.error is None
    assert answer.launches == [
        {"symbol": "scale_kernel", "grid": "2,1,1", "block": "128,1,1", "shared": "2048",
         "stream": "0", "context": "0", "params": "4096;8192;2.5;17;"}
    ]  # fmt: skip
    assert answer.depth == 0  # the context it found is the one it leaves


def test_code_is_loaded_once_for_each_device(scale: Path, host: Host) -> None:
    on = [call(*good(device=(2, d))) for d in (0, 0, 1, 2, 1)]
    answers = host(scale, on, devices=[H200, A100, (8, 9, 101376)])
    loads = [line for a in answers for line in a.log if line.startswith("load")]
    # sm_89 runs the newest code for 8.x that is no newer than itself.
    assert loads == [f"load {len(code_of(a))}" for a in ("sm_90a", "sm_80", "sm_86")]
    assert [a.launches[0]["context"] for a in answers] == ["0", "0", "1", "2", "1"]


def test_the_current_context_is_used_where_it_is_the_right_one(scale: Path, host: Host) -> None:
    answers = host(scale, [call(*good(), current=d) for d in (0, 1)], devices=[H200, H200])
    assert [a.depth for a in answers] == [1, 1]
    assert [a.launches[0]["context"] for a in answers] == ["0", "0"]


def test_the_stream_is_that_of_the_tensors_device(scale: Path, host: Host) -> None:
    calls = [call(*good(device=(2, 1)), stream=77, stream_device=1), call(*good())]
    answers = host(scale, calls, devices=[H200, H200])
    assert [a.launches[0]["stream"] for a in answers] == ["77", "0"]


def test_an_empty_grid_launches_nothing(scale: Path, host: Host) -> None:
    (answer,) = host(scale, [call(*good(0))])
    assert answer.error is None and answer.launches == []


WRONG = [
    ("TypeError", "[TL701] `scale` takes 3 arguments, got 2; call it as `scale(A, B, factor)`",
     [tensor(17, 64), tensor(17, 64)]),
    ("TypeError", "[TL702] argument `A` of `scale` has dtype float32, expected float16",
     [tensor(17, 64, dtype=FLOAT32), tensor(17, 64), 1.0]),
    ("TypeError", "[TL702] argument `B` of `scale` has dtype bfloat16, expected float16",
     [tensor(17, 64), tensor(17, 64, dtype=("bfloat", 16, 1)), 1.0]),
    ("ValueError", "[TL703] argument `A` of `scale` has 1 dimension (17,), expected 2: (n, 64)",
     [tensor(17), tensor(17, 64), 1.0]),
    ("ValueError", "[TL704] argument `A` of `scale` has shape (17, 63), expected (n, 64): "
                   "dimension 1 "
     "is 63, not 64", [tensor(17, 63), tensor(17, 64), 1.0]),
    ("ValueError", "[TL711] dimension 0 of argument `B` of `scale` is 18, but n is 17 by "
                   "argument `A`",
     [tensor(17, 64), tensor(18, 64), 1.0]),
    ("ValueError", "[TL706] argument `B` of `scale` starts at address 0x1008, expected a "
                   "multiple of "
     "16 bytes, which its code relies on; pass B.clone(), which is aligned",
     [tensor(17, 64), tensor(17, 64, address=0x1008), 1.0]),
    ("ValueError", "[TL706] argument `A` of `scale` starts at address 0x1002, expected a "
                   "multiple of "
     "16 bytes, which its code relies on; pass A.clone(), which is aligned",
     [tensor(17, 64, address=0x1000, offset=2), tensor(17, 64), 1.0]),
    ("ValueError", "[TL707] argument `A` of `scale` is on cpu, expected cuda",
     [tensor(17, 64, device=(1, 0)), tensor(17, 64), 1.0]),
    ("ValueError", "[TL707] argument `B` of `scale` is on cuda:1, but `A` is on cuda:0",
     [tensor(17, 64), tensor(17, 64, device=(2, 1)), 1.0]),
    ("ValueError", "[TL708] argument `A` of `scale` has strides (128, 1), expected a contiguous "
                   "tensor "
     "of shape (17, 64); pass A.contiguous()",
     [tensor(17, 64, strides=[128, 1]), tensor(17, 64), 1.0]),
    ("TypeError", "[TL709] argument `B` of `scale` is the int 5, expected a tensor (n, 64) float16",
     [tensor(17, 64), 5, 1.0]),
    ("TypeError", "[TL717] argument `A` of `scale` is None, expected a tensor: the kernel always "
                  "uses "
     "it", [None, tensor(17, 64), 1.0]),
    ("TypeError", "[TL718] argument `factor` of `scale` is a string, expected a number of dtype "
     "float32", [tensor(17, 64), tensor(17, 64), "1.0"]),
    ("TypeError", "[TL718] n of `scale` is 4294967296, which does not fit int32",
     [tensor(1 << 32, 64), tensor(1 << 32, 64), 1.0]),
    ("RuntimeError", "[TL805] `scale` is to run on cuda:3, but the driver sees 1 device(s): look "
                     "at "
     "CUDA_VISIBLE_DEVICES", [tensor(17, 64, device=(2, 3)), tensor(17, 64, device=(2, 3)), 1.0]),
]  # fmt: skip


@pytest.fixture(scope="module")
def refused(scale: Path, host: Host) -> dict[str, Any]:
    """What each wrong call says: all of them in one process, which lives on."""
    answers = host(scale, [*(call(*args) for _, _, args in WRONG), call(*good())])
    assert answers[-1].error is None and len(answers[-1].launches) == 1
    return {message: answer for (_, message, _), answer in zip(WRONG, answers[:-1], strict=True)}


@pytest.mark.parametrize(("kind", "message"), [(k, m) for k, m, _ in WRONG])
def test_wrong_arguments_are_named(refused: dict[str, Any], kind: str, message: str) -> None:
    answer = refused[message]
    assert answer.error == (kind, message)
    assert answer.launches == [] and answer.depth == 0


def test_the_stride_of_an_axis_of_one_does_not_matter(scale: Path, host: Host) -> None:
    args = [tensor(1, 64, strides=[9999, 1]), tensor(1, 64), 1.0]
    assert host(scale, [call(*args)])[0].error is None


def test_another_architecture_is_refused_by_name(tmp_path: Path, host: Host) -> None:
    library = export(tmp_path, product("scale", [SCALE], ("sm_80", "sm_90a")))
    on = [call(*good(device=(2, d))) for d in range(4)]
    devices = [(10, 0, 232448), (7, 5, 65536), (9, 1, 232448), H200]
    answers = host(library, on, devices=devices)
    text = (
        "[TL416] `scale` was compiled for sm_80, sm_90a; cuda:{}, Test GPU {}, is {}: compile it "
        "with target='cuda:{}'"
    )
    assert [a.error for a in answers] == [
        ("RuntimeError", text.format(0, 0, "sm_100", "sm_100a")),
        ("RuntimeError", text.format(1, 1, "sm_75", "sm_75")),
        ("RuntimeError", text.format(2, 2, "sm_91", "sm_91a")),
        None,
    ]


def test_a_host_without_a_driver(scale: Path) -> None:
    from tests.export.conftest import ask

    (answer,) = ask({"library": str(scale), "calls": [call(*good())]})
    assert answer.error is not None
    kind, message = answer.error
    assert kind == "RuntimeError" and message.startswith(
        "[TL805] `scale` needs an NVIDIA GPU, but "
    )


@pytest.mark.parametrize(
    ("more", "fail", "message"),
    [
        ({"version": 11080}, {}, "[TL805] `scale` needs an NVIDIA GPU, but the driver is for CUDA "
         "11.8, and kernels need 12.0 or later"),
        ({"devices": []}, {}, "[TL805] `scale` needs an NVIDIA GPU, but the CUDA driver sees no "
         "device"),
        ({}, {"cuInit": 1}, "[TL805] `scale` needs an NVIDIA GPU, but the CUDA driver cannot "
                            "start: "
         "CUDA_ERROR_INVALID_VALUE: what it means"),
        ({}, {"cuLibraryLoadData": 200}, "[TL416] the driver, which is for CUDA 13.0, does not "
                                         "take "
         "the binary of `scale` for sm_90a (CUDA_ERROR_INVALID_IMAGE: what it means): update the "
         "driver, or compile with an NVRTC no newer than the driver"),
        ({}, {"cuLibraryGetKernel": 500}, "[TL812] `scale` cannot be loaded on cuda:0 (CUDA error "
         "500): if an earlier kernel failed in this process, start a new one"),
        ({}, {"cuLaunchKernelEx": 1}, "[TL812] launching `scale` on cuda:0 failed (grid (2, 1, 1), "
         "128 threads, 2048 bytes of dynamic shared memory): CUDA_ERROR_INVALID_VALUE: what it "
         "means"),
        ({}, {"cuLaunchKernelEx": 700}, "[TL812] a kernel failed while it ran, noticed at `scale`: "
         "CUDA_ERROR_ILLEGAL_ADDRESS: what it means. The CUDA context is lost, start a new "
         "process; "
         "`compute-sanitizer python FILE` finds the place"),
        ({}, {"cuLaunchKernelEx": 710}, "[TL722] an assertion failed on the device, noticed at "
                                        "`scale` "
         "(CUDA_ERROR_ASSERT: what it means). The CUDA context is lost: start a new process"),
    ],
    ids=lambda x: "" if not isinstance(x, dict) else "-".join(map(str, x)),
)  # fmt: skip
def test_what_the_driver_refuses(
    scale: Path, host: Host, more: dict[str, Any], fail: dict[str, int], message: str
) -> None:
    """Each is said in words, and the next call goes through where it can."""
    answers = host(scale, [call(*good(), fail=fail), call(*good())], **more)
    assert answers[0].error == ("RuntimeError", message)
    assert answers[0].depth == 0
    if not more:
        assert answers[1].error is None and len(answers[1].launches) == 1


def test_large_shared_memory_is_asked_for_and_limited(tmp_path: Path, host: Host) -> None:
    large = replace(SCALE, dynamic_shared=180_000)
    library = export(tmp_path, product("scale", [large], ("sm_80", "sm_90a")))
    answers = host(library, [call(*good(device=(2, d))) for d in (0, 1)], devices=[H200, A100])
    assert "attribute scale_kernel 8 180000" in answers[0].log
    assert answers[1].error == (
        "ValueError", "[TL406] a block of `scale` needs 180000 bytes of shared memory; Test GPU 1 "
        "(sm_80) has 166912",
    )  # fmt: skip


def test_sizes_come_from_extents_products_and_strides(tmp_path: Path, host: Host) -> None:
    params = tuple(KernelParam("dim", name, "int64") for name in ("n", "m", "s0"))
    launch = KernelLaunch("sizes_kernel", params, ("n", ("max", "m", 1), 1), (32, 1, 1))
    library = export(tmp_path, product("sizes", [launch]))

    def sizes(a: list[int], b: list[int], c: list[int], strides: list[int]) -> dict[str, Any]:
        args = [tensor(*a, dtype=FLOAT32), tensor(*b, dtype=FLOAT32),
                tensor(*c, dtype=FLOAT32, strides=strides)]  # fmt: skip
        return call(*args, function="sizes", formats="qqq")

    answers = host(library, [
        sizes([10, 3], [3, 6], [5, 8], [12, 1]), sizes([10, 3], [4, 6], [5, 8], [12, 1]),
        sizes([11, 3], [3, 6], [5, 8], [12, 1]), sizes([10, 3], [3, 5], [5, 8], [12, 1]),
        sizes([10, 3], [3, 6], [5, 8], [12, 2]),
    ])  # fmt: skip
    assert answers[0].launches[0]["params"] == "5;3;12;"
    assert answers[0].launches[0]["grid"] == "5,3,1"
    said = [a.error[1] for a in answers[1:] if a.error]
    assert said == [
        "[TL711] dimension 0 of argument `B` of `sizes` is 4, but m is 3 by argument `A`",
        "[TL711] dimension 0 of argument `A` of `sizes` is 11, but n * 2 is 10 by argument `C`",
        "[TL711] dimension 1 of argument `B` of `sizes` is 5, but n + 1 is 6 by argument `C`",
        "[TL705] argument `C` of `sizes` has strides (12, 2), expected (s0, 1): stride 1 is 2, "
        "not 1",
    ]


def test_scalars_arrive_as_their_types(tmp_path: Path, host: Host) -> None:
    library = export(tmp_path, product("scalars"))
    given = [-3, 200, 1 << 40, True, 1.5, 1.00390625, 0.1, 7]
    a = tensor(16, dtype=FLOAT32, address=64)

    def with_(position: int, value: Any) -> dict[str, Any]:
        changed = [*given[:position], value, *given[position + 1 :]]
        return call(a, *changed, function="scalars", formats="pbbqbhhdi")

    answers = host(library, [
        call(a, *given, function="scalars", formats="pbbqbhhdi"),
        with_(0, 128), with_(1, -1), with_(7, 2.0), with_(3, 2),
    ])  # fmt: skip
    half = struct.unpack("<H", struct.pack("<e", 1.5))[0]
    expected = (64, 253, 200, 1 << 40, 1, half, 0x3F80, f"{0.1:.17g}", 7)
    assert answers[0].launches[0]["params"] == "".join(f"{x};" for x in expected)
    assert [x.error and x.error[1] for x in answers[1:]] == [
        "[TL718] argument `a` of `scalars` is 128, outside the range of int8 (-128 to 127)",
        "[TL718] argument `b` of `scalars` is -1, outside the range of uint8 (0 to 255)",
        "[TL718] argument `h` of `scalars` is the float 2, expected a number of dtype int32",
        "[TL718] argument `d` of `scalars` is 2, outside the range of bool (0 to 1)",
    ]


HALVES = [0.0, -0.0, 1.0, 65504.0, 65519.99, 65520.0, 1e9, 6.1e-5, 5.96e-8, 2.9e-8, 2.99e-8, 1e-12,
          1 + 2**-11, 1 + 3 * 2**-11, -2.000976, float("inf"), float("nan"),
          2.0**-14 - 2.0**-25]  # fmt: skip


def test_float16_rounds_to_nearest_even(tmp_path: Path, host: Host) -> None:
    import numpy as np

    library = export(tmp_path, product("scalars"))
    a = tensor(16, dtype=FLOAT32)
    calls = [
        call(a, 0, 0, 0, False, value, 0.0, 0.0, 0, function="scalars", formats="pbbqbhhdi")
        for value in HALVES
    ]
    with np.errstate(over="ignore"):
        expected = [int(np.float16(v).view(np.uint16)) for v in HALVES]
    found = [int(x.launches[0]["params"].split(";")[5]) for x in host(library, calls)]
    assert found == expected


def test_promises_and_checks_hold_before_anything_is_launched(tmp_path: Path, host: Host) -> None:
    place = Span("/far/away/k.py", 7, 1, 7, 2)
    check = HostCheck(("<", "n", 1000), "at most 999 of 100%", place)
    library = export(tmp_path, product("promised", checks=(check,)))
    answers = host(library, [
        call(tensor(rows, dtype=FLOAT32), function="promised", formats="p")
        for rows in (64, 65, 1024)
    ])  # fmt: skip
    assert answers[0].error is None
    lines = Path(kernels.__file__).read_text().splitlines()
    line = 1 + next(n for n, text in enumerate(lines) if "T.assume" in text)
    assert [x.error for x in answers[1:]] == [
        ("ValueError", f"[TL721] `promised` assumes n % 64 == 0, but n = 65 (kernels.py:{line})"),
        (
            "ValueError",
            "[TL721] the arguments break an assumption of `promised`: at most 999 of 100% (k.py:7)",
        ),
    ]
    assert all(x.launches == [] for x in answers[1:])


def test_two_int4_share_a_byte(tmp_path: Path, host: Host) -> None:
    launch = KernelLaunch(
        "packed_kernel", (KernelParam("dim", "m", "int32"),), (1, 1, 1), (32, 1, 1)
    )
    library = export(tmp_path, product("packed", [launch]))
    good_, bad = (
        call(tensor(4, 8, dtype=INT8), tensor(4, width, dtype=INT8), function="packed", formats="i")
        for width in (16, 8)
    )
    answers = host(library, [good_, bad])
    assert answers[0].launches[0]["params"] == "16;"
    assert answers[1].error == (
        "ValueError", "[TL711] dimension 1 of argument `B` of `packed` is 8, but m is 16 by "
                      "argument "
        "`A`",
    )  # fmt: skip


def test_launch_attributes_and_several_launches(tmp_path: Path, host: Host) -> None:
    first = replace(SCALE, symbol="scale_0", cooperative=True, cluster=(2, 1, 1), params=(A,))
    second = replace(SCALE, symbol="scale_1", grid=(("-", "n", 17), 1, 1), params=(B,))
    third = replace(SCALE, symbol="scale_2", params=(N,), grid=("n", 70000, 1))
    library = export(tmp_path, product("scale", [first, second, third]))
    (answer,) = host(library, [call(*good(), formats="p")])
    # The second has an empty grid, the third one too large.
    assert [(x["symbol"], x["attribute"]) for x in answer.launches] == [("scale_0", "4,2,1,1")]
    assert "attribute=2,1,0,0 attribute=4,2,1,1" in answer.log[-1]
    assert answer.error == ("ValueError", "[TL414] 70000 blocks along y of `scale`; a GPU takes "
                                          "at most "
                            "65535")  # fmt: skip


def test_workspaces_need_an_allocator(tmp_path: Path, host: Host) -> None:
    launch = replace(SCALE, params=(A, KernelParam("workspace", "w", "uint8")))
    work = Workspace("w", "uint8", ("*", "n", 8))
    library = export(tmp_path, product("scale", [launch], workspaces=(work,)))
    (answer,) = host(library, [call(*good(), formats="pp")])
    assert answer.error == ("RuntimeError", "[TL808] `scale` needs 136 bytes of its own on the "
                                            "device: "
                            "pass PyTorch tensors, whose allocator gives them")  # fmt: skip
    assert answer.launches == [] and answer.depth == 0


def test_workspaces_live_for_one_call(tmp_path: Path, host: Host) -> None:
    """From the framework's allocator, given back in the order of the stream: after the launches."""
    w, v = (KernelParam("workspace", name, "uint8") for name in "wv")
    launches = [replace(SCALE, params=(w, v)), replace(SCALE, symbol="second", params=(v, N))]
    work = (Workspace("w", "uint8", ("*", "n", 8)), Workspace("v", "uint8", 0))
    library = export(tmp_path, product("scale", launches, workspaces=work))
    calls = [call(*good(), formats="pi"), call(*good(), fail={"cuLaunchKernelEx": 1})]
    first, second = host(library, calls, allocator=True)
    places = (0x500000, 0x501000)
    assert first.allocations == (
        f"allocate 136 on 2:0 at {places[0]}", f"allocate 1 on 2:0 at {places[1]}",
        f"free {places[0]}", f"free {places[1]}",
    )  # fmt: skip
    assert [x["params"].split(";")[0] for x in first.launches] == [str(p) for p in places]
    # A launch that fails leaks nothing.
    assert second.error is not None and len(second.allocations) == 4 and second.depth == 0


def test_tensor_maps(tmp_path: Path, host: Host) -> None:
    found = TensorMap("A_map", "A", "float16", 32, (64, "n"), (128,), (64, 16), 128)
    launch = replace(SCALE, params=(KernelParam("map", "A_map", "handle"), N))
    library = export(tmp_path, product("scale", [launch], maps=(found,)))
    answers = host(library, [call(*good(), formats="mi"),
                             call(*good(), fail={"cuTensorMapEncodeTiled": 1}),
                             call(*good(0), formats="mi")])  # fmt: skip
    assert answers[2].error is None and any("address=0 shape=64,1," in x for x in answers[2].log)
    assert (
        "map type=6 address=4128 shape=64,17, strides=128, box=64,16, interleave=0 swizzle=3 "
        "promotion=2 fill=0"
    ) in answers[0].log
    assert answers[0].launches[0]["params"] == f"{0x5A};17;"
    assert answers[1].error is not None and answers[1].error[1].startswith(
        "[TL706] argument `A` of `scale` cannot be read by TMA"
    )


def test_kernels_of_one_name_are_chosen_by_their_arguments(tmp_path: Path, host: Host) -> None:
    other = replace(SCALE, symbol="other_kernel")
    library = export(
        tmp_path, product("scale", [SCALE], ("sm_80", "sm_90a")),
        product("other_scale", [other], exported="scale"),
    )  # fmt: skip
    wide, narrow, wrong = (
        call(tensor(17, width), tensor(17, width), 1.0) for width in (64, 32, 16)
    )
    answers = host(library, [wide, narrow, wrong, call(1, 2, 3)])
    assert [x["symbol"] for a in answers for x in a.launches] == ["scale_kernel", "other_kernel"]
    assert answers[2].error == (
        "ValueError",
        "none of the 2 variants of `scale` takes these arguments\n"
        "  1. [TL704] argument `A` of `scale` has shape (17, 16), expected (n, 64): dimension 1 "
        "is 16, "
        "not 64\n"
        "  2. [TL704] argument `A` of `scale` has shape (17, 16), expected (n, 32): dimension 1 "
        "is 16, "
        "not 32",
    )
    assert answers[3].error is not None
    assert "argument `A` of `scale` is the int 1" in answers[3].error[1]


def test_functions_say_what_they_take(tmp_path: Path, compiler: str) -> None:
    library = export(
        tmp_path, product("scale", [SCALE]), product("other_scale", exported="scale"),
        product("nullable"),
    )  # fmt: skip
    assert docs_of(library, "scale", "nullable") == {
        "scale": "scale(A: (n, 64) float16, B: (n, 64) float16, factor: float32)\n"
        "scale(A: (n, 32) float16, B: (n, 32) float16, factor: float32)",
        "nullable": "nullable(A: (n,) float32, B: (n, m) float32 or None, C: (m,) float32 or None)",
    }


def test_functions_of_several_names(tmp_path: Path, host: Host) -> None:
    library = export(
        tmp_path, product("scale", [SCALE]), product("scale", [SCALE], exported="again")
    )
    answers = host(library, [call(*good()), call(*good(), function="again")])
    assert [len(a.launches) for a in answers] == [1, 1]
    assert library.name == "kernels.so"


def test_names_may_be_in_any_script(tmp_path: Path, host: Host) -> None:
    library = export(tmp_path, product("scale", [SCALE], exported="größe"))
    assert library.name == "größe.so"
    answers = host(library, [call(*good(), function="größe"), call(1, function="größe")])
    assert len(answers[0].launches) == 1
    assert answers[1].error == (
        "TypeError", "[TL701] `größe` takes 3 arguments, got 1; call it as `größe(A, B, factor)`"
    )  # fmt: skip


def test_a_size_that_no_argument_gives(tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        export(tmp_path, product("unbound"))
    (found,) = caught.value.diagnostics
    assert found.code == "TL710" and "dimension `n` of `unbound`" in found.message


@pytest.mark.parametrize(
    ("products", "message"),
    [
        (lambda: [product("scale"), product("scale")], "two kernels are both scale(A: (n, 64) "
                                                       "float16, "
         "B: (n, 64) float16, factor: float32) for sm_90a"),
        (lambda: [product("scale"), product("packed", exported="scale")], "kernels called "
                                                                          "`scale` take "
         "different numbers of arguments"),
        (list, "there is nothing to export"),
    ],
)  # fmt: skip
def test_what_cannot_be_in_one_file(tmp_path: Path, products: Any, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        export(tmp_path / "out", *products())
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("TL728", message)
    assert not (tmp_path / "out").exists()


def test_kernels_that_differ_in_strides_or_promises_are_variants(
    tmp_path: Path, compiler: str, host: Host
) -> None:
    """Their arguments read the same: `(n,) float32`."""
    names = ("promised", "every_second", "unpromised")
    library = export(tmp_path, *(product(name, exported="fill") for name in names))
    rows = [tensor(64, dtype=FLOAT32), tensor(64, dtype=FLOAT32, strides=[2]),
            tensor(65, dtype=FLOAT32)]  # fmt: skip
    answers = host(library, [{"function": "fill", "args": [row]} for row in rows])
    assert [a.launches[0]["symbol"] for a in answers] == [f"{name}_kernel" for name in names]


def test_the_same_kernel_traced_again_is_a_build_of_the_same_variant() -> None:
    first, again = (make_signature(kernels.with_its_own_dims()) for _ in range(2))
    assert first.dims[0] is not again.dims[0]
    assert checks_of(first) == checks_of(again)


@pytest.mark.parametrize(
    "name", ['say "k".so', "back\\slash.so", "new\nline.so", "-o.so", "é ü.so"]
)
def test_names_of_files_are_taken_as_they_are(
    tmp_path: Path, compiler: str, host: Host, name: str
) -> None:
    library = export(tmp_path / name, product("scale", [SCALE]))
    (answer,) = host(library, [call(*good())])
    assert (answer.error, len(answer.launches)) == (None, 1)


@pytest.mark.parametrize(
    "text", ["plain", 'q"\\', "what??/n ??=", "tab\t bell\a1 nul\0009 esc\x1b[31m", "é\u202e"]
)
def test_a_c_string_is_what_it_was(tmp_path: Path, compiler: str, text: str) -> None:
    (tmp_path / "k.c").write_text(
        f"#include <stdio.h>\nint main(void) {{ static const char t[] = {quoted(text)}; "
        "fwrite(t, 1, sizeof t - 1, stdout); return 0; }",
        encoding="utf-8",
    )
    subprocess.run([compiler, "-std=gnu11", "k.c", "-o", "k"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "k"], capture_output=True, check=True).stdout
    assert said == text.encode()
    assert quoted(text).isprintable() and "?\\?" not in quoted(text)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_library_outlives_dlclose(tmp_path: Path, compiler: str) -> None:
    """Helper threads of a kernel run its code for as long as the process does."""
    library = export(tmp_path, product("scale", [SCALE]))
    text = (
        "import _ctypes, ctypes, sys, tvm_ffi\n"
        "_ctypes.dlclose(ctypes.CDLL(sys.argv[1])._handle)\n"
        "assert sys.argv[1] in open('/proc/self/maps').read()"
    )
    subprocess.run([sys.executable, "-c", text, str(library)], check=True)
