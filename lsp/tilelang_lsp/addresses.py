"""Which file does a URI name, and the other way round? Whatever bytes a file's name has.

A document that is no file, such as `untitled:Untitled-1` or a text of version control, goes by its
whole URI, so that it is never taken for the file it resembles.
"""

from __future__ import annotations

import os
import re
from urllib.parse import quote, unquote, urlsplit

_DRIVE = re.compile(r"/?[A-Za-z]:(?=[/\\]|$)")


def path_of(uri: str) -> str:
    """The path of a `file:` URI; any other URI, and what can be no path, as it is."""
    try:
        parts = urlsplit(uri)
    except ValueError:  # such as a bracket that no address may have
        return uri
    if parts.scheme != "file":
        return uri
    path = unquote(parts.path, errors="surrogateescape")
    if "\0" in path:
        return uri
    if parts.netloc not in ("", "localhost"):
        path = f"//{unquote(parts.netloc)}{path}"
    if _DRIVE.match(path):
        path = path[1].lower() + path[2:]
    return path.replace("/", "\\") if os.name == "nt" else path


def uri_of(path: str) -> str:
    """The `file:` URI of a path; what is no path stays as it is."""
    if os.name == "nt":
        path = path.replace("\\", "/")
    if _DRIVE.match(path):
        return f"file:///{path[0].lower()}:{_quoted(path[2:])}"
    if path.startswith("//"):
        return f"file:{_quoted(path)}"
    return f"file://{_quoted(path)}" if path.startswith("/") else path


def _quoted(path: str) -> str:
    try:
        return quote(os.fsencode(path))
    except UnicodeEncodeError:  # half of a character that UTF-16 writes as two
        return quote(path.encode(errors="replace"))
