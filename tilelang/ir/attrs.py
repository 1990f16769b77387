"""What is every annotation, attribute and call of our IR called?

The one home of these strings (`device_ops` has those of the memory of device code), which a test
keeps so. Attributes of functions and loops are keyed by the constants below, operators by
`op_name()`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

# Functions.
GLOBAL_SYMBOL: Final = "global_symbol"
NUM_OUTPUTS: Final = "tl.num_outputs"  # how many trailing parameters the runtime allocates
NULLABLE: Final = "tl.nullable"  # names of the parameters that may be None
STAGE: Final = "tl.stage"  # how far lowering has come: see ir.verify
TARGET: Final = "tl.target"
FUNCTION_PREFIX: Final = "tl.func."  # attributes of the program function, by its own names

# Loops.
PARALLEL: Final = "tl.parallel"  # position of a loop in its T.Parallel nest, 0 outermost
PARALLEL_RANK: Final = "tl.parallel_rank"  # how many loops the nest has
PIPELINED: Final = "tl.pipelined"  # a T.Pipelined loop, even with num_stages 0
NUM_STAGES: Final = "tl.num_stages"
ORDER: Final = "tl.order"
LOOP_STAGE: Final = "tl.loop_stage"
CPU_PARALLEL: Final = "tl.cpu_parallel"  # T.parallel: iterations may run on several cores
# Iterations combine into one element, in any order: floating-point sums may be reassociated.
REDUCTION: Final = "tl.reduction"
THREAD_LOOP: Final = "tl.thread_loop"  # a loop over the threads of a block, on the CPU
# The Held Fragment that says which thread runs which iteration; on the outermost loop of a nest,
# and as the key of an AttrStmt around a tile operation.
LOOP_LAYOUT: Final = "tl.loop_layout"
EVERY_COPY: Final = "tl.every_copy"  # each thread acts for itself, also where others do the same
# A pipelined loop that only copies and then multiplies: what iteration i + 1 multiplies first is
# in shared memory by the end of iteration i.
PREFETCH: Final = "tl.prefetch"
ROUNDS: Final = "tl.rounds"  # what is left of a parallel loop for one thread: order is free
LOOP_ATTR_PREFIX: Final = "tl.loop."  # whatever else the user attached, by the user's name

# Allocations.
ALLOC_PREFIX: Final = "tl.alloc."  # attributes of the program buffer, by its own names
# Of the barriers of roles that the compiler gave (`tilelang/roles`), and only of these: all that
# they count is waited for in its loop.
DRAINED: Final = "tl.alloc.drained"
IN_STAGES: Final = "tl.alloc.in_stages"  # of a tile: how many versions its first dimension has
TILE_LAYOUT: Final = "tl.layout"  # where its elements lie: a Held Layout or Fragment
FLAT: Final = "tl.flat"  # the one-dimensional buffer that holds them
VIEW: Final = "tl.view"  # that buffer shows the registers of another: nothing is allocated
VERSIONS: Final = "tl.versions"  # how many copies of a pipelined buffer there are

# Keys of T.annotate_… statements that passes act upon.
SAFE_VALUE: Final = "safe_value"

# AttrStmt keys.
THREAD_EXTENT: Final = "thread_extent"
LAUNCH: Final = "tl.launch"  # around each launch; its node maps the user's launch attributes
ASYNC: Final = "tl.async"  # around a copy that may be asynchronous
# Around what works on one version of a pipelined buffer: its node is the buffer, its value says
# which version.
VERSION: Final = "tl.version"
SCOPED: Final = "tl.scoped."  # `with T.ws(...)` and its like, by kind

OP_PREFIX: Final = "tl."

BLOCK_TAGS: Final = ("blockIdx.x", "blockIdx.y", "blockIdx.z")
THREAD_TAGS: Final = ("threadIdx.x", "threadIdx.y", "threadIdx.z")


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """A Python object in an attribute, such as a layout; TVM turns a bare callable into its own."""

    value: Any

    def __str__(self) -> str:
        return str(self.value)


def unheld(value: Any) -> Any:
    """What `value` holds, or `value` itself."""
    return value.value if isinstance(value, Held) else value


def op_name(name: str) -> str:
    """The operator of tile op or scalar intrinsic `name` in the IR."""
    return OP_PREFIX + name


def short_name(op: str) -> str:
    """The language's name of one of our operators."""
    return op.removeprefix(OP_PREFIX)


def is_ours(op: str) -> bool:
    """Whether `op` is one of our operators."""
    return op.startswith(OP_PREFIX)
