"""Can PyTorch compare every tensor of a call with those of an earlier one in a single step?

What `torch.compile` checks before it runs code made for earlier tensors is one call of a C function
that looks at class, dtype, device, dispatch keys (negated, conjugated), sizes and strides of all of
them: a quarter of the time that asking each tensor takes. It is not a public interface; where it is
missing or behaves otherwise, every tensor is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

# After so many calls with tensors of other sizes the latest are learned instead of the first.
MISSES: Final = 32


def same_kind(tensors: Sequence[Any]) -> Callable[..., bool] | None:
    """A test that tensors are like `tensors` in all but their addresses and elements.

    Its False means nothing: only its True saves other tests.
    """
    sizes: list[Any] = [list(t.shape) for t in tensors]
    strides: list[Any] = [list(t.stride()) for t in tensors]
    try:
        from torch._C._dynamo.guards import TensorGuards

        guards = TensorGuards(*tensors, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        test: Callable[..., bool] = guards.check
        others = [t.unsqueeze(0) for t in tensors]
        works = test(*tensors) is True and test(*others) is False
    except Exception:
        return None
    return test if works else None
