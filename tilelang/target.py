"""What is code compiled for, how is that spelled, and what can the hardware do?

A target is written `cpu`, `cuda:sm_90a`, `hip:gfx942`, `metal:apple9`, `auto`, or as a dict
`{"kind": "cuda", "arch": "sm_90a"}`. Compiler code asks the capability row of a target what it
has, never for its name.

`auto` is settled by `resolve_target`, which says what it chose and why, and refuses to fall back
to the CPU when a GPU is in the machine but cannot be used from here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, get_args

from tilelang_diagnostics import diagnose, did_you_mean, failure
from tilelang_diagnostics.model import Diagnostic

Kind = Literal["cpu", "cuda", "hip", "metal"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What one architecture has. Sizes are bytes per block, limits are per block or thread."""

    warp_size: int = 1
    shared_bytes: int | None = None  # None: ordinary memory, no limit of its own
    registers: int | None = None
    shared_banks: int | None = None
    mma: Literal["none", "mma", "wgmma", "tcgen05", "mfma", "wmma", "simdgroup"] = "none"
    has_cp_async: bool = False
    has_ldmatrix: bool = False
    has_tma: bool = False
    has_clusters: bool = False
    has_fp8: bool = False
    multiprocessors: int | None = None  # of the largest device
    threads_cooperate: bool = True  # False: a block is one thread of control


_CPU: Final = Capabilities(has_fp8=True, threads_cooperate=False)


def _cuda(shared_kb: int, units: int, mma: Any = "mma", **has: bool) -> Capabilities:
    return Capabilities(
        warp_size=32, shared_bytes=shared_kb * 1024, registers=255, shared_banks=32, mma=mma,
        multiprocessors=units, **has,
    )  # fmt: skip


def _hip(warp: int, mma: Any, **has: bool) -> Capabilities:
    return Capabilities(
        warp_size=warp, shared_bytes=65536, registers=512, shared_banks=32, mma=mma, **has
    )


_AMPERE: Final = {"has_cp_async": True, "has_ldmatrix": True}
_HOPPER: Final = {**_AMPERE, "has_tma": True, "has_clusters": True, "has_fp8": True}

# Shared memory is what one block may ask for, from the CUDA programming guide's table of compute
# capabilities (opt-in limit); multiprocessors are those of the largest product. `a` and `f`
# spellings unlock instructions, the limits stay.
ARCHS: Final[Mapping[Kind, Mapping[str, Capabilities]]] = {
    "cpu": {"": _CPU},
    "cuda": {
        "sm_70": _cuda(96, 80),
        "sm_75": _cuda(64, 72, has_ldmatrix=True),
        "sm_80": _cuda(163, 108, **_AMPERE),
        "sm_86": _cuda(99, 84, **_AMPERE),
        "sm_87": _cuda(163, 16, **_AMPERE),
        "sm_89": _cuda(99, 142, **_AMPERE, has_fp8=True),
        "sm_90": _cuda(227, 132, **_HOPPER),
        "sm_90a": _cuda(227, 132, "wgmma", **_HOPPER),
        "sm_100": _cuda(227, 148, **_HOPPER),
        "sm_100a": _cuda(227, 148, "tcgen05", **_HOPPER),
        "sm_103": _cuda(227, 160, **_HOPPER),
        "sm_103a": _cuda(227, 160, "tcgen05", **_HOPPER),
        "sm_120": _cuda(99, 188, **_HOPPER),
        "sm_120a": _cuda(99, 188, **_HOPPER),
    },
    "hip": {
        "gfx90a": _hip(64, "mfma"),
        "gfx942": _hip(64, "mfma", has_fp8=True),
        "gfx950": _hip(64, "mfma", has_fp8=True),
        "gfx1100": _hip(32, "wmma"),
        "gfx1201": _hip(32, "wmma", has_fp8=True),
    },
    "metal": {
        name: Capabilities(warp_size=32, shared_bytes=32768, shared_banks=32, mma="simdgroup")
        for name in ("apple7", "apple8", "apple9")
    },
}

