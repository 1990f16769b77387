"""What does compute-sanitizer say of our kernels? Build where the compiler is, run on a GPU.

    python benchmarks/sanitize_check.py build BUNDLE [--arch sm_90a]
    python3 benchmarks/sanitize_check.py run BUNDLE [--out FOLDER] [--tools memcheck racecheck …]

Six kernels have a planted mistake, the others are right ones of the tests. `run` needs Python, the
driver and compute-sanitizer: neither TVM nor PyTorch. It prints a table with our diagnostics and
keeps what compute-sanitizer wrote, as XML and as text, in `--out`. It fails if a planted mistake is
not found or a right kernel is complained of.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# Which tool has to find each planted mistake; far_away and negative also run without one.
PLANTED = {
    "past_the_end": "memcheck", "far_away": "memcheck", "reverse": "racecheck",
    "half_written": "initcheck", "negative": "memcheck", "divergent": "synccheck",
}  # fmt: skip
RIGHT = (
    "quickstart", "gemm_float16", "pipeline_one_ahead", "gpu_gemm_stages", "gpu_gemm_odd",
    "gemm_splitk", "mha_fwd_causal", "mha_sink_window", "gpu_softmax_float16_1",
    "gpu_reduce_sum_37x53_0_fragment", "rms_norm", "gpu_scan_33x70_1_back_fragment",
    "topk_selector", "convolution_same", "dequant_matmul", "atomic_region", "linear_attn_fwd",
    "warp_specialized_gemm", "gpu_histogram", "foreign_reversed_blocks", "foreign_weighted_rows",
)  # fmt: skip
BARRIER = "tl::sync_threads();"


# --- building -------------------------------------------------------------------------------


def build(out: Path, arch: str) -> int:
    """Write one folder per kernel."""
    sys.path[:0] = [str(ROOT), str(ROOT / "diagnostics")]
    from benchmarks.gpu_cases import all_cases

    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    names = _store_planted(out, arch)
    for case in all_cases():
        if case.name not in RIGHT:
            continue
        inputs = case.case.make_inputs(0, False)
        function, out_idx = case.program(inputs, False)
        _store(out / case.name, function, out_idx, inputs, arch)
        names.append(case.name)
    missing = sorted({*PLANTED, *RIGHT} - set(names))
    print(f"{len(names)} kernels in {out}; not there: {' '.join(missing) or 'none'}")
    return 0


def _store_planted(out: Path, arch: str) -> list[str]:
    import numpy

    from tests.sanitizer import planted

    ramp = numpy.arange(planted.TILE, dtype=numpy.float32)
    long = numpy.ones(planted.N, numpy.float32)
    _store(out / "past_the_end", planted.past_the_end.function, (), (long, long), arch)
    _store(out / "far_away", planted.far_away.function, (), (long, 1 << 40), arch)
    _store(out / "reverse", planted.reverse.function, (1,), (ramp,), arch, drop=BARRIER)
    _store(out / "divergent", planted.reverse.function, (1,), (ramp,), arch,
           drop=BARRIER, put=f"if (tx < 100) {BARRIER}")  # fmt: skip
    _store(out / "half_written", planted.half_written.function, (1,), (ramp,), arch)
    _store(out / "negative", planted.negative.function, (1,), (ramp - 128,), arch)
    return list(PLANTED)


def _store(
    folder: Path, function: Any, out_idx: Any, inputs: Any, arch: str, drop: str = "",
    put: str = ";",
) -> None:  # fmt: skip
    from benchmarks.gpu_cases import lowered
    from tilelang.codegen.cuda_artifact import CudaArtifact
    from tilelang.codegen.source_map import SourceMap
    from tilelang.runtime.sanitizer_call import write_call
    from tilelang.runtime.signature import make_signature
    from tilelang.runtime.toolchain_cuda import compile_cuda
    from tilelang.target import parse_target

    source = lowered(function, arch)
    if drop:
        lines = tuple(replace(x, text=x.text.replace(drop, put)) for x in source.source.lines)
        source = replace(source, source=SourceMap(lines))
    artifact = CudaArtifact(source, (compile_cuda(source, parse_target(f"cuda:{arch}")),))
    values = [x for x in inputs if hasattr(x, "shape") or isinstance(x, (int, float, bool))]
    write_call(folder, artifact, make_signature(function, list(out_idx) or None), values)
    print(f"{folder.name}: {len(source.launches)} launches", flush=True)


# --- running --------------------------------------------------------------------------------


def run(bundle: Path, out: Path, tools: list[str], jobs: int) -> int:
    """The number of surprises."""
    sys.path[:0] = [str(ROOT), str(ROOT / "diagnostics")]
    from tilelang.runtime.sanitizer import find_sanitizer

    out.mkdir(parents=True, exist_ok=True)
    program = str(find_sanitizer())
    print(subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip())
    folders = sorted(f for f in bundle.iterdir() if f.is_dir())
    tasks = [(f, tool) for f in folders for tool in (*tools, "synccheck")
             if (f.name in RIGHT and tool in tools) or PLANTED.get(f.name) == tool]  # fmt: skip
    started = time.perf_counter()
    with ThreadPoolExecutor(jobs) as pool:
        rows = list(pool.map(lambda task: _check(*task, out), tasks))
    surprises = 0
    for name, tool, found, seconds, text in rows:
        wrong = (len(found) == 0) == (name in PLANTED)
        surprises += wrong
        mark = "UNEXPECTED" if wrong else "planted" if found else "clean"
        print(f"{name:32} {tool:10} {' '.join(found) or '-':6} {seconds:5.1f} s  {mark}")
        if found:
            print(text)
    print(f"{len(rows)} runs in {time.perf_counter() - started:.1f} s, {surprises} surprises")
    _without(bundle, out)
    return surprises


def _check(folder: Path, tool: Any, out: Path) -> tuple[str, str, list[str], float, str]:
    """Codes and text of what one tool finds."""
    from tilelang.codegen.cuda_artifact import CudaArtifact
    from tilelang.runtime.sanitizer import watch
    from tilelang_diagnostics import CompileError, SourceMap, render_text

    try:
        made = watch(folder, CudaArtifact.load(folder), tool, out / f"{folder.name}.{tool}.xml")
        found, seconds = made.diagnostics, made.seconds
    except CompileError as refused:
        found, seconds = refused.diagnostics, 0.0
    addresses = folder / "addresses.json"
    if addresses.exists():
        shutil.copy(addresses, out / f"{folder.name}.addresses.json")
    text = render_text(found, SourceMap(), 100, summary=False)
    return folder.name, tool, [d.code for d in found], seconds, text


def _child(folder: Path) -> list[str]:
    return [sys.executable, "-m", "tilelang.runtime.sanitizer_child", str(folder.resolve())]


def _without(bundle: Path, out: Path) -> None:
    """What the runtime says of a mistake that kills the context, without a sanitizer."""
    for name in ("far_away", "negative"):
        done = subprocess.run(
            _child(bundle / name), capture_output=True, text=True, cwd=ROOT, check=False
        )
        said = bundle / name / "error.json"
        text = said.read_text() if said.exists() else ""
        (out / f"{name}.alone.json").write_text(
            json.dumps({"exit": done.returncode, "out": done.stdout, "err": done.stderr,
                        "diagnostics": json.loads(text or "[]")}, indent=1)
        )  # fmt: skip
        print(f"{name} alone: exit {done.returncode}: {text}{done.stderr[-300:]}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("build", "run"))
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--arch", default="sm_90a")
    parser.add_argument("--out", type=Path, default=Path("sanitizer-output"))
    parser.add_argument("--tools", nargs="*", default=["memcheck", "racecheck", "initcheck"])
    parser.add_argument("--jobs", type=int, default=6)
    given = parser.parse_args()
    if given.action == "build":
        return build(given.bundle, given.arch)
    return min(1, run(given.bundle, given.out, given.tools, given.jobs))


if __name__ == "__main__":
    sys.exit(main())
