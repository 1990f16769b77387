"""What does a process need to make one call of a kernel, besides a GPU? Written to a folder.

The artifact, the bytes of each tensor, and the value of each slot.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.program.expr import Var
from tilelang.runtime.arguments import sizes_of
from tilelang.runtime.dims import bytes_of
from tilelang.runtime.sanitizer_child import CALL
from tilelang.runtime.signature import Signature
from tilelang_diagnostics import failure


def write_call(
    folder: Path, artifact: CudaArtifact, signature: Signature, inputs: Sequence[Any]
) -> None:
    """Store a call of `artifact` with `inputs`: arrays, tensors of the CPU, and numbers."""
    artifact.save(folder)
    sizes = sizes_of(signature, inputs)
    inputs = [_as_array(value) for value in inputs]
    given = dict(zip(signature.inputs, inputs, strict=True))
    lacking = next((v.name for v in signature.dims if v not in sizes), None)
    if lacking is not None:
        raise failure(
            "TL710",
            f"no input of `{signature.name}` gives {lacking}, a size of what it returns",
            help="pass the tensor instead of naming it in out_idx",
        )
    rows: list[dict[str, Any]] = []
    for number, parameter in enumerate((*signature.slots, *signature.dims)):
        if isinstance(parameter, Var):
            value = given[parameter] if parameter in given else sizes[parameter]
            rows.append({"name": parameter.name, "number": _plain(value)})
        elif parameter in given and given[parameter] is None:
            rows.append({"name": parameter.name, "number": 0})
        elif parameter in given:
            if any(step < 0 for step in given[parameter].strides):
                raise failure(
                    "TL705",
                    f"argument `{parameter.name}` of `{signature.name}` runs backwards, which a "
                    "copy for the sanitizer cannot",
                    help=f"pass {parameter.name}.copy()",
                )
            data = memory_of(given[parameter])
            (folder / f"{number}.bin").write_bytes(data)
            rows.append({"name": parameter.name, "bytes": len(data), "file": f"{number}.bin"})
        else:
            rows.append({"name": parameter.name, "bytes": bytes_of(parameter, sizes), "file": None})
    (folder / CALL).write_text(json.dumps({"values": rows}), encoding="utf-8")


def memory_of(array: Any) -> bytes:
    """The bytes from the first element of a NumPy array to its last, gaps as zeros; its strides
    are not negative."""
    import numpy

    if array.flags.c_contiguous:
        return bytes(array.tobytes())
    item = array.itemsize
    span = 1 + sum((n - 1) * s // item for n, s in zip(array.shape, array.strides, strict=True))
    backing = numpy.zeros(span, array.dtype)
    numpy.lib.stride_tricks.as_strided(backing, array.shape, array.strides)[...] = array
    return bytes(backing.tobytes())


def _as_array(value: Any) -> Any:
    """A PyTorch tensor as an array of the same bytes and strides; anything else as it is."""
    if not hasattr(value, "detach"):
        return value
    tensor = value.detach()
    try:
        return tensor.numpy()
    except TypeError:  # a dtype that NumPy has not
        import torch

        bits = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[tensor.element_size()]
        return tensor.view(bits).numpy()


def _plain(value: Any) -> int | float:
    """A number that JSON and `struct` know."""
    return value if isinstance(value, (int, float)) else value.item()
