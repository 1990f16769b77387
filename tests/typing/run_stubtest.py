"""mypy's stubtest on `tilelang.language`, in its own process: `run_stubtest.py CONFIG ALLOWED`.

A name of the language is an object that is called; stubtest compares functions. So it is shown the
function behind each, whose signature is the one that calls are checked with.
"""

from __future__ import annotations

import sys
from pathlib import Path

from mypy import stubtest

import tilelang.language as T
from tilelang.language.catalog import LanguageFunction

# Modules below have no stubs; the two halves of `T.Tensor` are nowhere at run time, nor is MYPY.
ALLOWED = r"""
tilelang\.language\.[a-z][a-z_0-9]*\..*
tilelang\.language\._seen_by_(mypy|pyright)
tilelang\.language\.MYPY
"""


def main(config: str, allowed: Path) -> int:
    for name, value in list(vars(T).items()):
        if isinstance(value, LanguageFunction):
            setattr(T, name, value.function)
    allowed.write_text(ALLOWED, encoding="utf-8")
    return stubtest.test_stubs(
        stubtest.parse_options([
            "tilelang.language", "--mypy-config-file", config, "--concise",
            "--allowlist", str(allowed), "--ignore-unused-allowlist",
        ])
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
