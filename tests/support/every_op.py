"""One function whose kernels call every device operation an architecture has.

Each launch calls one operation, with each value of its constants and each type. Registers come
from global memory and go back there, so that nothing is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from tilelang.backends import find_backend
from tilelang.ir import attrs, build, device_ops, tirx
from tilelang.ir.device_op import DeviceOp
from tilelang.ir.device_support import has_op, lacking_in_call
from tilelang.ir.spans import to_tir
from tilelang.target import Target, arch_number
from tilelang_diagnostics.model import Span

SPAN = Span("every_op.py", 1, 1, 1, 2)
NUMBERS = (
    "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "bfloat16", "float32", "float64",
)  # fmt: skip
INTEGERS = tuple(d for d in NUMBERS if d.startswith(("int", "uint")))
WIDTHS = (64, 256)


@dataclass(frozen=True)
class Case:
    """One way to call an operation."""

    op: DeviceOp
    dtype: str = "int32"
    constants: dict[str, Any] = field(default_factory=dict)
    optional: int = 0

    def __str__(self) -> str:
        said = "".join(f",{k}={v}" for k, v in self.constants.items())
        return f"{self.op.name}[{self.dtype}{said}]"


def cases(arch: str) -> Iterator[Case]:
    """Every operation of `arch`, with each value of each constant and each type at least once."""
    kind, _ = arch_number(arch)
    backend = find_backend(kind)
    assert backend is not None
    narrow = backend.words().narrow_maths
    for op in device_ops.DEVICE_OPS.values():
        if not has_op(op, Target(kind, arch)):
            continue
        optional = len(op.operands) - op.least_operands
        warp = backend.words().warp
        first, *others = (t for t in _types(op) if t != "float64" or op.name not in narrow)
        for constants in _constants(op):
            if op.too_wide(constants, warp) is None:
                yield Case(op, first, constants, 0)
        for dtype in others:
            yield Case(op, dtype, next(_constants(op)), 0)
        for count in range(1, optional + 1):
            if lacking_in_call(op, kind, op.least_operands + count) is not None:
                continue
            yield Case(op, _types(op)[0], next(_constants(op)), count)


def every_op(arch: str, wanted: Callable[[Case], bool] = lambda case: True) -> Any:
    """The function; of the cases only those that are `wanted`."""
    tirx.load_tvm()
    maker = _Maker()
    found = filter(wanted, cases(arch))
    launches = [maker.launch(list(group)) for _, group in groupby(found, _family)]
    params = list(maker.params.values())
    body = build.seq([*maker.host, *launches])
    func = tirx.PrimFunc([*params, maker.number], body, span=to_tir(SPAN))
    return func.with_attr({attrs.GLOBAL_SYMBOL: "every_op", attrs.STAGE: "device"})


def _family(case: Case) -> str:
    return case.op.name


def _types(op: DeviceOp) -> tuple[str, ...]:
    name = op.name
    if name.startswith(("atomic_and", "atomic_or", "atomic_xor")):
        return INTEGERS
    if name.startswith("atomic_addx"):
        return ("float16", "bfloat16", "float32")
    if name.startswith("atomic_"):
        return NUMBERS
    if name.startswith("warp_reduce_bit") or name == "bfe":
        return ("int32", "uint32", "int64")
    if name.startswith(("shfl_", "warp_reduce_")):
        return NUMBERS
    if name.startswith("match_"):
        return ("int32", "float32", "int64")
    if name.startswith(("ieee_",)):
        return ("float32", "float64")
    if name in ("expm1", "erfc"):
        return ("float16", "bfloat16", "float32", "float64")
    if name == "to_tf32":
        return ("float32",)
    if name in ("print", "print_buffer"):
        return ("bool", "float8_e4m3fn", *NUMBERS)
    if name.startswith(("ldg", "stg", "lds", "sts")):
        return ("float16", "float32")
    if name.startswith(("ldmatrix", "stmatrix", "cp_async", "tma", "bulk")):
        return ("float16",)
    if name.startswith("simdgroup_"):
        return ("float32", "float16", "bfloat16")
    if name.startswith("wgmma_"):
        return (_WGMMA_TYPES.get(name.split("_")[-2], "float16"),)
    return ("int32",)


_WGMMA_TYPES = {
    "bf16": "bfloat16", "tf32": "float32", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2",
    "s8": "int8", "u8": "uint8",
}  # fmt: skip


def _constants(op: DeviceOp) -> Iterator[dict[str, Any]]:
    if op.name == "set_max_nreg":
        # ptxas rejects counts that do not go down, then up.
        yield {"reg_count": 24, "is_inc": 0}
        yield {"reg_count": 240, "is_inc": 1}
        return
    base: dict[str, Any] = {}
    for row in op.constants:
        if row.default is None:
            base[row.name] = row.values[0] if row.values else (0 if "extent" in row.name else 2)
    if "b_swizzle" in base:
        base |= {k: 16 for k in base if k.endswith(("_leading", "_stride"))}
        for n in WIDTHS:
            yield {**base, "n": n, "b_swizzle": 128}
        return
    yield base
    for row in op.constants:
        if row.place == "argument":
            yield {**base, row.name: 'a "message" of 100%'}
        for value in row.values:
            if value in (base.get(row.name, row.default), None):
                continue
            if row.name == "cache" and value == "cg":
                yield {**base, "bytes": 16, "cache": "cg"}
            else:
                yield {**base, row.name: value}


class _Maker:
    def __init__(self) -> None:
        self.span = to_tir(SPAN)
        self.params: dict[str, Any] = {}
        self.number = tirx.Var("number", "int32", self.span)
        self.host: list[Any] = []
        self._map: Any = None

    def launch(self, group: list[Case]) -> Any:
        """One kernel that calls each case in turn."""
        thread = tirx.Var("tx", "int32", self.span)
        body = build.seq([s for case in group for s in self._body(case, thread)])
        for var, tag, size in (
            (thread, "threadIdx.x", 128), (tirx.Var("bx", "int32", self.span), "blockIdx.x", 1),
        ):  # fmt: skip
            extent = self.int(size)
            domain = tirx.Range.from_min_extent(self.int(0), extent)
            axis = tirx.IterVar(domain, var, tirx.IterVar.ThreadIndex, tag, self.span)
            body = tirx.AttrStmt(axis, attrs.THREAD_EXTENT, extent, body, self.span)
        return body

    def int(self, value: int) -> Any:
        return build.const(value, "int32", self.span)

    def memory(self, dtype: str) -> Any:
        """The global buffer of a dtype."""
        if dtype not in self.params:
            self.params[dtype] = self._buffer(f"g_{dtype}", dtype, 1 << 16, "global")
        return self.params[dtype]

    def _buffer(self, name: str, dtype: str, count: int, scope: str) -> Any:
        return tirx.decl_buffer(
            [self.int(count)], dtype, name=name, scope=scope, span=self.span, layout=None
        )

    def _body(self, case: Case, thread: Any) -> list[Any]:
        before: list[Any] = []
        after: list[Any] = []
        op = case.op
        operands = []
        for row in op.operands[: op.least_operands + case.optional]:
            dtype = row.dtype or case.dtype
            if row.space == "scalar":
                operands.append(self._scalar(case, row.name, dtype, thread))
            elif row.space == "map":
                operands.append(self._tensor_map())
            elif row.space == "local":
                operands.append(self._local(case, row, dtype, thread, before, after))
            else:
                operands.append(self._place(case, row, dtype, thread, before))
        dtype = self._result(case)
        call = device_ops.call(op.name, operands, dtype=dtype, span=self.span, **case.constants)
        if dtype == "void":
            return [*before, build.evaluate(call, self.span), *after]
        lanes = build.lanes_of(dtype)
        if lanes > 1:
            call = build.call("extract_lane", [call, self.int(0)], dtype.rpartition("x")[0],
                              span=self.span)  # fmt: skip
            dtype = dtype.rpartition("x")[0]
        place = self.memory("int32" if dtype == "bool" else dtype)
        return [*before, build.store(place, [thread], call, self.span), *after]

    def _result(self, case: Case) -> str:
        op = case.op
        if op.result is None:
            return "void"
        if op.result == "same":
            return case.dtype
        if op.result != "call":
            return op.result
        if op.name.startswith("atomic_addx"):
            return f"{case.dtype}x{op.name[-1]}"
        if op.name.startswith(("ldg", "lds")):
            lanes = int(op.name[3:]) // (16 if case.dtype == "float16" else 32)
            return case.dtype if lanes == 1 else f"{case.dtype}x{lanes}"
        return case.dtype

    def _scalar(self, case: Case, name: str, dtype: str, thread: Any) -> Any:
        if name in ("predicate", "condition"):
            return tirx.LT(thread, self.number, self.span)
        if name == "mask" and not case.op.name.startswith("tma"):
            return build.const(0xFFFFFFFF, "uint32", self.span)
        if name in ("value", "compare", "x", "y", "z"):
            value = build.load(self.memory(dtype), [tirx.Add(thread, self.int(8), self.span)],
                               self.span)  # fmt: skip
            lanes = _lanes(case)
            return value if lanes == 1 else tirx.Broadcast(value, lanes, self.span)
        if name in ("start", "length"):
            return build.const(3, case.dtype, self.span)
        if name in ("delta",):
            return build.const(1, "int32", self.span)
        if name == "count" and case.op.name != "mbarrier_init":
            return self.int(64)
        return self.number

    def _local(
        self, case: Case, row: Any, dtype: str, thread: Any, before: list[Any], after: list[Any]
    ) -> Any:
        count = row.lanes or _registers(case, row.name)
        buffer = self._buffer(f"r_{row.name}", dtype, count, "local")
        before.append(build.allocate(buffer, span=self.span))
        var = tirx.Var("i", "int32", self.span)
        source = self.memory(dtype)
        index = tirx.Add(tirx.Mul(thread, self.int(count), self.span), var, self.span)
        before.append(self._loop(var, count, build.store(
            buffer, [var], build.load(source, [index], self.span), self.span)))  # fmt: skip
        if row.access != "read":
            var = tirx.Var("i", "int32", self.span)
            index = tirx.Add(tirx.Mul(thread, self.int(count), self.span), var, self.span)
            after.append(self._loop(var, count, build.store(
                source, [index], build.load(buffer, [var], self.span), self.span)))  # fmt: skip
        return device_ops.region(buffer, 0, count, self.span)

    def _loop(self, var: Any, count: int, body: Any) -> Any:
        return build.loop(var, self.int(count), body, kind="UNROLLED", span=self.span)

    def _place(self, case: Case, row: Any, dtype: str, thread: Any, before: list[Any]) -> Any:
        if row.space in ("global", "memory", "any"):
            extent = row.lanes or _extent(case)
            offset = tirx.Mul(thread, self.int(extent), self.span)
            return device_ops.region(self.memory(dtype), offset, extent, self.span)
        if row.space == "matrix":
            buffer = self._buffer(f"m_{row.name}", dtype, 2, "local.matrix")
            before.append(build.allocate(buffer, span=self.span))
            return device_ops.region(buffer, 1, 1, self.span)
        if row.space == "barrier":
            buffer = self._buffer("barriers", "uint64", 2, "shared.barrier")
            before.append(build.allocate(buffer, span=self.span))
            return device_ops.region(buffer, 1, 1, self.span)
        buffer = self._buffer(f"s_{row.name}", dtype, 4096, "shared.dyn")
        before.append(build.allocate(buffer, {device_ops.SHARED_ALIGNMENT: 1024}, self.span))
        extent = row.lanes or _extent(case)
        offset = self.int(0)
        if not case.op.name.startswith(("wgmma", "tma", "bulk")):
            offset = tirx.Mul(thread, self.int(extent), self.span)
        return device_ops.region(buffer, offset, extent, self.span)

    def _tensor_map(self) -> Any:
        if self._map is None:
            self._map = tirx.Var("tile_map", "handle", self.span)
            source = build.region(self.memory("float16"), [(self.int(0), self.int(1 << 16))],
                                  self.span)  # fmt: skip
            value = device_ops.tensor_map(source, [64], span=self.span)
            self.host.append(tirx.Bind(self._map, value, self.span))
        return self._map


def _lanes(case: Case) -> int:
    name = case.op.name
    if name.startswith("atomic_addx"):
        return int(name[-1])
    if name.startswith(("stg", "sts")):
        return int(name[3:]) // (16 if case.dtype == "float16" else 32)
    return 1


def _extent(case: Case) -> int:
    """Elements of an operand in memory."""
    name = case.op.name
    if name == "cp_async":
        return int(case.constants["bytes"]) // 2
    if name.startswith(("ldg", "stg", "lds", "sts")):
        return int(name[3:]) // (16 if case.dtype == "float16" else 32)
    if name.startswith(("ldmatrix", "stmatrix")):
        return 8
    return 1 if name.startswith("atomic") else 64


def _registers(case: Case, operand: str) -> int:
    """Elements of a register operand whose row leaves them open."""
    name = case.op.name
    if name.startswith(("ldmatrix", "stmatrix")):
        return 2 * int(name.partition("_x")[2][0])
    if name == "wgmma_fence_operand":
        return 16
    if operand == "d":
        n, accumulator = int(case.constants["n"]), name.split("_")[3]
        return n // 2 * (2 if case.dtype == "float16" and accumulator == "f16" else 1)
    return 16 // {"float16": 2, "bfloat16": 2, "float32": 4}.get(case.dtype, 1)
