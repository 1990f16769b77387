"""Printed Metal: whole kernels as files, what the check catches, and what is refused by name."""

from __future__ import annotations

import re
import runpy
import subprocess
from functools import cache
from pathlib import Path

import pytest

import tilelang
import tilelang.language as T
from tests.metal import kernels
from tests.metal.printed import (
    APPLE,
    complaints,
    source_of,
    with_statement,
    with_words,
)
from tests.support.clang import needs_clang
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.metal import print_metal
from tilelang.codegen.metal_text import HEADERS, self_contained
from tilelang.codegen.metal_words import unknown_words
from tilelang.codegen.source_map import Line
from tilelang.compiler import lower_function
from tilelang.options import CompileOptions
from tilelang.runtime.clang import find_clang
from tilelang.runtime.toolchain_metal import SHIM, STRICT
from tilelang_diagnostics import CompileError

GOLDENS = Path(__file__).parent / "goldens"


@cache
def product() -> DeviceSource:
    """The source of a product, to plant mistakes in."""
    return source_of(kernels.product())


@pytest.mark.parametrize("name", kernels.GOLDEN)
def test_golden(name: str, update: bool) -> None:
    text = source_of(kernels.GOLDEN[name]()).text
    path = GOLDENS / f"{name}.metal"
    if update:
        path.write_text(text)
    assert text == path.read_text()


@needs_clang
@pytest.mark.parametrize("name", kernels.GOLDEN)
def test_golden_is_clean(name: str) -> None:
    assert complaints(source_of(kernels.GOLDEN[name]())) == []


@needs_clang
def test_self_contained_needs_no_files_of_ours(tmp_path: Path) -> None:
    text = self_contained(source_of(kernels.product(epilogue=True)))
    assert re.findall(r"#include <(.*)>", text) == ["metal_stdlib", "metal_simdgroup_matrix"]
    path = tmp_path / "product.metal"
    path.write_text(text.replace("alignas(16) threadgroup", "alignas(16) static threadgroup"))
    clang = find_clang()
    assert clang is not None
    done = subprocess.run(
        [*clang.command, *STRICT, f"-I{SHIM}", str(path)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("tile", "threads"), [((64, 32, 32), 128), ((32, 32, 16), 64), ((24, 40, 8), 32)]
)
def test_matrix_instructions_are_counted(tile: tuple[int, int, int], threads: int) -> None:
    """Each step along K takes one 8x8x8 product for each 512 of the tile's, in all simdgroups."""
    source = source_of(kernels.product(tile=tile, threads=threads))
    m, n, k = tile
    made = _executed(source.source.lines, "tl::simdgroup_multiply")
    assert made * (threads // 32) == m * n * k // 512
    loads = _executed(source.source.lines, "tl::simdgroup_load")
    assert loads < made * 2


def test_sums_stay_matrices() -> None:
    text = product().text
    loop = text.partition("for (int step")[2].partition("simdgroup_store")[0]
    assert text.count("tl::simdgroup_store") == 1
    assert "C_l" not in loop.replace("C_l_matrices", "").replace("C_l_shared", "")


def _executed(lines: tuple[Line, ...], word: str) -> int:
    """How often the innermost constant loops around the one line with `word` run it: loops whose
    bounds are no constants, or that step along K, count once."""
    found, loops = 0, []
    for line in lines:
        depth = len(line.text) - len(line.text.lstrip())
        loops = [(d, n) for d, n in loops if d < depth]
        loop = re.match(r"\s*for \(int (\w+) = 0; \w+ < (\d+);", line.text)
        if loop is not None:
            loops.append((depth, 1 if loop[1] == "step" else int(loop[2])))
        if word in line.text:
            times = 1
            for _, count in loops:
                times *= count
            found += times
    return found


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"tile": (128, 64, 32)}, None),
        ({"tile": (128, 64, 32), "epilogue": True}, "have no room in shared memory"),
    ],
)
def test_large_tiles_leave_in_strips(said: dict[str, object], why: str | None) -> None:
    """Where others look at the sums, all of them have to be in shared memory at once."""
    lowered = lower_function(kernels.product(**said).function, APPLE, CompileOptions())
    found = [d.message for d in lowered.diagnostics if d.code == "TL606"]
    assert found == [] if why is None else len(found) == 1 and why in found[0]
    text = print_metal(lowered.func).text
    assert ("tl::simdgroup_multiply" in text) == (why is None)


def test_a_product_without_matrices_is_remarked() -> None:
    lowered = lower_function(kernels.product(tile=(20, 20, 12)).function, APPLE, CompileOptions())
    (found,) = [d for d in lowered.diagnostics if d.code == "TL606"]
    assert "`C_l` runs on the ordinary units of metal:apple9" in found.message
    assert found.span is not None and found.span.file.endswith("kernels.py")


# --- what the check catches ---

PLANTED = {
    "other memory": "threadgroup float* q = C;",
    "no memory": "float* q = C;",
    "a cast between memories": "threadgroup half* q = (threadgroup half*)A;",
    "a cast to no memory": "half* q = reinterpret_cast<half*>(A_s);",
    "a double": "double q = 1;",
    "exceptions": "try { bx; } catch (...) {}",
    "new": "thread float* q = new float[4];",
    "goto": "goto end;",
    "a swizzle": "float4 q = float4(1); float r = q.xq;",
    "a matrix of 16 rows": "metal::simdgroup_matrix<half, 16, 8> q;",
    "a matrix of integers": "metal::simdgroup_matrix<int, 8, 8> q;",
    "elements of a matrix": "C_l_matrices[0].thread_elements();",
    "a matrix of another type": "tl::simdgroup_load<8>(&C_l_matrices[0], A_s);",
    "no such function": "tl::nothing();",
    "a function of C": "float q = expf(1.0f);",
    "maths of an integer": "float q = metal::precise::exp(1);",
    "a barrier with a number": "tl::sync_threads(1, 64);",
    "a shuffle of 64 bits": "long q = tl::shfl_xor(1l, 1, 0xffffffffu);",
    "an atomic half": "tl::atomic_add(A_s, half(1));",
    "a lambda": "auto q = [=](float x) { return x; };",
    "a static variable": "static int q = 0;",
    "long long": "long long q = 0;",
    "if constexpr": "if constexpr (true) {}",
    "assembly": 'asm("");',
}