# What a kind without an architecture stands for. A GPU kind has none: guessing would compile code
# that another machine refuses.
_DEFAULT_ARCH: Final[Mapping[Kind, str]] = {"cpu": ""}
# Of kinds with architectures that are known and checked, those code can be generated for.
GENERATED: Final[Mapping[Kind, tuple[str, ...]]] = {"hip": ("gfx90a", "gfx942", "gfx950")}
_EXAMPLES: Final[Mapping[Kind, str]] = {"hip": "gfx942"}
# Other names for the same targets, from kernels written for other compilers.
_GPU_WORDS: Final = ("gpu", "nvidia", "nvptx")
# AMD counts in hexadecimal: gfx90a comes before gfx942.
_NUMBERED: Final[tuple[tuple[str, Kind, int], ...]] = (
    ("sm_", "cuda", 10), ("gfx", "hip", 16), ("apple", "metal", 10),
)  # fmt: skip
_KIND_PREFIX: Final[Mapping[Kind, str]] = {"cuda": "sm_"}
_KIND_ALIASES: Final[Mapping[str, Kind]] = {"llvm": "cpu", "c": "cpu", "rocm": "hip"}


@dataclass(frozen=True, slots=True)
class Target:
    """One kind of processor and its architecture."""

    kind: Kind
    arch: str = ""

    def __post_init__(self) -> None:
        if self.kind not in ARCHS or self.arch not in ARCHS[self.kind]:
            raise ValueError(f"no target {self.kind}:{self.arch}")

    @property
    def capabilities(self) -> Capabilities:
        """What this architecture has."""
        return ARCHS[self.kind][self.arch]

    @property
    def number(self) -> int:
        """The architecture as a number: later ones of a kind have larger ones."""
        return arch_number(self.arch)[1]

    def __str__(self) -> str:
        return f"{self.kind}:{self.arch}" if self.arch else self.kind


def arch_number(arch: str) -> tuple[Kind, int]:
    """Kind and number of an architecture: ("cuda", 90) for `sm_90a`, ("hip", 0x942) for
    `gfx942`, ("metal", 9) for `apple9`."""
    for prefix, kind, base in _NUMBERED:
        if arch.startswith(prefix):
            digits = arch.removeprefix(prefix)
            return kind, int(digits.rstrip("af") if kind == "cuda" else digits, base)
    return "cpu", 0


@dataclass(frozen=True, slots=True)
class Resolved:
    """A target, and for `auto` why it is that one."""

    target: Target
    reason: str | None = None

    def remark(self) -> Diagnostic | None:
        """TL415 for a resolved `auto`, None for a target the user named."""
        if self.reason is None:
            return None
        return diagnose(
            "TL415",
            f"target auto is {self.target}: {self.reason}",
            help=f"name the target to be independent of the machine: target={str(self.target)!r}",
        )


@dataclass(frozen=True, slots=True)
class Probe:
    """What one look for GPUs of a kind found.

    `arch` is that of a usable device. `hidden` says what was seen of a device that cannot be used.
    """

    kind: Kind
    arch: str | None = None
    name: str = ""
    hidden: str | None = None


def parse_target(value: Any) -> Target:
    """The target `value` spells; TL403, TL404 or TL405 for what spells none. `auto` is refused."""
    match value:
        case Target():
            return value
        case Resolved(target=target):
            return target
        case str() if value.lstrip().startswith("{"):
            return parse_target(_json_target(value))
        case str():
            return _parse_text(value.strip())
        case Mapping():
            return _parse_mapping(value)
        case _:
            _refuse("TL403", f"{value!r} is not a target", _how_to_spell())


def is_auto(value: Any) -> bool:
    """Whether `value` leaves the choice to `resolve_target`."""
    return value is None or (isinstance(value, str) and value.strip().lower() == "auto")


def kind_alone(value: Any) -> Kind | None:
    """The kind of GPU that `value` names without an architecture, as in `cuda`."""
    text = value.get("kind") if isinstance(value, Mapping) and set(value) == {"kind"} else value
    if not isinstance(text, str):
        return None
    lowered = text.strip().lower()
    kind = _KIND_ALIASES.get(lowered, lowered)
    return next((k for k in KINDS if k == kind and k not in _DEFAULT_ARCH), None)


def resolve_target(
    value: Any, probes: Sequence[Probe] = (), backends: Sequence[Kind] = KINDS
) -> Resolved:
    """The target to compile for. For `auto`, `probes` say which GPUs there are.

    `backends` are the kinds this installation can generate code for. A GPU that is in the machine
    but cannot be used is TL805, not a silent CPU.
    """
    if not is_auto(value):
        return Resolved(parse_target(value))
    without_backend: list[str] = []
    for probe in probes:
        if probe.arch is None and probe.hidden is None:
            continue
        if probe.kind not in backends:
            if probe.arch is not None:
                without_backend.append(probe.name or f"{probe.kind}:{probe.arch}")
            continue
        if probe.arch is None:
            _refuse(
                "TL805",
                f"target auto found a GPU that cannot be used from here: {probe.hidden}",
                "make the GPU visible to this process, or ask for the CPU with target='cpu'",
            )
        arch = probe.arch if probe.arch in ARCHS[probe.kind] else None
        if arch is None:
            _refuse(
                "TL404",
                f"target auto found {probe.name or 'a GPU'} of architecture {probe.arch!r}, "
                f"which {probe.kind} code cannot be generated for",
                f"choose one of {', '.join(ARCHS[probe.kind])}, or target='cpu'",
            )
        return Resolved(Target(probe.kind, arch), f"{probe.name or 'a GPU'} is the first GPU")
    if without_backend:
        reason = f"{', '.join(without_backend)} is there, but this version has no backend for it"
        return Resolved(Target("cpu"), reason)
    return Resolved(Target("cpu"), "no GPU was found")


