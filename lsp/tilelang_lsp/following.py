"""Which other files does the analysis of a file read, and what do they say?

    imports = Following(workspace).of("/project/gemm.py", text)

Asked in the server, where texts are open; `followed.py` reads them where they are analysed.
`Imports` is a value: as long as it stays the same, so does all that the other files contribute.
Of a file that is open its text travels, without the bodies of kernels, which no importer sees; a
file on the disk is read where it is needed. While an open file cannot be read, what it said
before holds.
"""

from __future__ import annotations

import ast
import re
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.definitions import first_line, marks
from tilelang_lsp.lexical import parse
from tilelang_lsp.recovery import UNKNOWN, recover
from tilelang_lsp.workspace import LANGUAGE, Workspace

MOST_FOLLOWED = 64  # files that one file is read with
MOST_KEPT = 64  # files whose imports are remembered
_IMPORT = re.compile(
    r"(?:^|[;:])[ \t]*(?:from\b{s}*(?P<dots>\.*)(?P<module>[\w.]*){s}*\bimport\b{s}*"
    r"(?P<names>\((?:[^)#]|#[^\n]*\n)*\)|(?:[^\n#;\\]|\\\r?\n)*)"
    r"|import{s}+(?P<modules>(?:[^\n#;\\]|\\\r?\n)*))".replace("{s}", r"(?:[ \t]|\\\r?\n)"),
    re.M,
)
_COMMENT_OR_BRACKET = re.compile(r"#[^\n]*|[()\\]")
_KERNELS = ("prim_func", "jit")
Asked = tuple[str, int]  # module, dots before it


