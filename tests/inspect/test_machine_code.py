"""Instructions, and the lines of Python they are from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tilelang
from tests.inspect import kernels
from tests.inspect.conftest import Inspect
from tests.inspect.kernels import line_of
from tests.support.cuda import needs_nvdisasm, needs_nvrtc
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.inspection.inspect import _Code
from tilelang.inspection.model import Inspection, KernelReport
from tilelang.runtime import sass
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Span

ARCHS = ("sm_80", "sm_90a")
pytestmark = [needs_nvrtc, needs_nvdisasm]


def by_line(kernel: KernelReport, name: str) -> dict[int, int]:
    """How many there are on each line."""
    found: dict[int, int] = {}
    for line in kernel.lines:
        assert line.span.file == kernels.__file__
        if line.counts[name]:
            found[line.span.line] = found.get(line.span.line, 0) + line.counts[name]
    return found


# Matrix instructions of a thread: by warps of 16 x 16 x 16, by warp groups of 64 x 64 x 16.
OF_GEMM = {"sm_80": 16, "sm_90a": 2}
OF_ATTENTION = {"sm_80": 32, "sm_90a": 4}


@pytest.mark.parametrize("arch", ARCHS)
def test_the_lines_of_a_gemm(inspect: Inspect, arch: str) -> None:
    """64 x 64 x 32 by 128 threads; 4 copies of 16 bytes, written out thrice."""
    kernel = inspect("matmul", arch).kernel()
    assert by_line(kernel, "mma") == {line_of("gemm"): OF_GEMM[arch]}
    assert by_line(kernel, "ldmatrix") == ({line_of("gemm"): 8} if arch == "sm_80" else {})
    assert by_line(kernel, "cp.async") == {line_of("copy A"): 6, line_of("copy B"): 6}
    assert by_line(kernel, "cp.async.b128") == by_line(kernel, "cp.async")
    assert set(by_line(kernel, "st.global")) == {line_of("store C")}
    assert by_line(kernel, "ld.global") == by_line(kernel, "ld.shared") == {}
    assert kernel.counts["mma"] == OF_GEMM[arch] and kernel.counts["barrier"] == 1


@pytest.mark.parametrize("arch", ARCHS)
def test_the_lines_of_attention(inspect: Inspect, arch: str) -> None:
    kernel = inspect("attention", arch).kernel()
    count = OF_ATTENTION[arch]
    assert by_line(kernel, "mma") == {line_of("Q K"): count, line_of("P V"): count}
    loads = {line_of("Q K"): 20, line_of("P V"): 16} if arch == "sm_80" else {}
    assert by_line(kernel, "ldmatrix") == loads
    assert by_line(kernel, "cp.async") == {line_of("copy K"): 8, line_of("copy V"): 8}
    assert by_line(kernel, "ld.global.nc") == {line_of("copy Q"): 4}
    assert by_line(kernel, "shuffle") == {line_of("peaks"): 4, line_of("sums"): 4}
    assert set(by_line(kernel, "st.global")) == {line_of("store O")}


@pytest.mark.parametrize("name", ["matmul", "attention"])
@pytest.mark.parametrize("arch", ARCHS)
def test_nearly_every_instruction_has_a_line(inspect: Inspect, name: str, arch: str) -> None:
    """All but the jump to itself that ptxas ends a kernel with, and the frame of the function."""
    kernel = inspect(name, arch).kernel()
    assert kernel.mapped >= kernel.counts["instructions"] - 2
    mapped = sum(line.counts["instructions"] for line in kernel.lines)
    assert mapped == kernel.mapped


@pytest.mark.parametrize("arch", ARCHS)
def test_the_loop_of_a_pipeline(inspect: Inspect, arch: str) -> None:
    (loop,) = inspect("matmul", arch).kernel().loops
    assert loop.span is not None and loop.span.line == line_of("steps")
    assert (loop.variable, loop.depth) == ("k", 0)
    held = {n: loop.counts[n] for n in ("mma", "ldmatrix", "cp.async", "barrier", "cp.async.wait")}
    loads = 8 if arch == "sm_80" else 0
    assert held == {
        "mma": OF_GEMM[arch], "ldmatrix": loads, "cp.async": 4, "barrier": 1, "cp.async.wait": 1,
    }  # fmt: skip


@pytest.mark.parametrize("arch", ARCHS)
def test_loops_in_loops(inspect: Inspect, arch: str) -> None:
    loops = inspect("sums", arch).kernel().loops
    places = [(loop.span.line, loop.variable, loop.depth) for loop in loops if loop.span]
    assert places[0] == (line_of("outer"), "i", 0)
    assert set(places[1:]) == {(line_of("inner"), "j", 1)}
    assert loops[0].counts["barrier"] == 1
    assert all(loop.counts["barrier"] == 0 for loop in loops[1:])
    assert all(loop.counts["ld.global.nc"] > 0 for loop in loops)


def test_a_wait_that_asks_again_is_no_loop(inspect: Inspect) -> None:
    """The code has a loop for it, the kernel has not."""
    kernel = inspect("handed_over", "sm_90a").kernel()
    assert kernel.loops
    for loop in kernel.loops:
        assert loop.span is not None and loop.span.line == line_of("rounds")
        assert loop.depth == 0 and loop.counts["mbarrier"] >= 2
    assert set(by_line(kernel, "mbarrier")) > {line_of("wait")}


def test_a_call_chain_leads_to_a_macro(inspect: Inspect) -> None:
    lines = inspect("attention").kernel().lines
    (inside,) = {x.calls for x in lines if x.span.line == line_of("in a macro")}
    assert [(f.function, f.span.file) for f in inside] == [("rescale", kernels.__file__)]


def test_read_only_and_plain_loads(inspect: Inspect) -> None:
    first, second = inspect("two_launches").kernels
    assert (first.counts["ld.global.nc"], first.counts["ld.global.plain"]) == (1, 0)
    assert (second.counts["ld.global.nc"], second.counts["ld.global.plain"]) == (0, 1)
    with pytest.raises(KeyError, match="one kernel among"):
        inspect("two_launches").kernel()
    assert inspect("two_launches").kernel(second.symbol) is second
    assert inspect("two_launches").counts["ld.global"] == 2


def test_resources(inspect: Inspect) -> None:
    found = inspect("matmul", "sm_90a")
    kernel = found.kernel()
    assert (kernel.shared.static, kernel.shared.dynamic) == (0, 3 * 8192)
    assert kernel.shared.limit == 227 * 1024 and kernel.threads == 128
    assert kernel.spills == 0 and kernel.registers is not None and 32 <= kernel.registers <= 255
    assert kernel.occupancy is not None
    assert kernel.occupancy.warps == 4 * kernel.occupancy.blocks > 0
    assert (found.target, found.arch, found.source, found.note) == (
        "cuda:sm_90a", "sm_90a", "sass", "",
    )  # fmt: skip


def test_predicted_bank_conflicts(inspect: Inspect) -> None:
    bad = [c for c in inspect("columns").conflicts if c.degree > 1]
    assert [(c.buffer, c.degree, c.mode) for c in bad] == [("tile", 32, "reads")]
    assert bad[0].span is not None and bad[0].span.line == line_of("read by columns")
    assert all(c.degree == 1 for c in inspect("matmul").conflicts)


def test_remarks_have_their_lines(inspect: Inspect) -> None:
    found = [(d.code, d.span.line) for d in inspect("columns").remarks if d.span]
    assert ("TL306", line_of("read by columns")) in found


@pytest.mark.parametrize("name", ["matmul", "attention"])
def test_line_directives_change_nothing(inspect: Inspect, name: str) -> None:
    """With `#line` in the source, the compiler itself counts in lines of Python."""
    plain = inspect(name).kernel()
    config = tilelang.PassConfigKey.TL_EMIT_LINE_DIRECTIVES
    kernel = tilelang.compile(
        getattr(kernels, name), target="cuda:sm_80", pass_configs={config: True}
    )
    found = kernel.inspect().kernel()
    for what in ("mma", "cp.async", "ldmatrix", "shuffle", "st.global"):
        assert by_line(found, what) == by_line(plain, what)
    assert [x.span and x.span.line for x in found.loops] == [
        x.span and x.span.line for x in plain.loops
    ]


# Where there is no disassembler.


def through_ptx(monkeypatch: pytest.MonkeyPatch, name: str, arch: str) -> Inspection:
    monkeypatch.setattr(sass, "find_nvdisasm", lambda: None)
    return tilelang.compile(getattr(kernels, name), target=f"cuda:{arch}").inspect()


@pytest.mark.parametrize("arch", ARCHS)
def test_ptx_tells_the_same_of_what_was_asked_for(
    inspect: Inspect, monkeypatch: pytest.MonkeyPatch, arch: str
) -> None:
    found = through_ptx(monkeypatch, "attention", arch)
    assert found.source == "ptx" and found.note.startswith("nvdisasm is not installed")
    kernel, machine = found.kernel(), inspect("attention", arch).kernel()
    for what in ("mma", "ldmatrix", "cp.async", "cp.async.b128", "shuffle", "barrier"):
        assert by_line(kernel, what) == by_line(machine, what)
    assert [(x.span, x.variable, x.depth) for x in kernel.loops] == [
        (x.span, x.variable, x.depth) for x in machine.loops
    ]
    assert kernel.registers == machine.registers


# From the cache, and what cannot be inspected.


def test_a_kernel_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tilelang.runtime import build

    monkeypatch.setenv("TILELANG_CACHE_DIR", str(tmp_path))
    build.forget()
    fresh = tilelang.compile(kernels.matmul, target="cuda:sm_80")
    build.forget()
    cached = tilelang.compile(kernels.matmul, target="cuda:sm_80")
    assert cached.from_cache and cached.inspect() == fresh.inspect()
    assert cached.shared_memory_bytes == cached.inspect().kernel().shared.total == 24576


def test_a_cpu_kernel() -> None:
    kernel: Any = tilelang.compile(kernels.two_launches, target="cpu")
    with pytest.raises(ValueError) as caught:
        kernel.inspect()
    assert isinstance(caught.value, CompileError)
    (found,) = caught.value.diagnostics
    assert found.code == "TL417" and found.span is not None
    assert found.help is not None and "--target cuda:sm_90a" in found.help


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("echo 'fatal: Unknown SM' >&2; exit 1", "fatal: Unknown SM"),
        ("printf '\\377\\n' >&2; exit 1", "\ufffd"),
        ("exit 3", "it ended with status 3"),
        ("exec sleep 20", "it took longer than 1 s"),
    ],
)
def test_a_disassembler_that_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, said: str
) -> None:
    tool = tmp_path / "nvdisasm"
    tool.write_text(f"#!/bin/sh\n{program}\n")
    tool.chmod(0o755)
    monkeypatch.setattr(sass, "find_nvdisasm", lambda: tool)
    monkeypatch.setattr(sass, "_SECONDS", 1.0)
    with pytest.raises(CompileError) as caught:
        sass.disassemble(b"")
    (found,) = caught.value.diagnostics
    why = f"nvdisasm does not show this machine code: {said}"
    assert (found.code, found.message) == ("TL818", why)
    shown = tilelang.compile(kernels.matmul, target="cuda:sm_80").inspect()
    assert shown.source == "ptx" and shown.note.startswith(f"{why}: counts are those of PTX")
    assert shown.kernel().counts["mma"] == 16


def test_a_line_directive_names_a_file_too() -> None:
    """Line 7 of the kernel's file is not line 7 of a file with macros."""
    spans = [Span(file, line, 1, line, 9) for file, line in
             (("/a/kernel.py", 3), ("/a/macros.py", 7), ("/a/kernel.py", 7))]  # fmt: skip
    rows = [Line('#line 3 "/a/kernel.py"'), *(Line(str(n), (s,)) for n, s in enumerate(spans))]
    device = DeviceSource("main", "cuda", SourceMap(tuple(rows)), (), ())
    code = _Code(CudaArtifact(device), CudaBinary("sm_80", b""))
    found = code._place(7)
    assert found is not None and found.span == spans[2]
    assert code._place(8) is None
