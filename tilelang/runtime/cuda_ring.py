"""Which kernels were launched since the last check of a device, and how is each run again?

The launcher appends one object per launch, made beforehand, to a ring: a few nanoseconds. What a
launch was given is read when it is asked for, from the memory its parameters were packed into.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.source_map import Line
from tilelang.dtypes import DType
from tilelang.runtime.cuda_plan import Block, Frame, values_of
from tilelang_diagnostics.model import Span

# How many launches are remembered.
RING: Final = 16
_ASSERTION: Final = re.compile(r'tl::device_assert\(.*, "((?:[^"\\]|\\.)*)", "[^"]*", \d+\)')


@dataclass(frozen=True, slots=True)
class Origin:
    """The kernel or factory of the user's file that a kernel was made from, and its values."""

    entry: str
    values: tuple[tuple[str, Any], ...] = ()

    @staticmethod
    def of(entry: str, values: Mapping[str, Any]) -> Origin:
        """Only of values that a command line can give."""
        plain = {n: v.name if isinstance(v, DType) else v for n, v in values.items()}
        kept = ((n, v) for n, v in plain.items() if isinstance(v, (bool, int, float, str)))
        return Origin(entry, tuple(kept))


@dataclass(frozen=True, slots=True, eq=False)
class Launched:
    """One kernel of an artifact, as it stands in the ring. `frames` are those of finished calls,
    `origin` holds at most one."""

    artifact: CudaArtifact
    number: int
    block: Block
    frames: Sequence[Frame]
    origin: Sequence[Origin]

    @property
    def symbol(self) -> str:
        return self.artifact.launches[self.number].symbol

    @property
    def span(self) -> Span | None:
        """The launch in the user's file."""
        head = f" {self.symbol}("
        lines = self.artifact.device.source.lines
        return next((x.span for x in lines if head in x.text and x.span is not None), None)

    def command(self) -> str | None:
        """The command line that runs it under the sanitizer; None for code that is in no file."""
        span = self.span
        if span is None or not Path(span.file).is_file():
            return None
        origin = self.origin[0] if self.origin else Origin(self.artifact.name)
        words = ["tilelang", "run", f"{_shown(span.file)}::{origin.entry}"]
        values = {**dict(origin.values), **self.values()}
        if values:
            words += ["--set", ",".join(f"{name}={value}" for name, value in values.items())]
        arch = next(iter(self.artifact.archs), "")
        words += ["--target", f"cuda:{arch}"] if arch else []
        return shlex.join([*words, "--sanitize"])

    def values(self) -> dict[str, int | float]:
        """Runtime dimensions and scalars of the latest call."""
        if not self.frames:
            return {}
        launch = self.artifact.launches[self.number]
        return values_of(launch, self.block, self.frames[-1])


@dataclass(frozen=True, slots=True)
class Assertion:
    """A `T.device_assert` in generated code: its text, and where it stands there."""

    text: str
    number: int
    line: Line


def assertions(artifact: CudaArtifact) -> tuple[Assertion, ...]:
    """Every assertion in the code of a kernel."""
    found = (
        (_ASSERTION.search(line.text), number, line)
        for number, line in enumerate(artifact.device.source.lines, 1)
    )
    return tuple(
        Assertion(_unescaped(match[1]), number, line)
        for match, number, line in found if match is not None
    )  # fmt: skip


def distinct(recent: Iterable[Launched]) -> tuple[Launched, ...]:
    """Each kernel once, in the order of their last launches."""
    found: dict[tuple[int, int], Launched] = {}
    for launched in recent:
        key = (id(launched.artifact), launched.number)
        found.pop(key, None)
        found[key] = launched
    return tuple(found.values())


def _unescaped(text: str) -> str:
    """What a string literal of the generated source says."""
    try:
        return str(json.loads(f'"{text}"'))
    except ValueError:
        return text


def _shown(file: str) -> str:
    """A path as one would type it here."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
