"""What is each variable and buffer called in generated source?

The user's own name, made a legal identifier and unique in its kernel.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

# C++20 keywords and the names every C-like dialect gives a meaning to.
KEYWORDS: Final = frozenset({
    "alignas", "alignof", "and", "and_eq", "asm", "auto", "bitand", "bitor", "bool", "break",
    "case", "catch", "char", "char8_t", "char16_t", "char32_t", "class", "compl", "concept",
    "const", "consteval", "constexpr", "constinit", "const_cast", "continue", "co_await",
    "co_return", "co_yield", "decltype", "default", "delete", "do", "double", "dynamic_cast",
    "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto",
    "if", "inline", "int", "long", "mutable", "namespace", "new", "noexcept", "not", "not_eq",
    "nullptr", "operator", "or", "or_eq", "private", "protected", "public", "register",
    "reinterpret_cast", "requires", "return", "short", "signed", "sizeof", "static",
    "static_assert", "static_cast", "struct", "switch", "template", "this", "thread_local",
    "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using",
    "virtual", "void", "volatile", "wchar_t", "while", "xor", "xor_eq", "half", "uint", "uchar",
    "ushort", "ulong", "main", "printf", "NULL", "INFINITY", "NAN", "tl", "std",
})  # fmt: skip


class Names:
    """Gives each variable of one kernel a name no other has where it is visible."""

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self._taken: set[str] = set(KEYWORDS) | set(reserved)
        self._names: dict[Any, str] = {}
        self._local: set[Any] = set()
        self._scopes: list[list[Any]] = [[]]
        # Variables the kernel uses but does not declare: what it needs as parameters.
        self.outer: dict[Any, None] = {}

    def declare(self, var: Any) -> str:
        """The name of a variable that the kernel itself declares."""
        self._local.add(var)
        self.outer.pop(var, None)
        if var not in self._names:
            self._scopes[-1].append(var)
        return self._name(var)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A block: the names of what is declared in it are free again behind it."""
        self._scopes.append([])
        try:
            yield
        finally:
            for var in self._scopes.pop():
                self._taken.discard(self._names[var])

    def reserve(self, var: Any) -> str:
        """The name of a variable that is declared elsewhere, kept for it before it is used."""
        return self._name(var)

    def use(self, var: Any) -> str:
        """The name of a variable that is read or written."""
        if var not in self._local:
            self.outer[var] = None
        return self._name(var)

    def fresh(self, wish: str) -> str:
        """A name like `wish` for something the IR has no variable for."""
        base = re.sub(r"\W", "_", wish) or "value"
        if base[0].isdigit() or base.startswith("__"):
            base = f"v{base}"
        found, count = base, 0
        while found in self._taken:
            count += 1
            found = f"{base}_{count}"
        self._taken.add(found)
        return found

    def _name(self, var: Any) -> str:
        found = self._names.get(var)
        if found is None:
            found = self._names[var] = self.fresh(str(var.name))
        return found
