"""How do the values of one call become grids and parameter blocks, in as little time as possible?

By a Python function generated for one kernel. For `add(A, B, n)` with a grid of `ceildiv(n, 256)`
it reads

    def plan(values, device):
        v0, v1, v2 = values
        e0 = (v2 + 255) // 256
        if e0 > 0:
            launch0(device, (e0, 1, 1), (e0, 1, 1, 256, 1, 1, 0, stream(device), 0, 0, v0, v1, v2))

where `launch0` copies the numbers into a launch configuration and a parameter block with one
`struct.pack_into` and calls the driver.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilelang.codegen.device_source import DeviceSource, KernelLaunch, KernelParam
from tilelang.codegen.host_expr import HostExpr
from tilelang.dtypes import dtype as dtype_of

# cuda.h, CUlaunchConfig: grid, block, dynamic shared bytes, stream, attributes, their number.
_CONFIG: Final = "6I I 4x Q Q I 4x"
_CONFIG_BYTES: Final = 56
# A parameter block may hold tensor maps, which are aligned to 64 bytes.
_ALIGN: Final = 64
TENSOR_MAP_BYTES: Final = 128

_FORMATS: Final[Mapping[str, str]] = {
    "bool": "?", "int8": "b", "uint8": "B", "int16": "h", "uint16": "H", "int32": "i",
    "uint32": "I", "int64": "q", "uint64": "Q", "float16": "e", "float32": "f", "tfloat32": "f",
    "float64": "d", "bfloat16": "H", "handle": "Q",
}  # fmt: skip

_BINARY: Final = ("+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or", "&",
                  "|", "^", "<<", ">>")  # fmt: skip


class CannotPass(ValueError):
    """A scalar parameter of a dtype that the launcher cannot pass; `param` is it."""

    def __init__(self, param: KernelParam) -> None:
        super().__init__(f"{param.source} of dtype {param.dtype}")
        self.param = param


@dataclass(frozen=True, slots=True)
class Frame:
    """Memory of one launch configuration and parameter block, reused from call to call."""

    memory: Any
    start: int
    config: ctypes.c_void_p
    parameters: Any


@dataclass(frozen=True, slots=True)
class Block:
    """How the parameters of one kernel lie in memory: a `struct` format and their offsets."""

    form: struct.Struct
    offsets: tuple[int, ...]

    def frame(self) -> Frame:
        """New memory for one launch."""
        memory = ctypes.create_string_buffer(self.form.size + _ALIGN)
        start = -ctypes.addressof(memory) % _ALIGN
        base = ctypes.addressof(memory) + start
        pointers = (ctypes.c_void_p * max(1, len(self.offsets)))(*(base + o for o in self.offsets))
        return Frame(memory, start, ctypes.c_void_p(base), pointers)


def block_of(launch: KernelLaunch) -> Block:
    """The configuration and the parameters of `launch`; raises CannotPass."""
    form, size, offsets = "<" + _CONFIG, _CONFIG_BYTES, []
    for param in launch.params:
        code, width = _format(param)
        align = min(width, _ALIGN)
        gap = -size % align
        form += f" {gap}x {code}" if gap else f" {code}"
        offsets.append(size + gap)
        size += gap + width
    return Block(struct.Struct(form), tuple(offsets))


def make_plan(
    device: DeviceSource,
    attributes: Sequence[tuple[int, int]],
    functions: Mapping[str, Any],
) -> Callable[[Sequence[int | float], int], None]:
    """The generated function. `attributes` are (address, number) of launch attributes per launch.

    `functions` are what it calls: `launch0`, … per launch, `stream(device)`, `failed(check)`,
    `workspace(bytes, device)` with an object of which `address` is used, `tensor_map(map, …)`.
    """
    source = "\n".join(_Writer(device).lines(attributes))
    namespace = {**functions, "bfloat16": _bfloat16_bits, "truncdiv": _truncdiv,
                 "truncmod": _truncmod,
                 "__builtins__": {"min": min, "max": max, "abs": abs, "int": int}}  # fmt: skip
    exec(compile(source, f"<launch of {device.name}>", "exec"), namespace)
    made: Callable[[Sequence[int | float], int], None] = namespace["plan"]
    return made


class _Writer:
    def __init__(self, device: DeviceSource) -> None:
        self.device = device
        self.names = {slot.name: f"v{n}" for n, slot in enumerate(device.slots)}

    def lines(self, attributes: Sequence[tuple[int, int]]) -> list[str]:
        out = ["def plan(values, device):"]
        slots = "".join(f"v{n}, " for n in range(len(self.device.slots)))
        out.append(f"    {slots}= values" if slots else "    pass")
        for n, check in enumerate(self.device.checks):
            out.append(f"    if not {self.text(check.condition)}: failed({n})")
        for n, workspace in enumerate(self.device.workspaces):
            out.append(f"    w{n} = workspace({self.text(workspace.bytes)}, device)")
            self.names[workspace.name] = f"w{n}.address"
        for n, found in enumerate(self.device.maps):
            shape, strides = (
                "".join(f"{self.text(e)}, " for e in row) for row in (found.shape, found.strides)
            )
            address = f"{self.names[found.source]} + {self.text(found.offset)}"
            out.append(f"    m{n} = tensor_map({n}, {address}, ({shape}), ({strides}))")
            self.names[found.name] = f"m{n}"
        for n, (launch, attribute) in enumerate(
            zip(self.device.launches, attributes, strict=True)
        ):
            out += self.launch(n, launch, attribute)
        return out

    def launch(self, n: int, launch: KernelLaunch, attribute: tuple[int, int]) -> list[str]:
        out, grid, tests = [], [], []
        for axis, extent in zip("xyz", launch.grid, strict=True):
            if isinstance(extent, int):
                grid.append(str(max(0, extent)))
                if extent <= 0:
                    tests.append("False")
                continue
            name = f"g{n}{axis}"
            out.append(f"    {name} = {self.text(extent)}")
            grid.append(name)
            tests.append(f"{name} > 0")
        numbers = [*grid, *map(str, launch.block), str(launch.dynamic_shared), "stream(device)",
                   *map(str, attribute), *(self.parameter(p) for p in launch.params)]  # fmt: skip
        call = f"launch{n}(device, ({', '.join(numbers)}))"
        out.append(f"    if {' and '.join(tests)}: {call}" if tests else f"    {call}")
        return out

    def parameter(self, param: KernelParam) -> str:
        name = self.names[param.source]
        if param.dtype == "bfloat16" and param.kind != "buffer" and param.kind != "workspace":
            return f"bfloat16({name})"
        return name

    def text(self, expr: HostExpr) -> str:
        """`expr` as Python."""
        match expr:
            case str():
                return self.names[expr]
            case tuple() | list():
                operator, *operands = expr
                return _operation(operator, [self.text(o) for o in operands])
            case _:
                return repr(expr)


def _operation(operator: str, operands: Sequence[str]) -> str:
    match operator:
        case "min" | "max":
            return f"{operator}({', '.join(operands)})"
        case "trunc/":
            return f"truncdiv({', '.join(operands)})"
        case "trunc%":
            return f"truncmod({', '.join(operands)})"
        case "not":
            return f"(not {operands[0]})"
        case "if":
            condition, true, false = operands
            return f"({true} if {condition} else {false})"
        case _ if operator in _BINARY:
            return f"({operands[0]} {operator} {operands[1]})"
        case _:
            raise ValueError(f"{operator!r} is no operator of host expressions")


def _format(param: KernelParam) -> tuple[str, int]:
    """The `struct` code and size of one parameter."""
    if param.kind in ("buffer", "workspace"):
        return "Q", 8
    if param.kind == "map":
        return f"{TENSOR_MAP_BYTES}s", TENSOR_MAP_BYTES
    code = _FORMATS.get(dtype_of(param.dtype).name)
    if code is None:
        raise CannotPass(param)
    return code, struct.calcsize(f"<{code}")


def _bfloat16_bits(value: float) -> int:
    """The nearest bfloat16, ties to even, as its bits."""
    bits: int = struct.unpack("<I", struct.pack("<f", value))[0]
    if value != value:
        return 0x7FC0
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF


def _truncdiv(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncmod(a: int, b: int) -> int:
    return a - b * _truncdiv(a, b)
