"""What nests too deeply is TL148 wherever one asks; what is just not too deep compiles."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tilelang.cli import main
from tilelang.cli.files import choose
from tilelang.cli.specialise import specialise
from tilelang.compiler import lower_function
from tilelang.options import CompileOptions
from tilelang.program.depth import MAX_NESTED, MAX_OPERATIONS, deep_recursion
from tilelang.target import parse_target

HEAD = """
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding(0)
"""


def branches(many: int) -> str:
    words = ("if" if n == 0 else "elif" for n in range(many))
    chain = (f"        {w} A[0] == {n}:\n            B[tx] = {n}\n" for n, w in enumerate(words))
    return HEAD + "".join(chain)


def additions(many: int) -> str:
    return HEAD + f"        B[tx] = {' + '.join(f'A[{n % 64}]' for n in range(many))}\n"


TOO_DEEP = {
    "branches": (branches(300), "more than 200 statements are nested here, each `elif`"),
    "additions": (additions(400), "an expression nests more than 300 operations"),
}


@pytest.mark.parametrize("name", TOO_DEEP)
@pytest.mark.parametrize("command", ["lint", "compile", "trace"])
def test_it_is_refused_before_any_pass(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "deep.py"
    text, message = TOO_DEEP[name]
    file.write_text(text)
    assert main([command, str(file), "--target", "cpu"]) == 1
    said = "".join(capsys.readouterr())
    assert f"error[TL148]: {message}" in said and "TL900" not in said


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80"])
@pytest.mark.parametrize("text", [branches(MAX_NESTED - 2), additions(MAX_OPERATIONS - 4)])
def test_what_is_just_not_too_deep_is_lowered(text: str, target: str, tmp_path: Path) -> None:
    file = tmp_path / "deep.py"
    file.write_text(text)
    before = sys.getrecursionlimit()
    function = specialise(choose(str(file)), {}, target).function
    lower_function(function, parse_target(target), CompileOptions())
    assert sys.getrecursionlimit() == before


def test_who_leaves_last_puts_the_limit_back() -> None:
    before = sys.getrecursionlimit()
    first, second = deep_recursion(), deep_recursion()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getrecursionlimit() >= 10_000
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before
