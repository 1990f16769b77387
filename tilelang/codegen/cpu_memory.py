"""Where does each buffer of a CPU kernel live, and how is one element of it read or written?

Parameters come by address and may alias each other. Tiles and locals are private to the worker
thread: small ones on the stack, where LLVM turns them into registers, larger ones in the scratch
memory the runtime hands in. Accesses assume no more alignment than one element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Final

from tilelang.codegen import cpu_types as types
from tilelang.codegen.cpu_builder import Builder, Val, integer
from tilelang.dtypes import DType

STACK_EACH: Final = 4096
STACK_TOTAL: Final = 64 * 1024
SCRATCH_ALIGN: Final = 64


@dataclass(frozen=True, slots=True)
class Root:
    """One allocation: its alias class (0: shared by all memory from outside), and how many
    parallel loops were open where it was made."""

    alias: int
    depth: int


@dataclass(frozen=True, slots=True)
class View:
    """How a buffer variable looks at memory: strides and offset in elements."""

    name: str
    pointer: Val
    root: Root
    dtype: DType
    shape: tuple[Val, ...]
    strides: tuple[Val, ...]
    offset: Val

    @property
    def extents(self) -> tuple[int | None, ...]:
        return tuple(_number(dim) for dim in self.shape)


class Memory:
    """The buffers of one function, and the metadata of accesses to them."""

    def __init__(self, b: Builder, scratch: Val) -> None:
        self.b = b
        self.scratch = scratch
        self.scratch_bytes = 0
        self._stack_bytes = 0
        self._views: dict[Any, View] = {}
        self._storage: dict[Any, Val] = {}
        self._domain = b.module.node("distinct !{SELF}")
        self._scopes: list[str] = []
        self._not_aliased: list[str] = []
        self._groups: list[str] = []
        self._group_lists: dict[tuple[str, ...], str] = {}
        self._new_alias()

    # --- declaring ---

    def outside(self, buffer: Any, pointer: Val, shape: Sequence[Val], strides: Sequence[Val],
                offset: Val) -> None:  # fmt: skip
        """`buffer` is memory from outside the kernel."""
        dtype = types.parse(str(buffer.dtype))
        self._views[buffer] = View(
            buffer.name, pointer, Root(0, 0), dtype, tuple(shape), tuple(strides), offset
        )

    def allocate(self, buffer: Any, shape: Sequence[int]) -> None:
        """`buffer` is storage of this worker's own."""
        dtype = types.parse(str(buffer.dtype))
        pointer = self._storage.get(buffer)
        if pointer is None:
            pointer = self._storage[buffer] = self._place(dtype, prod(shape) * dtype.lanes)
        dims = [integer(n, "i64") for n in shape]
        root = Root(self._new_alias(), len(self._groups))
        zero = integer(0, "i64")
        self._views[buffer] = View(
            buffer.name, pointer, root, dtype, tuple(dims), row_major(self.b, dims), zero
        )

    def _place(self, dtype: DType, count: int) -> Val:
        nibble = types.is_nibble(dtype)
        size = (count + 1) // 2 if nibble else count * types.width(dtype)
        if size <= STACK_EACH and self._stack_bytes + size <= STACK_TOTAL:
            self._stack_bytes += size
            align = SCRATCH_ALIGN if size >= SCRATCH_ALIGN else max(8, types.width(dtype))
            length = size if nibble else count
            return self.b.alloca(types.memory(dtype), max(1, length), align)
        text = f"getelementptr inbounds i8, {self.scratch}, i64 {self.scratch_bytes}"
        self.scratch_bytes += -(-size // SCRATCH_ALIGN) * SCRATCH_ALIGN
        return self.b.at_entry(text, "ptr")

    def alias(self, buffer: Any, source: Any, shape: Sequence[Val], strides: Sequence[Val],
              offset: Val) -> None:  # fmt: skip
        """`buffer` is another view of the storage of `source`."""
        old = self._views[source]
        dtype = types.parse(str(buffer.dtype))
        pointer = old.pointer
        if old.offset.ref != "0" and not types.is_nibble(old.dtype):
            # Views count elements of their own dtype from where the source starts.
            lanes = old.dtype.lanes
            step = mul64(self.b, old.offset, integer(types.width(old.dtype) * lanes, "i64"))
            pointer = self.b.element(pointer, step, "i8")
        self._views[buffer] = View(
            buffer.name, pointer, old.root, dtype, tuple(shape), tuple(strides), offset
        )

    def knows(self, buffer: Any) -> bool:
        return buffer in self._views

    def view(self, buffer: Any) -> View:
        return self._views[buffer]

    def pointer(self, buffer: Any) -> Val:
        """The address of the first element of `buffer`."""
        view = self._views[buffer]
        return self.element(view, view.offset)

    # --- accessing ---

    def offset(self, view: View, indices: Sequence[Val]) -> Val:
        """The element offset of `indices`, one i64 (or vector of them) per dimension."""
        total = view.offset
        for index, stride in zip(indices, view.strides, strict=True):
            total = add64(self.b, total, mul64(self.b, index, stride))
        return total

    def element(self, view: View, offset: Val) -> Val:
        """The address of the element at `offset`; of its byte for nibbles."""
        b = self.b
        if types.is_nibble(view.dtype):
            one = integer(1, "i64")
            return b.element(view.pointer, b.binary("ashr", offset, one), "i8")
        kind = types.memory(view.dtype)
        if view.dtype.lanes > 1:
            kind = f"[{view.dtype.lanes} x {kind}]"
        return b.element(view.pointer, offset, kind)

    def load(self, view: View, offset: Val, lanes: int = 1) -> Val:
        """`lanes` consecutive elements in register form; a vector of offsets gathers."""
        b = self.b
        if offset.lanes > 1:
            gathered = [self.load(view, b.lane(offset, i)) for i in range(offset.lanes)]
            return b.pack(gathered)
        if types.is_nibble(view.dtype):
            steps = [add64(b, offset, integer(i, "i64")) for i in range(lanes * view.dtype.lanes)]
            return b.pack([self._load_nibble(view, step) for step in steps])
        pointer = self.element(view, offset)
        count = lanes * view.dtype.lanes
        meta = self.meta(view.root)
        value = b.load(pointer, types.memory(view.dtype), count, types.width(view.dtype), meta)
        if view.dtype.kind == "bool":
            return b.compare("ne", value, integer(0, "i8"))
        return value

    def store(self, view: View, offset: Val, value: Val) -> None:
        """Write consecutive elements in register form; a vector of offsets scatters."""
        b = self.b
        if offset.lanes > 1:
            for i in range(offset.lanes):
                self.store(view, b.lane(offset, i), b.lane(value, i))
            return
        if types.is_nibble(view.dtype):
            for i in range(value.lanes):
                step = add64(b, offset, integer(i, "i64"))
                self._store_nibble(view, step, b.lane(value, i))
            return
        if view.dtype.kind == "bool":
            value = b.cast("zext", value, "i8")
        pointer = self.element(view, offset)
        b.store(value, pointer, types.width(view.dtype), self.meta(view.root))

    def _nibble_shift(self, offset: Val) -> Val:
        b = self.b
        odd = b.cast("trunc", b.binary("and", offset, integer(1, "i64")), "i8")
        return b.binary("shl", odd, integer(2, "i8"))

    def _load_nibble(self, view: View, offset: Val) -> Val:
        b = self.b
        byte = b.load(self.element(view, offset), "i8", 1, 1, self.meta(view.root))
        shifted = b.binary("lshr", byte, self._nibble_shift(offset))
        if view.dtype.kind == "float":
            return b.binary("and", shifted, integer(15, "i8"))
        return types.wrap_nibble(b, shifted, view.dtype.scalar)

    def _store_nibble(self, view: View, offset: Val, value: Val) -> None:
        b = self.b
        pointer = self.element(view, offset)
        shift = self._nibble_shift(offset)
        hole = b.binary("xor", b.binary("shl", integer(15, "i8"), shift), integer(-1, "i8"))
        bits = b.binary("shl", b.binary("and", value, integer(15, "i8")), shift)
        if view.root.alias == 0:
            # The neighbour may belong to a block on another core: touch no bit of it.
            b.emit(f"atomicrmw and {pointer}, {hole} monotonic", "i8")
            b.emit(f"atomicrmw or {pointer}, {bits} monotonic", "i8")
            return
        # No access group: parallel iterations share the byte and must not be interleaved.
        byte = b.load(pointer, "i8", 1, 1)
        b.store(b.binary("or", b.binary("and", byte, hole), bits), pointer, 1)

    # --- metadata ---

    def open_parallel(self) -> str:
        """Accesses from here on belong to one more parallel loop; returns its access group."""
        group = self.b.module.node("distinct !{}")
        self._groups.append(group)
        return group

    def close_parallel(self) -> None:
        self._groups.pop()

    def meta(self, root: Root) -> str:
        """The metadata of an access: what it does not alias, and in which loops it is free."""
        alias, other = self._scopes[root.alias], self._not_aliased[root.alias]
        text = f", !alias.scope {alias}, !noalias {other}"
        # Storage made inside a loop is shared by its iterations, so those are not free of it.
        groups = tuple(self._groups[root.depth :])
        if len(groups) == 1:
            text += f", !llvm.access.group {groups[0]}"
        elif groups:
            listed = self._group_lists.get(groups)
            if listed is None:
                listed = self.b.module.node(f"!{{{', '.join(groups)}}}")
                self._group_lists[groups] = listed
            text += f", !llvm.access.group {listed}"
        return text

    def finish(self) -> None:
        """Write down which alias classes exclude which."""
        nodes = self.b.module.metadata
        scopes = [nodes[int(s[1:])][2:-1] for s in self._scopes]
        for i, name in enumerate(self._not_aliased):
            others = [s for j, s in enumerate(scopes) if j != i]
            nodes[int(name[1:])] = f"!{{{', '.join(others)}}}"

    def _new_alias(self) -> int:
        node = self.b.module.node
        scope = node(f"distinct !{{SELF, {self._domain}}}")
        self._scopes.append(node(f"!{{{scope}}}"))
        self._not_aliased.append(node("!{}"))
        return len(self._scopes) - 1


def row_major(b: Builder, shape: Sequence[Val]) -> tuple[Val, ...]:
    """Strides in elements of a contiguous array."""
    strides = [integer(1, "i64")]
    for dim in reversed(shape[1:]):
        strides.append(mul64(b, strides[-1], dim))
    return tuple(reversed(strides[: max(1, len(shape))])) if shape else ()


def mul64(b: Builder, x: Val, y: Val) -> Val:
    """A product of i64 values, folded where it is plain."""
    a, c = _number(x), _number(y)
    if a is not None and c is not None:
        return integer(a * c, "i64")
    if a == 1:
        return y
    if c == 1:
        return x
    if a == 0 or c == 0:
        return integer(0, "i64", max(x.lanes, y.lanes))
    return b.binary("mul", x, y, "nsw ")


def add64(b: Builder, x: Val, y: Val) -> Val:
    """A sum of i64 values, folded where it is plain."""
    a, c = _number(x), _number(y)
    if a is not None and c is not None:
        return integer(a + c, "i64")
    if a == 0:
        return y
    if c == 0:
        return x
    return b.binary("add", x, y, "nsw ")


def _number(value: Val) -> int | None:
    text = value.ref
    return int(text) if value.lanes == 1 and text.lstrip("-").isdigit() else None
