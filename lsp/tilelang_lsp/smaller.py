"""With which sizes does a kernel take less to emulate?

The emulator takes about a second for 16 blocks of a product of 64 x 64 x 256, so that a kernel of
the sizes it is made for may take an hour.
"""

from __future__ import annotations

from collections.abc import Mapping

from tilelang_lsp.model import Insight

ENOUGH = 256  # halved down to this, a size has several blocks and iterations left


def smaller_sizes(insight: Insight | None) -> dict[str, str]:
    """The large sizes that a kernel is looked into with, each halved until it is not."""
    found: dict[str, str] = {}
    for name, value, _ in insight.assumed if insight is not None else ():
        if value.isdecimal() and int(value) > ENOUGH and name.isidentifier():
            size = int(value)
            while size > ENOUGH and size % 2 == 0:
                size //= 2
            if size < int(value):
                found[name] = str(size)
    return found


def advice(sizes: Mapping[str, str]) -> str:
    """What to do about a run that takes long."""
    if not sizes:
        return "with smaller tensors it ends sooner"
    said = ", ".join(f"{name}={value}" for name, value in sizes.items())
    return f"with smaller sizes it ends sooner: `# tilelang: set {said}` above the kernel"
