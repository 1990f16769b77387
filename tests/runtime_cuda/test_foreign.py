"""CUDA source that a kernel brings along: read, checked, compiled, launched, and told of."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import tilelang
import tilelang.language as T
from tests.gpu import foreign
from tests.runtime_cuda.fake_driver import FakeLibrary
from tests.runtime_cuda.test_launches import use
from tilelang.compiler import compile_function
from tilelang.language.frontend import parse_static
from tilelang.options import CompileOptions
from tilelang.program.cuda_signature import Parameter, kernels_of, with_c_linkage
from tilelang.runtime import build
from tilelang.runtime.cuda_compiler import find_nvcc
from tilelang.runtime.fingerprint import fingerprint
from tilelang.runtime.nvrtc import find_nvrtc
from tilelang.runtime.toolchain_cuda import compile_cuda
from tilelang.target import parse_target
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Diagnostic

needs_nvrtc = pytest.mark.skipif(find_nvrtc() is None, reason="needs NVRTC")
KERNELS = (foreign.reversed_blocks, foreign.weighted_rows, foreign.called_functions)

SOURCE = """
__global__ void scale(const float *A, float *B, float s, int n) {
  int i = blockIdx.x * 256 + threadIdx.x;
  if (i < n) B[i] = A[i] * s;
}
"""


def kernel_of(source: Any, **more: Any) -> Any:
    n = T.dynamic("n")

    @T.prim_func
    def scaled(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32"), s: T.float32):
        T.CUDASourceCodeKernel(
            T.ceildiv(n, 256), threads=256, source_code_or_path=source,
            **{"entry_name": "scale", **more},
        )  # fmt: skip

    return scaled


def refusal(call: Any) -> Diagnostic:
    with pytest.raises(CompileError) as caught:
        call()
    found: Diagnostic = caught.value.diagnostics[0]
    return found


def compiled(kernel: Any, target: str = "cuda:sm_80") -> Any:
    return compile_function(kernel.function, parse_target(target), CompileOptions())


# Reading signatures.


@pytest.mark.parametrize(
    ("text", "name", "types"),
    [
        ("__global__ void k() {}", "k", []),
        ("__global__ void k(void) {}", "k", []),
        ('extern "C" __global__ void k(float *__restrict__ a, const int n) {', "k",
         [("float", True), ("int", False)]),
        ("__global__ void __launch_bounds__(128, 2) k(half a[], unsigned int n) {", "k",
         [("half", True), ("unsigned int", False)]),
        ("__launch_bounds__(64) __global__ void k(thing<int, 4> x, void (*f)(int))", "k",
         [("thing<int, 4>", False), ("void (", True)]),
        ("static __global__ void k(const float4* __restrict__ const a = nullptr)", "k",
         [("float4", True)]),
    ],
)  # fmt: skip
def test_what_a_kernel_takes(text: str, name: str, types: list[tuple[str, bool]]) -> None:
    (found,) = kernels_of(text)
    assert found.name == name
    assert found.parameters == tuple(Parameter(*t) for t in types)


def test_comments_and_device_functions_are_no_kernels() -> None:
    text = "// __global__ void a(int x);\n/* __global__ void b() */ __device__ int c();\n"
    assert kernels_of(text) == ()
    assert [k.name for k in kernels_of(text + SOURCE)] == ["scale"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("int x;\n__global__ void k();", 'int x;\nextern "C" __global__ void k();'),
        ("#define A 1\nstatic int f() { return 1; }\n__launch_bounds__(32)\n__global__ void k();",
         '#define A 1\nstatic int f() { return 1; }\nextern "C" __launch_bounds__(32)\n__global__ '
         "void k();"),
        ('#define TWICE(x) \\\n  (2 * (x))\n__global__ void k();',
         '#define TWICE(x) \\\n  (2 * (x))\nextern "C" __global__ void k();'),
        ('int f() { return g("};{", \'"\'); }\n__global__ void k();',
         'int f() { return g("};{", \'"\'); }\nextern "C" __global__ void k();'),
        ('extern "C" {\n__global__ void k();\n}', 'extern "C" {\n__global__ void k();\n}'),
        ('extern "C" { int f(); }\n__global__ void k();',
         'extern "C" { int f(); }\nextern "C" __global__ void k();'),
    ],
)  # fmt: skip
def test_a_kernel_can_be_found_by_its_name(text: str, expected: str) -> None:
    (found,) = kernels_of(text)
    assert with_c_linkage(text, found) == expected


# Checks.


@pytest.mark.parametrize(
    ("source", "more", "message"),
    [
        (SOURCE, {"entry_name": "scales"},
         "the source has no kernel `scales`; did you mean `scale`?"),
        (SOURCE.replace("scale(", "other("), {"entry_name": "main_kernel"},
         "the source has no kernel `main_kernel`"),
        (SOURCE.replace(", float s, int n", ""), {},
         "`scale` takes 2 parameters, and the kernel passes 3 (A, B, s) and up to 1 run-time "
         "dimension"),
        (SOURCE.replace("int n)", "int n, int m)"), {},
         "`scale` takes 5 parameters, and the kernel passes 3 (A, B, s) and up to 1 run-time "
         "dimension"),
        (SOURCE.replace("float s", "float *s"), {},
         "parameter 3 of `scale` is a float pointer, and `s` is a scalar"),
        (SOURCE.replace("int n", "long n"), {},
         "parameter 4 of `scale` is a long, and `n` is int32"),
        (SOURCE.replace("int n", "unsigned short n"), {},
         "parameter 4 of `scale` is an unsigned short, and `n` is int32"),
        (SOURCE.replace("int n", "std::size_t n"), {},
         "parameter 4 of `scale` is a std::size_t, and `n` is int32"),
        (SOURCE.replace("float s", "int s"), {},
         "parameter 3 of `scale` is an int, and `s` is float32"),
        (SOURCE.replace("float *B", "half *B"), {},
         "parameter 2 of `scale` is a half pointer, and `B` is float32"),
        (SOURCE.replace("__global__", "template <int N> __global__"), {},
         "`scale` is a template, of which no instance is named"),
        (None, {}, "`T.CUDASourceCodeKernel` is given no source"),
    ],
)  # fmt: skip
def test_a_source_that_does_not_fit(source: Any, more: dict[str, Any], message: str) -> None:
    found = refusal(lambda: kernel_of(source, **more))
    assert (found.code, found.message) == ("TL189", message)
    assert found.span is not None and found.span.file == __file__


def test_a_path_that_leads_nowhere() -> None:
    found = refusal(lambda: kernel_of("nowhere/scale.cu"))
    assert found.code == "TL189"
    assert "there is no CUDA source nowhere/scale.cu nor " in found.message


def test_statements_beside_the_source() -> None:
    def make() -> Any:
        @T.prim_func
        def main(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32"), s: T.float32):
            with T.CUDASourceCodeKernel(1, source_code_or_path=SOURCE, entry_name="scale"):
                A[0] = 1.0

        return main

    codes = {d.message for d in _all(make)}
    assert "statements inside `with T.CUDASourceCodeKernel(…)`" in codes


def _all(call: Any) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as caught:
        call()
    return caught.value.diagnostics


def test_a_run_time_dimension_may_be_left_out() -> None:
    kernel = kernel_of(SOURCE.replace(", int n", "").replace("i < n", "i < 9"))
    if find_nvrtc() is not None:
        (launch,) = compiled(kernel).artifact.launches
        assert [p.source for p in launch.params] == ["A", "B", "s"]


# Compiling.


@needs_nvrtc
@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
@pytest.mark.parametrize("make", KERNELS, ids=lambda m: m.__name__)
def test_it_compiles_without_a_warning(make: Any, arch: str) -> None:
    (binary,) = compiled(make(), f"cuda:{arch}").artifact.binaries
    assert binary.cubin and binary.warnings == ()


@needs_nvrtc
@pytest.mark.skipif(find_nvcc() is None, reason="needs nvcc")
@pytest.mark.parametrize("make", KERNELS, ids=lambda m: m.__name__)
def test_nvcc_compiles_it_too(make: Any) -> None:
    device = compiled(make()).artifact.device
    assert compile_cuda(device, parse_target("cuda:sm_80"), compiler="nvcc").cubin


@needs_nvrtc
def test_the_source_stands_there_as_it_was_written() -> None:
    text = compiled(kernel_of(SOURCE)).artifact.source
    assert SOURCE.replace("__global__", 'extern "C" __global__') in text
    assert "tl/" not in text


@needs_nvrtc
def test_a_mistake_in_a_string_is_told_at_its_line() -> None:
    wrong = """
