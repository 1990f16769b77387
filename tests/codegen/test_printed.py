"""Printed kernels: whole ones as files, expressions and small statements as tables."""

from pathlib import Path

import pytest

import tilelang.language as T
from tests.codegen import kernels
from tests.support.cuda import ARCHS, golden_source, needs_nvrtc
from tests.support.device import device_func
from tilelang.codegen.c_expr import Expressions
from tilelang.codegen.c_names import Names
from tilelang.codegen.c_text import Unsupported, c_string
from tilelang.codegen.cuda import CUDA, CudaError, print_cuda
from tilelang.codegen.device_source import DeviceSource
from tilelang.ir import build, tirx
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import Target

GOLDENS = Path(__file__).parent / "goldens"
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", kernels.GOLDEN)
def test_golden(name, update):
    text = golden_source(name).text.replace(f"{ROOT}/", "")
    path = GOLDENS / f"{name}.cu"
    if update:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert text == path.read_text()


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", kernels.GOLDEN)
def test_golden_compiles(name, arch):
    if name == "hopper_gemm" and arch != "sm_90a":
        pytest.skip("uses wgmma")
    binary = compile_cuda(golden_source(name), Target("cuda", arch))
    assert binary.warnings == ()
    assert all(r.spill_stores == r.spill_loads == 0 for r in binary.resources)
    assert binary.ptx.startswith("//")


@pytest.mark.parametrize("name", kernels.GOLDEN)
def test_only_names_of_ours(name):
    """No inline assembly, no intrinsic of a vendor."""
    text = golden_source(name).text
    assert "asm" not in text
    body = text.partition('extern "C"')[2].replace("__launch_bounds__", "")
    for word in ("__align__", "__restrict__", "__shared__", "__grid_constant__", "__global__"):
        body = body.replace(word, "")
    assert "__" not in body


# --- expressions ---

i, j, n = (tirx.Var(name, "int32") for name in "ijn")
u = tirx.Var("u", "uint32")
w = tirx.Var("w", "int64")
x, y = tirx.Var("x", "float32"), tirx.Var("y", "float32")
h = tirx.Var("h", "float16")
b8 = tirx.Var("b8", "int8")
q = tirx.Var("q", "float8_e4m3fn")
p, r = tirx.Var("p", "bool"), tirx.Var("r", "bool")


def c(value, dtype="int32"):
    return build.const(value, dtype)


def op(text, *operands):
    return build.binary(text, *operands)


def call(name, *args, dtype):
    return tirx.Call(name, list(args), ret_ty=dtype)


