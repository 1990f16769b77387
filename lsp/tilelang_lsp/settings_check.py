"""What is wrong with the settings of an editor, and with those of a file that only it reads?

The others are checked by `tilelang_lint/settings_check.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tilelang_diagnostics import Diagnostic, did_you_mean
from tilelang_lint import settings_check
from tilelang_lint.settings_check import (
    Problem,
    selector_problems,
    table_problems,
    target_problems,
    unknown,
)
from tilelang_lsp.model import HINT_KINDS

_OF_CLIENT = ("values", "target", "select", "ignore", "diagnosticMode", "inlayHints", "trusted",
              "status")  # fmt: skip
# Of the extension for VS Code, which sends its own too.
_OF_EXTENSION = ("interpreter", "path", "args", "cwd", "showNotifications", "logLevel", "trace")
_MODES = ("openFilesOnly", "workspace", "off")
_HINTS = f"kinds of hints: {', '.join(HINT_KINDS)}"


def project_findings(text: str, file: str) -> tuple[Diagnostic, ...]:
    """Of a pyproject.toml."""
    return settings_check.project_findings(text, file, _of_editors)


def comment_findings(text: str, file: str) -> tuple[Diagnostic, ...]:
    """Of the comments in a kernel file."""
    return settings_check.comment_findings(text, file, _hints)


def client_problems(settings: object) -> tuple[str, ...]:
    """Of what an editor sends, as messages."""
    if settings is None:
        return ()
    if not isinstance(settings, Mapping):
        return ("the settings of `tilelang` are no object",)
    found = [*target_problems(("target",), settings.get("target") or ())]
    found += selector_problems((), settings)
    found += table_problems(("values",), settings.get("values"))
    hints = settings.get("inlayHints")
    found += table_problems(("inlayHints",), hints)
    found += _switches(("inlayHints",), hints)
    known = (*_OF_CLIENT, *_OF_EXTENSION)
    found += [unknown((str(k),), str(k), _OF_CLIENT) for k in settings if k not in known]
    if not isinstance(settings.get("trusted", True), bool):
        found.append(Problem(("trusted",), "it is no true or false, which counts as false"))
    mode = settings.get("diagnosticMode")
    if mode not in (None, *_MODES):
        found.append(
            Problem(("diagnosticMode",), f"`diagnosticMode` is one of {', '.join(_MODES)}")
        )
    return tuple(f"setting `tilelang.{'.'.join(p.path)}`: {p.message}" for p in found)


def _of_editors(lsp: Any) -> Iterator[Problem]:
    yield from table_problems(("lsp",), lsp)
    if isinstance(lsp, Mapping):
        for key in lsp:
            if key != "inlay-hints":
                yield unknown(("lsp", key), key, ("inlay-hints",))
        yield from _switches(("lsp", "inlay-hints"), lsp.get("inlay-hints"))


def _switches(path: tuple[str, ...], value: object) -> Iterator[Problem]:
    known = ("enable", *HINT_KINDS)
    for key, switch in value.items() if isinstance(value, Mapping) else ():
        if key not in known:
            yield unknown((*path, key), key, known)
        elif not isinstance(switch, bool):
            yield Problem((*path, key), f"`{key}` is neither true nor false")


def _hints(rest: str) -> Iterator[Problem]:
    for word in re.split(r"\s*,\s*", rest):
        if word and word not in HINT_KINDS:
            yield Problem((), f"there is no hint {word!r}{did_you_mean(word, HINT_KINDS)}", _HINTS)
