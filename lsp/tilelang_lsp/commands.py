"""What happens when a lens is clicked: budgets are shown, values written down, commands run.

Only here is a kernel's file ever run, by the command line in a process of its own, because its
author clicked for that.
"""

from __future__ import annotations

import asyncio
import logging
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.describe_budget import assumed_page, budget_page
from tilelang_lsp.documents import Document
from tilelang_lsp.features.code_lenses import COMPILE, EMULATE, SET, SHOW, TRACE
from tilelang_lsp.insights import keys_of
from tilelang_lsp.model import Insight, Kernel

if TYPE_CHECKING:
    from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
LONGEST_RUN_SECONDS = 300.0
SHOWN_LINES = 12
SUGGESTED = "1024"
_COMMENT = re.compile(r"^(?P<lead>\s*#\s*tilelang:\s*set\s+)(?P<values>.*?)\s*$")
_RUNS = {
    COMPILE: ("compile",),
    EMULATE: ("run", "--emulate"),
    TRACE: ("trace",),
}


def register(server: TilelangServer) -> None:
    """All commands of the server."""

    @server.command(SHOW)
    async def show(*arguments: Any) -> str | None:
        found = _meant(server, arguments)
        if found is None:
            return None
        insight = found[2]
        text = "nothing is known of this kernel yet" if insight is None else "\n\n".join(
            (*map(budget_page, insight.budgets), assumed_page(insight))
        )  # fmt: skip
        _say(server, text, lsp.MessageType.Info)
        return text

    @server.command(SET)
    async def set_values(*arguments: Any) -> bool:
        found = _meant(server, arguments)
        given = arguments[3] if len(arguments) > 3 and isinstance(arguments[3], dict) else {}
        if found is None or not given:
            return False
        document, kernel, insight = found
        values = _filled(given, insight)
        edit = specialising_edit(document.text, kernel, document, values)
        converter = server.converter(document)
        where = converter.location(edit[0])
        changes = {where.uri: [lsp.TextEdit(where.range, edit[1])]}
        edits = lsp.ApplyWorkspaceEditParams(lsp.WorkspaceEdit(changes=changes), "assume values")
        try:
            return (await server.workspace_apply_edit_async(edits)).applied
        except Exception:
            log.exception("the edit was not taken")
            return False

    for name in _RUNS:
        _register_run(server, name)


def _register_run(server: TilelangServer, name: str) -> None:
    @server.command(name)
    async def run(*arguments: Any) -> int | None:
        found = _meant(server, arguments)
        if found is None:
            return None
        document, kernel, insight = found
        if not _is_saved(document):
            _say(server, "save the file first: the command reads it", lsp.MessageType.Warning)
            return None
        return await _run(server, command_line(name, document, kernel, insight, server))


def command_line(
    name: str, document: Document, kernel: Kernel, insight: Insight | None, server: Any
) -> list[str]:
    """`tilelang …` for a kernel, with the values and the target that the editor assumes."""
    found = [*_RUNS[name], f"{document.path}::{kernel.owner or kernel.name}"]
    options = server.options_of(document.path, document.text)
    target = options.target or (insight.target if insight is not None else None)
    if target is not None and (options.target is not None or name == EMULATE):
        found += ["--target", target]
    if options.values:
        said = ",".join(f"{n}={_text(v)}" for n, v in options.values.items())
        found += ["--set", said]
    return found


def specialising_edit(
    text: str, kernel: Kernel, document: Document, values: dict[str, str]
) -> tuple[Span, str]:
    """The place and the text that make `# tilelang: set …` above a kernel say `values`."""
    top = next((t for t in document.analysis.outline if t.name == kernel.owner), None)
    line = kernel.span.line if top is None else top.whole.line
    lines = split_lines(text)
    above = lines[line - 2] if line >= 2 else ""
    comment = _COMMENT.match(above)
    if comment is not None:
        pairs = [p.split("=", 1) for p in comment["values"].split(",") if "=" in p]
        merged = {**{p[0].strip(): p[1].strip() for p in pairs}, **values}
        new = f"{comment['lead']}{_pairs(merged)}"
        return Span(document.path, line - 1, 1, line - 1, len(above) + 1), new
    indent = re.match(r"\s*", lines[line - 1] if line <= len(lines) else "")
    lead = indent[0] if indent else ""
    return Span(document.path, line, 1, line, 1), f"{lead}# tilelang: set {_pairs(values)}\n"


def _pairs(values: dict[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def _filled(given: dict[str, Any], insight: Insight | None) -> dict[str, str]:
    """Names without a value get the one assumed, or one to start from."""
    known = {name: value for name, value, _ in insight.assumed} if insight is not None else {}
    return {
        name: _text(value) if str(value) else known.get(name, SUGGESTED)
        for name, value in given.items() if str(name).isidentifier()
    }  # fmt: skip


def _text(value: Any) -> str:
    return str(value)


def _meant(
    server: TilelangServer, arguments: tuple[Any, ...]
) -> tuple[Document, Kernel, Insight | None] | None:
    """The document, kernel and insight that a lens' arguments name."""
    if len(arguments) < 2:
        return None
    document = server.documents.open_files.get(server.notebooks.whole(str(arguments[0])))
    if document is None:
        return None
    line = arguments[2] if len(arguments) > 2 else None
    named = {k: v for k, v in keys_of(document.analysis).items()
             if arguments[1] in (v.owner, v.name)}  # fmt: skip
    key = next((k for k, v in named.items() if v.span.line == line), next(iter(named), None))
    return None if key is None else (document, named[key], document.insights.of(key))


def _is_saved(document: Document) -> bool:
    try:
        return Path(document.path).read_text(encoding="utf-8").replace("\r\n", "\n") == (
            document.text.replace("\r\n", "\n")
        )
    except (OSError, UnicodeDecodeError):
        return False


async def _run(server: TilelangServer, arguments: list[str]) -> int | None:
    """Run the command line; what it says goes to the log, its end to a message."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from tilelang.cli import main; " + (
        f"sys.exit(main({arguments!r}))"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        out, _ = await asyncio.wait_for(process.communicate(), LONGEST_RUN_SECONDS)
    except (TimeoutError, asyncio.CancelledError):
        process.kill()
        _say(server, f"`tilelang {arguments[0]}` was ended", lsp.MessageType.Warning)
        raise
    text = out.decode(errors="replace").rstrip()
    server.window_log_message(lsp.LogMessageParams(lsp.MessageType.Info, text))
    failed = process.returncode != 0
    lines = text.split("\n")
    shown = "\n".join(lines[:SHOWN_LINES] + (["…"] if len(lines) > SHOWN_LINES else []))
    _say(
        server, f"tilelang {' '.join(arguments)}\n{shown}",
        lsp.MessageType.Error if failed else lsp.MessageType.Info,
    )  # fmt: skip
    return process.returncode


def _say(server: TilelangServer, text: str, kind: lsp.MessageType) -> None:
    server.window_show_message(lsp.ShowMessageParams(kind, text))