EXPRESSIONS = [
    (op("+", op("*", i, j), n), "i * j + n"),
    (op("*", op("+", i, j), n), "(i + j) * n"),
    (op("-", i, op("-", j, n)), "i - (j - n)"),
    (op("+", i, op("+", j, n)), "i + j + n"),
    (op("+", x, op("+", y, x)), "x + (y + x)"),
    (op("-", i, c(-3)), "i + 3"),
    (op("+", i, c(-3)), "i - 3"),
    (op("+", i, c(0)), "i"),
    (op("-", c(0), i), "-i"),
    (op("*", x, c(-1, "float32")), "-x"),
    (op("&", op("<<", i, c(2)), c(7)), "(i << 2) & 7"),
    (op("^", op("+", i, j), op("%", i, c(8))), "(i + j) ^ (i % 8)"),
    (op("and", op("<", i, j), op("or", p, r)), "i < j && (p || r)"),
    (op("or", op("and", p, r), op("==", i, j)), "(p && r) || i == j"),
    (tirx.Not(op("<", i, j)), "!(i < j)"),
    (op("//", i, c(8)), "i / 8"),
    (op("%", i, c(8)), "i % 8"),
    (op("//", n, c(8)), "n >> 3"),
    (op("%", n, c(8)), "n & 7"),
    (op("//", n, c(6)), "tl::floordiv(n, 6)"),
    (op("%", n, j), "tl::floormod(n, j)"),
    (op("//", u, c(6, "uint32")), "u / 6u"),
    (op("truncdiv", n, c(6)), "n / 6"),
    (op("min", i, op("max", j, n)), "tl::min(i, tl::max(j, n))"),
    (c(-(1 << 31)), "(-2147483647 - 1)"),
    (c(1 << 40, "int64"), "1099511627776ll"),
    (c(1, "bool"), "true"),
    (c(0.1, "float32"), "0.1f"),
    (c(1e-5, "float32"), "1e-05f"),
    (c(float("-inf"), "float32"), "-tl::infinity<float>()"),
    (c(float("nan"), "float64"), "tl::nan<double>()"),
    (c(0.5, "float16"), "tl::float16(0.5f)"),
    (c(0.1, "float64"), "0.1"),
    (c(3, "int8"), "tl::int8(3)"),
    (build.cast(i, "float32"), "float(i)"),
    (build.cast(h, "float32"), "float(h)"),
    (build.cast(x, "float16"), "tl::cast<tl::float16>(x)"),
    (build.cast(h, "bfloat16"), "tl::cast<tl::bfloat16>(h)"),
    (build.cast(x, "int4"), "tl::wrap<4>(tl::cast<tl::int8>(x))"),
    (build.cast(i, "uint8"), "tl::uint8(i)"),
    (op("+", build.cast(i, "int64"), op("*", w, c(8, "int64"))), "i + w * 8"),
    (op("*", build.cast(i, "int64"), c(8, "int64")), "tl::int64(i) * 8"),
    (op("*", build.cast(i, "int64"), build.cast(j, "int64")), "tl::int64(i) * j"),
    (op("+", b8, b8), "tl::int8(b8 + b8)"),
    (op("+", q, q), "tl::cast<tl::float8_e4m3fn>(float(q) + float(q))"),
    (op("<", q, q), "float(q) < float(q)"),
    (op("+", h, h), "h + h"),
    (build.select(p, x, y, lazy=True), "p ? x : y"),
    (op("+", build.select(op("<", i, j), x, y, lazy=False), x), "(i < j ? x : y) + x"),
    (build.select(p, x, build.select(r, y, x, lazy=True), lazy=True), "p ? x : r ? y : x"),
    (call("tirx.exp", x, dtype="float32"), "tl::exp(x)"),
    (call("tirx.pow", x, c(3, "float32"), dtype="float32"), "tl::power<3>(x)"),
    (call("tirx.pow", x, y, dtype="float32"), "tl::pow(x, y)"),
    (call("tirx.exp", q, dtype="float8_e4m3fn"),
     "tl::cast<tl::float8_e4m3fn>(tl::exp(float(q)))"),
    (call("tirx.popcount", u, dtype="uint32"), "tl::uint32(tl::popcount(u))"),
    (call("tirx.reinterpret", x, dtype="int32"), "tl::bit_cast<int>(x)"),
    (call("prim.likely", op("<", i, j), dtype="bool"), "i < j"),
    (tirx.Broadcast(x, 4), "tl::broadcast<4>(x)"),
    (tirx.Shuffle([x, y], [c(0), c(1)]), "tl::vec<float, 2>{x, y}"),
]  # fmt: skip


@pytest.mark.parametrize(("expr", "text"), EXPRESSIONS, ids=[text for _, text in EXPRESSIONS])
def test_expression(expr, text):
    printer = Expressions(CUDA, Names(CUDA.reserved))
    for var in (i, j):
        printer.analyzer.bind(var, tirx.Range.from_min_extent(c(0), c(1024)))
    assert printer.expr(expr) == text


def test_refused_expression():
    printer = Expressions(CUDA, Names())
    with pytest.raises(Unsupported, match="an integer power with an exponent"):
        printer.expr(call("tirx.pow", i, j, dtype="int32"))


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("plain", '"plain"'),
        ('say "hi"\n', '"say \\"hi\\"\\n"'),
        ("100% \\ ?", '"100% \\\\ \\077"'),
        ("µ", '"\\302\\265"'),
    ],
)
def test_string(text, literal):
    assert c_string(text) == literal