def _parse_text(text: str) -> Target:
    if is_auto(text):
        _refuse("TL403", "target auto is not an architecture", "name one: cpu, cuda:sm_90a, …")
    if " -" in text or text.startswith("-"):
        kind = text.split()[0].split(":")[0]
        found = [p.split("=", 1)[1] for p in text.split() if p.startswith(("-arch=", "-mcpu="))]
        suggestion = f"{kind}:{found[0]}" if found else "cuda:sm_90a"
        _refuse(
            "TL405",
            f"{text!r} is an option string, not a target",
            f'write target="{suggestion}" or target={{"kind": "{kind}", "arch": "…"}}',
        )
    kind, _, arch = text.partition(":")
    return _make(kind, arch)


def _parse_mapping(value: Mapping[str, Any]) -> Target:
    unknown = sorted(set(value) - {"kind", "arch", "mcpu", "code", "host", "keys", "tag"})
    if "kind" not in value or unknown:
        what = "no key 'kind'" if "kind" not in value else f"an unknown key {unknown[0]!r}"
        _refuse("TL403", f"a target dict with {what}", 'write {"kind": "cuda", "arch": "sm_90a"}')
    kind = str(value["kind"])
    arch = str(value.get("arch", ""))
    return _make(kind, arch)


def _make(kind_text: str, arch: str) -> Target:
    lowered = kind_text.strip().lower()
    kind = _KIND_ALIASES.get(lowered, lowered)
    if kind not in ARCHS:
        _refuse_without_kind(kind_text, lowered)
        hint = did_you_mean(lowered, (*KINDS, *_KIND_ALIASES))
        _refuse("TL403", f"there is no target {kind_text!r}{hint}", _how_to_spell())
    known: Kind = next(k for k in KINDS if k == kind)
    archs = ARCHS[known]
    if known == "cpu":
        arch = ""
    if not arch and known in _DEFAULT_ARCH:
        arch = _DEFAULT_ARCH[known]
    elif not arch:
        made = GENERATED.get(known, tuple(archs))
        first = _EXAMPLES.get(known, made[-1])
        _refuse(
            "TL404",
            f"target {kind_text!r} names no architecture",
            f"write one, such as {known}:{first}; known are {', '.join(made)}",
        )
    if arch not in archs:
        spelled = (arch.lower(), _KIND_PREFIX.get(known, "") + arch.lower())  # 90 is sm_90
        full = next((a for a in spelled if a in archs), None)
        hint = f"; did you mean `{known}:{full}`?" if full else did_you_mean(arch, archs)
        _refuse(
            "TL404",
            f"{known} has no architecture {arch!r}{hint}",
            f"known are {', '.join(archs)}",
        )
    return Target(known, arch)


def _refuse_without_kind(text: str, lowered: str) -> None:
    """TL403 for what clearly means a target: an architecture alone, or GPUs by another name."""
    meant = [f"{kind}:{arch}" for kind, archs in ARCHS.items() for arch in archs
             if lowered in (arch, arch.removeprefix("sm_")) and arch]  # fmt: skip
    if lowered in _GPU_WORDS:
        meant = ["cuda"]
    if meant:
        help = f"a GPU is named with its architecture, such as cuda:sm_90a; {_how_to_spell()}"
        _refuse("TL403", f"there is no target {text!r}; did you mean `{meant[0]}`?", help)


def _json_target(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        _refuse("TL403", f"{text!r} is not JSON: {error}", _how_to_spell())


def _how_to_spell() -> str:
    return (
        "a target is cpu, cuda:sm_90a, hip:gfx942, metal:apple9, auto, or a dict with kind, arch; "
        "kernels for hip and metal run on the emulator only, so far"
    )


def _refuse(code: str, message: str, help: str) -> NoReturn:
    raise failure(code, message, help=help)
