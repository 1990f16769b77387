"""`tilelang run`: values, inputs, the comparison, the exit status."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import EAGER, FACTORY, Run


def test_a_run_says_what_it_did(run: Run, eager: Path) -> None:
    done = run("run", "eager.py", "--set", "M=3,N=100", "--set", "factor=3.0", "--rep", "1")
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == "scale  eager.py::scale"
    text = re.sub(r"\d+\.\d+ s\b", "TIME", done.out)
    assert "  target   cpu  (auto: no GPU was found)\n" in text
    assert (
        "  values   factor=3.0, M=3, N=100  (--set)\n           block=32  (its default)\n" in text
    )
    assert "  inputs   A (3, 100) float32\n  returns  B (3, 100) float32\n  compile  TIME\n" in text
    assert re.search(r"  error    \S+ of B, relative to reference\(\) in float64; allowed 1e-05\n"
                     r"  time     \S+ (µs|ms) \(median\)\n$", text)  # fmt: skip
    assert done.err == ""


def test_the_second_run_is_from_the_cache(run: Run, eager: Path) -> None:
    from tilelang.runtime import build

    arguments = ("run", "eager.py", "--set", "M=3,N=100", "--rep", "1")
    assert run(*arguments).status == 0
    build.forget()
    assert "  compile  from the cache\n" in run(*arguments).out


def test_a_factory(run: Run, factory: Path) -> None:
    for spec in ("factory.py", "factory.py::add", "factory.py::main"):
        done = run("run", spec, "--set", "N=40", "--rep", "1")
        assert done.status == 0, done.err
        assert "  inputs   A (40,) float32\n           B (40,) float32\n" in done.out
        assert "relative to ref_program()" in done.out


def test_a_plain_factory_and_a_prim_func(run: Run, tmp_path: Path) -> None:
    plain = FACTORY.replace("@tilelang.jit(out_idx=[-1])\n", "").replace(
        "if __name__", "def use():\n    tilelang.compile(add(40), out_idx=[2])\n\nif __name__"
    )
    (tmp_path / "plain.py").write_text(plain)
    done = run("run", "plain.py", "--rep", "1")
    assert done.status == 0, done.err
    assert "N=40  (the call in line 20)" in done.out
    (tmp_path / "traced.py").write_text(FACTORY + "\n\ntraced = add.python(24)\n")
    done = run("run", "traced.py::traced", "--rep", "1")
    assert done.status == 0, done.err
    assert "of C, relative to ref_program()" in done.out


def test_a_wrong_result_fails(run: Run, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(EAGER.replace("return A * factor", "return A * factor + 1"))
    done = run("run", "wrong.py", "--set", "M=3,N=100", "--rep", "1")
    assert done.status == 1
    assert "error[TL723]: `B` differs from `reference`: relative error " in done.err
    assert "note: first at B[0, 0]: " in done.err
    assert run("run", "wrong.py", "--set", "M=3,N=100", "--rep", "1", "--no-check").status == 0


def test_no_reference(run: Run, tmp_path: Path) -> None:
    (tmp_path / "alone.py").write_text(EAGER.split("def reference")[0])
    done = run("run", "alone.py", "--set", "M=3,N=100", "--rep", "1")
    assert done.status == 0
    assert "check    no function reference, ref_program or scale_reference in the file" in done.out


@pytest.mark.needs_torch
def test_torch_files_get_torch_tensors(run: Run, tmp_path: Path) -> None:
    text = "import torch\n" + EAGER.replace("return A * factor", "return torch.mul(A, factor)")
    (tmp_path / "uses_torch.py").write_text(text)
    assert run("run", "uses_torch.py", "--set", "M=3,N=100", "--rep", "1").status == 0


@pytest.mark.parametrize(
    ("settings", "code", "message", "help"),
    [
        (["M=3"], "TL716", "`N` of `scale` has no value", "give it: --set N=1024"),
        ([], "TL716", "`M` and `N` of `scale` have no value", "give them: --set M=1024,N=1024"),
        (["M:3"], "TL725", "`M:3` is not NAME=VALUE", "--set M=256,N=512"),
        (["M=3,N=4,Q=5"], "TL720", "`scale` has no parameter or dimension `Q`",
         "it has: factor, block, M, N"),
    ],
)  # fmt: skip
def test_wrong_values(
    run: Run, eager: Path, settings: list[str], code: str, message: str, help: str
) -> None:
    done = run("run", "eager.py", *(a for s in settings for a in ("--set", s)))
    assert done.status == 1
    assert f"error[{code}]: {message}" in done.err
    assert help in done.err


def test_targets(run: Run, eager: Path) -> None:
    sizes = ("--set", "M=3,N=100", "--rep", "1")
    assert "  target   cpu\n" in run("run", "eager.py", *sizes, "--target", "cpu").out
    done = run("run", "eager.py", *sizes, "--target", "hip:gfx1100")
    assert (done.status, "error[TL807]" in done.err) == (1, True)
    done = run("run", "eager.py", *sizes, "--target", "cudda:sm_90a")
    assert (done.status, "did you mean `cuda`?" in done.err) == (1, True)


def test_dynamic_sizes_and_scalars(run: Run, tmp_path: Path) -> None:
    text = EAGER.replace('M, N = T.const("M, N")', 'M, N = T.dynamic("M, N")').replace(
        "B = T.empty", "factor: T.float32\n    B = T.empty"
    ).replace("factor=2.0", "factor")  # fmt: skip
    (tmp_path / "dynamic.py").write_text(text)
    done = run("run", "dynamic.py", "--set", "M=5,N=70,factor=1.5", "--rep", "1")
    assert done.status == 0, done.err
    assert "factor = 1.5" in done.out
    done = run("run", "dynamic.py", "--set", "M=5")
    assert (done.status, "error[TL716]: scale needs a value for N" in done.err) == (1, True)


OFFSETS = EAGER.replace("(A, factor=2.0, block=32):", "(A, B, block=32):").replace(
    '    B = T.empty((M, N), "float32")\n', '    B: T.Tensor((M, N), "float32")\n'
).replace(
    "            B[by, bx * block + i] = A[by, bx * block + i] * factor\n    return B\n",
    "            B[by, bx * block + i] += A[by, bx * block + i]\n",
)  # fmt: skip
FILES = {
    "sums start at zero": (
        OFFSETS, "def reference(A, factor):\n    return A * factor",
        "def reference(A, N, block):\n    assert A.shape == (3, N) and block == 32\n    return A",
    ),
    "and not if the reference is given them": (
        OFFSETS, "def reference(A, factor):\n    return A * factor",
        "def reference(A, B):\n    return A + B",
    ),
    "inputs by name": (
        EAGER, "def reference(A, factor):\n    return A * factor",
        "def inputs(M, N):\n    import numpy\n"
        "    return {'A': numpy.full((M, N), 3, 'float32')}\n\n\n"
        "def reference(A, factor):\n    assert (A == 3).all()\n    return A * factor",
    ),
    "inputs in order": (
        EAGER, "def reference(A, factor):\n    return A * factor",
        "def scale_inputs(M=1, N=1):\n    import numpy\n"
        "    return (numpy.full((M, N), 3, 'float32'),)\n\n\n"
        "def reference(A, factor):\n    assert (A == 3).all()\n    return A * factor",
    ),
    "another function of that name": (
        EAGER, "def reference", "def inputs(path):\n    raise OSError(path)\n\n\ndef reference",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_what_a_file_says_of_inputs(run: Run, tmp_path: Path, case: str) -> None:
    text, old, new = FILES[case]
    assert text.count(old) == 1
    (tmp_path / "file.py").write_text(text.replace(old, new))
    done = run("run", "file.py", "--set", "M=3,N=100", "--rep", "1")
    assert (done.status, done.err) == (0, "")


RAISING = {
    "a reference": (
        EAGER.replace("return A * factor", "return A @ factor"),
        "TL183", "`reference` raised ValueError: matmul: ", "A @ factor",
    ),
    "inputs": (
        EAGER + "\n\ndef inputs():\n    return open('missing.bin')\n",
        "TL183", "`inputs` raised FileNotFoundError", "open('missing.bin')",
    ),
    "inputs of another kernel": (
        EAGER + "\n\ndef inputs():\n    return {'X': 1}\n",
        "TL720", "`inputs` returns `X`, which is no input of `scale`", "",
    ),
    "too many inputs": (
        EAGER + "\n\ndef inputs():\n    return 1, 2\n",
        "TL701", "`inputs` returns 2 inputs, but `scale` takes 1", "",
    ),
    "a factory": (
        FACTORY.replace("    @T.prim_func", "    assert N % 7 == 0\n    @T.prim_func"),
        "TL183", "`add` raised AssertionError", "assert N % 7 == 0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", RAISING)
def test_what_the_file_raises_is_not_our_failure(run: Run, tmp_path: Path, case: str) -> None:
    text, code, message, marked = RAISING[case]
    (tmp_path / "file.py").write_text(text)
    sizes = "N=100" if case == "a factory" else "M=3,N=100"
    done = run("run", "file.py", "--set", sizes, "--rep", "1")
    assert done.status == 1
    assert f"error[{code}]: {message}" in done.err
    assert marked in done.err
    assert "Traceback" not in done.err


def test_pointers_have_no_random_inputs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pointers.py").write_text(
        "import tilelang\nimport tilelang.language as T\n\n\n@T.prim_func\n"
        'def main(table: T.Tensor((4,), T.ptr), B: T.Tensor((8,), "float32")):\n'
        "    with T.Kernel(1, threads=32):\n"
        '        row = T.make_tensor(table[0], (8,), "float32")\n'
        "        for i in T.Parallel(8):\n            B[i] = row[i]\n"
    )
    done = run("run", "pointers.py")
    assert (done.status, "error[TL726]" in done.err) == (1, True)


def test_a_failure_of_ours_is_status_3_with_a_file(
    run: Run, eager: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tilelang.runtime import build

    def fails(*arguments: object, **named: object) -> None:
        raise KeyError("layout")

    monkeypatch.setattr(build, "compile_function", fails)
    done = run("run", "eager.py", "--set", "M=3,N=100")
    assert done.status == 3
    assert "error[TL900]: internal error while compiling scale for cpu" in done.err
    (saved,) = (tmp_path / "cache" / "crashes").iterdir()
    assert "def scale(A" in saved.read_text()
