"""How is a function of LLVM IR text put together?

`Builder` appends instructions to an open basic block and names their results; `Module` collects
the functions, constants and metadata of one compilation. Nothing here knows about tiles or TVM.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tilelang_diagnostics.model import Span

# Fusing a multiply into an add changes a result by less than its own rounding; everything else
# keeps to IEEE order.
CONTRACT: Final = "contract "


@dataclass(frozen=True, slots=True)
class Val:
    """An SSA value or constant: how to refer to it, its scalar type, its lanes."""

    ref: str
    base: str
    lanes: int = 1

    @property
    def type(self) -> str:
        return self.base if self.lanes == 1 else f"<{self.lanes} x {self.base}>"

    @property
    def is_float(self) -> bool:
        return self.base in ("half", "float", "double")

    def __str__(self) -> str:
        return f"{self.type} {self.ref}"


def integer(value: int, base: str, lanes: int = 1) -> Val:
    """An integer constant, in every lane."""
    if base == "i1":
        return _constant("true" if value else "false", base, lanes)
    bits = int(base[1:])
    value &= (1 << bits) - 1
    signed = value - (1 << bits) if value >> (bits - 1) else value
    return _constant(str(signed), base, lanes)


def floating(value: float, base: str, lanes: int = 1) -> Val:
    """A floating-point constant, rounded to its type, in every lane."""
    if base == "half":
        return _constant(f"0xH{_half_bits(value):04X}", base, lanes)
    if base == "float":
        value = _to_single(value)
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    return _constant(f"0x{bits:016X}", base, lanes)


def _constant(text: str, base: str, lanes: int) -> Val:
    return Val(text if lanes == 1 else f"splat ({base} {text})", base, lanes)


def _half_bits(value: float) -> int:
    try:
        return int(struct.unpack("<H", struct.pack("<e", value))[0])
    except OverflowError:
        return 0x7C00 if value > 0 else 0xFC00


def _to_single(value: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


@dataclass
class Module:
    """Functions, declarations, string constants and metadata of one compilation.

    `has_scale`: the processor scales vectors by powers of two in one instruction; `has_fma`: it
    multiplies and adds in one.
    """

    has_scale: bool = False
    has_fma: bool = True
    functions: list[str] = field(default_factory=list)
    # The place in Python of each line of each function.
    places: list[list[Span | None]] = field(default_factory=list)
    declarations: dict[str, str] = field(default_factory=dict)
    strings: dict[bytes, str] = field(default_factory=dict)
    metadata: list[str] = field(default_factory=list)

    def declare(self, name: str, result: str, params: Sequence[str], vararg: bool = False) -> str:
        """Make `name` callable; returns it with its sigil."""
        listed = [*params, "..."] if vararg else list(params)
        self.declarations.setdefault(name, f"declare {result} @{name}({', '.join(listed)})")
        return f"@{name}"

    def string(self, text: str) -> Val:
        """A pointer to zero-terminated text."""
        data = text.encode() + b"\0"
        name = self.strings.setdefault(data, f"@text.{len(self.strings)}")
        return Val(name, "ptr")

    def node(self, body: str) -> str:
        """A metadata node, `!{self, …}` when `body` uses the word SELF."""
        name = f"!{len(self.metadata)}"
        self.metadata.append(body.replace("SELF", name))
        return name

    def spans(self) -> list[Span | None]:
        """The place in Python of each line of `text`."""
        before = len(self.strings) + len(self.declarations)
        found: list[Span | None] = [None] * before
        for lines in self.places:
            found += lines
        return [*found, *[None] * len(self.metadata)]

    def text(self) -> str:
        """The whole module."""
        strings = [
            f'{name} = private unnamed_addr constant [{len(data)} x i8] c"'
            + "".join(chr(c) if 32 <= c < 127 and c not in b'"\\' else f"\\{c:02X}" for c in data)
            + '"'
            for data, name in self.strings.items()
        ]
        nodes = [f"!{i} = {body}" for i, body in enumerate(self.metadata)]
        parts = [*strings, *self.declarations.values(), *self.functions, *nodes]
        return "\n".join(parts) + "\n"


class Builder:
    """One function being written; instructions go to the block opened last."""

    def __init__(self, module: Module, name: str, params: Sequence[tuple[str, str]]) -> None:
        self.module = module
        self.name = name
        self.params = tuple(params)
        self._allocas: list[str] = []
        self._lines: list[str] = []
        self.at: Span | None = None  # where in Python what is appended comes from
        self._alloca_places: list[Span | None] = []
        self._places: list[Span | None] = []
        self._count = 0
        self.terminated = False
        self.block = "entry"

    # --- blocks ---

    def label(self, hint: str) -> str:
        """A name for a block still to be opened."""
        self._count += 1
        return f"{hint}.{self._count}"

    def open(self, label: str) -> None:
        """Start block `label`; the block before falls through into it."""
        if not self.terminated:
            self.branch(label)
        self._add(f"{label}:")
        self.terminated = False
        self.block = label

    def branch(self, label: str, extra: str = "") -> None:
        self._end(f"br label %{label}{extra}")

    def branch_if(self, condition: Val, then: str, orelse: str) -> None:
        self._end(f"br i1 {condition.ref}, label %{then}, label %{orelse}")

    def ret(self) -> None:
        self._end("ret void")

    def _end(self, text: str) -> None:
        # Code after a jump is unreachable; LLVM wants it in a block of its own.
        if self.terminated:
            return
        self._add(f"  {text}")
        self.terminated = True

    def finish(self) -> None:
        """Add the function to the module."""
        if not self.terminated:
            self.ret()
        params = ", ".join(f"{kind} %{name}" for name, kind in self.params)
        head = f"define internal void @{self.name}({params}) nounwind {{\nentry:"
        self.module.functions.append("\n".join([head, *self._allocas, *self._lines, "}"]))
        self.module.places.append([None, None, *self._alloca_places, *self._places, None])

    def _add(self, text: str) -> None:
        self._lines.append(text)
        self._places.append(self.at)

    # --- instructions ---

    def emit(self, text: str, base: str, lanes: int = 1) -> Val:
        """Append an instruction with a result."""
        if self.terminated:
            self.open(self.label("dead"))
        self._count += 1
        name = f"%v{self._count}"
        self._add(f"  {name} = {text}")
        return Val(name, base, lanes)

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        if self.terminated:
            self.open(self.label("dead"))
        self._add(f"  {text}")

    def alloca(self, base: str, count: int, align: int) -> Val:
        """Stack storage that lives as long as the function."""
        self._count += 1
        name = f"%a{self._count}"
        self._allocas.append(f"  {name} = alloca [{count} x {base}], align {align}")
        self._alloca_places.append(self.at)
        return Val(name, "ptr")

    def at_entry(self, text: str, base: str) -> Val:
        """An instruction made once, before everything else, usable everywhere."""
        self._count += 1
        self._allocas.append(f"  %e{self._count} = {text}")
        self._alloca_places.append(self.at)
        return Val(f"%e{self._count}", base)

    def binary(self, op: str, a: Val, b: Val, flags: str = "") -> Val:
        a, b = self.same_lanes(a, b)
        return self.emit(f"{op} {flags}{a.type} {a.ref}, {b.ref}", a.base, a.lanes)

    def compare(self, predicate: str, a: Val, b: Val) -> Val:
        a, b = self.same_lanes(a, b)
        op = "fcmp" if a.is_float else "icmp"
        return self.emit(f"{op} {predicate} {a.type} {a.ref}, {b.ref}", "i1", a.lanes)

    def select(self, condition: Val, a: Val, b: Val) -> Val:
        a, b = self.same_lanes(a, b)
        if condition.lanes > 1:
            condition, a = self.same_lanes(condition, a)
            a, b = self.same_lanes(a, b)
        return self.emit(f"select {condition}, {a}, {b}", a.base, a.lanes)

    def cast(self, op: str, value: Val, base: str) -> Val:
        if value.base == base:
            return value
        target = Val("", base, value.lanes).type
        return self.emit(f"{op} {value} to {target}", base, value.lanes)

    def bitcast(self, value: Val, base: str) -> Val:
        return self.cast("bitcast", value, base)

    def intrinsic(self, name: str, *args: Val) -> Val:
        """A call of `llvm.<name>`, overloaded on the type of its first argument."""
        first = args[0]
        args = tuple(self.splat(a, first.lanes) for a in args)
        suffix = {"half": "f16", "float": "f32", "double": "f64"}.get(first.base, first.base)
        vector = f"v{first.lanes}" if first.lanes > 1 else ""
        return self.call(f"llvm.{name}.{vector}{suffix}", first.base, args, first.lanes)

    def call(self, name: str, base: str, args: Sequence[Val], lanes: int = 1) -> Val:
        """A call of a declared function, yielding `base`."""
        result = Val("", base, lanes).type
        callee = self.module.declare(name, result, [a.type for a in args])
        return self.emit(f"call {result} {callee}({', '.join(map(str, args))})", base, lanes)

    # --- vectors ---

    def splat(self, value: Val, lanes: int) -> Val:
        """`value` in every one of `lanes` lanes."""
        if value.lanes == lanes:
            return value
        if value.lanes != 1:
            raise ValueError(f"cannot widen {value.type} to {lanes} lanes")
        if not value.ref.startswith(("%", "@")):
            return _constant(value.ref, value.base, lanes)
        wide = Val("poison", value.base, lanes)
        first = self.emit(f"insertelement {wide}, {value}, i32 0", value.base, lanes)
        mask = f"<{lanes} x i32> zeroinitializer"
        return self.emit(f"shufflevector {first}, {wide}, {mask}", value.base, lanes)

    def same_lanes(self, a: Val, b: Val) -> tuple[Val, Val]:
        lanes = max(a.lanes, b.lanes)
        return self.splat(a, lanes), self.splat(b, lanes)

    def lane(self, value: Val, index: int) -> Val:
        """Lane `index` of a vector."""
        if value.lanes == 1:
            return value
        return self.emit(f"extractelement {value}, i32 {index}", value.base)

    def pack(self, lanes: Sequence[Val]) -> Val:
        """A vector of scalars."""
        if len(lanes) == 1:
            return lanes[0]
        out = Val("poison", lanes[0].base, len(lanes))
        for i, lane in enumerate(lanes):
            text = f"insertelement {out}, {lane}, i32 {i}"
            out = self.emit(text, lane.base, len(lanes))
        return out

    # --- memory ---

    def element(self, base: Val, offset: Val, kind: str) -> Val:
        """The address of element `offset` of an array of `kind`."""
        return self.emit(f"getelementptr inbounds {kind}, {base}, {offset}", "ptr")

    def load(self, pointer: Val, base: str, lanes: int, align: int, meta: str = "") -> Val:
        kind = Val("", base, lanes).type
        return self.emit(f"load {kind}, {pointer}, align {align}{meta}", base, lanes)

    def store(self, value: Val, pointer: Val, align: int, meta: str = "") -> None:
        self.do(f"store {value}, {pointer}, align {align}{meta}")
