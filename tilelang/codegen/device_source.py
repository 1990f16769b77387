"""What does printing a kernel for a device give: text, and what a launcher has to know?

Frozen values without TVM in them; they travel as JSON beside the binary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal

from tilelang.codegen.host_expr import HostExpr, evaluate, from_json
from tilelang.codegen.source_map import SourceMap
from tilelang_diagnostics.model import Span

MAPPED: Final = 16  # bytes that the address of a tensor is a multiple of that TMA knows
ParamKind = Literal["buffer", "scalar", "dim", "workspace", "map"]


@dataclass(frozen=True, slots=True)
class Slot:
    """One value the host has for a call: a buffer or scalar argument, or a runtime dimension."""

    kind: Literal["buffer", "scalar", "dim"]
    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class KernelParam:
    """One parameter of a kernel, in order. `source` names the slot, workspace or tensor map.

    `alignment` is what the code assumes of a buffer's address, in bytes: the host checks it.
    """

    kind: ParamKind
    source: str
    dtype: str
    alignment: int = 1
    written: bool = False


@dataclass(frozen=True, slots=True)
class TensorMap:
    """How to fill one TMA descriptor. Innermost dimension first; strides in bytes, without the
    first, which is one element. `source` names the buffer slot or workspace."""

    name: str
    source: str
    dtype: str
    offset: HostExpr
    shape: tuple[HostExpr, ...]
    strides: tuple[HostExpr, ...]
    box: tuple[int, ...]
    swizzle: int = 0
    l2_promotion: int = 128


@dataclass(frozen=True, slots=True)
class Workspace:
    """Global memory that exists for one call."""

    name: str
    dtype: str
    bytes: HostExpr


@dataclass(frozen=True, slots=True)
class HostCheck:
    """A condition on the arguments that holds before anything is launched."""

    condition: HostExpr
    message: str
    span: Span | None = None


@dataclass(frozen=True, slots=True)
class KernelLaunch:
    """One kernel and how it is launched. Any extent of the grid may be 0: then nothing is."""

    symbol: str
    params: tuple[KernelParam, ...]
    grid: tuple[HostExpr, HostExpr, HostExpr]
    block: tuple[int, int, int]
    dynamic_shared: int = 0
    static_shared: int = 0
    cooperative: bool = False
    cluster: tuple[int, int, int] | None = None

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    def grid_of(self, values: Mapping[str, Any]) -> tuple[int, int, int]:
        """The grid where scalars and dims have `values`."""
        x, y, z = (max(0, int(evaluate(e, values))) for e in self.grid)
        return x, y, z


@dataclass(frozen=True, slots=True)
class DeviceSource:
    """Generated source of one PrimFunc: its kernels in launch order, and its host side."""

    name: str
    dialect: str
    source: SourceMap
    slots: tuple[Slot, ...]
    launches: tuple[KernelLaunch, ...]
    workspaces: tuple[Workspace, ...] = ()
    maps: tuple[TensorMap, ...] = ()
    checks: tuple[HostCheck, ...] = ()

    @property
    def text(self) -> str:
        return self.source.text

    @property
    def shared_memory_bytes(self) -> int:
        """Shared memory of a block, static and dynamic, of its largest kernel."""
        return max((x.static_shared + x.dynamic_shared for x in self.launches), default=0)

    def alignments(self) -> dict[str, int]:
        """What the code assumes of the address of each buffer argument, in bytes."""
        found: dict[str, int] = {}
        for launch in self.launches:
            for param in launch.params:
                if param.kind == "buffer":
                    found[param.source] = max(param.alignment, found.get(param.source, 1))
        arguments = {slot.name for slot in self.slots if slot.kind == "buffer"}
        for given in self.maps:
            if given.source in arguments:
                found[given.source] = max(MAPPED, found.get(given.source, 1))
        return found

    def manifest(self) -> dict[str, Any]:
        """Everything but the text, as JSON values."""
        return {
            "name": self.name,
            "dialect": self.dialect,
            "slots": [asdict(s) for s in self.slots],
            "launches": [asdict(launch) for launch in self.launches],
            "workspaces": [asdict(w) for w in self.workspaces],
            "maps": [asdict(m) for m in self.maps],
            "checks": [asdict(c) for c in self.checks],
            "source_map": self.source.to_json(),
        }

    @staticmethod
    def from_manifest(text: str, found: Mapping[str, Any]) -> DeviceSource:
        """The value `manifest` was made from, around source `text`."""
        return DeviceSource(
            found["name"],
            found["dialect"],
            SourceMap.from_json(text, found["source_map"]),
            tuple(Slot(**s) for s in found["slots"]),
            tuple(_launch_of(row) for row in found["launches"]),
            tuple(Workspace(w["name"], w["dtype"], from_json(w["bytes"]))
                  for w in found["workspaces"]),
            tuple(_map_of(row) for row in found["maps"]),
            tuple(
                HostCheck(from_json(c["condition"]), c["message"],
                          None if c["span"] is None else Span(**c["span"]))
                for c in found["checks"]
            ),
        )  # fmt: skip


def _launch_of(row: Mapping[str, Any]) -> KernelLaunch:
    x, y, z = (from_json(e) for e in row["grid"])
    cluster = row["cluster"]
    return KernelLaunch(
        row["symbol"],
        tuple(KernelParam(**p) for p in row["params"]),
        (x, y, z),
        tuple(row["block"]),
        row["dynamic_shared"],
        row["static_shared"],
        row["cooperative"],
        None if cluster is None else tuple(cluster),
    )


def _map_of(row: Mapping[str, Any]) -> TensorMap:
    return TensorMap(
        row["name"],
        row["source"],
        row["dtype"],
        from_json(row["offset"]),
        tuple(from_json(e) for e in row["shape"]),
        tuple(from_json(e) for e in row["strides"]),
        tuple(row["box"]),
        row["swizzle"],
        row["l2_promotion"],
    )
