"""Constants that would fill the memory or take for ever are refused where they stand, at once."""

from __future__ import annotations

import operator
import time
from pathlib import Path

import pytest

import tilelang
import tilelang.language as T
from tilelang.language import limits
from tilelang.language.frontend import parse_static
from tilelang_diagnostics import CompileError

KERNEL = """\
import tilelang.language as T
{module}
@T.prim_func
def f(A: T.Tensor((128,), 'float32')):
    with T.Kernel(1, threads=128) as bx:
        {body}
"""
LARGE = [
    "n = 10**10**8", "n = 1 << 10**9", "n = (10**1000)**1000", "n = pow(10, 10**8)",
    "n = (10).__pow__(10**8)", "n = round(1, -10**9)", "n = 0x" + "f" * 100000,
    "n = 1\n        n <<= 10**10", "n = 10**300\n" + "        n = n * n\n" * 40,
    "x = [0] * 10**9", "x = 10**9 * (0, 1)", "x = 'a' * 10**9", "x = bytes(10**9)",
    "x = [0]\n" + "        x += x\n" * 60, "x = [0]\n" + "        x = [x, x]\n" * 40,
    "x = [1, 2].__mul__(10**10)", "x = [i for i in range(10**8)]",
    "x = {i: j for i in range(10**4) for j in range(10**4)}", "x = [[0] * 10**5] * 10**5",
    "x = list(range(10**9))", "x = sum(range(10**10))", "x = max(map(int, range(10**10)))",
    "x = 5.5 in range(10**12)", "x = range(10**12).count('a')", "x = [*range(10**10)]",
    "x = list(zip(range(10**9)))", "x = sorted(zip(range(10**9)))",
    "A[0] = float(f'{1:>1000000000}')", "x = '{:>1000000000}'.format(1)",
    "x = '{:{}}'.format(1, 10**9)", "x = '%1000000000d' % 1", "x = '%*d' % (10**9, 1)",
    "x = 'a'.ljust(10**9)", "x = (1).to_bytes(10**10, 'big')",
    "x = ('a' * 10**6).replace('a', 'b' * 10**6)", "x = ('a' * 10**6).join(['b'] * 10**6)",
    "x = []\n        x.extend(range(10**9))", "x = []\n        x[0:0] = range(10**9)",
    "a, *b = range(10**9)",
]  # fmt: skip
SMALL = [
    "n = 10**400", "n = (1 << 64) * (1 << 64)", "n = pow(3, 10**9, 7)", "x = 5 in range(10**18)",
    "n = len(range(10**9))", "n = round(2.5e9)", "n = max(10**9, 5)", "x = 0 * [1]",
    "x = '{}'.format('1000000000000')", "x = 'by 20000000: {}'.format(1)", "x = '%d%%' % 10**9",
    "x = [i * j for i in range(256) for j in range(256)]", "x = 'a' * 10**6",
    "x = list(range(10**5))", "x = '-'.join(map(str, range(100)))", "n = 2**-10**9",
]  # fmt: skip


def codes(body: str, module: str = "") -> list[str]:
    found = parse_static(KERNEL.format(module=module, body=body), "k.py").all_diagnostics
    return [d.code for d in found if d.is_error]


@pytest.fixture(autouse=True)
def smaller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits that are reached soon, where how large they are is not the question."""
    if "line" in request.fixturenames:
        monkeypatch.setattr(limits, "MAX_ITEMS", 1 << 14)
        monkeypatch.setattr(limits, "MAX_COMPREHENDED", 1 << 11)


@pytest.mark.parametrize("line", LARGE, ids=lambda line: line[:40])
def test_what_is_too_large_is_refused_once(line: str) -> None:
    start = time.monotonic()
    assert set(codes(line)) == {"TL148"}
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("body", SMALL)
def test_what_is_not_too_large(body: str) -> None:
    assert "TL148" not in codes(body)


@pytest.mark.parametrize(
    "module", ["N = 10**10**8", "N = [0] * 10**9", "N = sum(range(10**10))", "N = 1 << 10**9"]
)
def test_of_a_module_it_is_unknown(module: str) -> None:
    assert codes("A[N] = 1.0", module) == []


def test_names_of_a_file_that_multiply() -> None:
    """`file_values` looks a call's arguments up by itself."""
    grown = "\n".join(f"M{i + 1} = M{i} ** 60" for i in range(30))
    text = (
        "import tilelang\nimport tilelang.language as T\nM0 = 10\n" + grown
        + "\n@tilelang.jit\ndef f(A, n):\n    A: T.Tensor((8,), T.float32)\n"
        + "    with T.Kernel(1) as bx:\n        A[0] = 1.0\nf(1, M30)\n"
    )  # fmt: skip
    assert parse_static(text, "k.py").all_diagnostics == ()


@pytest.mark.parametrize("op", [operator.pow, operator.lshift, operator.mul])
def test_no_number_below_the_limit_is_refused(op: object) -> None:
    assert callable(op)
    for left in (0, 1, -1, 2, 3, 10, -7, 1 << 100):
        for right in (0, 1, 5, 80):
            exact = op(left, right)
            refused = limits.operands_too_large(op, left, right)
            assert refused <= (exact.bit_length() > limits.MAX_BITS)


@tilelang.jit(target="cpu")
def live(A):
    A: T.Tensor((8,), T.float32)
    with T.Kernel(1, threads=32) as _:
        A[0] = len([0] * 10**9)


def test_a_live_kernel_is_refused_too() -> None:
    with pytest.raises(CompileError) as caught:
        live.compile()
    (found,) = caught.value.diagnostics
    assert found.code == "TL148" and found.span is not None
    assert "[0] * 10**9" in Path(__file__).read_text().splitlines()[found.span.line - 1]
