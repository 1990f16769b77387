"""Which subcommands are there?

The table is all that is loaded until one is chosen. A row of a tool (`lint`, `lsp`, `trace`) names
a module with `main(argv) -> int`; entry points of the group `tilelang.commands`, with the same
signature, are looked at only for names that are not in the table.

click was chosen for its shell completion (bash, zsh, fish) and its error texts, at 40 ms to import.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Row:
    """One subcommand: its name, its module, what it does, whether it parses its own arguments."""

    name: str
    module: str
    help: str
    is_tool: bool = False


COMMANDS: Final[tuple[Row, ...]] = (
    Row("run", "tilelang.cli.run", "Compile a kernel, run it on random inputs, check and time it."),
    Row("compile", "tilelang.cli.compile", "Compile a kernel; show its source, IR or layouts."),
    Row("inspect", "tilelang.cli.inspect", "Show what is in the machine code of a kernel."),
    Row("lint", "tilelang_lint.cli", "Check kernel files without running them.", is_tool=True),
    Row("trace", "tilelang_trace.cli", "Show what every pass did to a kernel.", is_tool=True),
    Row("explain", "tilelang.cli.explain", "Show the page of a diagnostic code."),
    Row("doctor", "tilelang.cli.doctor", "Show what is installed and how to get what is missing."),
    Row("cache", "tilelang.cli.cache", "Show or clear the cache of compiled kernels."),
    Row("lsp", "tilelang_lsp.cli", "Run the language server for an editor.", is_tool=True),
    Row("completion", "tilelang.cli.completion", "Print the completion script of a shell."),
)
BY_NAME: Final = {row.name: row for row in COMMANDS}
ENTRY_POINT_GROUP: Final = "tilelang.commands"
