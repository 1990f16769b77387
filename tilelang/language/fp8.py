"""Which fp8 format does a device multiply: `T.fp8.determine_fp8_type()`."""

from __future__ import annotations

import sys
from typing import Any, Literal

from tilelang.dtypes import dtype
from tilelang.language.catalog import language_function
from tilelang.language.operands import choice
from tilelang.program.context import active_trace

Format = Literal["e4m3", "e5m2"]

# CDNA 3 multiplies the formats without negative zero; every other device the OCP formats.
FNUZ_ARCHITECTURES = ("gfx940", "gfx941", "gfx942")


@language_function("meta", outside=True)
def determine_fp8_type(fp8_format: Format = "e4m3") -> str:
    """The name of the fp8 dtype of the device at hand, or of the target being compiled for.

    Args:
        fp8_format: e4m3 (more precision) or e5m2 (more range).

    >>> dtype = T.fp8.determine_fp8_type()
    """
    kind = choice("fp8.determine_fp8_type", "fp8_format", fp8_format, ("e4m3", "e5m2"))
    suffix = "fnuz" if _is_fnuz() else ("fn" if kind == "e4m3" else "")
    return f"float8_{kind}{suffix}"


@language_function("meta", outside=True)
def determine_torch_fp8_type(fp8_format: Format = "e4m3") -> Any:
    """The `torch.dtype` of `T.fp8.determine_fp8_type`.

    Args:
        fp8_format: e4m3 or e5m2.

    >>> x = x.to(T.fp8.determine_torch_fp8_type())
    """
    return dtype(determine_fp8_type.function(fp8_format)).as_torch()


def _is_fnuz() -> bool:
    trace = active_trace()
    if trace is not None and trace.target is not None:
        return any(arch in trace.target for arch in FNUZ_ARCHITECTURES)
    # Never import torch for this: where it is not loaded there is no tensor to match.
    torch = sys.modules.get("torch")
    if torch is None or getattr(torch.version, "hip", None) is None:
        return False
    if not torch.cuda.is_available():
        return False
    name = str(torch.cuda.get_device_properties(0).gcnArchName)
    return name.split(":")[0] in FNUZ_ARCHITECTURES
