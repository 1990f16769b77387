"""What happens when a lens is clicked: budgets are shown, values written down, commands run.

A kernel's file is never run here: `runs.py` starts a process for that, because its author clicked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lsprotocol import types as lsp

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.settings_check import target_problems
from tilelang_lsp.clicked import Asked
from tilelang_lsp.describe_budget import assumed_page, budget_page
from tilelang_lsp.documents import Document
from tilelang_lsp.features.code_lenses import COMPILE, EMULATE, SET, SHOW, TARGET, TRACE
from tilelang_lsp.features.suppressions import AHEAD
from tilelang_lsp.insights import Key, keys_of
from tilelang_lsp.lexical import parse
from tilelang_lsp.model import NOMINAL, Insight, Kernel
from tilelang_lsp.options import Options
from tilelang_lsp.runs import run, say, show_file, show_place
from tilelang_lsp.set_comments import can_hold, sets_of, split
from tilelang_lsp.smaller import advice, smaller_sizes
from tilelang_lsp.texts import readable

if TYPE_CHECKING:
    from tilelang_lsp.server import TilelangServer

log = logging.getLogger(__name__)
SUGGESTED = "1024"
# Offered where a target is chosen; any other can be written in the comment.
TARGETS = ("cuda:sm_80", "cuda:sm_89", "cuda:sm_90a", "cuda:sm_100a", "hip:gfx942", "metal:apple9",
           "cpu")  # fmt: skip
_COMMENT = re.compile(r"^(?P<lead>\s*#\s*tilelang:\s*set\s+)(?P<values>.*?)\s*$")
_TARGET = re.compile(r"^\s*#\s*tilelang:\s*target\s+\S.*$")
_RUNS = {COMPILE: "compile", EMULATE: "emulate", TRACE: "trace"}
_Meant = tuple[Document, Key, Kernel, Insight | None]


def register(server: TilelangServer) -> None:
    """All commands of the server."""
    for name in _RUNS:
        _register(server, name, _runner(server, name))

    async def show(arguments: Sequence[Any]) -> str | None:
        found = _meant(server, arguments)
        if found is None:
            return None
        _, _, kernel, insight = found
        if insight is None:
            say(server, "nothing is known of this kernel yet", lsp.MessageType.Info)
            return "nothing is known of this kernel yet"
        text = "\n\n".join((*map(budget_page, insight.budgets), assumed_page(insight))).rstrip()
        page = server.runs.folder / f"{kernel.owner or kernel.name}.md"
        page.write_text(f"{text}\n", encoding="utf-8")
        if not await show_file(server, page):
            say(server, text, lsp.MessageType.Info)
        return text

    async def set_values(arguments: Sequence[Any]) -> bool:
        found = _meant(server, arguments)
        given = arguments[3] if len(arguments) > 3 and isinstance(arguments[3], dict) else {}
        if found is None:
            return False
        document, _, kernel, insight = found
        if not given:
            return await _to_values(server, document, kernel, insight)
        values = _filled(given, insight)
        refused = value_problem(given, values)
        if refused:
            say(server, refused, lsp.MessageType.Warning)
            return False
        edit = specialising_edit(document.text, kernel, document, values)
        return await _apply(server, document, edit, "assume values")

    async def set_target(arguments: Sequence[Any]) -> bool:
        found = _meant(server, arguments)
        if found is None:
            return False
        document = found[0]
        given = arguments[3] if len(arguments) > 3 else None
        target = given if isinstance(given, str) else await _chosen_target(server, document)
        if not target:
            return False
        refused = target_problem(target)
        if refused:
            say(server, refused, lsp.MessageType.Warning)
            return False
        return await _apply(server, document, target_edit(document, target), f"target {target}")

    _register(server, SHOW, show)
    _register(server, SET, set_values)
    _register(server, TARGET, set_target)


def _register(
    server: TilelangServer, name: str, work: Callable[[Sequence[Any]], Coroutine[Any, Any, Any]]
) -> None:
    @server.command(name)
    async def handle(*arguments: Any) -> Any:
        return await server.runs.follow(server, work(arguments))


def _runner(
    server: TilelangServer, name: str
) -> Callable[[Sequence[Any]], Coroutine[Any, Any, dict[str, Any] | None]]:
    async def run_it(arguments: Sequence[Any]) -> dict[str, Any] | None:
        found = _meant(server, arguments)
        if found is None:
            return None
        document, key, kernel, insight = found
        refusal = _refusal(server, document)
        if refusal:
            say(server, refusal, lsp.MessageType.Warning)
            return None
        options = server.options_of(document.path, document.text)
        folder = str(server.runs.folder)
        wanted = asked(name, document, kernel, insight, options, folder)
        slow = advice(smaller_sizes(insight)) if name == EMULATE else ""
        return await run(server, document, key, wanted, slow)

    return run_it


def asked(
    name: str, document: Document, kernel: Kernel, insight: Insight | None, options: Options,
    folder: str,
) -> Asked:  # fmt: skip
    """The command for a kernel, with the values and the target that the editor assumes."""
    target = options.target
    if name == EMULATE:
        # The emulator runs code for a GPU: the first that is one.
        known = (*options.targets, insight.target if insight is not None else NOMINAL)
        target = next((t for t in known if t.split(":")[0] not in ("cpu", "auto")), NOMINAL)
    said = tuple(f"{n}={v}" for n, v in options.values.items())
    kernel_name = kernel.owner or kernel.name
    return Asked(_RUNS[name], document.path, kernel_name, target, said, folder)


def _refusal(server: TilelangServer, document: Document) -> str:
    """Why a kernel is not run; empty where it is."""
    path = Path(document.path)
    if not server.trusted:
        return "this workspace is not trusted: its kernels are read and not run"
    if path.suffix == ".ipynb" or not path.is_file():
        return "only a kernel in a file can be run: this document is none"
    if not _is_saved(document):
        return "save the file first: what runs is the file"
    return ""


async def _apply(
    server: TilelangServer, document: Document, edit: tuple[Span, str], label: str
) -> bool:
    """Have the editor make an edit; whether it did."""
    where = server.converter(document).location(edit[0])
    changes = {where.uri: [lsp.TextEdit(where.range, edit[1])]}
    edits = lsp.ApplyWorkspaceEditParams(lsp.WorkspaceEdit(changes=changes), label)
    try:
        return (await server.workspace_apply_edit_async(edits)).applied
    except Exception:
        log.exception("the edit was not taken")
        return False


async def _chosen_target(server: TilelangServer, document: Document) -> str | None:
    """Ask which target; None where nobody chose one."""
    now = server.options_of(document.path, document.text).target
    actions = [lsp.MessageActionItem(t) for t in TARGETS if t != now]
    asked_for = lsp.ShowMessageRequestParams(
        lsp.MessageType.Info, "layouts, budgets and findings are to be for", actions
    )
    try:
        chosen = await server.window_show_message_request_async(asked_for)
    except Exception as error:
        log.warning("no target was chosen: %s", error)
        return None
    return None if chosen is None else chosen.title


def target_edit(document: Document, target: str) -> tuple[Span, str]:
    """The place and the text that make `# tilelang: target …` of a file say `target`."""
    lines = split_lines(document.text)
    for number, line in enumerate(lines, 1):
        if _TARGET.match(line):
            start = re.match(r"\s*", line)
            lead = start[0] if start else ""
            span = Span(document.path, number, 1, number, len(line) + 1)
            return span, f"{lead}# tilelang: target {target}"
    first = next((n for n, line in enumerate(lines[:2], 1) if not AHEAD.match(line)), 3)
    return Span(document.path, first, 1, first, 1), f"# tilelang: target {target}\n"


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
        pairs = [p.split("=", 1) for p in split(comment["values"]) if "=" in p]
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
        name: str(value) if str(value) else known.get(name, SUGGESTED)
        for name, value in given.items()
    }  # fmt: skip


def value_problem(given: Mapping[Any, Any], values: Mapping[str, str]) -> str:
    """Why values cannot be written into a comment; empty where they can."""
    for name in given:
        if not str(name).isidentifier():
            return f"{str(name)!r} is no name of a value"
    for name, value in values.items():
        if not can_hold(value):
            return (
                f"{value!r} cannot be the value of `{name}` in a comment: it is written in one "
                "line, with a quote or bracket closed and a comma only in those"
            )
    return ""


def target_problem(target: str) -> str:
    """Why a target cannot be written into a comment; empty where it can."""
    wrong = [p.message for p in target_problems(("target",), target)]
    if not target.isprintable():
        wrong = [f"{target!r} is no target"]
    return wrong[0] if wrong else ""


async def _to_values(
    server: TilelangServer, document: Document, kernel: Kernel, insight: Insight | None
) -> bool:
    """Lead to the comment that gives the values of a kernel; else say what does."""
    assumed = insight.assumed if insight is not None else ()
    names = {name for name, *_ in (*assumed, *kernel.values)}
    tree, owner = parse(document.text), kernel.owner or kernel.name
    said = () if tree is None else sets_of(document.text, tree, document.path)
    own = [s for s in said if s.name in names and s.owner in ("", owner)]
    for found in sorted(own, key=lambda s: s.owner != owner)[:1]:
        if await show_place(server, server.converter(document).location(found.comment)):
            return True
        which = f"`{found.name}={found.value}` in line {found.place.line}"
        text = f"the values of `{kernel.name}` are given by a comment in the file, {which}"
        say(server, text, lsp.MessageType.Info)
        return False
    given_by = " and ".join(dict.fromkeys(origin for *_, origin in assumed)) or "the file"
    text = f"the values of `{kernel.name}` are given by {given_by}: change them there"
    say(server, text if names else "there is no value to set", lsp.MessageType.Info)
    return False


def _meant(server: TilelangServer, arguments: Sequence[Any]) -> _Meant | None:
    """What a lens' arguments name."""
    if len(arguments) < 2:
        return None
    document = server.documents.open_files.get(server.notebooks.whole(str(arguments[0])))
    if document is None:
        return None
    line = arguments[2] if len(arguments) > 2 else None
    named = {k: v for k, v in keys_of(document.analysis.kernels).items()
             if arguments[1] in (v.owner, v.name)}  # fmt: skip
    key = next((k for k, v in named.items() if v.span.line == line), next(iter(named), None))
    return None if key is None else (document, key, named[key], document.insights.of(key))


def _is_saved(document: Document) -> bool:
    try:
        saved = readable(Path(document.path).read_text(encoding="utf-8"))
        return split_lines(saved) == split_lines(document.text)
    except (OSError, UnicodeDecodeError):
        return False
