"""Which launches does a function at stage `device` consist of, and what happens on the host before?

See `ir/device_ops` for the shape of such a function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tilelang.codegen.c_printer import storage_of
from tilelang.codegen.c_text import Unsupported
from tilelang.codegen.device_source import HostCheck, Slot, TensorMap, Workspace
from tilelang.codegen.dialect import element_bytes, parse, per_byte
from tilelang.codegen.host_expr import HostExpr, NotOnHost, host_expr, product
from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_ops import is_tensor_map
from tilelang.ir.flatten import flat_index, strides_of
from tilelang.ir.spans import from_tir
from tilelang.ir.visit import collect

_HOST: Final = ("Bind", "AssertStmt", "DeclBuffer")


@dataclass(frozen=True, slots=True)
class Axis:
    """One index of a launch."""

    tag: str
    var: Any
    extent: Any


@dataclass(frozen=True, slots=True)
class Launch:
    """A grid around the code of one thread; `said` are the author's launch attributes."""

    axes: tuple[Axis, ...]
    body: Any
    node: Any
    said: Mapping[str, Any]

    def extent(self, tag: str) -> Any | None:
        """The extent of axis `tag`, None where the launch has no such axis."""
        return next((a.extent for a in self.axes if a.tag == tag), None)


@dataclass(slots=True)
class Host:
    """What the host computes before launching, and what of it kernels may use."""

    binds: list[Any] = field(default_factory=list)
    views: list[Any] = field(default_factory=list)
    workspaces: list[Workspace] = field(default_factory=list)
    workspace_vars: list[Any] = field(default_factory=list)
    maps: list[TensorMap] = field(default_factory=list)
    map_vars: list[Any] = field(default_factory=list)
    checks: list[HostCheck] = field(default_factory=list)
    values: dict[Any, HostExpr] = field(default_factory=dict)
    preludes: dict[str, Any] = field(default_factory=dict)  # text, and the statement it is from
    assumptions: list[Any] = field(default_factory=list)

    def expr(self, e: Any) -> HostExpr:
        """`e` for the host."""
        try:
            return host_expr(e, self.values)
        except NotOnHost as refused:
            raise Unsupported("a launch that depends on values in device memory", e) from refused


def split_launches(func: Any) -> tuple[Host, list[Launch]]:
    """The host side and the launches of `func`."""
    host, launches = Host(), []
    host.values.update(slot_names(func))
    for stmt, said in _flat(func.body, {}):
        if _axis_of(stmt) is not None:
            launches.append(_launch(stmt, said))
        elif not build.is_nothing(stmt):
            _host_statement(host, stmt)
    return host, launches


def slots_of(func: Any) -> list[Slot]:
    """What the host has for a call: parameters in order, then runtime dimensions."""
    slots = []
    for var, name in slot_names(func).items():
        if tirx.is_buffer_var(var):
            slots.append(Slot("buffer", name, str(var.dtype)))
        else:
            kind: Any = "scalar" if var in set(func.params) else "dim"
            slots.append(Slot(kind, name, build.dtype_of(var)))
    return slots


def slot_names(func: Any) -> dict[Any, str]:
    """Each parameter and runtime dimension with a name of its own."""
    found: dict[Any, str] = {}
    taken: set[str] = set()
    for var in (*func.params, *free_dims(func)):
        name, count = str(var.name), 0
        while name in taken:
            count += 1
            name = f"{var.name}_{count}"
        taken.add(name)
        found[var] = name
    return found


def free_dims(func: Any) -> list[Any]:
    """Variables of the parameters' shapes and strides that are no parameters, in order."""
    known = {p for p in func.params if not tirx.is_buffer_var(p)}
    found: list[Any] = []
    for param in func.params:
        if not tirx.is_buffer_var(param):
            continue
        for extent in (*param.shape, *(param.strides or [])):
            for var in collect(extent, tirx.Var):
                if var not in known:
                    known.add(var)
                    found.append(var)
    return found