__global__ void scale(const float *A, float *B, float s, int n) {
  B[0] = A[0] * misspelt;
  B[1] = missing;
}
"""
    found = refusal(lambda: compiled(kernel_of(wrong)))
    lines = Path(__file__).read_text().splitlines()
    assert found.code == "TL816" and found.span is not None
    assert found.message.endswith('does not compile for sm_80: identifier "misspelt" is undefined')
    assert lines[found.span.line - 1] == "  B[0] = A[0] * misspelt;"
    assert [lines[x.span.line - 1] for x in found.labels] == ["  B[1] = missing;"]
    assert "report" not in (found.help or "")


@needs_nvrtc
def test_a_mistake_in_a_file_is_told_in_that_file(tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(SOURCE.replace("A[i] * s", "A[i] * t"))
    found = refusal(lambda: compiled(kernel_of(path)))
    assert found.code == "TL816" and found.span is not None
    assert (found.span.file, found.span.line, found.span.column) == (str(path), 4, 3)


@needs_nvrtc
def test_a_mistake_in_imported_source() -> None:
    @T.prim_func
    def main(A: T.Tensor((32,), "float32")):
        T.import_source("__device__ float twice(float x) { return 2 * y; }")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                A[i] = T.call_extern("float32", "twice", A[i])

    found = refusal(lambda: compiled(main))
    assert (found.code, found.message) == (
        "TL816", 'the CUDA source does not compile for sm_80: identifier "y" is undefined'
    )  # fmt: skip


@needs_nvrtc
def test_a_function_that_nothing_defines() -> None:
    @T.prim_func
    def main(A: T.Tensor((32,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                A[i] = T.call_extern("float32", "nowhere", A[i])

    found = refusal(lambda: compiled(main))
    assert (found.code, found.message) == (
        "TL816", "no CUDA source defines `nowhere`, which is called here"
    )  # fmt: skip
    assert found.span is not None and found.span.file == __file__


@needs_nvrtc
def test_source_imported_inside_a_launch_and_an_intrinsic() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.import_source("static __device__ float g(float x) { return x; }")
            for i in T.Parallel(64):
                A[i] = T.call_extern("float32", "g", A[i])
                A[i] = T.call_intrin("float32", "__fdividef", A[i], 2.0)

    text = compiled(main).artifact.source
    assert text.index("float g(float x)") < text.index("main_kernel(")
    assert "A[i] = __fdividef(A[i], 2.0f);" in text


@needs_nvrtc
def test_a_mistake_in_a_literal_with_escapes() -> None:
    wrong = "\n__global__ void scale(const float *A, float *B, float s) {\n\
  B[0] = another_misspelt;\n}\n"
    found = refusal(lambda: compiled(kernel_of(wrong)))
    assert found.code == "TL816" and found.span is not None and found.span.file == __file__


@pytest.mark.parametrize("make", [foreign.reversed_blocks, foreign.called_functions])
def test_a_cpu_refuses_it_by_name(make: Any) -> None:
    found = refusal(lambda: compiled(make(), "cpu"))
    what = "T.CUDASourceCodeKernel" if make is foreign.reversed_blocks else "T.import_source"
    assert (found.code, found.message) == (
        "TL401", f"`{what}` brings CUDA source, which cpu does not run"
    )  # fmt: skip
    assert found.span is not None and found.span.file == foreign.__file__


def test_the_fingerprint_knows_the_source(tmp_path: Path) -> None:
    path = tmp_path / "scale.cu"
    path.write_text(SOURCE)
    marks = [fingerprint(kernel_of(s).function).digest for s in (SOURCE, SOURCE + " ")]
    marks.append(fingerprint(kernel_of(path).function).digest)
    path.write_text(SOURCE.replace("* s", "+ s"))
    marks.append(fingerprint(kernel_of(path).function).digest)
    assert len({marks[0], marks[1], marks[3]}) == 3 and marks[2] != marks[3]


# Launching.


@needs_nvrtc
def test_what_the_driver_gets(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = use(monkeypatch, FakeLibrary(formats=("Q", "Q", "f", "i")))
    artifact = compiled(kernel_of(SOURCE, cluster_dims=2), "cuda:sm_90a").artifact
    from tilelang.runtime.cuda import load_cuda

    load_cuda(artifact).run([0x1000, 0x2000, 1.5, 1000])
    (seen,) = driver.launches
    assert (seen.grid, seen.block, seen.shared) == ((4, 1, 1), (256, 1, 1), 0)
    assert seen.parameters == (0x1000, 0x2000, 1.5, 1000)
    assert seen.attributes == ((4, 2, 1, 1, 0),)


# Tools.


@pytest.mark.parametrize(("make", "what"), [(foreign.reversed_blocks, "the kernel "
                                             "`reversed_blocks`"),
                                            (foreign.called_functions, "`softsign`")])  # fmt: skip
def test_the_compiler_says_that_it_cannot_see_inside(make: Any, what: str) -> None:
    if find_nvrtc() is None:
        pytest.skip("needs NVRTC")
    found = [d for d in compiled(make()).diagnostics if d.code == "TL418"]
    assert found[0].message == (
        f"the compiler cannot see into {what}: its accesses, barriers and speed are not looked at"
    )
    assert found[0].span is not None


def test_so_do_lint_and_the_editor() -> None:
    text = Path(foreign.__file__).read_text()
    found = parse_static(text, foreign.__file__, target="cuda:sm_80").all_diagnostics
    assert {d.code for d in found} == {"TL418"}


def test_the_program_is_printed_with_its_entry() -> None:
    text = kernel_of(SOURCE).script()
    assert "with T.CUDASourceCodeKernel(" in text and "entry_name='scale'):" in text


def test_the_file_is_found_beside_the_kernels(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "near.cu").write_text(SOURCE)
    (tmp_path / "kernels_near.py").write_text(
        "import tilelang.language as T\n\n\n@T.prim_func\n"
        "def main(A: T.Tensor((256,), 'float32'), B: T.Tensor((256,), 'float32'), s: T.float32,\n"
        "         n: T.int32):\n"
        "    T.CUDASourceCodeKernel(1, threads=256, source_code_or_path='near.cu',\n"
        "                           entry_name='scale')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import kernels_near  # type: ignore[import-not-found]

    sys.modules.pop("kernels_near")
    assert tilelang.PrimFunc is type(kernels_near.main)


@tilelang.jit(target="cuda:sm_80")
def halved(A):  # type: ignore[no-untyped-def]
    N = T.const("N")
    A: T.Tensor((N,), "float32")  # type: ignore[no-redef]
    B = T.empty((N,), "float32")
    T.CUDASourceCodeKernel(T.ceildiv(N, 256), threads=256, source_code_or_path="""
