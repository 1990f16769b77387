"""How does lowered IR become an artifact of a dialect without a launcher?

Printed with the words of the backend's dialect, then given to its compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tilelang.backends import backend_for
from tilelang.codegen.device_artifact import DeviceArtifact, DeviceCode
from tilelang.ir import attrs
from tilelang.nested import nested
from tilelang.options import CompileOptions, PassConfigKey
from tilelang.target import parse_target
from tilelang_diagnostics import error_for


def build_device(
    func: Any,
    *,
    options: CompileOptions,
    find_object: Callable[[DeviceArtifact], DeviceCode | None] | None = None,
) -> DeviceArtifact:
    """The artifact of a PrimFunc at stage `device`; raises CompileError.

    `find_object` may know the code of an artifact that has all but that.
    """
    from tilelang.codegen.device_printer import PrintError, print_device

    target = parse_target(str(func.attrs[attrs.TARGET]))
    backend = backend_for(target)
    dialect = backend.words()
    try:
        with nested("print"):
            device = print_device(
                func,
                dialect,
                line_directives=bool(options[PassConfigKey.TL_EMIT_LINE_DIRECTIVES]),
                index_bits=options.index_bits,
            )
    except PrintError as refused:
        raise error_for(refused.diagnostics) from None
    tools = backend.compiler()
    compiler, flags = tools.identity(target, options)
    bare = DeviceArtifact(device, str(target), dialect.extension, DeviceCode(compiler, flags))
    known = find_object(bare) if find_object is not None else None
    if known is None:
        with nested(compiler):
            known = tools.compile(device, target, options)
    return DeviceArtifact(device, str(target), dialect.extension, known)
