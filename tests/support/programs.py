"""Kernel text in, tile program text out."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from tests.support.markers import kernel_text
from tilelang.language.frontend import parse_static
from tilelang.program.printer import block_lines, function_text
from tilelang.program.stmt import Launch
from tilelang_diagnostics import SourceMap, render_text


def program_of(text: str, values: Mapping[str, Any] | None = None) -> str:
    """The whole program of the only kernel of `text`."""
    return function_text(_parse(text, values))


def body_of(text: str, values: Mapping[str, Any] | None = None) -> str:
    """The statements inside the launch of the only kernel of `text`."""
    function = _parse(text, values)
    launch = next(s for s in function.body if isinstance(s, Launch))
    return "\n".join(block_lines(launch.body))


def in_kernel(body: str, arrays: str = "A, B", n: int = 16) -> str:
    """A kernel over `n`-element float32 vectors with `body` inside its launch."""
    params = ", ".join(f'{a.strip()}: T.Tensor(({n},), "float32")' for a in arrays.split(","))
    head = f"@T.prim_func\ndef main({params}):\n    with T.Kernel(1, threads={n}) as bx:\n"
    return head + textwrap.indent(textwrap.dedent(body).strip("\n"), " " * 8) + "\n"


def _parse(text: str, values: Mapping[str, Any] | None) -> Any:
    source = kernel_text(text)
    result = parse_static(source, "kernel.py", values=values)
    rendered = render_text(result.all_diagnostics, SourceMap({"kernel.py": source}))
    assert len(result) == 1, f"{len(result)} kernels\n{rendered}"
    assert result[0].function is not None, rendered
    return result[0].function
