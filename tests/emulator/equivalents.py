"""Mutants that are as good as their kernels, and why; and those that are not, and yet escape.

Each is named by its kernel, the change, the line with single spaces, and which one it is of those
called the same. `python -m benchmarks.mutants` proves equivalent ones equal, and names reasons that
are about no mutant any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Known:
    """Mutant `nth` that `change` makes of `line`."""

    kernel: str
    change: str
    line: str
    nth: int
    reason: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        return self.kernel, self.change, self.line, self.nth


_SAME_VALUES: Final = "all threads have the same values, and write them to the same places"
_BEYOND: Final = (
    "one tile more is copied: its own predicate makes it zeros, and nobody reads the slot any more"
)
_LARGER: Final = "at most 23 keys are larger than the limit: the place is always inside"
_EQUAL: Final = "the condition around it keeps the place inside"
_ONE_SHORT: Final = (
    "whoever arrives has waited for the products of the whole warp group, so that any arrival says "
    "all; the count is one short each round, which shows after 128 rounds, and there are five"
)

EQUIVALENTS: Final = (
    Known(
        "gemm_scheduled", "no commit of copies", "tl::cp_async_commit();", 0,
        "the loop waits for all groups: the next commit takes these copies along",
    ),
    Known("gemm_scheduled", "no guard", "if (k + 2 < 7) {", 0, _BEYOND),
    Known("gemm_scheduled", "one more", "if (k + 2 < 7) {", 0, _BEYOND),
    Known("gemm_scheduled", "no guard", "if (k + 1 < 7) {", 0, _BEYOND),
    Known("gemm_scheduled", "one more", "if (k + 1 < 7) {", 0, _BEYOND),
    Known(
        "attention", "no barrier", "tl::sync_threads();", 0,
        "the first barrier inside of the loop orders the same; this one is for a loop of no rounds",
    ),
    Known(
        "attention", "no guard", "if (n + 1 < ((bx + 1) * 32 + 16 - 1) / 16) {", 0, _BEYOND
    ),
    Known(
        "attention", "one more", "if (n + 1 < ((bx + 1) * 32 + 16 - 1) / 16) {", 0, _BEYOND
    ),
    Known("row_norms", "no guard", "if (tx % 32 == 0) {", 0, _SAME_VALUES),
    Known("row_norms", "no guard", "if (tx % 32 == 0) {", 1, _SAME_VALUES),
    Known("row_norms", "no guard", "if (tx == 0) {", 0, _SAME_VALUES),
    Known("row_norms", "no guard", "if (tx == 0) {", 1, _SAME_VALUES),
    Known("tile_scan", "no guard", "if (tx == 0) {", 0, _SAME_VALUES),
    Known("top_k", "no guard", "if (tx == 0) {", 0, _SAME_VALUES),
    Known(
        "top_k", "one more", "if (tx + (1 << step) < 256) {", 0,
        "it adds the last bin, which is there to be zero",
    ),
    Known("top_k", "no guard", "if (slot >= 0 && slot < 24) {", 0, _LARGER),
    Known("top_k", "half a guard", "if (slot >= 0 && slot < 24) {", 0, _LARGER),
    Known("top_k", "the other half of a guard", "if (slot >= 0 && slot < 24) {", 0, _LARGER),
    Known("top_k", "one more", "if (slot >= 0 && slot < 24) {", 0, _LARGER),
    Known("top_k", "no guard", "if (23 - tie >= 0 && 23 - tie < 24) {", 0, _EQUAL),
    Known("top_k", "half a guard", "if (23 - tie >= 0 && 23 - tie < 24) {", 0, _EQUAL),
    Known(
        "top_k", "the other half of a guard", "if (23 - tie >= 0 && 23 - tie < 24) {", 0, _EQUAL
    ),
    Known("top_k", "one more", "if (23 - tie >= 0 && 23 - tie < 24) {", 0, _EQUAL),
    *(
        Known(
            "warp_specialised", "one arrival fewer", f"tl::mbarrier_init(consumed[{slot}], 128);",
            0, _ONE_SHORT,
        )
        for slot in range(3)
    ),
    Known(
        "warp_specialised", "another barrier", "tl::sync_threads(2, 128);", 0,
        "the same threads meet at a barrier of another number, which nobody else uses",
    ),
    Known(
        "warp_specialised", "no guard", "if (tx - 128 == 0) {", 0,
        "every thread stores the same tile, and waits for its own store",
    ),
    Known(
        "tma_stream", "no guard", "if (tx == 0) {", 2,
        "every thread stores the same tile, and waits for its own store",
    ),
    Known(
        "hopper_products", "no barrier", "tl::sync_threads();", 0,
        "products of a warp group end for all its warps at once; the compiler relies on no more "
        "than that they end for the warp that waits",
    ),
)  # fmt: skip

# Wrong, and nothing says so: they count as escaped.
ESCAPES: Final = (
    Known(
        "split_k_last", "only release",
        "before[0] = tl::atomic_add<tl::memory_order::acq_rel>(&count[bx], 1);", 0,
        "the checks take any atomic update for an acquire: code without a fence after it is common",
    ),
)  # fmt: skip
