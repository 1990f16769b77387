"""Do the fragments that live at once fit in the registers of a thread? (TL407)

Counted from below: values between statements need registers too, so what is over the limit here
is sure to spill, and what is near it may.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tilelang.layout.fragment import Fragment
from tilelang.program import stmt as st
from tilelang.program.accesses import accesses, storage
from tilelang.program.buffer import Buffer
from tilelang.program.context import make_diagnostic
from tilelang_diagnostics.model import Diagnostic, Label

if TYPE_CHECKING:
    from tilelang.layouts.solved import Solved

# CUDA programming guide, table of compute capabilities: 32-bit registers of a multiprocessor,
# which the threads of a block share.
FILE: Final = 65536
GRANULE: Final = 8
REGISTER_BITS: Final = 32
SHOWN: Final = 3
ROOMY: Final = 0.75  # of the registers: the rest is for addresses and values between statements


@dataclass(slots=True)
class _Life:
    first: int
    last: int


def check(solved: Solved) -> Iterator[Diagnostic]:
    """The statement where most fragments are alive, if they cannot all be in registers."""
    threads, limit = solved.collected.threads, solved.machine.registers
    if limit is None or threads is None:
        return
    sizes = _registers(solved)
    lives = _lives(solved.collected.launch, set(sizes))
    budget = _budget(threads, limit)
    peak: list[Buffer] = []
    for at in {life.first for life in lives.values()}:
        alive = [b for b, life in lives.items() if life.first <= at <= life.last]
        if sum(sizes[b] for b in alive) > sum(sizes[b] for b in peak):
            peak = alive
    if sum(sizes[b] for b in peak) > budget:
        yield _diagnostic(solved, sorted(peak, key=lambda b: -sizes[b]), sizes, threads, limit)


def most_at_once(solved: Solved) -> int:
    """How many registers of a thread fragments take between two statements, at most: one may take
    the place of another that ends where it begins."""
    sizes = _registers(solved)
    lives = _lives(solved.collected.launch, set(sizes))
    return max(
        (
            sum(sizes[b] for b, life in lives.items() if life.first <= at < life.last)
            for at in {life.first for life in lives.values()}
        ),
        default=0,
    )


def _budget(threads: int, limit: int) -> int:
    return min(limit, FILE // threads // GRANULE * GRANULE)


def _registers(solved: Solved) -> dict[Buffer, int]:
    """How many registers of a thread each fragment takes."""
    found: dict[Buffer, int] = {}
    for builder, solution in solved.groups:
        for buffer, var in builder.variables.items():
            layout = solution.layouts.get(var)
            if isinstance(layout, Fragment) and buffer.source is None:
                found[buffer] = -(-layout.slots * var.bits // REGISTER_BITS)
    return found


def _lives(launch: st.Launch, buffers: set[Buffer]) -> dict[Buffer, _Life]:
    """From the first to the last use of each; what a loop finds there lives through all of it."""
    lives: dict[Buffer, _Life] = {}
    clock = 0

    def block(body: st.Block) -> None:
        nonlocal clock
        for stmt in body:
            clock += 1
            for access in accesses(stmt):
                buffer = storage(access.buffer)
                if buffer in buffers:
                    lives.setdefault(buffer, _Life(clock, clock)).last = clock
            start = clock
            for inner in st.bodies(stmt):
                block(inner)
            if isinstance(stmt, (st.For, st.While)):
                for life in lives.values():
                    if life.first < start < life.last:
                        life.last = clock

    block(launch.body)
    return lives


def _diagnostic(
    solved: Solved, alive: list[Buffer], sizes: dict[Buffer, int], threads: int, limit: int
) -> Diagnostic:
    total, budget = sum(sizes[b] for b in alive), _budget(threads, limit)
    largest = alive[0]
    ways = ["make the tiles smaller", "keep a part of them in shared memory"]
    more = next((t for t in (threads * 2, threads * 4, threads * 8) if t <= 1024
                 and total * threads / t <= ROOMY * _budget(t, limit)), None)  # fmt: skip
    if more is not None:
        ways.insert(0, f"use {more} threads")
    where = "" if budget == limit else f" when a block has {threads}"
    return make_diagnostic(
        "TL407",
        f"the fragments alive at once take {total} registers of a thread, which has at most "
        f"{budget} on {solved.machine}{where}: the rest spills to memory",
        span=largest.span,
        label=_size(largest, sizes),
        labels=tuple(
            Label(b.span, f"`{b.name}`: {_size(b, sizes)}")
            for b in alive[1:SHOWN]
            if b.span is not None
        ),
        help=", or ".join(ways),
    )


def _size(buffer: Buffer, sizes: dict[Buffer, int]) -> str:
    shape = " x ".join(map(str, buffer.shape))
    return f"{shape} {buffer.dtype}: {sizes[buffer]} registers of each thread"
