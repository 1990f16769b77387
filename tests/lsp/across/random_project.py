"""Projects of random statements that import each other, and what happens when they are imported.

Few names, so that they are bound again, shadowed and imported in every order; all that a project
computes is in the list `SAID`.
"""

from __future__ import annotations

import builtins
import importlib
import random
import sys
from pathlib import Path

NAMES = "abcde"
# Each may import those before it.
FILES = ("m0.py", "m1.py", "p/__init__.py", "p/q.py", "p/r.py", "m2.py", "main.py")
FORMS = (
    "assign", "assign", "def", "def", "nested", "if", "class", "global", "loop", "text", "said",
    "said", "from", "from", "as", "import", "module", "star", "relative", "try", "inside",
)  # fmt: skip
# What a name stands for: a number, a function with its second parameter, or the module of a file.
Kinds = dict[str, tuple[str, str]]
NUMBER = ("number", "")


class RandomProject:
    """`texts` by file, and the names that each of them gives."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self.kinds: dict[str, Kinds] = {}
        self.listed: dict[str, list[str]] = {}
        self.texts: dict[str, str] = {}
        for number, file in enumerate(FILES):
            self.texts[file] = self._text(file, FILES[:number])

    def _text(self, file: str, before: tuple[str, ...]) -> str:
        kinds = self.kinds[file] = Kinds()
        lines: list[str] = []
        for _ in range(self._random.randint(4, 9)):
            form, name = self._random.choice(FORMS), self._random.choice(NAMES)
            if form in ("from", "as", "import", "module", "star", "relative", "try", "inside"):
                if before:
                    lines += self._import(form, name, file, self._random.choice(before))
            else:
                lines += self._statement(form, name, kinds)
        if kinds and self._random.random() < 0.2:
            listed = self.listed[file] = [n for n in kinds if self._random.random() < 0.7]
            lines.append(f"__all__ = {listed!r}")
        return "\n".join([*lines, f"SAID.append(({self._value(kinds)}))"]) + "\n"

    def _statement(self, form: str, name: str, kinds: Kinds) -> list[str]:
        parameter = self._random.choice(NAMES)
        numbers = {n: k for n, k in kinds.items() if k == NUMBER and n not in (name, parameter)}
        value = self._value(kinds)
        match form:
            case "assign" | "if":
                kinds[name] = NUMBER
                test = [f"if {value} > 3:", f"    {name} = {value}", "else:", f"    {name} = 4"]
                return test if form == "if" else [f"{name} = {value}"]
            case "def":
                kinds[name] = ("function", parameter)
                return [f"def {name}(x, {parameter}=1):",
                        f"    return x + {parameter} + {self._value(numbers)}"]  # fmt: skip
            case "nested":
                kinds[name] = ("function", parameter)
                return [f"def {name}(x, {parameter}=1):", "    def inner(y):",
                        f"        return {parameter} + y", "    return inner(x)"]  # fmt: skip
            case "global":
                setting = [f"def set_{name}():", f"    global {name}", f"    {name} = 7",
                           f"set_{name}()"]  # fmt: skip
                return setting if kinds.get(name) == NUMBER else []
            case "class":
                return ["class K:", f"    {name} = {value}", f"SAID.append(K.{name})"]
            case "loop":
                return [f"SAID.append([{name} for {name} in range(3)])"]
            case "text":
                return [f'SAID.append(f"{{{value}}}")']
            case _:
                return [f"SAID.append({value})"]

    def _import(self, form: str, name: str, file: str, other: str) -> list[str]:
        kinds, theirs, module = self.kinds[file], self.kinds[other], module_of(other)
        if form in ("import", "module"):
            bound = name if form == "import" else module
            kinds[bound] = ("module", other)
            if "." in bound:
                del kinds[bound]
            return [f"import {module} as {name}" if form == "import" else f"import {module}"]
        if form == "star":
            taken = self.listed.get(other, [*theirs])
            kinds.update({n: theirs[n] for n in taken})
            return [f"from {module} import *"]
        if not theirs:
            return []
        taken_one = self._random.choice([*theirs])
        kind = theirs[taken_one]
        match form:
            case "as":
                kinds[name] = kind
                return [f"from {module} import {taken_one} as {name}"]
            case "inside" if kind == NUMBER:
                kinds[name] = ("function", "y")
                return [f"def {name}(x, y=2):", f"    from {module} import {taken_one}",
                        f"    return x + y + {taken_one}"]  # fmt: skip
            case "relative" if file.startswith("p/") and other.startswith("p/"):
                module = "." + module.removeprefix("p").removeprefix(".")
        kinds[taken_one] = kind
        taking = f"from {module} import {taken_one}"
        if form == "try":
            return ["try:", f"    {taking}", "except ImportError:", f"    {taken_one} = 3"]
        return [taking]

    def _value(self, kinds: Kinds) -> str:
        found = [str(self._random.randrange(9)), *self._calls(kinds, "")]
        for name, (kind, other) in kinds.items():
            if kind == "module":
                found += self._calls(self.kinds[other], f"{name}.")
        return " + ".join(self._random.choices(found, k=self._random.choice((1, 1, 2))))

    def _calls(self, kinds: Kinds, before: str) -> list[str]:
        found = [f"{before}{name}" for name, kind in kinds.items() if kind == NUMBER]
        for name, (kind, parameter) in kinds.items():
            if kind == "function":
                given = self._random.choice(("", f", {parameter}=2"))
                found.append(f"{before}{name}(1{given})")
        return found


def module_of(file: str) -> str:
    """The module that a file is."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def said_by(folder: Path) -> list[object] | str:
    """What the project in a folder computes; the error if there is one."""
    said: list[object] = []
    builtins.SAID = said  # type: ignore[attr-defined]
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        importlib.invalidate_caches()
        for file in FILES:
            importlib.import_module(module_of(file))
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            del sys.modules[name]
        del builtins.SAID  # type: ignore[attr-defined]
    return said
