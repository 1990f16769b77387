"""How does documentation from docstrings look in an editor?"""

from __future__ import annotations

import re

from tilelang_lsp.model import Entry


def entry_markdown(entry: Entry, written: str) -> str:
    """Signature, documentation and where a name of the language is available."""
    root = written.rpartition(".")[0]
    signature = f"{root}.{entry.signature}" if root else entry.signature
    parts = [code(signature), doc_markdown(entry.doc)]
    if entry.targets and "cpu" not in entry.targets:
        parts.append(f"only on {', '.join(entry.targets)}")
    return "\n\n".join(part for part in parts if part)


def parameter_doc(doc: str, name: str) -> str:
    """What a docstring says of a parameter: up to the next, or the end of its rows."""
    rows = re.split(r"[;\n]", re.sub(r"\n {6,}(?=\S)", " ", doc))
    about = next((r for r in rows if re.match(rf"[\w, ]*\b{re.escape(name)}\b[\w, ]*:", r)), "")
    return about.strip().rstrip(".")


def code(text: str) -> str:
    """A block of Python."""
    return f"```python\n{text}\n```"


def doc_markdown(doc: str) -> str:
    """A docstring: examples become code blocks, arguments a list, the rest stays prose."""
    out: list[str] = []
    example: list[str] = []
    arguments = False
    for line in doc.split("\n"):
        stripped = line.strip()
        if stripped.startswith((">>> ", "... ")) or stripped in (">>>", "..."):
            example.append(stripped[4:])
            continue
        if example:
            out += ["", code("\n".join(example)), ""]
            example = []
        if stripped in ("Args:", "Returns:"):
            out.append(f"\n**{stripped[:-1]}**\n")
            arguments = stripped == "Args:"
        elif arguments and line.startswith("    "):
            out.append(_argument(line[4:]))
        else:
            arguments = arguments and not stripped
            out.append(line)
    if example:
        out += ["", code("\n".join(example))]
    return "\n".join(out).strip()


def _argument(line: str) -> str:
    name, colon, rest = line.partition(":")
    if colon and name.replace("_", "").replace(", ", "").replace("*", "").isalnum():
        return f"- `{name.strip()}`:{rest}"
    return f"  {line.strip()}"
