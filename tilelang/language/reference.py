"""Which names does the language have, and where? `python -m tilelang.language.reference`.

Prints `docs/reference.md`, made of the catalogue: signatures and descriptions are those of the
functions themselves.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import tilelang.language as T
from tilelang.language.catalog import CPU, LanguageFunction

_HEAD = """\
# The language: every `T.` name

This page is made by `python -m tilelang.language.reference > docs/reference.md`; a test compares
it. In Python, `help(T.copy)` says more of one name: its arguments, and an example. So does

```python
import tilelang.language as T

print(T.clear.__doc__)
```

```text
{example}
```

*Targets*: `all` is what runs on every one, `cuda` and its like a kind of GPU, `cuda:sm_90` that
architecture and later ones, `cuda:sm_90a` that one only. Kernels for `hip` and `metal` run on the
emulator only, so far, and not all that is named here is there yet: what is missing is refused by
name.
"""


def reference() -> str:
    """The page: a section for each family of names."""
    head = _HEAD.format(example=T.FUNCTIONS["clear"].__doc__)
    return "\n".join([head, *(line for family in T.FAMILIES for line in _section(family))])


def _section(family: ModuleType) -> Iterator[str]:
    title = family.__name__.rpartition(".")[2].removeprefix("tile_").replace("_", " ")
    yield f"## {title.capitalize()}\n"
    yield f"{(family.__doc__ or '').splitlines()[0]}\n"
    yield "| name | what it does | targets |"
    yield "|---|---|---|"
    for function in family.FUNCTIONS:
        usage, summary = _cell(function.usage), _cell(_summary(function))
        yield f"| `T.{usage}` | {summary} | {_targets(function)} |"
    yield ""


def _summary(function: LanguageFunction) -> str:
    """The first paragraph of the description, on one line."""
    return " ".join(function.doc.partition("\n\n")[0].split())


def _targets(function: LanguageFunction) -> str:
    return "all" if set(CPU) <= set(function.targets) else ", ".join(function.targets)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(reference(), end="")