@dataclass(frozen=True, slots=True)
class Imports:
    """The files that a file is read with.

    `links` say which file an import means, of what the importing file asks for; `files` have a
    path, a key that changes with what they say, and their text if that is not the one on the disk.
    """

    links: tuple[tuple[str, Asked, str], ...] = ()
    files: tuple[tuple[str, str, str | None], ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The files."""
        return tuple(path for path, _, _ in self.files)

    @property
    def keys(self) -> tuple[tuple[str, str], ...]:
        """What changes whenever something that is read does."""
        return tuple((path, key) for path, key, _ in self.files)


class Following:
    """Finds the imports of files, and remembers them until something changes."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.looked = 0  # files whose imports were looked up
        self._known: OrderedDict[str, tuple[object, Imports]] = OrderedDict()
        self._asked: dict[str, tuple[object, tuple[Asked, ...]]] = {}
        self._exported: dict[str, tuple[str, str]] = {}

    def of(self, path: str, text: str) -> Imports:
        """The files that a text is read with."""
        if LANGUAGE not in text:
            return Imports()
        self.workspace.look_again()
        asked = asked_for(text)
        version = (asked, self.workspace.looks, self._others(path))
        known = self._known.get(path)
        if known is not None and known[0] == version:
            return known[1]
        found = self._follow(path, asked)
        if known is not None and known[1] == found:
            found = known[1]
        self._known[path] = (version, found)
        self._known.move_to_end(path)
        if len(self._known) > MOST_KEPT:
            self._known.popitem(last=False)
        return found

    def _others(self, path: str) -> tuple[str, ...]:
        """The texts of the other open files: the same objects as long as they stay."""
        return tuple(t for p, t in self.workspace.open_texts() if p != path)

    def _follow(self, path: str, asked: tuple[Asked, ...]) -> Imports:
        links: dict[tuple[str, Asked], str] = {}
        files: dict[str, tuple[str, str | None]] = {}
        todo = [(path, asked)]
        while todo:
            importer, wanted = todo.pop()
            self.looked += 1
            for module, level in wanted:
                file = self.workspace.modules.find(module, level, importer)
                if file is None:
                    continue
                links[importer, (module, level)] = file
                links.update(self._attributes(importer, module, level))
                if file not in files and file != path and len(files) < MOST_FOLLOWED:
                    said = self._said(file)
                    if said is not None:
                        files[file] = said
                        todo.append((file, self._asked_by(file)))
        ordered = tuple((p, key, text) for p, (key, text) in sorted(files.items()))
        return Imports(tuple((p, a, f) for (p, a), f in sorted(links.items())), ordered)

    def _attributes(
        self, importer: str, module: str, level: int
    ) -> Iterator[tuple[tuple[str, Asked], str]]:
        """`pkg.ops` by attribute, as `import pkg.ops` and `from . import ops` leave it."""
        first, _, rest = ("", "", module) if level else module.partition(".")
        package = self.workspace.modules.find(first, level, importer) if rest else None
        if package is not None:
            yield (importer, (first, level)), package
        for part in rest.split("."):
            inner = None if package is None else self.workspace.modules.submodule(package, part)
            if package is None or inner is None:
                return
            yield (package, (part, 1)), inner
            package = inner

    def _said(self, path: str) -> tuple[str, str | None] | None:
        """The key of a file, and its text where it is open."""
        if not self.workspace.is_open(path):
            stamp = self.workspace.stamp(path)
            return None if stamp is None else (f"{stamp[0]}:{stamp[1]}", None)
        text = self.workspace.text(path) or ""
        known = self._exported.get(path)
        if known is None or known[0] != text:
            before = "" if known is None else known[1]
            for closed in [p for p in self._exported if not self.workspace.is_open(p)]:
                del self._exported[closed]
            known = self._exported[path] = (text, exported(text, before))
        return str(hash(known[1])), known[1]

    def _asked_by(self, path: str) -> tuple[Asked, ...]:
        version = self.workspace.version(path)
        known = self._asked.get(path)
        if known is None or known[0] != version:
            text = self.workspace.text(path) or ""
            if len(self._asked) > 16 * MOST_FOLLOWED:
                self._asked.clear()
            known = self._asked[path] = (version, asked_for(text))
        return known[1]


@lru_cache(maxsize=64)  # asked several times of each text
def asked_for(text: str) -> tuple[Asked, ...]:
    """The modules that a text imports, and those that it may take from a package."""
    return tuple(_asked_for(text))


def _asked_for(text: str) -> Iterator[Asked]:
    for match in _IMPORT.finditer(_around_imports(text)):
        if match["modules"] is not None:
            yield from ((module, 0) for module in _names(match["modules"]))
            continue
        module, level = match["module"] or "", len(match["dots"] or "")
        yield module, level
        for name in _names(match["names"]):
            yield ".".join(filter(None, (module, name))), level


def _around_imports(text: str) -> str:
    """The lines of a text that its imports stand on, and others: the search for imports takes ten
    times as long in all of it."""
    lines = split_lines(text)
    found: list[str] = []
    behind = 0
    for number, line in enumerate(lines):
        if "import" not in line or number < behind:
            continue
        first = number
        while first > behind and lines[first - 1].endswith("\\"):
            first -= 1
        behind = _end(lines, number)
        found += lines[first:behind]
    return "\n".join(found)


def _end(lines: tuple[str, ...], number: int) -> int:
    """The line behind an import: it may go on where a line says so, or up to a bracket."""
    is_open = False
    while number < len(lines):
        line = lines[number]
        if line.partition("#")[0].rfind(")") > line.rfind("("):
            is_open = False
        elif "(" in line:
            is_open = True
        number += 1
        if not is_open and not line.endswith("\\"):
            break
    return number


def _names(listed: str) -> Iterator[str]:
    """The names of `a as b, c`, as they are where they come from."""
    for part in _COMMENT_OR_BRACKET.sub(" ", listed).split(","):
        name = part.split()[:1]
        if name and name[0].replace(".", "").isidentifier():
            yield name[0]


def exported(text: str, before: str = "") -> str:
    """A text with kernels emptied, line by line as it was; `before` where it cannot be read."""
    tree = parse(text)
    if tree is None:
        if before:
            return before
        readable = recover(text)
        if readable is None:
            return ""
        text, tree = readable.text, readable.tree
    lines = list(split_lines(text))
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and _makes_kernels(node):
            first, last = node.body[0].lineno, node.end_lineno or node.lineno
            if first > node.lineno:
                first = first_line(node.body[0])
                indent = " " * node.body[0].col_offset
                lines[first - 1 : last] = [f"{indent}return {UNKNOWN}", *[""] * (last - first)]
    return "\n".join(lines)


def _makes_kernels(node: ast.FunctionDef) -> bool:
    return any(
        not marks(inner).isdisjoint(_KERNELS)
        for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef)
    )  # fmt: skip
