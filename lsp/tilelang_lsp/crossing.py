"""What does a name stand for when it comes from another file, and where is it used in all of them?

    found = Crossing(workspace, path, text).at(3, 12)
    found.chain        the binding used here, the import it is of, …, the definition
    crossing.references(binding)      every place in the workspace that means it

Imports are followed through `as`, `__init__.py`, `import *` and cycles; what no file of the
workspace defines ends the chain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_lsp.names import Binding, Mention, NamedCall, Names, Origin, covers, place
from tilelang_lsp.workspace import Workspace, read_names

MOST_STEPS = 64  # of imports that lead to imports


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
        own = workspace.text(path) if workspace.is_open(path) else None
        self._own = None if own == text else read_names(path, text)
        self._same = own == text

    def names(self, path: str) -> Names | None:
        """The names of a file."""
        if path == self.path and not self._same:
            return self._own
        return self.workspace.names(path)

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
                    meant = self._attribute(names, chain.root, chain.names[: number + 1])
                    return Found(span, chain.names[number], meant)
        for call in names.calls:
            for word, span in call.keywords:
                if covers(span, line, column):
                    parameter = self._parameter(names, call, word)
                    return Found(span, word, () if parameter is None else (parameter,))
        for mention in (*names.mentions, *_exports(names)):
            if covers(mention.span, line, column):
                return Found(mention.span, mention.text, self._mentioned(names, mention))
        for name, places in names.free.items():
            for span, _ in places:
                if covers(span, line, column):
                    return Found(span, name, self._starred(names, name))
        return None

    def chain(self, binding: Binding) -> tuple[Meaning, ...]:
        """A binding and what its import leads to, one step after another."""
        found: list[Meaning] = [binding]
        seen = {binding.key}
        while isinstance(last := found[-1], Binding) and last.origin is not None:
            names = self.names(last.path)
            following = None if names is None else self._origin(names, last.origin)
            if following is None or len(found) > MOST_STEPS:
                break
            if isinstance(following, Binding):
                if following.key in seen:
                    break
                seen.add(following.key)
            found.append(following)
        return tuple(found)

    def member(self, path: str, name: str, depth: int = 0) -> Meaning | None:
        """What `name` is in the module of a file."""
        names = self.names(path)
        if names is not None:
            found = names.module.bindings.get(name)
            if found is not None:
                return found
            for star in names.stars if depth < MOST_STEPS and not name.startswith("_") else ():
                file = self.workspace.modules.find(star.module, star.level, path)
                other = None if file is None or file == path else self.names(file)
                if other is not None and (other.stars or name in other.public()):
                    meant = self.member(other.path, name, depth + 8)
                    if meant is not None:
                        return meant
        inner = self.workspace.modules.submodule(path, name)
        return None if inner is None else ModuleFile(inner)

    def references(self, root: Binding) -> list[Span]:
        """Every place that means a binding, in all files, in order; by whatever name."""
        if root.scope.kind != "module":
            return root.places
        found: dict[Span, None] = {}
        words = {root.name}
        before = 0
        while len(words) > before:  # names that others give it are looked for in turn
            before = len(words)
            for path in self.holding(words, root):
                names = self.names(path)
                if names is not None:
                    found.update(dict.fromkeys(self._references_in(names, root, words)))
        return sorted(found, key=place)

    def here(self, root: Binding) -> list[Span]:
        """Every place of this file that means a binding."""
        names = self.names(self.path)
        if names is None:
            return []
        if root.scope.kind != "module":
            return root.places if root.path == self.path else []
        words = {root.name, *(b.name for b in names.module.bindings.values() if b.renamed)}
        return sorted(set(self._references_in(names, root, words)), key=place)

    def text(self, path: str) -> str:
        """What a file says; empty where it cannot be read."""
        if path == self.path:
            return self._text
        return self.workspace.text(path) or ""

    def holding(self, words: set[str], root: Binding) -> list[str]:
        """Files that may mean a binding."""
        return list(dict.fromkeys((root.path, self.path, *self.workspace.holding(words))))

    def keywords(self, function: Binding, parameter: str) -> list[Span]:
        """`parameter=` in the calls of a function, in all files."""
        places = {(s.file, s.line, s.column) for s in self.references(function)}
        found: list[Span] = []
        files = self.workspace.holding({parameter}) if function.scope.kind == "module" else ()
        for path in dict.fromkeys((function.path, self.path, *files)):
            names = self.names(path)
            for call in () if names is None else names.calls:
                if (call.function.file, call.function.line, call.function.column) in places:
                    found += [span for word, span in call.keywords if word == parameter]
        return found

    def _references_in(self, names: Names, root: Binding, words: set[str]) -> Iterator[Span]:
        for scope in names.scopes:
            for binding in scope.bindings.values():
                if binding.key == root.key or (
                    binding.origin is not None and self._leads(self.chain(binding), root)
                ):
                    yield from binding.places
                    if binding.scope.kind == "module":
                        words.add(binding.name)  # others may import it from here
        for chain in names.chains:
            for number, name in enumerate(chain.names):
                if name in words and self._leads(
                    self._attribute(names, chain.root, chain.names[: number + 1]), root
                ):
                    yield chain.attributes[number]
        for mention in (*names.mentions, *_exports(names)):
            if mention.text in words and self._leads(self._mentioned(names, mention), root):
                yield mention.span
        for word in [w for w in words if w in names.free]:
            if self._leads(self._starred(names, word), root):
                yield from (span for span, _ in names.free[word])

    def _leads(self, chain: tuple[Meaning, ...], root: Binding) -> bool:
        return any(isinstance(m, Binding) and m.key == root.key for m in chain)

    def _origin(self, names: Names, origin: Origin) -> Meaning | None:
        file = self.workspace.modules.find(origin.module, origin.level, names.path)
        if file is None:
            return None
        return self.member(file, origin.name) if origin.name else ModuleFile(file)

    def _full(self, meant: Meaning | None) -> tuple[Meaning, ...]:
        if meant is None:
            return ()
        return self.chain(meant) if isinstance(meant, Binding) else (meant,)

    def _attribute(
        self, names: Names, root: Span, parts: tuple[str, ...]
    ) -> tuple[Meaning, ...]:  # fmt: skip
        """What `root.a.b` is, where `root` is a module."""
        binding = names.of(root)
        chain: tuple[Meaning, ...] = () if binding is None else self.chain(binding)
        for part in parts:
            if not chain or not isinstance(chain[-1], ModuleFile):
                return ()
            chain = self._full(self.member(chain[-1].path, part))
        return chain

    def _mentioned(self, names: Names, mention: Mention) -> tuple[Meaning, ...]:
        if mention.origin.module == "" and mention.origin.level == 0:  # a name of `__all__`
            return self._full(self.member(names.path, mention.origin.name))
        return self._full(self._origin(names, mention.origin))

    def _starred(self, names: Names, name: str) -> tuple[Meaning, ...]:
        return self._full(self.member(names.path, name)) if names.stars else ()

    def function_of(self, names: Names, call: NamedCall) -> Binding | None:
        """The function that a call names, wherever it is defined."""
        binding = names.of(call.function)
        part = names.attributes.get((call.function.line, call.function.column))
        if binding is not None:
            meant = self.chain(binding)
        elif part is not None:
            chain, number = part
            meant = self._attribute(names, chain.root, chain.names[: number + 1])
        else:
            meant = self._starred(names, call.name)
        end = meant[-1] if meant else None
        return end if isinstance(end, Binding) else None

    def _parameter(self, names: Names, call: NamedCall, word: str) -> Binding | None:
        function = self.function_of(names, call)
        if function is None or function.inner is None or word not in function.parameters:
            return None
        return function.inner.bindings.get(word)


def _exports(names: Names) -> Iterator[Mention]:
    for name, span in names.exports or ():
        yield Mention(span, name, Origin("", 0, name))
