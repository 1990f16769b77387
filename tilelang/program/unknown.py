"""A value the front end could not work out, after an error or outside what text can tell.

Everything computed from an unknown is unknown, and checks stay silent about it: one mistake
gives one diagnostic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Unknown:
    """Absorbs any operation; `reason` is only for debugging and hover."""

    __slots__ = ("reason",)

    def __init__(self, reason: str = "") -> None:
        self.reason = reason

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unknown(f"{self.reason}.{name}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Unknown(f"{self.reason}(…)")

    def __getitem__(self, index: Any) -> Any:
        return Unknown(f"{self.reason}[…]")

    def __setitem__(self, index: Any, value: Any) -> None:
        return None

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    def __eq__(self, other: object) -> Any:
        return self

    def __hash__(self) -> int:
        return id(self)

    def __str__(self) -> str:
        return self.reason or "?"

    def _absorb(self, *_: Any) -> Any:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _absorb
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _absorb
    __pow__ = __rpow__ = __lshift__ = __rlshift__ = __rshift__ = __rrshift__ = _absorb
    __and__ = __rand__ = __or__ = __ror__ = __xor__ = __rxor__ = __neg__ = __invert__ = _absorb
    __lt__ = __le__ = __gt__ = __ge__ = _absorb


def is_unknown(value: Any) -> bool:
    return isinstance(value, Unknown)


def contains_unknown(value: Any) -> bool:
    """Whether `value` is unknown or a container with an unknown inside."""
    if isinstance(value, Unknown):
        return True
    if isinstance(value, (tuple, list)):
        return any(contains_unknown(item) for item in value)
    if isinstance(value, slice):
        return any(isinstance(v, Unknown) for v in (value.start, value.stop, value.step))
    if isinstance(value, dict):
        return any(contains_unknown(item) for item in value.values())
    return False