__global__ void halve(const float *A, float *B) {
  int i = blockIdx.x * 256 + threadIdx.x;
  B[i] = A[i] / 2;
}
""", entry_name="halve")  # fmt: skip
    return B


@needs_nvrtc
def test_an_eager_kernel_passes_what_it_returns(cache_dir: Path) -> None:
    kernel = halved.compile(N=512)
    (launch,) = kernel.artifact.launches
    assert [p.source for p in launch.params] == ["A", "B"]
    assert kernel.written_inputs() == [0]  # it may write all it gets
    assert kernel.out_idx == [1]


@needs_nvrtc
def test_a_source_kernel_beside_a_kernel_of_tiles() -> None:
    source = SOURCE.replace(", int n", "").replace("< n", "< 256")

    @T.prim_func
    def both(A: T.Tensor((256,), "float32"), B: T.Tensor((256,), "float32"), s: T.float32):
        with T.Kernel(1, threads=256):
            for i in T.Parallel(256):
                A[i] = T.exp(A[i])
        T.CUDASourceCodeKernel(
            1, threads=256, source_code_or_path=source, entry_name="scale"
        )  # fmt: skip

    artifact = compiled(both).artifact
    assert [x.symbol for x in artifact.launches] == ["both_kernel_0", "scale"]
    assert artifact.source.index("#include <tl/") < artifact.source.index("both_kernel_0")


@needs_nvrtc
def test_from_the_cache_it_is_still_known_as_foreign(cache_dir: Path) -> None:
    first = tilelang.compile(kernel_of(SOURCE), target="cuda:sm_80")
    build.forget()
    again = tilelang.compile(kernel_of(SOURCE), target="cuda:sm_80")
    assert (first.from_cache, again.from_cache) == (False, True)
    assert again.artifact.device.source == first.artifact.device.source
    assert any(line.foreign for line in again.artifact.device.source.lines)
    assert not tilelang.compile(kernel_of(SOURCE + "\n"), target="cuda:sm_80").from_cache
