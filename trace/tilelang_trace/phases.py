"""Which phase of a compilation does each pass belong to?

A phase ends where the program has become something else: tiles, loops, what one thread does.
"""

from __future__ import annotations

from typing import Final

PHASES: Final = {
    "front end": ("infer_layouts", "check", "load_tvm", "emit"),
    "tiles": (
        "split_roles", "legalize_negative_indices", "name_indices", "cpu_threads",
        "refuse_missing_ops", "refuse_divergent_ops", "apply_layouts", "pipeline_loops",
        "hold_matrices", "stage_stores", "lower_tile_ops", "lower_gpu_ops",
    ),
    "loops": (
        "guard_bounds", "cpu_prefetch", "simplify", "tidy", "serialize_dependent",
        "unswitch_guards", "distribute_loops",
    ),
    "threads": ("vectorize_accesses", "lower_async_copies"),
    "memory and order": (
        "place_versions", "plan_shared", "init_mbarriers", "prefetch_operands", "insert_sync",
        "fence_proxies", "note_deeper_pipelines",
    ),
    "code": ("generate", "emulator", "disassemble"),
}  # fmt: skip
_OF: Final = {name: phase for phase, names in PHASES.items() for name in names}


def phase_of(name: str) -> str:
    """The phase of a pass or part; passes of others are in none of ours."""
    return _OF.get(name, "other")
