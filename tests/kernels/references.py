"""What is the float64 answer of attention? One head at a time, so that full shapes fit in memory.

Kernel files import this inside their reference functions only: read as text, or run by a user,
they need nothing but the language and NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


def attention(
    q: Array, k: Array, v: Array, allowed: Callable[[int, int], Array], sinks: Array | None = None
) -> Array:
    """Softmax attention over (batch, head, sequence, dim); key/value heads may be fewer.

    Args:
        allowed: for a sample and a head, which query sees which key.
        sinks: one logit per head that takes part of the softmax and has no value.
    """
    out = np.empty((*q.shape[:3], v.shape[3]))
    groups = q.shape[1] // k.shape[1]
    for sample, head in np.ndindex(*q.shape[:2]):
        scores = q[sample, head] @ k[sample, head // groups].T / np.sqrt(q.shape[3])
        scores = np.where(allowed(sample, head), scores, -np.inf)
        sink = -np.inf if sinks is None else sinks[head]
        peak = np.maximum(scores.max(axis=1, keepdims=True), sink)
        weights = np.exp(scores - peak)
        weights /= weights.sum(axis=1, keepdims=True) + np.exp(sink - peak)
        out[sample, head] = weights @ v[sample, head // groups]
    return out


def attention_bshd(q: Array, k: Array, v: Array, allowed: Callable[[int, int], Array]) -> Array:
    """The same over (batch, sequence, head, dim)."""
    q, k, v = (np.swapaxes(x, 1, 2) for x in (q, k, v))
    return np.swapaxes(attention(q, k, v, allowed), 1, 2)


def causal(rows: int, columns: int) -> Array:
    """Each of the last ``rows`` of ``columns`` positions sees itself and what came before."""
    return np.tril(np.ones((rows, columns), bool), columns - rows)