@needs_clang
@pytest.mark.parametrize("what", PLANTED)
def test_planted_statement_is_caught(what: str) -> None:
    source = product()
    found = complaints(with_statement(source, f"  {PLANTED[what]}"))
    assert len(found) == 1 and "rejected the generated source for apple9: " in found[0]


@needs_clang
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("const device half* A", "const half* A"),
        ("[[buffer(0)]]", "[[bufer(0)]]"),
        ("thread_position_in_threadgroup", "thread_position_in_block"),
        ("threadgroup half* A_s =", "device half* A_s ="),
        ("#include <tl/simdgroup.h>", ""),
        ("uint3 thread_position", "uint2 thread_position"),
    ],
)
def test_planted_word_is_caught(old: str, new: str) -> None:
    source = product()
    wrong = with_words(source, old, new)
    if old.startswith("uint3"):
        wrong = with_words(wrong, "int(thread_position.x)", "int(thread_position.z)")
    assert complaints(wrong)


@needs_clang
def test_constants_are_not_written() -> None:
    source = source_of(kernels.scaled())
    assert complaints(with_statement(source, "  factor = 1.0f;"))
    assert complaints(with_statement(source, "  float q = factor;")) == []


def test_failures_are_at_lines_of_python() -> None:
    source = with_statement(product(), "  static int q = 0;")
    ((number, text),) = unknown_words(source.source.lines)
    assert text == "a kernel of Metal has no static variables"
    assert source.source.lines[number - 1].span.file.endswith("kernels.py")


# --- what is refused by name ---


def _refused(kernel: object) -> object:
    with pytest.raises(CompileError) as caught:
        lowered = lower_function(kernel.function, APPLE, CompileOptions())
        source_of_lowered(lowered.func)
    (found,) = [d for d in caught.value.diagnostics if d.code in ("TL401", "TL402")]
    return found


def source_of_lowered(func: object) -> None:
    from tilelang.codegen.device_printer import PrintError
    from tilelang_diagnostics import error_for

    try:
        print_metal(func)
    except PrintError as refused:
        raise error_for(refused.diagnostics) from None


@T.prim_func
def of_doubles(A: T.Tensor((64,), "float64")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = A[i] + 1


@T.prim_func
def of_fp8(A: T.Tensor((64,), "float8_e4m3fn")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = A[i]


@T.prim_func
def of_half_atomics(A: T.Tensor((64,), "float16")):
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            T.atomic_add(A[0], A[i])


@T.prim_func
def of_grid_barriers(A: T.Tensor((64,), "float32")):
    with T.Kernel(2, threads=64):
        A[0] = 1
        T.sync_grid()


@T.prim_func
def of_printing(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        T.print(A[0])


@T.prim_func
def of_foreign_functions(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        A[0] = T.call_extern("float32", "__expf", A[0])


@T.prim_func
def of_assertions(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        T.device_assert(A[0] > 0)


@pytest.mark.parametrize(
    ("kernel", "what"),
    [
        (of_doubles, "dtype float64"),
        (of_fp8, "dtype float8_e4m3fn"),
        (of_half_atomics, "T.atomic_add of float16"),
        (of_grid_barriers, "`T.sync_grid` does not exist on metal:apple9"),
        (of_printing, "`T.print` does not exist on metal:apple9"),
        (of_foreign_functions, "T.call_extern of __expf"),
        (of_assertions, "an assertion (the headers for Metal do not have it yet)"),
    ],
    ids=lambda value: value if isinstance(value, str) else value.function.name,
)
def test_refused(kernel: object, what: str) -> None:
    found = _refused(kernel)
    assert found.message.startswith(what)
    assert found.span is not None and found.span.file.endswith("test_printed.py")


def test_parameters_are_counted(tmp_path: Path) -> None:
    names = [f"s{n}" for n in range(31)]
    path = tmp_path / "many.py"
    path.write_text(
        "import tilelang.language as T\n\n\n@T.prim_func\n"
        f"def many(A: T.Tensor((64,), 'float32'), {', '.join(f'{n}: T.float32' for n in names)}):\n"
        "    with T.Kernel(1, threads=64):\n"
        "        for i in T.Parallel(64):\n"
        f"            A[i] = {' + '.join(names)}\n"
    )
    kernel = runpy.run_path(str(path))["many"]
    assert _refused(kernel).message.startswith("a kernel with 32 tensors and numbers")


def test_shared_memory_is_counted_before_a_launch() -> None:
    with pytest.raises(CompileError, match=r"TL406.*metal:apple9 has 32768"):
        tilelang.compile(kernels.product(tile=(256, 64, 64), threads=256), target="metal:apple9")


def test_headers_have_no_words_metal_lacks() -> None:
    for path in sorted((HEADERS / "tl").glob("*.h")):
        text = re.sub(r"//.*", "", path.read_text())
        assert not re.search(r"\bif constexpr\b|\[[=&]\]|\bdouble\b|\blong long\b|\basm\b", text)