# --- statements ---


def lines_of(kernel, **how):
    """The printed body of a kernel, without its frame."""
    lines = print_cuda(device_func(kernel, **how)).text.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith('extern "C"'))
    return [line.strip() for line in lines[start + 1 : -1]]


def test_names_are_legal_and_unique():
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), blockDim: T.int32):
        with T.Kernel(1, threads=64) as template:
            register = T.get_thread_binding()
            for new in T.serial(2):
                A[register] = A[register] + T.cast(new * blockDim, "float32")
            for new in T.serial(3):
                A[register] = A[register] * T.cast(new + template, "float32")

    text = print_cuda(device_func(main)).text
    assert "const int blockDim_1" in text
    assert "blockDim)" not in text


def test_a_kernel_takes_what_it_uses():
    m, k = T.dynamic("m"), T.dynamic("k")

    @T.prim_func
    def main(A: T.Tensor((m, k), "float32"), unused: T.Tensor((m,), "float32"), s: T.float32):
        with T.Kernel(m, threads=32) as bx:
            A[bx, T.get_thread_binding()] = 1.0

    source = print_cuda(device_func(main))
    (launch,) = source.launches
    assert [(p.kind, p.source, p.written) for p in launch.params] == [
        ("buffer", "A", True), ("dim", "k", False),
    ]  # fmt: skip
    assert [s.name for s in source.slots] == ["A", "unused", "s", "m", "k"]
    assert launch.grid_of({"m": 7, "k": 2}) == (7, 1, 1)
    assert lines_of(main)[-1] == "A[tl::int64(bx) * k + tx] = 1.0f;"


def test_values_of_the_host_are_computed_where_they_are_used():
    m = T.dynamic("m")

    @T.prim_func
    def main(A: T.Tensor((m,), "float32")):
        rows = m // 4
        with T.Kernel(rows, threads=32) as bx:
            if bx < rows - 1:
                A[bx] = 1.0

    assert "const int rows = m / 4;" in lines_of(main)


def test_manifest_round_trip():
    for name in kernels.GOLDEN:
        source = golden_source(name)
        assert DeviceSource.from_manifest(source.text, source.manifest()) == source


def test_two_launches_are_two_kernels():
    source = golden_source("statements")
    assert [launch.symbol for launch in source.launches] == ["main_kernel_0", "main_kernel_1"]
    assert source.launches[0].grid_of({"n": 1000, "limit": 3}) == (8, 1, 1)
    assert source.launches[0].grid_of({"n": 0, "limit": 3}) == (0, 1, 1)
    assert source.launches[1].dynamic_shared == 128


def test_alignment_of_arguments_is_what_vectors_need():
    (launch,) = golden_source("gemm").launches
    assert {p.source: p.alignment for p in launch.params} == {"A": 16, "B": 16, "C": 8}


def test_tensor_maps_are_parameters_with_a_recipe():
    source = golden_source("hopper_gemm")
    (launch,) = source.launches
    assert [p.kind for p in launch.params] == ["map", "map", "map"]
    first = source.maps[0]
    assert (first.name, first.source, first.dtype) == ("A_map", "A", "float16")
    assert (first.shape, first.strides, first.box) == ((320, 128), (640,), (64, 64))
    assert first.swizzle == 128


def test_refusal_names_the_operation():
    @T.prim_func
    def main(A: T.Tensor((64,), "uint32")):
        with T.Kernel(1, threads=64) as _:
            T.tcgen05_before_thread_sync()
            A[T.get_thread_binding()] = T.cast(1, "uint32")

    with pytest.raises(CudaError) as refused:
        print_cuda(device_func(main))
    (found,) = refused.value.diagnostics
    assert found.code == "TL401"
    assert found.message == "T.tcgen05_before_thread_sync cannot be compiled for CUDA"
    assert found.span is not None and found.span.file == __file__
