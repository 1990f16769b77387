"""How does a traced kernel become something that runs? The whole story, top to bottom.

    Function  --emit-->  TIRX  --PIPELINE-->  lowered TIRX  --backend-->  artifact

Importing this module is free; calling it imports TVM.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tilelang.backends import backend_for
from tilelang.checks import check_for_target
from tilelang.choices import Choices, Note
from tilelang.codegen.artifacts import Artifact
from tilelang.options import CompileOptions, PassConfigKey, make_options
from tilelang.program.depth import deep_recursion
from tilelang.program.stmt import Function
from tilelang.target import Target
from tilelang.watching import Watch, part, watched
from tilelang_diagnostics import CompileError, raise_for
from tilelang_diagnostics.model import Diagnostic, Severity

if TYPE_CHECKING:
    from tilelang.passes.context import PassContext
    from tilelang.pipeline import Observer, Pass
    from tilelang.roles.split import Split

_UNORDERED: Final = "TL509"


@dataclass(frozen=True, slots=True)
class Compiled:
    """The product of one compilation: what runs, the IR it was made from, and what was noticed."""

    artifact: Artifact
    target: Target
    ir: str
    diagnostics: tuple[Diagnostic, ...] = ()


@dataclass(frozen=True, slots=True)
class Lowered:
    """A kernel after the last pass: a TIRX PrimFunc, and what the passes noticed and chose."""

    func: Any
    diagnostics: tuple[Diagnostic, ...]
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, slots=True)
class Start:
    """A compilation that somebody goes on with: a TIRX PrimFunc, and the passes that are left."""

    func: Any
    passes: tuple[Pass, ...]


def compile_function(
    function: Function,
    target: Target,
    options: CompileOptions,
    observers: Sequence[Observer] = (),
    find_object: Callable[[Artifact], Any] | None = None,
    start: Start | None = None,
) -> Compiled:
    """Compile `function`; raises CompileError for what the kernel or the target does not allow.

    `find_object` may know the binary of generated code that was compiled before. `start` stands in
    for what `function` became by then.
    """
    backend = backend_for(target)
    with watched(function, target, options) as watches, deep_recursion():
        lowered = lower_function(function, target, options, (*observers, *watches), start=start)
        raise_for(lowered.diagnostics)
        with part("generate", (*observers, *watches)) as made:
            artifact = backend.builder()(lowered.func, options=options, find_object=find_object)
            made.append(artifact)
        for watch in watches:
            watch.finished(artifact, lowered.diagnostics)
    return Compiled(artifact, target, ir_text(lowered.func), lowered.diagnostics)


def lower_function(
    function: Function,
    target: Target,
    options: CompileOptions,
    observers: Sequence[Observer] = (),
    thorough: bool = False,
    start: Start | None = None,
) -> Lowered:
    """`function` after every pass, before code is generated.

    `thorough`: somebody reads the notes, so that passes also find out what they would have taken.
    """
    from tilelang.roles.split import split

    found = split(function, target, options)
    if start is not None:
        return _lowered_at_depth(function, target, options, observers, thorough, found, start)
    if found.function is not None:
        # What the copy engine cannot do shows where copies are lowered: threads copy, after all.
        # Nor may roles take from threads the place where they would wait for each other.
        try:
            lowered = _lowered_at_depth(function, target, options, observers, thorough, found)
            raise_for(lowered.diagnostics)
            wrong = next((d for d in lowered.diagnostics if d.code == _UNORDERED), None)
            if wrong is None:
                return lowered
        except CompileError as error:
            wrong = next(d for d in error.diagnostics if d.severity is Severity.ERROR)
        found = found.whole(function, wrong)
    return _lowered_at_depth(function, target, options, observers, thorough, found)


def _lowered_at_depth(
    function: Function,
    target: Target,
    options: CompileOptions,
    observers: Sequence[Observer],
    thorough: bool,
    split: Split,
    start: Start | None = None,
) -> Lowered:
    """With the deepest pipelines that fit, of those whose depth the author leaves open."""
    from tilelang.passes.context import DEEPEST, PassContext

    deepest = DEEPEST
    while True:
        choices = Choices(thorough or any(isinstance(x, Watch) for x in observers))
        split.pass_over(choices)
        context = PassContext(str(target), options, deepest=deepest, choices=choices, split=split)
        with deep_recursion():
            func = _lowered(function, target, context, observers, start)
        # Lowering may need shared memory of its own, which a depth chosen before did not know.
        chosen = context.counters.get("automatic stages", 0)
        if chosen < 2 or all(d.code != "TL406" for d in context.remarks):
            return Lowered(func, tuple(context.remarks), tuple(choices.notes))
        deepest = chosen - 1


def _lowered(
    function: Function, target: Target, context: PassContext, observers: Sequence[Observer],
    start: Start | None,
) -> Any:  # fmt: skip
    from tilelang.ir import attrs, tirx
    from tilelang.ir.emit import emit
    from tilelang.pipeline import run_pipeline

    if start is not None and not _is_split(start.func):
        context.split = None  # IR that somebody edited goes on with the roles it has, or without
    parted = context.split.function if context.split is not None else None
    if target.capabilities.threads_cooperate:
        from tilelang.layouts.infer import infer_layouts

        with part("infer_layouts", observers) as made:
            warps_only = bool(context.options[PassConfigKey.TL_DISABLE_WGMMA])
            context.layouts = infer_layouts(parted or function, target, not warps_only)
            made.append(context.layouts)
    if start is not None:
        with part("emit", observers) as made:
            made.append(start.func)
        return run_pipeline(start.func, context, observers, start.passes)
    with part("check", observers):
        context.remarks += check_for_target(function, str(target))
    raise_for(context.remarks)
    with part("load_tvm", observers):
        _ = tirx.PrimFunc
    with part("emit", observers) as made:
        named = emit(function).with_attr(attrs.TARGET, str(target))
        made.append(named)
    return run_pipeline(named, context, observers)


def _is_split(func: Any) -> bool:
    """Whether warps of a program have roles that the compiler gave them."""
    from tilelang.ir import attrs, tirx
    from tilelang.ir.visit import collect

    return any(s.annotations.get(attrs.DRAINED) for s in collect(func.body, tirx.AllocBuffer))


def effective_options(function: Function, options: CompileOptions) -> CompileOptions:
    """The caller's options over those the kernel carries (`T.annotate_pass_configs` and flags)."""
    own = make_options(function.attr("pass_configs"), function.attr("compile_flags"))
    return options.with_defaults(own)


def ir_text(func: Any) -> str:
    """A PrimFunc as text."""
    from tilelang.ir.text import print_function

    return print_function(func).text
