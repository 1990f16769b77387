"""Device operations of random numbers: the generator of a thread is an array of its own."""

from __future__ import annotations

from typing import Final

from tilelang.ir.device_op import Access, Constant, DeviceOp, Operand
from tilelang.ir.device_rows import scalars

STATE_WORDS: Final = 16
_GENERATOR: Final = Constant("generator", ("curandStatePhilox4_32_10_t",), place="ignored")


def _state(access: Access) -> Operand:
    return Operand("state", "local", access, lanes=STATE_WORDS, dtype="uint32")


ROWS: Final[tuple[DeviceOp, ...]] = (
    DeviceOp(
        "rng_init", "start sequence `seq` (the number of the thread in the grid) at `off`",
        operands=(_state("write"), *scalars("seed", "off", "seq?")),
        constants=(_GENERATOR,), header="random.h",
    ),
    DeviceOp(
        "rng_rand", "32 random bits", operands=(_state("update"),), constants=(_GENERATOR,),
        result="uint32", header="random.h",
    ),
    *(
        DeviceOp(
            f"rng_{dist}_{name}", f"a {name} of {what}", operands=(_state("update"),),
            constants=(_GENERATOR,), result=name, header="random.h",
        )
        for dist, what in (("uniform", "(0, 1]"), ("normal", "the normal distribution"))
        for name in ("float32", "float64")
    ),
)  # fmt: skip
