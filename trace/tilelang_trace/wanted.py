"""What did the command line ask for?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Wanted:
    """The arguments of `tilelang trace`; `cli.py` says what each means."""

    kernel: str
    settings: tuple[str, ...] = ()
    target: str | None = None
    passes: tuple[str, ...] = ()
    changed: bool = False
    grep: re.Pattern[str] | None = None
    context: int = 3
    output: str | None = None
    html: Path | None = None
    opened: bool = False
    timed: bool = False
    perfetto: Path | None = None
    pipeline: bool = False
    compare: str | None = None
    reproducer: Path | None = None
    start: str | None = None
    reduced: Path | None = None
    ir: Path | None = None
    source: Path | None = None
    resume: Path | None = None

    @property
    def page_alone(self) -> bool:
        """Whether a page is all that was asked for, which shows what the text would."""
        others = any((self.passes, self.changed, self.grep, self.pipeline, self.compare, self.timed,
                      self.output))  # fmt: skip
        return self.html is not None and not others

    @property
    def needs_code(self) -> bool:
        """Whether machine code is to be made: the passes alone are shown sooner."""
        return any((self.output, self.html, self.opened, self.pipeline, self.compare,
                    self.timed, self.perfetto, self.source, self.resume))  # fmt: skip

    @property
    def goes_on(self) -> bool:
        """Whether the program in the trace is asked for, which is compiled again."""
        return any((self.reproducer, self.ir, self.resume))


def target_of_file(text: str, own: Any = None) -> str | None:
    """The first target of a comment `# tilelang: target cuda:sm_90a`, as findings and layouts in
    the editor are for; None where there is none, or the kernel has a target of its `own`."""
    from tilelang.target import is_auto
    from tilelang_lint.settings import asked_by_file

    return next(iter(asked_by_file(text).targets), None) if is_auto(own) else None
