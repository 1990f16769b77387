"""What can a user ask of the emulator?"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from tilelang import options
from tilelang_diagnostics import did_you_mean, failure

BACKEND: Final = "emulator"
# What kernels written elsewhere name: ways of launching, of which there is one here.
_ACCEPTED: Final = (BACKEND, "auto", "cython", "ctypes", "nvrtc", "torch", "tvm_ffi", "dlpack")
FIFO: Final = "fifo"
_HELP: Final = "write fifo, or shuffle:SEED with a number from 1 on, such as shuffle:7"


@dataclass(frozen=True, slots=True)
class Emulator:
    """How to run a kernel on the processor, in place of a GPU.

    `check`: report races, accesses outside of memory, reads of what was never written or has not
    arrived, divergent barriers. `seed`: the order of threads; 0 is first come, first served, any
    other number a shuffled order of its own. `workers`: blocks at a time, None for one per core.
    """

    check: bool = False
    seed: int = 0
    workers: int | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.seed < 1 << 63:
            raise ValueError(f"seed {self.seed} is negative or too large")
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"{self.workers} workers")


def emulator_of(execution_backend: Any) -> Emulator | None:
    """The emulator an `execution_backend` asks for: `"emulator"`, or an `Emulator`.

    Where it asks for nothing, TILELANG_EMULATE may.
    """
    if isinstance(execution_backend, Emulator):
        return execution_backend
    if execution_backend is not None and execution_backend not in _ACCEPTED:
        hint = did_you_mean(str(execution_backend), _ACCEPTED)
        raise failure(
            "TL719",
            f"there is no execution backend {execution_backend!r}{hint}",
            help="write execution_backend='emulator', a `tilelang.Emulator`, or leave it out",
        )
    said = str(options.EMULATE.get()).strip()
    if execution_backend not in (None, BACKEND) or not (said or execution_backend):
        return None
    made = Emulator()
    for word in filter(None, (w.strip() for w in said.split(","))):
        if word == "check":
            made = replace(made, check=True)
        elif word not in ("0", "1"):
            try:
                made = replace(made, seed=parse_schedule(word))
            except ValueError:
                raise failure(
                    "TL811",
                    f"environment variable TILELANG_EMULATE is {said!r}",
                    help="write 1, check, fifo or shuffle:SEED, separated by commas",
                ) from None
    return None if said == "0" else made


def parse_schedule(text: str) -> int:
    """The seed that `fifo` or `shuffle:SEED` stands for; ValueError says what would be legal."""
    if text == FIFO:
        return 0
    word, _, number = text.partition(":")
    is_number = number.isascii() and number.isdecimal()
    if word != "shuffle" or not is_number or not 0 < int(number) < 1 << 63:
        raise ValueError(_HELP)
    return int(number)


def schedule_text(seed: int) -> str:
    """What `parse_schedule` makes a seed of."""
    return FIFO if seed == 0 else f"shuffle:{seed}"


def needs_gpu_target(target: Any) -> Exception:
    """TL817: there is nothing to emulate."""
    return failure(
        "TL817",
        f"the emulator runs code for a GPU, and the target is {target}",
        help="name one: --target cuda:sm_80, from Python target='cuda:sm_80', or "
        "TILELANG_DEFAULT_TARGET=cuda:sm_80 in the environment; the CPU backend needs no emulator",
    )
