"""What do layouts and lowering say about one kernel? Seconds of work at most, for a process that
may be killed.

    insight(text, path, "matmul", 14, Options(target="cuda:sm_90a"))

The kernel is read with the values the file gives it, those of an argument parser too, so that as
much as possible is concrete. Layout inference needs no TVM; what copies and products became, the
stages of a pipeline and the bytes of a block come from lowering, when that succeeds.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tilelang.language.file_values import FileValues
from tilelang.language.frontend import Parsed
from tilelang.layout.fragment import Fragment
from tilelang.layouts.infer import infer_layouts
from tilelang.layouts.layout_map import Entry, LayoutMap
from tilelang.layouts.machine import NOMINAL
from tilelang.occupancy import occupancy_of
from tilelang.program.buffer import Buffer, Region
from tilelang.program.stmt import For, Function, TileOp, walk_statements
from tilelang.target import Target, is_auto, parse_target
from tilelang_diagnostics import CompileError, Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.engine import read_kernels, without_suppressed
from tilelang_lint.open_sizes import open_names
from tilelang_lsp.facts import program_facts
from tilelang_lsp.followed import modules_of, own_findings
from tilelang_lsp.layout_text import entry_text, short_layout, shorter_layout
from tilelang_lsp.model import Budget, Fact, Insight, Share
from tilelang_lsp.options import Options
from tilelang_lsp.parsed import owner_at
from tilelang_lsp.reasons import why_not_lowered
from tilelang_lsp.recovery import recover
from tilelang_lsp.stand_in import stand_in

if TYPE_CHECKING:
    from tilelang_lsp.lowered import Told


def insight(
    text: str, path: str, kernel: str, line: int, options: Options, lower: bool = True
) -> Insight:
    """About the kernel whose name stands on a line. `lower`: with what lowering tells."""
    target, nominal = _target(options)
    about = Insight(kernel, line, str(target), nominal)
    readable = recover(text)  # another definition may be half written
    if readable is None:
        return replace(about, failure="the file cannot be read")
    text = readable.text
    if nominal:
        target = stand_in(ast.parse(text), line)
        about = replace(about, target=str(target))
    parsed, assumed = _specialised(text, path, kernel, line, options, target)
    about = replace(about, assumed=assumed)
    if parsed is None or parsed.function is None:
        return replace(about, failure="the kernel has errors")
    layouts = infer_layouts(parsed.function, target)
    facts = [f for entry in layouts for f in _layout_facts(entry, path)]
    if assumed:  # numbers where the text alone has symbols
        facts += program_facts(parsed, path, split_lines(text))
    budgets = [_budget(layouts, parsed.function, target)]
    found = [] if nominal else list(layouts.diagnostics)
    failure = ""
    if lower:
        from tilelang_lsp.lowered import lowered_facts

        try:
            told = lowered_facts(parsed.function, target, path)
        except CompileError as error:
            failure = error.diagnostics[0].message if error.diagnostics else str(error)
            found += [] if nominal else error.diagnostics
        except Exception as error:  # no finding in the kernel
            failure = why_not_lowered(parsed.function, open_names(parsed), error)
        else:
            facts += told.facts
            found += [] if nominal else told.diagnostics
            if told.finished:
                budgets[0] = _with_lowered(budgets[0], target, told)
    for other in _other_targets(options, target):
        again, _ = _specialised(text, path, kernel, line, options, other)
        if again is not None and again.function is not None:
            budgets.append(_other_budget(again.function, other, path, lower))
    return replace(
        about,
        facts=tuple(dict.fromkeys(_at_names(facts, parsed, path))),
        budgets=tuple(budgets),
        diagnostics=without_suppressed(
            tuple(own_findings(dict.fromkeys(found), path, options.imports)), text, path
        ),
        failure=failure,
    )


def _target(options: Options) -> tuple[Target, bool]:
    """The target asked for, or an ordinary GPU and True where none was."""
    for text in options.targets:
        if not is_auto(text):
            try:
                found = parse_target(text)
            except CompileError:
                continue
            return found, False
    return NOMINAL, True


def _specialised(
    text: str, path: str, kernel: str, line: int, options: Options, target: Target
) -> tuple[Parsed | None, tuple[tuple[str, str, str], ...]]:
    """The kernel with a value for every name that the file gives one to."""
    tree = ast.parse(text)
    owner = owner_at(tree, line) or kernel
    said = FileValues(path, text, tree, project=options.project).of(owner)

    def read(values: Mapping[str, Any]) -> Parsed | None:
        subject = read_kernels(
            text, path, values, str(target), project=options.project, with_layouts=False,
            kernel=owner, modules=modules_of(options.imports),
        )  # fmt: skip
        return next((p for p in subject.kernels if p.definition.span.line == line), None)

    parsed = read(options.values)
    if parsed is None:
        return None, ()
    assumed = [(n, repr(v), _origin(n, options, said)) for n, v in parsed.assumed.items()]
    found = {n: v for n in open_names(parsed) if (v := said.named(n)) is not None}
    if found:
        more = read({**{n: v.value for n, v in found.items()}, **options.values})
        if more is not None and more.function is not None:
            parsed = more
            known = {n for n, _, _ in assumed}
            assumed += [(n, repr(v.value), v.origin) for n, v in found.items() if n not in known]
    return parsed, tuple(assumed)


def _origin(name: str, options: Options, said: Any) -> str:
    if name in options.values:
        return "the editor's settings"
    stated = said.stated(name)
    return "the file" if stated is None else str(stated.origin)


def _at_names(facts: Iterable[Fact], parsed: Parsed, path: str) -> Iterator[Fact]:
    """Facts about tiles at the names they are bound to; layouts at further names, too, such as the
    parameter of a macro that a tile is given to."""
    names: dict[Span, list[Span]] = {}
    for symbol in parsed.symbols.symbols:
        value = symbol.value
        if isinstance(value, Buffer) and value.span is not None and symbol.span.file == path:
            names.setdefault(value.span, []).append(symbol.span)
    for fact in facts:
        first, *others = names.get(fact.span, [fact.span])
        yield replace(fact, span=first)
        if fact.kind == "layouts":
            yield from (replace(fact, span=span) for span in others)


def _layout_facts(entry: Entry, path: str) -> Iterator[Fact]:
    if entry.span is None or entry.span.file != path or entry.layout is None:
        return
    if entry.kind == "loop" and entry.name.startswith("T."):
        return  # an operation: what it became says more
    label = short_layout(entry)
    if label:
        yield Fact(
            entry.span, "layouts", label, entry_text(entry),
            shorter_layout(entry), _cause(entry),
        )  # fmt: skip


def _cause(entry: Entry) -> Span | None:
    """The operation that a layout is due to."""
    if entry.variable is not None and entry.solution is not None:
        origins = entry.solution.why(entry.variable).origins
        return next((o.span for o in reversed(origins) if o.span is not None), None)
    return next((u.origin.span for u in entry.bank_uses if u.origin.span is not None), None)


def _budget(layouts: LayoutMap, function: Function, target: Target) -> Budget:
    shares: list[Share] = []
    threads, registers, stages = None, 0, _stages(function)
    for launch in layouts.launches:
        threads = launch.threads if threads is None else threads
        registers = max(registers, _registers(launch.buffers))
        shares += [
            Share(e.name, e.bytes, stages.get(e.name, 1), e.span)
            for e in launch.buffers
            if e.bytes is not None
        ]
    total = sum(s.size * s.stages for s in shares)
    row = target.capabilities
    made = Budget(
        str(target), total, row.shared_bytes, _biggest(shares), threads, registers, row.registers,
        exact=False,
    )  # fmt: skip
    return _with_occupancy(made, target)


def _stages(function: Function) -> dict[str, int]:
    """How often tiles exist that a pipeline copies into, if it is as deep as it says."""
    found: dict[str, int] = {}
    for loop in walk_statements(function.body):
        depth = loop.attr("num_stages") if isinstance(loop, For) else None
        if isinstance(loop, For) and isinstance(depth, int) and depth > 1:
            for stmt in walk_statements(loop.body):
                if isinstance(stmt, TileOp) and stmt.name == "copy":
                    target = stmt.args[1]
                    if isinstance(target, Region) and target.buffer.is_shared:
                        found[target.buffer.name] = depth
    return found


def _registers(entries: tuple[Entry, ...]) -> int:
    """Of all fragments: an upper bound of what is alive at once."""
    return sum(e.registers or 0 for e in entries if isinstance(e.layout, Fragment))


def _with_lowered(budget: Budget, target: Target, told: Told) -> Budget:
    threads = None if budget.threads is None else budget.threads + told.loading
    known = replace(
        budget, shared=told.shared, shares=_biggest(told.shares), threads=threads, exact=True
    )
    return _with_occupancy(known, target)


def _biggest(shares: list[Share]) -> tuple[Share, ...]:
    return tuple(sorted(shares, key=lambda s: -s.size * s.stages))


def _with_occupancy(budget: Budget, target: Target) -> Budget:
    if budget.threads is None:
        return budget
    found = occupancy_of(
        target, threads=budget.threads, registers=0, shared=budget.shared
    )  # fmt: skip
    if found is None:
        return budget
    return replace(
        budget, blocks=found.blocks, warps=found.warps, most_warps=found.most_warps,
        limited_by=found.limited_by,
    )  # fmt: skip


def _other_targets(options: Options, first: Target) -> Iterator[Target]:
    """The further targets of the settings; `settings_check.py` says which are none."""
    for text in options.targets[1:]:
        try:
            target = parse_target(text)
        except CompileError:
            continue
        if target != first:
            yield target


def _other_budget(function: Function, target: Target, path: str, lower: bool) -> Budget:
    """What a block takes of another target, where tiles may lie in another way."""
    budget = _budget(infer_layouts(function, target), function, target)
    if not lower:
        return budget
    from tilelang_lsp.lowered import lowered_facts

    try:
        told = lowered_facts(function, target, path)
    except Exception:  # the first target's findings say why
        return budget
    if not told.finished:
        return budget
    return _with_lowered(budget, target, told)
