"""What does a name stand for when it comes from another file, and where is it used in all of them?

    found = Crossing(workspace, path, text).at(3, 12)
    found.chain        the binding used here, the import it is of, …, the definition
    crossing.references(binding)      every place in the workspace that means it

Imports are followed through `as`, `__init__.py`, `import *` and cycles; what no file of the
workspace defines ends the chain.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lint.module_files import PACKAGE
from tilelang_lsp.names import Binding, Chain, Mention, NamedCall, Names, Origin, covers, place
from tilelang_lsp.workspace import Workspace, read_names

# Methods of a kernel that take the arguments of its function (`runtime/jit.py`).
TAKE_ITS_ARGUMENTS = ("compile", "get_tir", "get_kernel_source")


@dataclass(frozen=True, slots=True)
class ModuleFile:
    """A module as a whole; a package without `__init__.py` has no file that exists."""

    path: str


Meaning = Binding | ModuleFile


@dataclass(frozen=True, slots=True)
class Found:
    """What is at a position: the place of the name, and what it leads to, the nearest first."""

    span: Span
    name: str
    chain: tuple[Meaning, ...]

    @property
    def end(self) -> Meaning | None:
        """What it stands for in the end, as far as imports can be followed."""
        return self.chain[-1] if self.chain else None

    @property
    def binding(self) -> Binding | None:
        """What it stands for, if that is a name."""
        return self.end if isinstance(self.end, Binding) else None


class Crossing:
    """The names of all files as one open file sees them."""

    def __init__(self, workspace: Workspace, path: str, text: str) -> None:
        self.workspace = workspace
        self.path = path
        self._text = text
        workspace.look_again()
        same = workspace.is_open(path) and workspace.text(path) == text
        self._own = workspace.names(path) if same else read_names(path, text)
        self._lines: dict[str, tuple[str, ...]] = {}
        self._all: dict[object, dict[object, Meaning]] = {}

    def names(self, path: str) -> Names | None:
        """The names of a file."""
        return self._own if path == self.path else self.workspace.names(path)

    def at(self, line: int, column: int) -> Found | None:
        """The name at a position of the file: bound, used, an attribute, a keyword, an import."""
        names = self.names(self.path)
        if names is None:
            return None
        here = names.at(line, column)
        if here is not None:
            binding, span = here
            return Found(span, binding.name, self.chain(binding))
        for chain in names.chains:
            for number, span in enumerate(chain.attributes):
                if covers(span, line, column):
                    meant = self.attribute(names, chain, number)
                    return Found(span, chain.names[number], self._first(meant))
        for call in names.calls:
            for word, span in call.keywords:
                if covers(span, line, column):
                    parameter = self._parameter(names, call, word)
                    return Found(span, word, () if parameter is None else (parameter,))
        for mention in (*names.mentions, *_exports(names)):
            if covers(mention.span, line, column):
                meant = self._mentioned(names, mention)
                return Found(mention.span, mention.text, self._first(meant))
        for name, places in names.free.items():
            for span, _ in places:
                if covers(span, line, column):
                    return Found(span, name, self._first(self.starred(names, name)))
        return None

    def named(self, dotted: str, line: int) -> Meaning | None:
        """What `name` or `module.name` stands for, written on a line that may not be read yet."""
        names = self.names(self.path)
        if names is None:
            return None
        root, *parts = dotted.split(".")
        around = [s for s in names.scopes if s.kind != "class" and s.lines[0] <= line <= s.lines[1]]
        scope = max(around, key=lambda s: s.start, default=names.module)
        binding = scope.find(root)
        found: list[Meaning] = [] if binding is None else [binding]
        if binding is None or binding.scope is names.module:
            found += self.starred(names, root)
        return next(iter(self._first(self._members(found, parts))[-1:]), None)

    def members(self, module: ModuleFile) -> Iterator[tuple[str, Meaning]]:
        """The names of a module that others may use, with what they stand for in the end."""
        names = self.names(module.path)
        found = {} if names is None else dict.fromkeys(names.module.bindings)
        for star in names.stars if names is not None else ():
            file = self.workspace.modules.find(star.module, star.level, module.path)
            other = None if file is None or file == module.path else self.names(file)
            found.update(
                (n, None)
                for n in (other.module.bindings if other else ())
                if other is not None and other.gives(n)
            )
        folder, package = os.path.split(module.path)
        found.update((n, None) for n in (self.modules_in(folder) if package == PACKAGE else ()))
        for name in found:
            meant = self.member(module.path, name)
            if meant is not None and not name.startswith("_"):
                yield name, self.chain(meant)[-1]

    def modules_in(self, folder: str) -> Iterator[str]:
        """The modules of the workspace that lie in a folder."""
        for file in self.workspace.files():
            above, name = os.path.split(file)
            if name == PACKAGE:
                above, name = os.path.split(above)
            if above == folder and name.removesuffix(".py").isidentifier():
                yield name.removesuffix(".py")

    def chain(self, meaning: Meaning) -> tuple[Meaning, ...]:
        """A meaning and what its import leads to, one step after another."""
        found = [meaning]
        seen = {_key(meaning)}
        while following := next(self._following(found[-1]), None):
            if _key(following) in seen:
                break
            seen.add(_key(following))
            found.append(following)
        return tuple(found)

    def all_of(self, meaning: Meaning) -> dict[object, Meaning]:
        """All that a meaning leads to, by every import that binds it."""
        known = self._all.get(_key(meaning))
        if known is not None:
            return known
        found = self._all[_key(meaning)] = dict[object, Meaning]()
        todo = [meaning]
        while todo:
            one = todo.pop()
            if _key(one) not in found:
                found[_key(one)] = one
                todo += self._following(one)
        return found

    def member(self, path: str, name: str) -> Meaning | None:
        """What `name` is in the module of a file."""
        found = self._bound(path, name, set())
        if found is not None:
            return found
        inner = self.workspace.modules.submodule(path, name)
        return None if inner is None else ModuleFile(inner)

    def references(self, root: Binding) -> list[Span]:
        """Every place that means a binding, in all files, in order; by whatever name."""
        found = dict.fromkeys(root.places)
        if root.scope.kind == "module":
            words, new = {root.name}, {root.name}
            while new:  # names that others give it are looked for in turn
                before = set(words)
                for path in self.holding(new, root):
                    names = self.names(path)
                    if names is not None:
                        found.update(dict.fromkeys(self._references_in(names, root, words)))
                new = words - before
        for function in self.functions_of(root):
            found.update(dict.fromkeys(self.keywords(function, root.name)))
        return sorted(found, key=place)

    def here(self, root: Binding) -> list[Span]:
        """Every place of this file that means a binding."""
        names = self.names(self.path)
        if names is None:
            return []
        found = {s for s in root.places if s.file == self.path}
        if root.scope.kind == "module":
            found.update(self._references_in(names, root, None))
        for function in self.functions_of(root):
            at = {(s.file, s.line, s.column) for s in self.here(function)}
            found.update(_keywords(names, at, root.name))
        return sorted(found, key=place)

    def text(self, path: str) -> str:
        """What a file says; empty where it cannot be read."""
        if path == self.path:
            return self._text
        return self.workspace.text(path) or ""

    def said(self, span: Span) -> str:
        """What stands in a place."""
        if span.file not in self._lines:
            self._lines[span.file] = split_lines(self.text(span.file))
        lines = self._lines[span.file]
        row = lines[span.line - 1] if span.line <= len(lines) else ""
        return row[span.column - 1 : span.end_column - 1]

    def holding(self, words: Collection[str], root: Binding) -> list[str]:
        """Files that may mean a binding."""
        return list(dict.fromkeys((root.path, self.path, *self.workspace.holding(words))))

    def functions_of(self, parameter: Binding) -> Iterator[Binding]:
        """The function whose parameter a binding is, if that can be given by name."""
        scope = parameter.scope
        function = None if scope.parent is None else scope.parent.bindings.get(scope.name)
        if parameter.kind == "parameter" and function is not None:
            if parameter.name in function.parameters:
                yield function

    def keywords(self, function: Binding, parameter: str) -> Iterator[Span]:
        """`parameter=` in the calls of a function, in all files."""
        at = {(s.file, s.line, s.column) for s in self.references(function)}
        files = self.workspace.holding({parameter}) if function.scope.kind == "module" else ()
        for path in dict.fromkeys((function.path, self.path, *files)):
            names = self.names(path)
            if names is not None:
                yield from _keywords(names, at, parameter)

    def function_of(self, names: Names, call: NamedCall) -> Binding | None:
        """The function that a call names, wherever it is defined."""
        return self._called(names, call.function, call.name)

    def attribute(self, names: Names, chain: Chain, number: int) -> list[Meaning]:
        """What an attribute of `root.a.b` may be, where `root` is a module."""
        binding = names.of(chain.root)
        found: list[Meaning] = [] if binding is None else [binding]
        if binding is None or binding.scope is names.module:
            found += self.starred(names, chain.name)
        return self._members(found, chain.names[: number + 1])

    def _members(self, found: list[Meaning], parts: Iterable[str]) -> list[Meaning]:
        """What `.a.b` of modules may be."""
        for part in parts:
            modules = [m for one in found for m in self.all_of(one).values()
                       if isinstance(m, ModuleFile)]  # fmt: skip
            members = (self.member(module.path, part) for module in modules)
            found = [m for m in members if m is not None]
        return found

    def origin(self, names: Names, origin: Origin) -> Meaning | None:
        """What a file imports."""
        file = self.workspace.modules.find(origin.module, origin.level, names.path)
        if file is None:
            return None
        return self.member(file, origin.name) if origin.name else ModuleFile(file)

    def starred(self, names: Names, name: str) -> list[Meaning]:
        """What a name of a file may be by `import *`, what counts in the end first."""
        found: dict[object, Meaning] = {}
        for star in reversed(names.stars):
            meant = self._by_star(names, star, name, {names.path})
            if meant is not None:
                found.setdefault(_key(meant), meant)
        return list(found.values())

    def leads(self, meant: Iterable[Meaning], root: Binding) -> bool:
        """Whether one of some meanings leads to a binding."""
        return any(_key(root) in self.all_of(m) for m in meant)

    def _references_in(
        self, names: Names, root: Binding, words: set[str] | None
    ) -> Iterator[Span]:  # fmt: skip
        """The places of a file; `words`: the names it may have there, and those it gets."""
        for scope in names.scopes:
            for binding in scope.bindings.values():
                if binding.key == root.key or (
                    binding.origin is not None and self.leads([binding], root)
                ):
                    yield from binding.places
                    if binding.scope.kind == "module" and words is not None:
                        words.add(binding.name)  # others may import it from here
        for chain in names.chains:
            for number, name in enumerate(chain.names):
                if (words is None or name in words) and self.leads(
                    self.attribute(names, chain, number), root
                ):
                    yield chain.attributes[number]
        for mention in (*names.mentions, *_exports(names)):
            if (words is None or mention.text in words) and self.leads(
                self._mentioned(names, mention), root
            ):
                yield mention.span
        for word, places in names.free.items():
            if (words is None or word in words) and self.leads(self.starred(names, word), root):
                yield from (span for span, _ in places)

    def _following(self, meaning: Meaning) -> Iterator[Meaning]:
        """What a binding is by its imports, the first that can be followed first."""
        if isinstance(meaning, ModuleFile) or meaning.origin is None:
            return
        names = self.names(meaning.path)
        if names is not None:
            origins = (self.origin(names, origin) for origin, _ in meaning.origins)
            yield from (found for found in origins if found is not None)

    def _first(self, meant: list[Meaning]) -> tuple[Meaning, ...]:
        return self.chain(meant[0]) if meant else ()

    def _bound(self, path: str, name: str, seen: set[str]) -> Binding | None:
        """The binding of a name in a module, be it by `import *`."""
        names = self.names(path)
        seen.add(path)
        if names is None:
            return None
        own = names.module.bindings.get(name)
        by_star = (self._by_star(names, star, name, seen) for star in reversed(names.stars))
        return own or next((found for found in by_star if found is not None), None)

    def _by_star(self, names: Names, star: Origin, name: str, seen: set[str]) -> Binding | None:
        file = self.workspace.modules.find(star.module, star.level, names.path)
        other = None if file is None or file in seen else self.names(file)
        return self._bound(other.path, name, seen) if other and other.gives(name) else None

    def _mentioned(self, names: Names, mention: Mention) -> list[Meaning]:
        if mention.origin.module == "" and mention.origin.level == 0:  # a name of `__all__`
            found = self.member(names.path, mention.origin.name)
        else:
            found = self.origin(names, mention.origin)
        return [] if found is None else [found]

    def _called(self, names: Names, span: Span, name: str) -> Binding | None:
        """The function whose name stands in a place."""
        binding = names.of(span)
        part = names.attributes.get((span.line, span.column))
        if binding is not None:
            meant: list[Meaning] = [binding]
        elif part is not None:
            chain, number = part
            meant = self.attribute(names, chain, number)
        else:
            meant = self.starred(names, name)
        end = self._first(meant)[-1:]
        return end[0] if end and isinstance(end[0], Binding) else None

    def _parameter(self, names: Names, call: NamedCall, word: str) -> Binding | None:
        function = self.function_of(names, call)
        if function is None and call.owner is not None and call.name in TAKE_ITS_ARGUMENTS:
            function = self._called(names, call.owner, self.said(call.owner))
        if function is None or function.inner is None or word not in function.parameters:
            return None
        return function.inner.bindings.get(word)


def _key(meaning: Meaning) -> object:
    return meaning.path if isinstance(meaning, ModuleFile) else meaning.key


def _keywords(names: Names, at: set[tuple[str, int, int]], parameter: str) -> Iterator[Span]:
    """`parameter=` in the calls of a file whose function stands in one of some places."""
    for call in names.calls:
        spans = [call.function]
        if call.owner is not None and call.name in TAKE_ITS_ARGUMENTS:
            spans.append(call.owner)
        if any((s.file, s.line, s.column) in at for s in spans):
            yield from (span for word, span in call.keywords if word == parameter)


def _exports(names: Names) -> Iterator[Mention]:
    for name, span in names.exports or ():
        yield Mention(span, name, Origin("", 0, name))
