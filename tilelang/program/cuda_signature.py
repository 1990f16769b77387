"""Which kernels does CUDA source define, and what does each take? Read from its text.

Comments, literals and directives are blanked, so that positions stay. Nothing is expanded: a kernel
made by a macro is not found, and a type that a typedef names is only a name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

# Comments, literals except the "C" of a linkage, and directives with their continued lines.
_NO_CODE: Final = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?!C")(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)+\''
    r"|^[ \t]*#(?:[^\n\\]|\\.)*",
    re.DOTALL | re.MULTILINE,
)
_GLOBAL: Final = re.compile(r"\b__global__\b")
_NAME: Final = re.compile(r"(\w+)\s*\(")
# Specifiers between `__global__` and the name that have parentheses of their own.
_SPECIFIERS: Final = frozenset({"__launch_bounds__", "__cluster_dims__", "__maxnreg__",
                                "__attribute__", "__align__"})  # fmt: skip
_QUALIFIERS: Final = re.compile(r"\b(const|volatile|__restrict__|__restrict|__grid_constant__)\b")


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter: its type without qualifiers, and whether it is a pointer."""

    type: str
    pointer: bool


@dataclass(frozen=True, slots=True)
class CudaKernel:
    """A `__global__` function; `start` is where it stands in the text."""

    name: str
    parameters: tuple[Parameter, ...]
    start: int
    is_template: bool
    is_extern_c: bool


def kernels_of(source: str) -> tuple[CudaKernel, ...]:
    """The kernels `source` declares or defines, in order."""
    return tuple(_kernels(_NO_CODE.sub(_blank, source)))


def with_c_linkage(source: str, kernel: CudaKernel) -> str:
    """`source` with the kernel findable by its name, as it is for `extern "C"`."""
    if kernel.is_extern_c:
        return source
    return f'{source[: kernel.start]}extern "C" {source[kernel.start :]}'


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _kernels(text: str) -> Iterator[CudaKernel]:
    for found in _GLOBAL.finditer(text):
        at = found.end()
        while (name := _NAME.search(text, at)) is not None:
            close = _closing(text, name.end())
            if name[1] not in _SPECIFIERS:
                break
            at = close + 1
        if name is None:
            continue
        start = _start(text, found.start())
        before = text[start : found.start()]
        yield CudaKernel(
            name[1], tuple(_parameters(text[name.end() : close])), start,
            "template" in before or "<" in before, _is_extern_c(text, start, before),
        )  # fmt: skip


def _start(text: str, at: int) -> int:
    """Where the declaration begins that has `__global__` at `at`."""
    end = max(text.rfind(mark, 0, at) for mark in ";}{")
    found = re.compile(r"\S").search(text, end + 1)
    return at if found is None else min(found.start(), at)


def _is_extern_c(text: str, start: int, before: str) -> bool:
    if re.search(r'extern\s*"C"', before):
        return True
    # Inside `extern "C" { … }`: some such block is still open.
    for block in re.finditer(r'extern\s*"C"\s*\{', text[:start]):
        inside = text[block.end() : start]
        if inside.count("{") >= inside.count("}"):
            return True
    return False


def _closing(text: str, at: int) -> int:
    depth = 1
    for position in range(at, len(text)):
        depth += {"(": 1, ")": -1}.get(text[position], 0)
        if depth == 0:
            return position
    return len(text)


def _parameters(text: str) -> Iterator[Parameter]:
    parts, depth = [""], 0
    for character in text:
        depth += {"(": 1, "<": 1, "[": 1, ")": -1, ">": -1, "]": -1}.get(character, 0)
        if character == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    for part in parts:
        plain = _QUALIFIERS.sub(" ", part.partition("=")[0]).strip()
        if plain in ("", "void"):
            continue
        pointer = "*" in plain or "[" in plain
        words = re.split(r"[*&\[]", plain)[0].split()
        if not pointer and len(words) > 1:
            words = words[:-1]  # the name
        elif pointer and "[" in plain and "*" not in plain:
            words = words[:-1]
        yield Parameter(" ".join(words), pointer)
