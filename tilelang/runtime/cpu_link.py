"""How does object code become a shared library, and which linker does that?

A shared library loads fastest and shows up in debuggers and profilers, so the cache keeps one
where the machine can make it. Any linker or compiler driver will do; none is required.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

_TIMEOUT = 60


@cache
def linker_command() -> tuple[str, ...] | None:
    """The command that links, up to its output and inputs; None when nothing can."""
    if sys.platform == "darwin":
        candidates = (("cc", "-dynamiclib", "-undefined", "dynamic_lookup"),
                      ("clang", "-dynamiclib", "-undefined", "dynamic_lookup"))  # fmt: skip
    else:
        candidates = (("ld", "-shared"), ("ld.lld", "-shared"), ("gcc", "-shared"),
                      ("cc", "-shared"), ("clang", "-shared"))  # fmt: skip
    for name, *flags in candidates:
        found = shutil.which(name)
        if found:
            return (found, *flags)
    return _zig()


def link_shared(object_code: bytes, destination: Path) -> bool:
    """Write a shared library of `object_code`, atomically; False when that is not possible."""
    command = linker_command()
    if command is None:
        return False
    destination.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=destination.parent, prefix=".link-") as folder:
        source, made = Path(folder) / "kernel.o", Path(folder) / "kernel.so"
        source.write_bytes(object_code)
        try:
            done = subprocess.run(
                [*command, "-o", str(made), str(source)],
                capture_output=True, timeout=_TIMEOUT, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return False
        if done.returncode != 0 or not made.is_file():
            return False
        os.replace(made, destination)
    return True


def _zig() -> tuple[str, ...] | None:
    """The linker of the `ziglang` package, when it is installed."""
    import importlib.util

    if importlib.util.find_spec("ziglang") is None:
        return None
    return (sys.executable, "-m", "ziglang", "cc", "-shared")
