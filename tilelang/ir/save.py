"""How is a function written so that it can be read back?

Whatever cannot be is refused by name, and never saved as something else.
"""

from __future__ import annotations

from tilelang.ir import tirx
from tilelang.ir.read import read_function
from tilelang.ir.same import same_function
from tilelang.ir.text import print_function
from tilelang_diagnostics import CompileError, failure


def saved_function(func: tirx.PrimFunc, title: str, after: str) -> str:
    """A file that `read_function` reads as `func`; TL193 for what has no form in it."""
    printed = print_function(func)
    if printed.formless:
        what, span = printed.formless[0]
        raise failure("TL193", f"{what} has no form in a file of IR", span, help=_HELP)
    text = printed.saved(title, after)
    try:
        again = read_function(text, title).func
    except CompileError as error:
        reason = error.diagnostics[0].message
        raise failure("TL193", f"the IR does not read back: {reason}", help=_HELP) from error
    if not same_function(again, func):
        raise failure("TL193", "the IR reads back as another program", help=_HELP)
    return text


_HELP = "the passes before and after it are shown as ever; --from PASS saves the IR at another one"
