"""How are machine code, source map, layouts and diagnostics put together into one answer?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from tilelang.choices import Note
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import CudaBinary, KernelResources
from tilelang.codegen.device_source import KernelLaunch
from tilelang.codegen.source_map import Line, SourceMap
from tilelang.compiler import effective_options, lower_function
from tilelang.inspection.advice import deeper_pipelines
from tilelang.inspection.counts import Counts, counted
from tilelang.inspection.flow import FlowLoop, loops_of
from tilelang.inspection.model import (
    BankConflicts,
    Inspection,
    KernelReport,
    LineReport,
    LoopReport,
    SharedMemory,
    Source,
)
from tilelang.inspection.ptx import PtxInstruction, ptx_instructions
from tilelang.layouts.infer import infer_layouts
from tilelang.layouts.layout_map import LayoutMap
from tilelang.occupancy import occupancy_of
from tilelang.options import CompileOptions
from tilelang.program.stmt import Function
from tilelang.runtime.sass import Instruction, disassemble
from tilelang.target import Target, parse_target
from tilelang_diagnostics import CompileError, failure
from tilelang_diagnostics.model import Diagnostic, Frame, Span

AnyInstruction = Instruction | PtxInstruction
DEFAULTS: Final = CompileOptions()
_LOOP: Final = re.compile(r"\s*(?:for \(\w+ (\w+) = |while \(|do \{)")


def inspect_artifact(
    artifact: Any, function: Function, target: Target, diagnostics: Sequence[Diagnostic] = (),
    options: CompileOptions = DEFAULTS,
) -> Inspection:  # fmt: skip
    """What the code of a compiled kernel holds. TL417 for a target without machine code to show."""
    if not isinstance(artifact, CudaArtifact):
        raise failure(
            "TL417",
            f"`{function.name}` is compiled for {target}, and only CUDA code can be inspected",
            span=function.span,
            help="name a CUDA target, which needs no GPU: --target cuda:sm_90a, or "
            "target='cuda:sm_90a' in Python",
        )
    binary = next((b for b in artifact.binaries if b.arch == target.arch), artifact.binaries[0])
    shown = parse_target(f"cuda:{binary.arch}")
    code = _Code(artifact, binary)
    kernels = tuple(code.report(launch, shown) for launch in artifact.launches)
    layouts = infer_layouts(function, shown)
    waiting = any(d.code == "TL508" for d in diagnostics)
    said = {d.span for d in diagnostics if d.code == "TL513"}
    advice = [] if waiting else list(deeper_pipelines(function, layouts, kernels, shown))
    advice = [d for d in advice if d.span not in said]
    return Inspection(
        artifact.name, str(shown), binary.arch, binary.compiler, code.source, code.note, kernels,
        tuple(_conflicts(layouts)), (*diagnostics, *advice), _choices(function, target, options),
    )  # fmt: skip


def _choices(
    function: Function, target: Target, options: CompileOptions
) -> tuple[Note, ...]:  # fmt: skip
    """What the passes chose. They run once more: a kernel from the cache has only their result."""
    notes = lower_function(
        function, target, effective_options(function, options), thorough=True
    ).notes
    return tuple(sorted(notes, key=lambda n: (n.span is None, n.span)))


class _Code:
    """The instructions of one binary, and the way from them to Python."""

    def __init__(self, artifact: CudaArtifact, binary: CudaBinary) -> None:
        self.binary = binary
        self.map = artifact.device.source
        # With `#line` in it, the compiler has counted in lines of Python.
        self.directives = any(line.text.startswith("#line") for line in self.map.lines)
        self.file = f"{artifact.device.name}.cu"
        if self.directives:
            first = next((x.span for x in self.map.lines if x.span is not None), None)
            self.file = "" if first is None else first.file
        name = self.file.rpartition("/")[2]
        self.blocks = _blocks(self.map)
        self.source: Source = "sass"
        self.note = ""
        self.instructions: tuple[AnyInstruction, ...]
        try:
            listing = disassemble(binary.cubin, name, binary.ptx).instructions
            self.instructions = tuple(i for i in listing if not i.is_never_run)
        except CompileError as error:
            (found,) = error.diagnostics
            self.source = "ptx"
            self.note = (
                f"{found.message}: counts are those of PTX, of which the assembler makes other "
                f"numbers of instructions; {found.help}"
            )
            self.instructions = tuple(ptx_instructions(binary.ptx, name))

    def report(self, launch: KernelLaunch, target: Target) -> KernelReport:
        """One kernel."""
        steps = [i for i in self.instructions if i.kernel == launch.symbol]
        used = next((r for r in self.binary.resources if r.kernel == launch.symbol), None)
        static = max(launch.static_shared, used.shared if used else 0)
        shared = SharedMemory(static, launch.dynamic_shared, target.capabilities.shared_bytes)
        occupancy = occupancy_of(
            target, threads=launch.threads, registers=used.registers if used else 0,
            shared=shared.total,
        )  # fmt: skip
        known = used or KernelResources(launch.symbol)
        mapped = sum(self._place(i.line) is not None for i in steps)
        return KernelReport(
            launch.symbol, launch.threads, shared,
            None if used is None else known.registers, None if used is None else known.stack,
            None if used is None else known.spill_stores,
            None if used is None else known.spill_loads,
            occupancy, self._counts(steps), mapped, tuple(self._loops(steps)),
            tuple(self._lines(steps)),
        )  # fmt: skip

    def _counts(self, steps: Sequence[AnyInstruction]) -> Counts:
        return counted((i.opcode for i in steps), self.source)

    def _place(self, number: int | None) -> Line | None:
        """The line of generated source that has a place in Python."""
        if number is None:
            return None
        if self.directives:
            place = self.file, number
            spans = ((x, x.span) for x in self.map.lines if x.span is not None)
            return next((x for x, span in spans if (span.file, span.line) == place), None)
        line = self.map.at(number)
        return line if line is not None and line.spans else None

    def _lines(self, steps: Sequence[AnyInstruction]) -> Iterator[LineReport]:
        """By Python statement, in the order of their places."""
        found: dict[tuple[Span, tuple[Frame, ...]], list[AnyInstruction]] = {}
        for step in steps:
            line = self._place(step.line)
            if line is not None and line.span is not None:
                found.setdefault((line.span, line.calls), []).append(step)
        for span, calls in sorted(found, key=lambda key: (key[0], len(key[1]))):
            yield LineReport(span, calls, self._counts(found[span, calls]))

    # Loops.

    def _loops(self, steps: Sequence[AnyInstruction]) -> Iterator[LoopReport]:
        loops = [loop for loop in loops_of(steps) if not self._is_of_one_statement(loop, steps)]
        blocks: dict[int, tuple[int, int]] = {}
        # Inner loops first: what is around one is a loop around its source, too.
        for n in sorted(range(len(loops)), key=lambda n: -loops[n].depth):
            inside = [b for m, b in blocks.items() if loops[m].members < loops[n].members]
            block = self._block(loops[n], steps, inside)
            if block is not None:
                blocks[n] = block
        for n, loop in enumerate(loops):
            line = self._place(blocks[n][0]) if n in blocks else None
            if self.directives:
                line = self._place(steps[loop.jumps[-1]].line)
            found = None if line is None or self.directives else _LOOP.match(line.text)
            variable = found[1] if found is not None else ""
            members = [steps[m] for m in sorted(loop.members)]
            span = None if line is None else line.span
            depth = sum(loop.members < other.members for other in loops)
            yield LoopReport(span, variable or "", depth, self._counts(members))

    def _is_of_one_statement(self, loop: FlowLoop, steps: Sequence[AnyInstruction]) -> bool:
        """Whether it turns within a statement: a wait that asks again, an instruction that is
        issued for one lane after the other."""
        numbers = {steps[m].line for m in loop.members} - {None}
        heads = {start for start, _ in self.blocks}
        return not self.directives and len(numbers) <= 1 and not numbers & heads

    def _block(
        self, loop: FlowLoop, steps: Sequence[AnyInstruction], inside: Sequence[tuple[int, int]]
    ) -> tuple[int, int] | None:
        """The innermost loop of the source around most of its instructions, and all of `inside`."""
        numbers = [n for m in loop.members if (n := steps[m].line) is not None]
        best: tuple[int, int] | None = None
        for start, end in self.blocks:
            around = all(start < first and last < end for first, last in inside)
            # Code that moves out of an inner loop, or is scheduled across it, must not count.
            held = sum(start <= n <= end for n in numbers)
            if around and 2 * held > len(numbers) and (best is None or start > best[0]):
                best = start, end
        return best


def _blocks(source: SourceMap) -> tuple[tuple[int, int], ...]:
    """First and last line of each loop that is one in machine code as well: not unrolled."""
    found = []
    open_at: list[tuple[int, bool]] = []
    unrolled = False
    for number, line in enumerate(source.lines, 1):
        text = line.text.strip()
        if text.startswith("}") and open_at:
            start, is_loop = open_at.pop()
            if is_loop:
                found.append((start, number))
        if text.endswith("{"):
            open_at.append((number, _LOOP.match(line.text) is not None and not unrolled))
        unrolled = text.startswith("#pragma unroll") and not text.endswith("unroll 1")
    return tuple(sorted(found))


def _conflicts(layouts: LayoutMap) -> Iterator[BankConflicts]:
    """Every use of every shared tile, from the layouts the compiler chose."""
    for entry in layouts:
        for use in entry.bank_uses:
            yield BankConflicts(
                entry.name, use.origin.op, use.what, use.mode.value, use.degree, use.origin.span
            )
