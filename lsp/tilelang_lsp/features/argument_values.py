"""Which values has an argument, by the name of its parameter? Those worth proposing.

`{T}` is the file's name for the language. A text in quotes is what a string may say; within one
that is being written only what is between the quotes is proposed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tilelang_lsp.model import Catalogue, Entry, Parameter

POLICIES: Final = ("Square", "FullRow", "FullCol")
DTYPES: Final = ("float16", "bfloat16", "float32", "int8", "int32", "float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True, slots=True)
class Value:
    """One value: what is written, and what it means."""

    text: str
    about: str = ""
    kind: str = "value"

    @property
    def quoted(self) -> str | None:
        """What a string says; None for what is no string."""
        return self.text[1:-1] if self.text.startswith('"') else None


def _words(about: str, *words: str) -> tuple[Value, ...]:
    return tuple(Value(f'"{word}"', about) for word in words)


_BOOLS = (Value("True"), Value("False"))
_KINDS_OF_SUM = ("sum", "max", "min", "abssum", "absmax", "bitand", "bitor", "bitxor")
_ORDERS = ("relaxed", "consume", "acquire", "release", "acq_rel", "seq_cst")
_SWIZZLES = tuple(
    Value(f"tilelang.layout.make_{name}_layout($)", about)
    for name, about in (
        ("swizzled", "the layout an operand tile wants in shared memory"),
        ("full_bank_swizzled", "the 128-byte swizzle"),
        ("half_bank_swizzled", "the 64-byte swizzle"),
        ("quarter_bank_swizzled", "the 32-byte swizzle"),
        ("linear", "row-major"),
    )
)
_FRAGMENT = Value("{T}.Fragment($)", "which thread holds which element")
LAYOUTS: Final = (*_SWIZZLES, Value("{T}.Layout($)", "index to place, as a function"), _FRAGMENT)

# A name alone is any parameter of that name, `function.name` one of that function.
_VALUES: Final[dict[str, tuple[Value, ...]]] = {
    "policy": tuple(Value(f"{{T}}.GemmWarpPolicy.{name}", "how warps share the tile")
                    for name in POLICIES),
    "num_stages": (*(Value(n, "stages of the pipeline") for n in ("2", "3", "4")),
                   Value('"auto"', "as many as fit into shared memory")),
    "Kernel.threads": tuple(Value(n, "threads of a block") for n in ("128", "256", "512")),
    "memory_order": _words("order of memory accesses", *_ORDERS),
    "eviction_policy": _words("hint to the L2 cache", "evict_normal", "evict_first", "evict_last"),
    "prefer_instruction": _words("which instruction copies", "tma", "cp_async", "sync"),
    "reduce.reduce_type": _words("what is made of the elements", *_KINDS_OF_SUM),
    "alloc_reducer.op": _words("how contributions combine",
                               "sum", "max", "min", "bitand", "bitor", "bitxor"),
    "alloc_reducer.replication": _words("who holds the accumulator", "all", "none"),
    "use_swizzle.order": _words("how panels run", "row", "column"),
    "alloc_shared.scope": _words("where it lies", "shared.dyn", "shared"),
    "loop_layout": (_FRAGMENT,),
    "cast.round": _words("rounding", "", "rs"),
    "jit.execution_backend": _words("who launches the kernel", "tvm_ffi", "cython", "auto"),
    "jit.out_idx": (Value("[-1]", "the last parameter is returned"),),
    "compile.out_idx": (Value("[-1]", "the last parameter is returned"),),
}  # fmt: skip
_BOOLEAN: Final = frozenset(
    [
        "transpose_A",
        "transpose_B",
        "transpose_E",
        "clear_accum",
        "clear",
        "nan_propagate",
        "reverse",
        "disable_tma",
        "use_tma",
        "return_prev",
        "use_2cta",
        "is_cpu",
        "explicit",
        "enable",
        "prefer_async",
    ]
)
_OF_DTYPE: Final = re.compile(r"(?:\w+_)?dtype$")


def values_of(function: str, parameter: str, catalogue: Catalogue) -> Iterator[Value]:
    """The values of a parameter of a function of the language, or of `tilelang`."""
    own = _VALUES.get(f"{function}.{parameter}") or _VALUES.get(parameter)
    if own is not None:
        yield from own
    elif parameter in _BOOLEAN:
        yield from _BOOLS
    elif _OF_DTYPE.match(parameter):
        yield from (Value(f"{{T}}.{name}", "", "dtype") for name in DTYPES)
    elif parameter == "target":
        yield from (Value(f'"{name}"', about) for name, about in catalogue.targets)


def strings_of(function: str, parameter: str, catalogue: Catalogue) -> Iterator[Value]:
    """What a string given to a parameter may say: every dtype, for one of those."""
    if _OF_DTYPE.match(parameter):
        found = [e for e in catalogue.names() if e.kind == "dtype"]
        for entry in sorted(found, key=lambda e: e.name not in DTYPES):
            yield Value(f'"{entry.name}"', entry.summary, "dtype")
    for value in values_of(function, parameter, catalogue):
        if value.quoted is not None:
            yield value


def parameter_name(entry: Entry | None, position: int) -> str:
    """The parameter that takes the argument at a position, empty where there is none."""
    named: list[Parameter] = []
    for parameter in entry.parameters or () if entry else ():
        if parameter.name == "*":
            break
        named.append(parameter)
        if parameter.variadic:
            break
    if named and named[-1].variadic and position >= len(named) - 1:
        return "" if named[-1].text.startswith("**") else named[-1].name
    return named[position].name if position < len(named) else ""
