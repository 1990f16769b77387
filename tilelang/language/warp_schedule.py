"""A warp-specialisation schedule written by hand: who runs what, and how they hand tiles over.

with T.ws_op(T.WSID("load_a")):
    T.copy(A[by * 128, k * 64], A_shared)
…
T.annotate_ws_schedule(T.WSSchedule(
    num_warps=12,
    roles=[T.WSRole("producer", warps_lo=0, warps_hi=4, max_nreg=24), …],
    pipelines=[T.WSPipeline("tiles", [A_shared, B_shared], depth=3)],
    scopes=[T.WSScope(T.WSScope.ROOT, {"producer": [T.WSSync.producer_acquire("tiles"), …]})],
))
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from tilelang.language.catalog import HOPPER, language_function
from tilelang.language.frames import ScopeFrame
from tilelang.language.operands import declared, kind_text, static_int, trace_of
from tilelang.program.buffer import Buffer
from tilelang.program.context import current_span, reject
from tilelang.program.stmt import Annotate
from tilelang_diagnostics.suggest import did_you_mean

MAX_WARPS = 32
MAX_DEPTH = 64

SyncKind = Literal["producer_acquire", "producer_commit", "consumer_wait", "consumer_release"]


@dataclass(frozen=True, slots=True)
class WSID:
    """The name of a statement or loop that a schedule refers to."""

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class WSRole:
    """Warps `[warps_lo, warps_hi)` of the block, with the registers each of their threads has."""

    name: str
    warps_lo: int
    warps_hi: int
    max_nreg: int

    def __init__(self, name: str, *, warps_lo: int, warps_hi: int, max_nreg: int = 0) -> None:
        for field, value in (("warps_lo", warps_lo), ("warps_hi", warps_hi)):
            if isinstance(value, int) and (not 0 <= value <= MAX_WARPS or value % 4):
                reject(
                    "TL117",
                    f"`{field}={value}` of role `{name}` is not a multiple of 4 up to {MAX_WARPS}",
                    help="registers are reallocated per warp group, which is four warps",
                )
        if isinstance(warps_lo, int) and isinstance(warps_hi, int) and warps_lo >= warps_hi:
            reject("TL117", f"role `{name}` has no warps: [{warps_lo}, {warps_hi})")
        if isinstance(max_nreg, int) and max_nreg and (max_nreg % 8 or not 24 <= max_nreg <= 256):
            reject("TL117", f"`max_nreg={max_nreg}` of role `{name}` is no multiple of 8 in 24…256")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "warps_lo", warps_lo)
        object.__setattr__(self, "warps_hi", warps_hi)
        object.__setattr__(self, "max_nreg", max_nreg)


@dataclass(frozen=True, slots=True, eq=False)
class WSPipeline:
    """Shared buffers that producers fill and consumers empty, `depth` of each."""

    name: str
    buffers: tuple[Buffer, ...]
    depth: int

    def __init__(self, name: str, buffers: Iterable[Buffer], depth: int) -> None:
        tiles = (buffers,) if isinstance(buffers, Buffer) else tuple(buffers)
        for buffer in tiles:
            if not isinstance(buffer, Buffer):
                reject("TL116", f"pipeline `{name}` lists {kind_text(buffer)}, not a buffer")
            if not buffer.is_shared and buffer.scope_name != "shared.tmem":
                reject(
                    "TL208",
                    f"pipeline `{name}` hands over `{buffer.name}`, which is not shared",
                    labels=declared(buffer),
                    help="only shared and tensor-memory tiles can be handed over",
                )
        static_int("WSPipeline", "depth", depth, 1, MAX_DEPTH)
        for field, value in (("name", name), ("buffers", tiles), ("depth", depth)):
            object.__setattr__(self, field, value)


@dataclass(frozen=True, slots=True)
class WSSync:
    """One step of a hand-over; build with the four methods below."""

    kind: SyncKind
    pipeline: str
    stage: Any = 0

    @staticmethod
    def producer_acquire(pipeline: str, stage: Any = 0) -> WSSync:
        """Wait until a stage is empty."""
        return WSSync("producer_acquire", str(pipeline), stage)

    @staticmethod
    def producer_commit(pipeline: str, stage: Any = 0) -> WSSync:
        """Say that a stage is full."""
        return WSSync("producer_commit", str(pipeline), stage)

    @staticmethod
    def consumer_wait(pipeline: str, stage: Any = 0) -> WSSync:
        """Wait until a stage is full."""
        return WSSync("consumer_wait", str(pipeline), stage)

    @staticmethod
    def consumer_release(pipeline: str, stage: Any = 0) -> WSSync:
        """Say that a stage is empty again."""
        return WSSync("consumer_release", str(pipeline), stage)


@dataclass(frozen=True, slots=True, eq=False)
class WSScope:
    """What each role does in one loop body (`id` names the loop, `ROOT` is the kernel)."""

    ROOT: ClassVar[str] = "root"

    id: str
    bodies: tuple[tuple[str, tuple[Any, ...]], ...]

    def __init__(self, id: Any, bodies: Mapping[Any, Sequence[Any]]) -> None:
        if not isinstance(bodies, Mapping):
            reject("TL116", f"`bodies` of scope `{id}` is {kind_text(bodies)}, not a dict by role")
        steps = tuple((str(getattr(r, "name", r)), tuple(body)) for r, body in bodies.items())
        object.__setattr__(self, "id", str(id))
        object.__setattr__(self, "bodies", steps)


@dataclass(frozen=True, slots=True, eq=False)
class WSSchedule:
    """Roles, pipelines and scopes of one kernel, checked against each other."""

    num_warps: int
    roles: tuple[WSRole, ...]
    pipelines: tuple[WSPipeline, ...]
    scopes: tuple[WSScope, ...]

    def __init__(
        self,
        num_warps: int,
        roles: Iterable[WSRole],
        pipelines: Iterable[WSPipeline],
        scopes: Iterable[WSScope],
    ) -> None:
        for field, value in (
            ("num_warps", num_warps), ("roles", tuple(roles)), ("pipelines", tuple(pipelines)),
            ("scopes", tuple(scopes)),
        ):  # fmt: skip
            object.__setattr__(self, field, value)
        static_int("WSSchedule", "num_warps", num_warps, 1, MAX_WARPS)
        self._check_roles()
        self._check_bodies()

    def _check_roles(self) -> None:
        owner: dict[int, str] = {}
        for role in self.roles:
            if role.warps_hi > self.num_warps:
                reject("TL117", f"role `{role.name}` ends at warp {role.warps_hi}, the schedule "
                       f"has {self.num_warps}")  # fmt: skip
            for warp in range(role.warps_lo, role.warps_hi):
                if warp in owner:
                    reject("TL117", f"warp {warp} is in roles `{owner[warp]}` and `{role.name}`")
                owner[warp] = role.name

    def _check_bodies(self) -> None:
        roles = {role.name for role in self.roles}
        pipelines = {pipeline.name for pipeline in self.pipelines}
        for scope in self.scopes:
            for role, body in scope.bodies:
                if role not in roles:
                    reject("TL117", f"scope `{scope.id}` names no role `{role}`"
                           f"{did_you_mean(role, roles)}")  # fmt: skip
                for step in body:
                    if isinstance(step, WSSync) and step.pipeline not in pipelines:
                        reject("TL117", f"no pipeline is called `{step.pipeline}`"
                               f"{did_you_mean(step.pipeline, pipelines)}")  # fmt: skip


@language_function("launch", targets=HOPPER)
def ws_op(op_id: Any) -> ScopeFrame:
    """`with T.ws_op(T.WSID("name")):` names statements for a schedule.

    Args:
        op_id: a `T.WSID`, or a string.

    >>> with T.ws_op(T.WSID("load_a")):
    """
    if not isinstance(op_id, (WSID, str, int)):
        reject("TL116", f"`op_id` of `T.ws_op` is {kind_text(op_id)}, not a `T.WSID`")
    return ScopeFrame("ws_op", (str(op_id),), current_span())


@language_function("annotation", targets=HOPPER)
def annotate_ws_schedule(schedule: WSSchedule) -> None:
    """Specialises warps as a schedule says, instead of letting the compiler decide.

    Args:
        schedule: a `T.WSSchedule`.

    >>> T.annotate_ws_schedule(schedule)
    """
    if not isinstance(schedule, WSSchedule):
        reject("TL116", f"`schedule` is {kind_text(schedule)}, not a `T.WSSchedule`")
    trace = trace_of("annotate_ws_schedule")
    trace.emit(Annotate("ws_schedule", schedule, **trace.position()))


@language_function("annotation", targets=HOPPER)
def annotate_ws_pipeline_depth(depth: int) -> None:
    """How many tiles a warp-specialised pipeline keeps in flight.

    Args:
        depth: a small constant.

    >>> T.annotate_ws_pipeline_depth(4)
    """
    count = static_int("annotate_ws_pipeline_depth", "depth", depth, 1, MAX_DEPTH)
    trace = trace_of("annotate_ws_pipeline_depth")
    trace.emit(Annotate("ws_pipeline_depth", count, **trace.position()))


FUNCTIONS = (ws_op, annotate_ws_schedule, annotate_ws_pipeline_depth)
CONSTANTS = {
    "WSID": WSID, "WSRole": WSRole, "WSPipeline": WSPipeline, "WSSync": WSSync,
    "WSScope": WSScope, "WSSchedule": WSSchedule,
}  # fmt: skip
