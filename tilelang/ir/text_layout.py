"""How is what an author attached to a buffer written, so that it can be read back?"""

from __future__ import annotations

from typing import Any

from tilelang.ir.attrs import unheld
from tilelang.layout.fragment import Fragment
from tilelang.layout.layout import Layout, index_names


def attached(value: Any) -> str:
    """A layout as the call that makes it; where it has no closed form, in a few words."""
    found = unheld(value)
    if isinstance(found, (Layout, Fragment)) and found.map.forms is not None:
        names = [*index_names(len(found.shape))]
        more = ""
        kind = "Layout"
        if isinstance(found, Fragment):
            kind = "Fragment"
            if found.replicas > 1:
                names.append("rep")
                more = f", replicate={found.replicas}"
        function = f"lambda {', '.join(names)}: {found.formula()}"
        return f"T.{kind}({found.shape}, {function}{more})"
    return str(value)
