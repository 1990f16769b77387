"""How do the values of one call become grids and parameter blocks, in as little time as possible?

By Python code generated for one kernel. For `add(A, B, n)` with a grid of `ceildiv(n, 256)` it
reads

    g0x = (v2 + 255) // 256
    if g0x > 0:
        try: frame = frames0.pop()
        except IndexError: frame = frame0()
        memory, start, config, parameters = frame
        try: pack0(memory, start, g0x, 1, 1, 256, 1, 1, 0, stream(d), v0, v1, v2)
        except DoesNotFit: unfit((v0, v1, v2))
        result = driver_launch(config, functions0[d], parameters, None)
        if result: failed0(result, d, frame, (g0x, 1, 1))
        frames0.append(frame)
        note(launched0)

A frame is the memory of one launch configuration and parameter block, filled by one
`struct.pack_into`: from the stream on, where everything before it is constant. Frames are taken out
of their list while in use, because other threads run during the call of the driver. The same lines
stand in the function of the slow path and in the one that `fast_call` makes, where they save the
calls in between.
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
from tilelang.runtime.scalars import FORMATS, bfloat16_bits, fitted

# cuda.h, CUlaunchConfig: grid, block, dynamic shared bytes, stream, attributes, their number.
_GEOMETRY: Final = struct.Struct("<6I I 4x")
_CONFIG_BYTES: Final = 56
# A parameter block may hold tensor maps, which are aligned to 64 bytes.
_ALIGN: Final = 64
TENSOR_MAP_BYTES: Final = 128

_BINARY: Final = ("+", "-", "*", "//", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or", "&",
                  "|", "^", "<<", ">>")  # fmt: skip


class CannotPass(ValueError):
    """A scalar parameter of a dtype that the launcher cannot pass; `param` is it."""

    def __init__(self, param: KernelParam) -> None:
        super().__init__(f"{param.source} of dtype {param.dtype}")
        self.param = param


# Memory, where the block starts in it, and what the driver is given: the configuration and the
# pointers to the parameters, in the one form that ctypes passes on without making an object.
Frame = tuple[Any, int, Any, Any]


@dataclass(frozen=True, slots=True)
class Block:
    """How the parameters of one kernel lie in memory: their offsets, and the `struct` format of
    what changes from call to call. `geometry` is what stands before the stream where that is
    constant: grid, block and shared memory."""

    form: struct.Struct
    offsets: tuple[int, ...]
    size: int
    geometry: tuple[int, ...] | None

    def frame(self) -> Frame:
        """New memory for one launch."""
        memory = ctypes.create_string_buffer(self.size + _ALIGN)
        start = -ctypes.addressof(memory) % _ALIGN
        base = ctypes.addressof(memory) + start
        pointers = (ctypes.c_void_p * max(1, len(self.offsets)))(*(base + o for o in self.offsets))
        if self.geometry is not None:
            _GEOMETRY.pack_into(memory, start, *self.geometry)
            start += _GEOMETRY.size
        config = ctypes.byref(memory, base - ctypes.addressof(memory))
        return memory, start, config, ctypes.byref(pointers)


def block_of(launch: KernelLaunch, has_attributes: bool) -> Block:
    """The configuration and the parameters of `launch`; raises CannotPass."""
    geometry = _constant_geometry(launch)
    form = "<" if geometry is not None else _GEOMETRY.format + " "
    # The stream, then address and number of launch attributes.
    form += "Q Q I 4x" if has_attributes else "Q 16x"
    size, offsets = _CONFIG_BYTES, []
    for param in launch.params:
        code, width = _format(param)
        gap = -size % min(width, _ALIGN)
        form += f" {gap}x {code}" if gap else f" {code}"
        offsets.append(size + gap)
        size += gap + width
    return Block(struct.Struct(form), tuple(offsets), size, geometry)


def _constant_geometry(launch: KernelLaunch) -> tuple[int, ...] | None:
    grid = [max(0, extent) for extent in launch.grid if isinstance(extent, int)]
    return (*grid, *launch.block, launch.dynamic_shared) if len(grid) == 3 else None


def launch_lines(
    device: DeviceSource, attributes: Sequence[tuple[int, int]], values: Sequence[str]
) -> list[str]:
    """The code that launches everything on device `d`; `values` are expressions, one per slot.

    `attributes` are (address, number) of the launch attributes of each launch. For each launch n
    the code uses `frames<n>`, `frame<n>()`, `pack<n>`, `functions<n>`, `failed<n>`, `launched<n>`;
    besides those `driver_launch`, `note`, `stream(d)`, `unmet(check)`, `unfit(values)`,
    `tensor_map(number, address, shape, strides)`, and `workspace(bytes, d)` with an object that has
    an `address`.
    """
    return _Writer(device, values).lines(attributes)


def values_of(launch: KernelLaunch, block: Block, frame: Frame) -> dict[str, int | float]:
    """The dimensions and scalars that a frame was last filled with, by name."""
    memory = frame[0]
    base = -ctypes.addressof(memory) % _ALIGN
    found: dict[str, int | float] = {}
    for param, offset in zip(launch.params, block.offsets, strict=True):
        if param.kind in ("scalar", "dim"):
            code, _ = _format(param)
            (value,) = struct.unpack_from(f"<{code}", memory, base + offset)
            is_bits = dtype_of(param.dtype).name == "bfloat16"
            found[param.source] = _from_bfloat16(value) if is_bits else value
    return found


def make_plan(lines: Sequence[str], count: int, names: Mapping[str, Any]) -> Callable[..., None]:
    """A function of (values, device) that runs `lines`, in which the values are called v0, v1, …"""
    head = "".join(f"v{n}, " for n in range(count))
    bound = f"    {head}= values" if head else "    pass"
    source = "\n".join(["def plan(values, d):", bound, *(f"    {line}" for line in lines)])
    namespace = {**names, **HELPERS, "__builtins__": BUILTINS}
    exec(compile(source, "<launch>", "exec"), namespace)
    made: Callable[..., None] = namespace["plan"]
    return made


class _Writer:
    def __init__(self, device: DeviceSource, values: Sequence[str]) -> None:
        self.device = device
        self.values = values
        slots = (slot.name for slot in device.slots)
        self.names = dict(zip(slots, values, strict=True))

    def lines(self, attributes: Sequence[tuple[int, int]]) -> list[str]:
        out = []
        for n, check in enumerate(self.device.checks):
            out.append(f"if not {self.text(check.condition)}: unmet({n})")
        for n, workspace in enumerate(self.device.workspaces):
            out.append(f"w{n} = workspace({self.text(workspace.bytes)}, d)")
            self.names[workspace.name] = f"w{n}.address"
        for n, found in enumerate(self.device.maps):
            shape, strides = (
                "".join(f"{self.text(e)}, " for e in row) for row in (found.shape, found.strides)
            )
            address = f"{self.names[found.source]} + {self.text(found.offset)}"
            out.append(f"m{n} = tensor_map({n}, {address}, ({shape}), ({strides}))")
            self.names[found.name] = f"m{n}"
        for n, (launch, attribute) in enumerate(zip(self.device.launches, attributes, strict=True)):
            out += self.launch(n, launch, attribute)
        return out

    def launch(self, n: int, launch: KernelLaunch, attribute: tuple[int, int]) -> list[str]:
        out, grid, tests = [], [], []
        for axis, extent in zip("xyz", launch.grid, strict=True):
            if isinstance(extent, int):
                grid.append(str(max(0, extent)))
                tests += ["False"] if extent <= 0 else []
                continue
            name = f"g{n}{axis}"
            out.append(f"{name} = {self.text(extent)}")
            grid.append(name)
            tests.append(f"{name} > 0")
        numbers = ["stream(d)"]
        if _constant_geometry(launch) is None:
            numbers = [*grid, *map(str, launch.block), str(launch.dynamic_shared), *numbers]
        numbers += map(str, attribute if attribute[1] else ())
        parameters = [self.parameter(p) for p in launch.params]
        held = [_fitted(p, text) for p, text in zip(launch.params, parameters, strict=True)]
        pack = f"pack{n}(memory, start, {', '.join((*numbers, *parameters))})"
        if held != parameters:  # a float may be too large for its dtype, and is infinite then
            infinite = f"pack{n}(memory, start, {', '.join((*numbers, *held))})"
            packing = ["try:", f"    try: {pack}", f"    except Infinite: {infinite}"]
        else:
            packing = [f"try: {pack}"]
        body = [
            f"try: frame = frames{n}.pop()",
            f"except IndexError: frame = frame{n}()",
            "memory, start, config, parameters = frame",
            *packing,
            f"except DoesNotFit: unfit(({''.join(f'{v}, ' for v in self.values)}))",
            f"result = driver_launch(config, functions{n}[d], parameters, None)",
            f"if result: failed{n}(result, d, frame, ({', '.join(grid)}))",
            f"frames{n}.append(frame)",
            f"note(launched{n})",
        ]
        return [*out, f"if {' and '.join(tests) or 'True'}:", *(f"    {line}" for line in body)]

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


def _fitted(param: KernelParam, text: str) -> str:
    dtype = dtype_of(param.dtype)
    if param.kind != "scalar" or not dtype.is_float or dtype.name == "bfloat16":
        return text
    return f"fitted({dtype.name!r}, {text})"


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
    code = FORMATS.get(dtype_of(param.dtype).name)
    if code is None:
        raise CannotPass(param)
    return code, struct.calcsize(f"<{code}")


def _from_bfloat16(bits: int) -> float:
    value: float = struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    return value


def _truncdiv(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _truncmod(a: int, b: int) -> int:
    return a - b * _truncdiv(a, b)


# What generated code may use besides what it is given.
HELPERS: Final[Mapping[str, Any]] = {
    "bfloat16": bfloat16_bits, "fitted": fitted, "truncdiv": _truncdiv, "truncmod": _truncmod,
    "DoesNotFit": struct.error, "Infinite": OverflowError,
}  # fmt: skip
BUILTINS: Final[Mapping[str, Any]] = {
    "min": min, "max": max, "abs": abs, "int": int, "IndexError": IndexError,
}  # fmt: skip
