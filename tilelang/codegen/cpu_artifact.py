"""What does a kernel compiled for the CPU consist of, and how is it called?

A frozen value without TVM in it: object code and the manifest that says how to call it. The
manifest travels as JSON beside the object code, so a cached kernel runs in a process that never
imports TVM.

The calling convention. Every value the kernel needs is one 8-byte slot of an array: the address
of a buffer, an integer or bool as int64, a floating-point scalar as float64. The object exports

    void <info>(const int64* slots, int64* out)
        out[0] becomes 0, or 1 + the index in `messages` of the host assertion that fails; then
        come the number of blocks of each launch and the bytes of each workspace
    void <launch>(int64* next, int64 total, int64 chunk, const int64* slots, void* scratch,
                  int64* status)
        draws `chunk` blocks of the linearised grid (x fastest) at a time from the shared counter
        `next`, which starts at 0, until it reaches `total`; writes to `status` only when a device
        assertion fails: 1 + its index in `messages`

`scratch` is private to the calling thread: `scratch_bytes`, 64-byte aligned, contents undefined.
Workspaces are shared by all blocks of a call; their addresses follow the user's slots.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from tilelang_diagnostics.model import Span

SCHEMA = 1

SlotKind = Literal["buffer", "scalar", "dim"]


@dataclass(frozen=True, slots=True)
class CpuSlot:
    """One value of a call.

    `buffer`: address of element 0, aligned to the element size at least, 0 for a null tensor.
    `scalar`: a scalar parameter. `dim`: a runtime dimension or stride (in elements) that occurs
    in a buffer's type and is no parameter itself; `name` is that of its variable.
    """

    kind: SlotKind
    name: str
    dtype: str


@dataclass(frozen=True, slots=True)
class CpuMessage:
    """What a failed assertion says and where it stands in the user's file."""

    text: str
    file: str = ""
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0


@dataclass(frozen=True, slots=True)
class CpuLaunch:
    """One launch: its function, and whether its blocks must run one after the other, and why."""

    symbol: str
    scratch_bytes: int
    serial: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class CpuArtifact:
    """A compiled kernel: object code, the LLVM IR it came from, and how to call it.

    `places` are those of the lines of `source` in Python, known where it was just printed.
    """

    name: str
    slots: tuple[CpuSlot, ...]
    launches: tuple[CpuLaunch, ...]
    info_symbol: str
    workspaces: int
    messages: tuple[CpuMessage, ...]
    triple: str
    cpu: str
    object_code: bytes
    source: str = ""
    places: tuple[Span | None, ...] = field(default=(), compare=False, repr=False)

    def manifest(self) -> dict[str, Any]:
        """Everything but object code and source, as plain JSON values."""
        plain = asdict(replace(self, object_code=b"", source="", places=()))
        del plain["object_code"], plain["source"], plain["places"]
        return {"schema": SCHEMA, **plain}

    @staticmethod
    def from_manifest(
        manifest: Mapping[str, Any], object_code: bytes = b"", source: str = ""
    ) -> CpuArtifact:
        """The artifact `manifest()` described; raises ValueError for another schema."""
        if manifest.get("schema") != SCHEMA:
            raise ValueError(f"manifest schema {manifest.get('schema')!r} is not {SCHEMA}")
        return CpuArtifact(
            name=manifest["name"],
            slots=tuple(CpuSlot(**s) for s in manifest["slots"]),
            launches=tuple(CpuLaunch(**entry) for entry in manifest["launches"]),
            info_symbol=manifest["info_symbol"],
            workspaces=manifest["workspaces"],
            messages=tuple(CpuMessage(**m) for m in manifest["messages"]),
            triple=manifest["triple"],
            cpu=manifest["cpu"],
            object_code=object_code,
            source=source,
        )
