"""Does a caller expect gradients of a kernel, which PyTorch cannot see into? (TL729)

Asked of calls that are checked in full: the first one with tensors of a kind. Inside of an autograd
function PyTorch has turned gradients off, and nothing is said.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.runtime.report import warn_once
from tilelang.runtime.signature import Signature
from tilelang_diagnostics import diagnose


def warn_of_gradients(signature: Signature, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Warn once a kernel of an argument whose gradient ends here."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.is_grad_enabled():
        return
    named = {p.name: value for p, value in zip(signature.inputs, args, strict=False)}
    for name, value in {**named, **kwargs}.items():
        if getattr(value, "requires_grad", False) is True:
            warn_once(
                diagnose(
                    "TL729",
                    f"argument `{name}` of `{signature.name}` requires a gradient, which a kernel "
                    "does not pass on",
                    span=signature.span,
                    help="call it in a torch.autograd.Function with a backward pass, as in "
                    "examples/autograd.py, or under torch.no_grad()",
                ),
                f"TL729 {signature.name} {signature.span}",
            )
            return
