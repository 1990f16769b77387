"""Mutants that are as good as their kernels, and why.

Each is named by its kernel, the change, the line without the changes of spaces, and which one it is
of those called the same. `python -m benchmarks.mutants` proves them equal, and names reasons that
are about no mutant any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Equivalent:
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
    Equivalent(
        "gemm_scheduled", "no commit of copies", "tl::cp_async_commit();", 0,
        "the loop waits for all groups: the next commit takes these copies along",
    ),
    Equivalent("gemm_scheduled", "no guard", "if (k + 2 < 7) {", 0, _BEYOND),
    Equivalent("gemm_scheduled", "one more", "if (k + 2 < 7) {", 0, _BEYOND),
    Equivalent("gemm_scheduled", "no guard", "if (k + 1 < 7) {", 0, _BEYOND),
    Equivalent("gemm_scheduled", "one more", "if (k + 1 < 7) {", 0, _BEYOND),
    Equivalent(
        "attention", "no barrier", "tl::sync_threads();", 0,
        "the first barrier inside of the loop orders the same; this one is for a loop of no rounds",
    ),
    Equivalent(
        "attention", "no guard", "if (n + 1 < ((bx + 1) * 32 + 16 - 1) / 16) {", 0, _BEYOND
    ),
    Equivalent(
        "attention", "one more", "if (n + 1 < ((bx + 1) * 32 + 16 - 1) / 16) {", 0, _BEYOND
    ),
    Equivalent("row_norms", "no guard", "if (tx % 32 == 0) {", 0, _SAME_VALUES),
    Equivalent("row_norms", "no guard", "if (tx % 32 == 0) {", 1, _SAME_VALUES),
    Equivalent("row_norms", "no guard", "if (tx == 0) {", 0, _SAME_VALUES),
    Equivalent("row_norms", "no guard", "if (tx == 0) {", 1, _SAME_VALUES),
    Equivalent("tile_scan", "no guard", "if (tx == 0) {", 0, _SAME_VALUES),
    Equivalent("top_k", "no guard", "if (tx == 0) {", 0, _SAME_VALUES),
    Equivalent(
        "top_k", "one more", "if (tx + (1 << step) < 256) {", 0,
        "it adds the last bin, which is there to be zero",
    ),
    Equivalent("top_k", "no guard", "if (slot >= 0 && slot < 24) {", 0, _LARGER),
    Equivalent("top_k", "half a guard", "if (slot >= 0 && slot < 24) {", 0, _LARGER),
    Equivalent("top_k", "the other half of a guard", "if (slot >= 0 && slot < 24) {", 0, _LARGER),
    Equivalent("top_k", "one more", "if (slot >= 0 && slot < 24) {", 0, _LARGER),
    Equivalent("top_k", "no guard", "if (23 - tie >= 0 && 23 - tie < 24) {", 0, _EQUAL),
    Equivalent("top_k", "half a guard", "if (23 - tie >= 0 && 23 - tie < 24) {", 0, _EQUAL),
    Equivalent(
        "top_k", "the other half of a guard", "if (23 - tie >= 0 && 23 - tie < 24) {", 0, _EQUAL
    ),
    Equivalent("top_k", "one more", "if (23 - tie >= 0 && 23 - tie < 24) {", 0, _EQUAL),
    *(
        Equivalent(
            "warp_specialised", "one arrival fewer", f"tl::mbarrier_init(consumed[{slot}], 128);",
            0, _ONE_SHORT,
        )
        for slot in range(3)
    ),
    Equivalent(
        "warp_specialised", "another barrier", "tl::sync_threads(2, 128);", 0,
        "the same threads meet at a barrier of another number, which nobody else uses",
    ),
    Equivalent(
        "warp_specialised", "no guard", "if (tx - 128 == 0) {", 0,
        "every thread stores the same tile, and waits for its own store",
    ),
    Equivalent(
        "tma_stream", "no guard", "if (tx == 0) {", 2,
        "every thread stores the same tile, and waits for its own store",
    ),
    Equivalent(
        "hopper_products", "no barrier", "tl::sync_threads();", 0,
        "products of a warp group end for all its warps at once; the compiler relies on no more "
        "than that they end for the warp that waits",
    ),
)  # fmt: skip
