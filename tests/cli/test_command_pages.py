"""Pages that show a command: what they print is what the command prints.

The folder below holds the files the pages name. Pages about an environment this test cannot make
(no TVM, a full disk, another GPU) are listed, so that a new one has to be either.
"""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.support.cuda import needs_nvdisasm, needs_nvrtc
from tilelang_diagnostics import CATALOGUE, page
from tilelang_diagnostics.pages import Example, Page

COMMAND_PAGES = tuple(p for p in (page(row.code) for row in CATALOGUE) if p.kind == "command")
# What each needs: another machine, another installation, or a failure of our own.
ELSEWHERE = frozenset(
    {
        "TL416", "TL801", "TL802", "TL803", "TL804", "TL805", "TL806", "TL807", "TL808", "TL809",
        "TL729", "TL730", "TL731", "TL732", "TL733", "TL734", "TL735", "TL736", "TL812", "TL818",
        "TL193", "TL821", "TL900", "TL901", "TL819",
    }
)  # fmt: skip
NEEDS = {"TL610": [needs_nvrtc, needs_nvdisasm], "TL816": [needs_nvrtc]}
RUN_HERE = tuple(
    pytest.param(p, id=p.code, marks=NEEDS.get(p.code, []))
    for p in COMMAND_PAGES
    if p.code not in ELSEWHERE
)

MATMUL = """\
import tilelang
import tilelang.language as T


def {name}({sizes}):
    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, 32), T.{divide}(M, 32), threads=128) as (bx, by):
            a = T.alloc_shared((32, 32), "float32")
            b = T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, 32), num_stages=2):
                T.copy(A[by * 32, k * 32], a)
                T.copy(B[k * 32, bx * 32], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * 32, bx * 32])

    return main
"""
DEFAULTS = "M=64, N=64, K=64"
GEMM = MATMUL.format(name="matmul", sizes=DEFAULTS, divide="ceildiv")
SOFTSIGN = """\
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32")):
    T.import_source("__device__ float softsign(float x) {{ return x / (1 + fabsf(x)){end} }}")
    with T.Kernel(1, threads=64):
        for i in T.Parallel(64):
            A[i] = T.call_extern("float32", "softsign", A[i])
"""
POINTERS = """\
import tilelang.language as T


@T.prim_func
def main(pointers: T.ptr, n: T.int32):
    with T.Kernel(1, threads=32):
        A = T.make_tensor(pointers, (n,), "float32")
        for i in T.Parallel(32):
            if i < n:
                A[i] = 0.0
"""
MANIFEST = """\
{"schema": 1, "kind": "tilelang-export", "request": null, "functions": [],
 "made_by": {"tilelang": "", "sources": "", "packages": []}, "files": {"matmul.so": ""}}
"""
SCALE = """\
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "float32")):
    with T.Kernel(1, threads=64):
        c = T.alloc_fragment((64,), "float32")
        T.copy(A, c)
        for i in T.Parallel(64):
            A[i] = c[i] * 2.0
"""
EDITED_IR = """\
# after emit
# attrs {'tl.stage': 'tile', 'tl.target': 'cpu'}

import tilelang.language as T

@T.prim_func
def main(A: T.Tensor((64,), 'float32')):
    with T.Kernel(1, threads=64) as bx:
        c = T.alloc_fragment((64,), 'float32')
        T.copy(A, c)
        for i in T.Parallel(64):
            A[i] = c[i] * 3.0
"""
EDITED_GPU_IR = """\
# after apply_layouts
# attrs {'tl.stage': 'tile', 'tl.target': 'cuda:sm_80'}

import tilelang.language as T

@T.prim_func
def main(A: T.Tensor((64,), 'float32')):
    with T.Kernel(1, threads=64) as bx:
        c, c_1 = T.alloc_fragment((64,), 'float32', layout=T.Fragment((64,), lambda i: (i, 0)))
        T.copy(A, c)
        for i in T.Parallel(64):
            A[i] = c[i] * 2.0
"""
FILES: dict[str, dict[str, str]] = {
    "TL103": {"kernels/gemm.py": GEMM},
    "TL105": {
        "norms.py": MATMUL.format(name="rms_norm", sizes=DEFAULTS, divide="ceildiv")
        + "\n\n"
        + MATMUL.format(name="layer_norm", sizes=DEFAULTS, divide="ceildiv").split("\n\n\n", 1)[1]
    },
    "TL106": {"old.py": "import tilelang.language as T\n\n# café\n"},
    "TL107": {"gemm.py": GEMM.replace("\n", "\nimport einops\n", 1)},
    "TL190": {
        "scale.py": SCALE,
        "fixed.py": EDITED_IR,
        "edited.py": EDITED_IR.replace("# after emit\n", ""),
    },
    "TL737": {
        "fixed.py": SCALE,
        "scale.py": SCALE.replace("A, c)", "A, c)  # tilelang: ignore[unused-buffer]"),
    },
    "TL191": {
        "scale.py": SCALE,
        "fixed.py": EDITED_IR,
        "edited.py": EDITED_IR.replace("alloc_fragment((64,)", "alloc_fragment((32,)"),
    },
    "TL192": {
        "scale.py": SCALE,
        "fixed.py": EDITED_GPU_IR,
        "edited.py": EDITED_GPU_IR.replace("threads=64", "threads=32"),
    },
    "TL716": {"gemm.py": MATMUL.format(name="matmul", sizes="M, N, K=64", divide="ceildiv")},
    "TL723": {
        "gemm.py": MATMUL.format(name="matmul", sizes=DEFAULTS, divide="floordiv")
        + "\n\ndef reference(A, B):\n    return A @ B\n"
    },
    "TL726": {"grouped.py": POINTERS},
    "TL816": {
        "softsign.py": SOFTSIGN.format(end=""),
        "softsign_fixed.py": SOFTSIGN.format(end=";"),
    },
    "TL810": {"gemm.py": GEMM, "build/notes.txt": ""},
    "TL814": {"gemm.py": GEMM, "build/manifest.json": MANIFEST},
}


