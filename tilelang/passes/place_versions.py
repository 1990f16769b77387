"""Buffers of which several versions exist get room for them, and each statement its own.

Before: S = T.alloc_shared((1000,), "float16")                            (3 versions)
        with version k % 3 of S: … S[tx] …
After:  S = T.alloc_shared((3 * 1024,), "float16")
        S_at = k % 3 * 1024
        … S[S_at + tx] …

A version begins where rows of banks begin, so that what was proved of the alignment of an access
still holds. Without a version a statement works on the first.
"""

from __future__ import annotations

from typing import Any, Final

from tilelang.dtypes import dtype as find_dtype
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import SHARED_ALIGNMENT
from tilelang.ir.visit import Rewriter, collect, storage_roots, with_body
from tilelang.passes.context import PassContext

_ROW_BYTES: Final = 128


def place_versions(func: tirx.PrimFunc, ctx: PassContext) -> tirx.PrimFunc:
    """Make room for versions and drop the attributes that name them."""
    return with_body(func, _Place(func.body).any(func.body))


class _Place(Rewriter):
    def __init__(self, body: Any) -> None:
        self._roots = storage_roots(body)
        self._wide: dict[Any, Any] = {}  # buffer -> the one that holds all versions
        self._strides: dict[Any, int] = {}
        self._offsets: dict[Any, Any] = {}  # buffer -> where the version in force begins
        for s in collect(body, tirx.AllocBuffer):
            count = s.annotations.get(attrs.VERSIONS)
            if count is not None:
                self._make_room(s, int(count))

    def _make_room(self, s: Any, count: int) -> None:
        buffer = s.buffer
        bits = find_dtype(str(buffer.dtype)).bits
        align = max(_ROW_BYTES, int(s.annotations.get(SHARED_ALIGNMENT, 1)))
        unit = align * 8 // bits
        (elements,) = (build.int_value(d) for d in buffer.shape)
        if elements is None:
            raise ValueError(f"the extent of {buffer.name} is no constant")
        stride = -(-elements // unit) * unit
        shape = [build.const(stride * count, "int32", s.span)]
        self._strides[buffer] = stride
        self._wide[buffer] = tirx.decl_buffer(
            shape, str(buffer.dtype), name=str(buffer.name), scope=str(buffer.scope()),
            data_alignment=64, span=buffer.span, layout=None,
        )  # fmt: skip

    def alloc(self, s: Any) -> Any:
        wide = self._wide.get(s.buffer)
        return s if wide is None else tirx.AllocBuffer(wide, s.annotations, s.span)

    def attr(self, s: Any) -> Any:
        if str(s.attr_key) == attrs.ASYNC:
            return self.any(s.body)
        if str(s.attr_key) != attrs.VERSION:
            return super().attr(s)
        buffer = s.node
        stride = self._strides[buffer]
        version = self.any(s.value)
        dtype = build.dtype_of(version)
        number = build.int_value(version)
        outer = self._offsets.get(buffer)
        binds = []
        if number is not None:
            self._offsets[buffer] = build.const(number * stride, dtype, s.span)
        else:
            start = tirx.Mul(version, build.const(stride, dtype, s.span), s.span)
            var = tirx.Var(f"{buffer.name}_at", dtype, s.span)
            binds.append(tirx.Bind(var, start, s.span))
            self._offsets[buffer] = var
        body = self.any(s.body)
        self._offsets.pop(buffer)
        if outer is not None:
            self._offsets[buffer] = outer
        return build.seq([*binds, body], s.span)

    # Accesses.

    def decl(self, s: Any) -> Any:
        if self._roots.get(s.buffer) not in self._wide:
            return super().decl(s)
        source = s.data.args[0]
        data = build.data_of(self._wide.get(source, source), s.span)
        return tirx.DeclBuffer(s.buffer, data=data, span=s.span)

    def load(self, e: Any) -> Any:
        new = super().load(e)
        moved = self._moved(new.source, list(new.indices), e.span)
        return new if moved is None else tirx.BufferLoad(*moved, e.span)

    def store(self, s: Any) -> Any:
        new = super().store(s)
        moved = self._moved(new.buffer, list(new.indices), s.span)
        return new if moved is None else tirx.BufferStore(moved[0], new.value, moved[1], s.span)

    def region(self, e: Any) -> Any:
        new = super().region(e)
        mins, extents = [r.min for r in new.region], [r.extent for r in new.region]
        moved = self._moved(new.source, mins, e.span)
        if moved is None:
            return new
        return build.region(moved[0], list(zip(moved[1], extents, strict=True)), e.span)

    def _moved(self, buffer: Any, indices: list[Any], span: Any) -> tuple[Any, list[Any]] | None:
        """The buffer and indices of an access in the version in force; None for other memory."""
        root = self._roots.get(buffer, buffer)
        wide = self._wide.get(root)
        if wide is None:
            return None
        target = wide if root.same_as(buffer) else buffer
        offset = self._offsets.get(root)
        if offset is None or build.is_int(offset, 0):
            return target, indices
        here, there = (find_dtype(str(b.dtype)).bits for b in (buffer, root))
        if here != there:
            offset = tirx.FloorDiv(
                tirx.Mul(offset, build.const(there, build.dtype_of(offset), span), span),
                build.const(here, build.dtype_of(offset), span), span,
            )  # fmt: skip
        first = indices[-1]
        offset = build.cast(offset, build.dtype_of(first).split("x")[0], span)
        if isinstance(first, tirx.Ramp):
            base = build.add(offset, first.base, span)
            shifted = tirx.Ramp(base, first.stride, first.lanes, span)
        else:
            shifted = build.add(offset, first, span)
        return target, [*indices[:-1], shifted]
