"""Which folders hold no one's own kernels?"""

from __future__ import annotations

_SKIPPED = frozenset({"__pycache__", "node_modules", "venv", "build", "dist", "site-packages"})


def is_skipped(name: str) -> bool:
    """Whether nothing below a folder of this name is looked at."""
    return name in _SKIPPED or name.startswith(".")
