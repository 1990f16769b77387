"""How does a trace become one file that a browser opens without a network?

Jinja2 fills a template; script, style and data stand inside. Data is JSON with every `<`, `>` and
`&` escaped, and the script writes text, never markup; the policy in the page allows no script and
no style but these two, and no request.
"""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from jinja2 import Environment
from markupsafe import Markup

from tilelang_trace.html.data import page_data
from tilelang_trace.model import Trace

SCRIPTS = ("rows.js", "lists.js", "drawing.js", "columns.js", "views.js", "viewer.js")


def page_of(trace: Trace) -> str:
    """The page."""
    script = "".join(_read(name) for name in SCRIPTS)
    style = _read("viewer.css")
    environment = Environment(autoescape=True, keep_trailing_newline=True)
    template = environment.from_string(_read("viewer.html.j2"))
    return template.render(
        title=f"{trace.kernel} for {trace.target}",
        data=page_data(trace),
        script=Markup(script),
        style=Markup(style),
        script_hash=_hash(script),
        style_hash=_hash(style),
    )


def _read(name: str) -> str:
    return files("tilelang_trace.html").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