def files_of(code: str) -> dict[str, str]:
    return FILES.get(code, {"gemm.py": GEMM})


@pytest.mark.parametrize("one", RUN_HERE)
def test_the_page_prints_what_the_command_prints(
    one: Page, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write(one.code, tmp_path)
    _, expected = _session(one.failing)
    printed = _output(one.failing, run, monkeypatch)
    missing = [line for line in expected if line not in printed.splitlines()]
    assert not missing, f"not printed: {missing}\n{printed}"
    assert f"[{one.code}]" in printed


@pytest.mark.parametrize("one", RUN_HERE)
def test_the_fixed_command_does_not(
    one: Page, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments, _ = _session(one.fixed)
    if arguments is None:
        pytest.skip("the way out is another program")
    _write(one.code, tmp_path)
    assert f"[{one.code}]" not in _output(one.fixed, run, monkeypatch)


def test_every_command_page_is_run_or_listed() -> None:
    codes = {p.code for p in COMMAND_PAGES}
    assert codes >= ELSEWHERE
    assert all("tilelang" in p.failing.text.split("\n")[0] for p in COMMAND_PAGES)


def _write(code: str, folder: Path) -> None:
    for name, text in files_of(code).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("latin-1" if code == "TL106" else "utf-8"))


def _session(example: Example) -> tuple[list[str] | None, list[str]]:
    """The words after `tilelang` of the command (None for other programs), and the output."""
    command, *output = example.text.rstrip("\n").split("\n")
    words = [w for w in shlex.split(command.removeprefix("$ ")) if not w.startswith("TILELANG_")]
    return (words[1:] if words[0] == "tilelang" and "&&" not in words else None), output


def _output(example: Example, run: Run, monkeypatch: pytest.MonkeyPatch) -> str:
    for word in shlex.split(example.text.split("\n")[0].removeprefix("$ ")):
        if word.startswith("TILELANG_"):
            monkeypatch.setenv(*word.split("=", 1))
    arguments, _ = _session(example)
    assert arguments is not None
    result = run(*arguments)
    return result.out + result.err
