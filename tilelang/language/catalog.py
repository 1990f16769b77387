"""What a language function is: a Python function plus what checking, completion and docs need.

`T.copy` and its like are `LanguageFunction` values made from ordinary functions by `tile_op`,
`scalar_op` … below. Signature and documentation are those of the function itself, so there is
nothing to keep in step. Called while a kernel is traced they add to the trace; called from plain
Python helpers they find their own position from the caller's frame.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from tilelang.program.context import CallSite, Trace, active_trace, keyword_span, reject
from tilelang.program.unknown import Unknown, contains_unknown
from tilelang_diagnostics.model import Edit, Fix, Span
from tilelang_diagnostics.suggest import did_you_mean, suggest

FunctionKind = Literal[
    "tile", "scalar", "alloc", "loop", "launch", "annotation", "sync", "type", "meta", "thread"
]
# tile: collective operation on tiles; scalar: expression in, expression out; alloc: storage;
# loop: iterable of a for; launch: with-frame; annotation: informs passes; sync: barriers, waits;
# meta: pure Python values at trace time; thread: positions, votes; type: parameter annotations.

CPU: tuple[str, ...] = ("cpu", "cuda", "hip", "metal")
GPU: tuple[str, ...] = ("cuda", "hip", "metal")
CUDA: tuple[str, ...] = ("cuda",)
NOT_METAL: tuple[str, ...] = ("cpu", "cuda", "hip")
# Votes of 32 lanes in a word, barriers across blocks, printing.
NO_OTHER_GPU: tuple[str, ...] = ("cpu", "cuda")
AMPERE: tuple[str, ...] = ("cuda:sm_80",)
HOPPER: tuple[str, ...] = ("cuda:sm_90",)
# Instructions of one architecture, which its spelling with an `a` unlocks.
HOPPER_ONLY: tuple[str, ...] = ("cuda:sm_90a",)
WARP_GROUPS: tuple[str, ...] = tuple(f"cuda:sm_{n}a" for n in (90, 100, 103, 120))
BLACKWELL: tuple[str, ...] = ("cuda:sm_100",)


@dataclass(frozen=True, eq=False, repr=False)
class LanguageFunction:
    """One name of the language.

    `targets` lists kinds of target that have it, or the first architecture that does
    (`cuda:sm_90`), or exactly those that do (`cuda:sm_90a`); `outside` tells that it may be called
    with no kernel being traced.
    """

    function: Callable[..., Any]
    kind: FunctionKind
    targets: tuple[str, ...] = CPU
    outside: bool = False
    aliases: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        # What `inspect.signature` follows.
        object.__setattr__(self, "__wrapped__", self.function)

    def __repr__(self) -> str:
        return f"<T.{self.name}>"

    @property
    def usage(self) -> str:
        """The function as one writes a call, without annotations."""
        return f"{self.name}{_plain_signature(self.signature)}"

    @property
    def name(self) -> str:
        return (
            self.function.__name__.rstrip("_")
            if not self.function.__name__.startswith("__")
            else self.function.__name__
        )

    @property
    def doc(self) -> str:
        return inspect.getdoc(self.function) or ""

    @cached_property
    def signature(self) -> inspect.Signature:
        return inspect.signature(self.function)

    @cached_property
    def positional(self) -> tuple[str, ...]:
        """Names of the parameters that can be given by position, in order."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(p.name for p in self.signature.parameters.values() if p.kind in kinds)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        trace = active_trace()
        if trace is None:
            if self.outside:
                return self.function(*args, **kwargs)
            from tilelang.language.errors import outside_kernel

            raise outside_kernel(self.name)
        caller = sys._getframe(1)
        if caller.f_globals.get("__name__") in _OURS:
            return self.invoke(trace, args, kwargs)
        # Called from plain Python: where each argument stands is not known.
        previous, trace.call_site = trace.call_site, CallSite()
        try:
            with trace.at(caller_span(caller)):
                return self.invoke(trace, args, kwargs)
        finally:
            trace.call_site = previous

    def invoke(self, trace: Trace, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Check the call against the signature and run it; unknown operands give an unknown."""
        self.check_arguments(args, kwargs)
        if contains_unknown(args) or contains_unknown(kwargs):
            trace.complete = False
            if self.kind == "tile":
                from tilelang.language.operands import refuse_in_parallel

                refuse_in_parallel(self.name)
            return Unknown(f"T.{self.name}(…)")
        if trace.target is not None:
            self.check_target(trace.target)
        try:
            return self.function(*args, **kwargs)
        except (TypeError, AttributeError, ValueError, LookupError, ArithmeticError) as error:
            # Arguments are whatever the user wrote; what a function does not check for by name
            # is still a wrong argument and not a crash.
            reject("TL116", f"`T.{self.name}` cannot work with these arguments: {error}",
                   help=f"signature: T.{self.name}{_plain_signature(self.signature)}")  # fmt: skip

    def check_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Reject a call that does not fit the signature, naming what does not."""
        parameters = self.signature.parameters
        names = [p.name for p in parameters.values() if p.kind is not p.VAR_KEYWORD]
        takes_any = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
        for keyword in kwargs:
            if keyword not in parameters and not takes_any:
                hint = did_you_mean(keyword, tuple(names))
                place = keyword_span(keyword)
                reject(
                    "TL112",
                    f"`T.{self.name}` has no parameter `{keyword}`{hint}",
                    span=place,
                    fixes=()
                    if place is None
                    else tuple(
                        Fix(f"write `{n}`", (Edit(place, n),)) for n in suggest(keyword, names)
                    ),
                    help=f"it takes: {', '.join(names)}",
                )
        try:
            self.signature.bind(*args, **kwargs)
        except TypeError as error:
            _reject_binding(self, str(error), args)

    def check_target(self, target: str) -> None:
        """Refuse a function that `target` does not have."""
        if self.targets == CPU:
            return
        kind = target.split(":")[0]
        if kind == "auto" and "cpu" in self.targets:
            return
        kinds = {t.split(":")[0] for t in self.targets}
        if kind in kinds:
            self._check_architecture(target)
            return
        reject(
            "TL401",
            f"`T.{self.name}` is not available on target `{target}`{self._reason(kind)}",
            label=f"needs {' or '.join(self.targets)}",
            help=f"compile for one of: {', '.join(self.targets)}",
        )

    def _reason(self, kind: str) -> str:
        """`: why`, where the table of device operations knows it."""
        from tilelang.ir.device_ops import find_op
        from tilelang.ir.device_support import SUPPORT, lacking

        op = find_op(self.name)
        why = lacking(op, kind) if op is not None and kind in SUPPORT else None
        return "" if why is None else f": {why}"

    def _check_architecture(self, target: str) -> None:
        """Refuse what came with a later NVIDIA architecture; others have no order."""
        kind, _, arch = target.partition(":")
        have = _compute_capability(arch)
        first = [a for k, _, a in (t.partition(":") for t in self.targets) if k == kind]
        wanted = [0 if a.endswith("a") else _compute_capability(a) for a in first]
        if have is None or not wanted or arch in first:
            return
        # What `sm_90a` has, no other architecture need have: later ones neither.
        if any(w is None or 0 < w <= have for w in wanted):
            return
        exact = first[0].endswith("a")
        reject(
            "TL402",
            f"`T.{self.name}` needs {kind}:{first[0]}, and the target is {target}",
            label=f"{arch} does not have it",
            help=f"compile for {' or '.join(f'{kind}:{a}' for a in first)}"
            if exact
            else f"compile for {kind}:{first[0]} or newer",
        )


class _Documentation:
    """`__doc__`: of the class its own, of a function of the language how it is called, and its."""

    def __init__(self, of_class: str | None) -> None:
        self.of_class = of_class

    def __get__(self, function: LanguageFunction | None, owner: type) -> str | None:
        # Made when it is asked for: all signatures together take 15 ms of an import.
        return self.of_class if function is None else f"T.{function.usage}\n\n{function.doc}"


LanguageFunction.__doc__ = _Documentation(LanguageFunction.__doc__)  # type: ignore[assignment]


def _compute_capability(arch: str) -> int | None:
    """90 of `sm_90a`; None for what has no such number."""
    digits = arch.removeprefix("sm_").rstrip("af") if arch.startswith("sm_") else ""
    return int(digits) if digits.isdigit() else None


def language_function(
    kind: FunctionKind, *, targets: tuple[str, ...] = CPU, outside: bool = False
) -> Callable[[Callable[..., Any]], LanguageFunction]:
    """Make a function part of the language; it still has to be listed in `language/__init__`."""

    def wrap(function: Callable[..., Any]) -> LanguageFunction:
        return LanguageFunction(function, kind, targets, outside)

    return wrap


def caller_span(frame: Any) -> Span | None:
    """The exact columns of the call a Python frame is executing."""
    positions = list(frame.f_code.co_positions())
    index = frame.f_lasti // 2
    if index >= len(positions):
        return None
    line, end_line, column, end_column = positions[index]
    if line is None or end_line is None or column is None or end_column is None:
        return Span(frame.f_code.co_filename, frame.f_lineno, 1, frame.f_lineno, 1)
    return Span(frame.f_code.co_filename, line, column + 1, end_line, end_column + 1)


def _reject_binding(function: LanguageFunction, problem: str, args: tuple[Any, ...]) -> None:
    usage = f"T.{function.name}{_plain_signature(function.signature)}"
    if "missing" in problem:
        reject("TL113", f"`T.{function.name}`: {problem}", help=f"signature: {usage}")
    if "too many" in problem:
        reject(
            "TL114",
            f"`T.{function.name}` takes fewer positional arguments ({len(args)} given)",
            help=f"signature: {usage}",
        )
    reject("TL115", f"`T.{function.name}`: {problem}", help=f"signature: {usage}")


def _plain_signature(signature: inspect.Signature) -> str:
    """The signature without annotations, as one writes a call."""
    parts = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=parts, return_annotation=inspect.Signature.empty))


# The module of ours that calls language functions with the span already set.
_OURS = frozenset({"tilelang.language.calls"})
