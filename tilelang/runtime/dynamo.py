"""How are kernels kept out of what `torch.compile` traces?

Dynamo would trace through the compiler itself, and fail: it ends the graph at a kernel instead,
calls it, and goes on behind it. `opaque` marks a method as not to be traced. The mark does not
reach the functions that the method calls; what does is Dynamo's own wrapper, which takes half a
microsecond per call and is put around the methods once Dynamo is there.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)

_opaque: list[tuple[type, str]] = []
is_hidden = False


def opaque(*names: str) -> Callable[[C], C]:
    """A class decorator: `torch.compile` calls these methods and does not look into them."""

    def mark(cls: C) -> C:
        for name in names:
            vars(cls)[name]._torchdynamo_disable = True
            if is_hidden:
                _hide(cls, name)
            _opaque.append((cls, name))
        return cls

    return mark


def hide_if_loaded() -> bool:
    """Put Dynamo's wrapper around the methods; False where it is not loaded, or they have it."""
    global is_hidden
    if is_hidden or "torch._dynamo" not in sys.modules:
        return False
    is_hidden = True
    for cls, name in _opaque:
        _hide(cls, name)
    return True


def _hide(cls: type, name: str) -> None:
    import torch

    setattr(cls, name, torch._dynamo.disable(vars(cls)[name]))
