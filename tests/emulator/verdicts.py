"""Is a damaged kernel caught, and by what: checks, wrong numbers, an order of threads, a deadlock?

One that nothing catches is compared with the kernel it was made from, bit for bit, on random inputs
and in shuffled orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Literal

import numpy as np

from tests.emulator.damage import Mutant, device_of, mutants, run_device
from tests.emulator.subjects import Arrays, Subject
from tests.kernels.case import relative_error, to_numpy
from tilelang.codegen.device_source import DeviceSource
from tilelang.emulator.settings import Emulator
from tilelang_diagnostics import CompileError

INPUTS, SCHEDULES = 20, 20
STANDARD: Final = 3  # inputs that every mutant runs on
CHECKED: Final = tuple(Emulator(check=True, seed=seed) for seed in range(3))
PLAIN: Final = Emulator()
SHUFFLED: Final = tuple(Emulator(seed=seed) for seed in range(1, SCHEDULES + 1))
# A kernel that is right gives right numbers in all of these, and is accused of nothing.
ORDERS: Final = tuple(
    Emulator(check, seed) for check in (False, True) for seed in range(SCHEDULES + 1)
)
CAUGHT: Final = ("check", "numbers", "shuffled", "deadlock")

How = Literal["check", "numbers", "shuffled", "deadlock", "equal", "differs", "no code"]


@dataclass(frozen=True)
class Verdict:
    """What became of a mutant, and what was said of it."""

    how: How
    said: str = ""

    @property
    def is_caught(self) -> bool:
        return self.how in CAUGHT


class Original:
    """A correct kernel: its generated source, and what it gives."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.prim_func = subject.make()
        self.device = device_of(self.prim_func, subject.target)

    @cached_property
    def mutants(self) -> tuple[Mutant, ...]:
        return tuple(mutants(self.device))

    def run(self, device: DeviceSource, emulator: Emulator, seed: int = 0) -> Arrays:
        """The outputs of `device` for random inputs; raises CompileError."""
        return self.run_on(device, emulator, self.subject.inputs(np.random.default_rng(seed)))

    def run_on(self, device: DeviceSource, emulator: Emulator, arrays: Arrays) -> Arrays:
        run_device(self.prim_func, device, arrays, emulator)
        return tuple(self.subject.canonical(arrays[at]) for at in self.subject.outputs)

    def is_right(self, outputs: Sequence[np.ndarray], seed: int = 0) -> bool:
        expected = self.subject.reference(*self.subject.inputs(np.random.default_rng(seed)))
        return all(
            relative_error(to_numpy(got), want) <= self.subject.tolerance
            for got, want in zip(outputs, expected, strict=True)
        )

    def accusation(self, emulator: Emulator) -> str | None:
        """What is said against the kernel as it is, which is right."""
        found = self.attempt(self.device, emulator)
        if found is None:
            return None
        return f"{self.subject.name}: {emulator}: {found.how} {found.said}"

    def attempt(self, device: DeviceSource, emulator: Emulator, seed: int = 0) -> Verdict | None:
        """What one run shows, if it shows anything."""
        try:
            outputs = self.run(device, emulator, seed)
        except CompileError as error:
            return _verdict(error)
        if self.is_right(outputs, seed):
            return None
        return Verdict("shuffled" if emulator.seed else "numbers", f"inputs {seed}, {emulator}")


def judge(original: Original, mutant: Mutant, prove: bool = True) -> Verdict:
    """What becomes of a mutant; `prove`: compare what nothing catches with the original."""
    plain = [(PLAIN, seed) for seed in range(STANDARD)]
    for emulator, seed in [*((e, 0) for e in CHECKED), *plain, *((e, 0) for e in SHUFFLED)]:
        found = original.attempt(mutant.device, emulator, seed)
        if found is not None:
            return found
    return _compare(original, mutant) if prove else Verdict("equal")


def _compare(original: Original, mutant: Mutant) -> Verdict:
    for seed in range(1, INPUTS + 1):
        wanted = original.run(original.device, PLAIN, seed)
        for emulator in SHUFFLED:
            try:
                got = original.run(mutant.device, emulator, seed)
            except CompileError as error:
                return Verdict("differs", f"inputs {seed}, {emulator}: {error.diagnostics[0].code}")
            if any(a.tobytes() != b.tobytes() for a, b in zip(got, wanted, strict=True)):
                return Verdict("differs", f"inputs {seed}, {emulator}")
    return Verdict("equal", f"{INPUTS} inputs, {SCHEDULES} orders")


# Deadlocks, waits that cannot end, a compiler that does not take the source.
_HOW: Final[dict[str, How]] = {"TL733": "deadlock", "TL806": "no code"}


def _verdict(error: Any) -> Verdict:
    first = error.diagnostics[0]
    return Verdict(_HOW.get(first.code, "check"), f"{first.code} {first.message}")