def _flat(stmt: Any, said: Mapping[str, Any]) -> list[tuple[Any, Mapping[str, Any]]]:
    if isinstance(stmt, tirx.SeqStmt):
        return [inner for part in stmt.seq for inner in _flat(part, said)]
    if isinstance(stmt, tirx.AttrStmt) and _axis_of(stmt) is None:
        if str(stmt.attr_key) == attrs.LAUNCH:
            said = {**said, **{str(k): v for k, v in dict(stmt.node).items()}}
        return _flat(stmt.body, said)
    return [(stmt, said)]


def _axis_of(stmt: Any) -> Any | None:
    if isinstance(stmt, tirx.AttrStmt) and str(stmt.attr_key) == attrs.THREAD_EXTENT:
        return stmt.node
    return None


def _launch(stmt: Any, said: Mapping[str, Any]) -> Launch:
    axes, body = [], stmt
    while (node := _axis_of(body)) is not None:
        axes.append(Axis(str(node.thread_tag), node.var, body.value))
        body = body.body
    return Launch(tuple(axes), body, stmt, said)


def _host_statement(host: Host, s: Any) -> None:
    kind = type(s).__name__
    if kind == "Bind" and is_tensor_map(s.value):
        host.maps.append(_tensor_map(host, s))
        host.map_vars.append(s.var)
    elif kind == "Bind":
        host.values[s.var] = host.expr(s.value)
        host.binds.append(s)
    elif kind == "DeclBuffer":
        if storage_of(s) is None:
            raise Unsupported(f"buffer {s.buffer.name} at an address outside a launch", s)
        host.views.append(s)
    elif kind == "AssertStmt":
        message = "".join(str(p.value) for p in s.message_parts)
        host.checks.append(HostCheck(host.expr(s.condition), message, from_tir(s.span)))
    elif kind == "AllocBuffer" and str(s.buffer.scope()) == "global":
        dtype = parse(str(s.buffer.dtype))
        size = product([host.expr(d) for d in s.buffer.shape])
        if per_byte(dtype) > 1:
            size = ("//", ("+", size, per_byte(dtype) - 1), per_byte(dtype))
        total = product([size, element_bytes(dtype)])
        host.workspaces.append(Workspace(str(s.buffer.name), str(s.buffer.dtype), total))
        host.workspace_vars.append(s.buffer)
    elif kind == "Evaluate":
        _host_call(host, s)
    else:
        raise Unsupported(f"the statement {kind} outside a launch", s)


def _host_call(host: Host, s: Any) -> None:
    name = str(getattr(getattr(s.value, "op", None), "name", "")).rpartition(".")[2]
    if name == "assume":
        host.assumptions.append(s.value.args[0])
    elif name == "annotate":
        if str(getattr(s.value.args[0], "value", "")) == "import_source":
            host.preludes.setdefault(str(s.value.attrs["value"]), s)
    else:
        raise Unsupported(f"T.{name} outside a launch", s)


def _tensor_map(host: Host, s: Any) -> TensorMap:
    call = s.value
    region, box = call.args[0], [build.int_value(a) for a in list(call.args)[1:]]
    buffer, ranges = region.source, list(region.region)
    dtype = parse(str(buffer.dtype))
    size = element_bytes(dtype)
    strides = strides_of(buffer)
    start = flat_index(buffer, [r.min for r in ranges], s.span)
    if len(box) != len(ranges) or any(b is None for b in box):
        raise Unsupported(f"a tensor map of {buffer.name} with another box", s)
    return TensorMap(
        str(s.var.name),
        str(host.values.get(buffer, buffer.name)),
        str(buffer.dtype),
        product([host.expr(start), size]),
        tuple(host.expr(r.extent) for r in reversed(ranges)),
        tuple(product([host.expr(e), size]) for e in reversed(strides[:-1])),
        tuple(int(b) for b in reversed(box) if b is not None),
        int(call.attrs["swizzle"]),
        int(call.attrs["l2_promotion"]),
    )


def constant_extents(launch: Launch, tags: Sequence[str]) -> tuple[int, ...]:
    """The extents of `tags`, which have to be constants; 1 where there is none."""
    found = []
    for tag in tags:
        extent = launch.extent(tag)
        value = 1 if extent is None else build.int_value(extent)
        if value is None:
            raise Unsupported(f"a launch whose {tag} is only known at run time", launch.node)
        found.append(value)
    return tuple(found)
