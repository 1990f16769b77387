"""Where the values of a kernel come from."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tilelang.cli.files import load
from tilelang.language.settings import parse_settings
from tilelang_diagnostics import CompileError


@pytest.mark.parametrize(
    ("settings", "values"),
    [
        (["M=256,N=512"], {"M": 256, "N": 512}),
        (["M=256", "N=-1"], {"M": 256, "N": -1}),
        (["x=1.5,y=1e-3"], {"x": 1.5, "y": 1e-3}),
        (["dtype=float16"], {"dtype": "float16"}),
        (["causal=true,mask=False,bias=none"], {"causal": True, "mask": False, "bias": None}),
        (["shape=(1,2),M=3"], {"shape": (1, 2), "M": 3}),
        (["name='a,b',M=3"], {"name": "a,b", "M": 3}),
        (["M=1", "M=2"], {"M": 2}),
        (["a = 1 , b = 2"], {"a": 1, "b": 2}),
    ],
)
def test_settings(settings: list[str], values: dict[str, Any]) -> None:
    assert parse_settings(settings) == values


@pytest.mark.parametrize("setting", ["M", "M:1", "=1", "M=", "1=2", "M=1,,N=2", "a b=1"])
def test_wrong_settings(setting: str) -> None:
    with pytest.raises(CompileError, match="TL725"):
        parse_settings([setting])


CASES = {
    "a call with literals": ("k(64, N=128)", {"M": 64, "N": 128}, "the call in line"),
    "a call in main": ("def main():\n    m = 64\n    k(m, 2 * m)", {"M": 64, "N": 128}, "the call"),
    "tuples": ("def f():\n    m, n = 64, 128\n    k(m, n)", {"M": 64, "N": 128}, "the call"),
    "a parser": (
        "import argparse\ndef main():\n    p = argparse.ArgumentParser()\n"
        "    p.add_argument('--m', type=int, default=64)\n"
        "    p.add_argument('-n', '--size-n', dest='nn', default=128)\n"
        "    args = p.parse_args()\n    k(args.m, args.nn)",
        {"M": 64, "N": 128}, "the call",
    ),
    "compile": ("def main():\n    k.compile(M=64, N=1 << 7)", {"M": 64, "N": 128}, "the call"),
    "defaults of the caller": ("def f(m=64, n=128):\n    k(m, n)", {"M": 64, "N": 128}, "the call"),
    "a comment": ("# tilelang: set M=64,N=128\nk(1, 2)", {"M": 64, "N": 128}, "a comment in"),
}  # fmt: skip

KERNEL = "def k(M, N):\n    pass\n\n\nclass _K:\n    def compile(self, **kw): pass\n"


def values_of(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "file.py"
    guarded = text if text.startswith(("def ", "import ", "#")) else f"if False:\n    {text}"
    path.write_text(KERNEL + guarded + "\n")
    assert importlib.util.find_spec("tilelang") is not None
    return load(path).values().of("k")


@pytest.mark.parametrize("case", CASES)
def test_the_files_own_call(tmp_path: Path, case: str) -> None:
    text, expected, origin = CASES[case]
    values = values_of(tmp_path, text)
    found = {name: values.argument(i, name) for i, name in enumerate(("M", "N"))}
    assert {n: v.value for n, v in found.items()} == expected
    assert all(v.origin.startswith(origin) for v in found.values())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("M = 64", (64, "the file")),
        ("m = 64", (64, "the file")),
        ("def main(m=64):\n    pass", (64, "the defaults of main()")),
        ("def main():\n    M = 8 * 8\n    k(None, None)", (64, "main()")),
        ("import argparse\ndef f(p):\n    for s in 'mn':\n"
         "        p.add_argument(f'--{s}', default=64)", (64, "its argument parser")),
        ("import argparse\ndef f(p):\n    for s, d in (('m', 64), ('n', 1)):\n"
         "        p.add_argument('--' 'm' if False else f'--{s}', default=d)\n"
         "        p.add_argument(f'--{s}', default=d)", (64, "its argument parser")),
        ("# tilelang: set M=64", (64, "a comment in the file")),
        ("M = True", None),
        ("M = open", None),
        ("x = 1", None),
    ],
)  # fmt: skip
def test_names_of_sizes(tmp_path: Path, text: str, expected: tuple[int, str] | None) -> None:
    text = text if text.startswith(("def ", "import ", "#")) else text + "\n"
    path = tmp_path / "file.py"
    path.write_text(KERNEL + text + "\n")
    found = load(path).values().of("k").named("M")
    assert (found and (found.value, found.origin)) == expected


@pytest.mark.parametrize(
    "text",
    ["k(open('x').read(), 1)", "k(*sizes)", "k(1 / 0, 2 ** 9999)", "k(unknown, other.attribute)"],
)
def test_nothing_of_the_file_is_run_to_find_values(tmp_path: Path, text: str) -> None:
    values = values_of(tmp_path, text)
    assert values.argument(0, "M") is None
