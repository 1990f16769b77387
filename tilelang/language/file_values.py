"""Which values does a file give a kernel? Read from its text; nothing of it is run for that.

In this order: a comment `# tilelang: set M=1024`, the `[tool.tilelang.set]` table of the project, a
call of the kernel with constants (names assigned around the call and defaults of an argument parser
count as constants), and for a run also any number the file calls by that name.
"""

from __future__ import annotations

import ast
import operator
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

from tilelang.dtypes import find_dtype
from tilelang.language import limits
from tilelang.language.settings import comment_settings

_NOTHING: Final = object()
_Call: TypeAlias = tuple[ast.Call, ast.FunctionDef | None]
_Named: TypeAlias = tuple[ast.Call, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it comes from, in words."""

    value: Any
    origin: str


class FileValues:
    """What a file says about values, read once; `of` asks it about one kernel.

    Args:
        module: the globals of the file, if it was imported.
        project: what the project's pyproject.toml sets.
    """

    def __init__(
        self, path: str, text: str, tree: ast.Module,
        module: Mapping[str, Any] | None = None, project: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.tree = tree
        self.module = module or {}
        self.project = project or {}
        self.commented = comment_settings(text, tree, path)
        self.text = text

    @cached_property
    def parser(self) -> dict[str, Any]:
        """Defaults of the file's argument parser."""
        return dict(_parser_defaults(self.tree, _lines_with("add_argument", self.text)))

    @cached_property
    def globals(self) -> _Scope:
        return _Scope(None, self.module, self.tree.body, "the file")

    def of(self, kernel: str) -> KernelValues:
        """The values of one kernel, or factory, of the file."""
        return KernelValues(self, kernel)


class KernelValues:
    """Looks names up in a file: first around its own call of the kernel, then in all of it."""

    def __init__(self, file: FileValues, kernel: str) -> None:
        self.file = file
        self.comment = file.commented.of(kernel)
        self.call, function = self._own_call(kernel)
        self.around = self._scopes(function)
        self._kernel, self._caller = kernel, function

    @cached_property
    def scopes(self) -> list[_Scope]:
        """Those around the call, then the defaults of every other function of the file."""
        return [*self.around] + [
            _Scope(node, {}, [], f"the defaults of {node.name}()")
            for node in self.file.tree.body
            if isinstance(node, ast.FunctionDef)
            and node.name != self._kernel
            and node is not self._caller
        ]

    def argument(self, position: int, name: str) -> Value | None:
        """What a comment, the project or the file's own call gives a parameter."""
        stated = self.stated(name)
        if stated is not None or self.call is None:
            return stated
        node: ast.expr | None = None
        if position < len(self.call.args) and not any(
            isinstance(a, ast.Starred) for a in self.call.args
        ):
            node = self.call.args[position]
        for keyword in self.call.keywords:
            if keyword.arg == name:
                node = keyword.value
        value = _NOTHING if node is None else self._evaluate(node, self.around)
        return None if value is _NOTHING else Value(value, f"the call in line {self.call.lineno}")

    def stated(self, name: str) -> Value | None:
        """What a comment or the project says."""
        if name in self.comment:
            return Value(self.comment[name], "a comment in the file")
        if name in self.file.project:
            return Value(self.file.project[name], "pyproject.toml")
        return None

    def named(self, name: str) -> Value | None:
        """As `stated`; else a number the file calls `name`, in either case."""
        stated = self.stated(name)
        if stated is not None:
            return stated
        for candidate in dict.fromkeys((name, name.lower(), name.upper())):
            for scope in self.scopes:
                value = self._in_scope(scope, candidate, [scope, self.file.globals])
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return Value(value, scope.name)
            if isinstance(self.file.parser.get(candidate), int):
                return Value(self.file.parser[candidate], "its argument parser")
        return None

    def _own_call(self, kernel: str) -> tuple[ast.Call | None, ast.FunctionDef | None]:
        """The first call of the kernel whose arguments are all known, else the first."""
        calls = list(_calls_of(kernel, self.file.tree, self.file.text))
        for call, function in calls:
            arguments = (*call.args, *(k.value for k in call.keywords))
            scopes = self._scopes(function)
            if all(self._evaluate(a, scopes) is not _NOTHING for a in arguments):
                return call, function
        return calls[0] if calls else (None, None)

    def _scopes(self, function: ast.FunctionDef | None) -> list[_Scope]:
        if function is None:
            return [self.file.globals]
        inner = _Scope(function, {}, function.body, f"{function.name}()")
        return [inner, self.file.globals]

    def _evaluate(self, node: ast.expr, scopes: Sequence[_Scope], depth: int = 0) -> Any:
        """The value of a constant expression of the file, or _NOTHING."""
        if depth > _DEEPEST:
            return _NOTHING

        def inner(part: ast.expr) -> Any:
            return self._evaluate(part, scopes, depth + 1)

        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                scope = next((s for s in scopes if s.knows(name)), scopes[-1])
                return self._in_scope(scope, name, scopes, depth + 1)
            case ast.Attribute(value=ast.Name(id=base), attr=attr):
                return self._attribute(base, attr)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = inner(operand)
                return -value if isinstance(value, int | float) else _NOTHING
            case ast.BinOp(left=left, op=op, right=right):
                return _arithmetic(op, inner(left), inner(right))
            case ast.Tuple(elts=items) | ast.List(elts=items):
                values = [inner(i) for i in items]
                return _NOTHING if any(v is _NOTHING for v in values) else tuple(values)
            case _:
                return _NOTHING

    def _attribute(self, base: str, attr: str) -> Any:
        """An option of the argument parser, or a dtype: nothing that computes."""
        if base in _OPTIONS and attr in self.file.parser:
            return self.file.parser[attr]
        module = self.file.module.get(base)
        if hasattr(module, "__path__"):
            return getattr(module, attr, _NOTHING)
        if not self.file.module and base in self.file.globals.imported:
            return find_dtype(attr) or _NOTHING
        return _NOTHING

    def _in_scope(
        self, scope: _Scope, name: str, scopes: Sequence[_Scope], depth: int = 0
    ) -> Any:  # fmt: skip
        # A live module knows its names better than its text does.
        value = scope.values.get(name, _NOTHING)
        if isinstance(value, _PLAIN) or type(value).__name__ in ("DType", "dtype"):
            return value
        node = scope.assigned(name)
        if node is None or name in scope.values:
            return _NOTHING
        return self._evaluate(node, scopes, depth + 1)


_GROWS: Final = {
    ast.Pow: operator.pow, ast.LShift: operator.lshift, ast.Mult: operator.mul,
}  # fmt: skip
_PLAIN: Final = (int, float, str, bool, tuple)
_OPTIONS: Final = ("args", "opts", "options", "ns")
_DEEPEST: Final = 40  # names that are assigned to each other


class _Scope:
    """Names assigned in one body, and the defaults of the function it belongs to."""

    def __init__(
        self, function: ast.FunctionDef | None, values: Mapping[str, Any],
        body: Sequence[ast.stmt], name: str,
    ) -> None:  # fmt: skip
        self.values = values
        self.name = name
        self.imported: set[str] = set()
        self._nodes: dict[str, ast.expr] = {}
        if function is not None:
            self._nodes.update(_defaults(function))
        for statement in _statements(body):
            for target, value in _assigned(statement):
                self._nodes.setdefault(target, value)
            if isinstance(statement, ast.Import | ast.ImportFrom):
                self.imported |= {(a.asname or a.name).split(".")[0] for a in statement.names}

    def knows(self, name: str) -> bool:
        return name in self.values or self.assigned(name) is not None

    def assigned(self, name: str) -> ast.expr | None:
        node = self._nodes.get(name)
        return None if isinstance(node, ast.Name) and node.id == name else node


def _calls_of(kernel: str, tree: ast.Module, text: str) -> Iterator[_Call]:
    """The calls of a function, outside its own definition, with the function they stand in."""
    lines = _lines_with(kernel, text)
    for node in tree.body:
        function = node if isinstance(node, ast.FunctionDef) else None
        if function is None or function.name != kernel:
            found: list[ast.Call] = []
            _on_lines(node, lines, found)
            yield from ((call, function) for call in found if _called(call) == kernel)


def _lines_with(word: str, text: str) -> list[int]:
    """The numbers of the lines that hold a word, in order."""
    found: list[int] = []
    line, behind = 1, 0
    at = text.find(word)
    while at >= 0:
        line += text.count("\n", behind, at)
        if line not in found[-1:]:
            found.append(line)
        behind, at = at, text.find(word, at + len(word))
    return found


def _holds(node: ast.AST, lines: Sequence[int]) -> bool:
    """Whether one of these lines is of a node; what has no place may hold any."""
    last = getattr(node, "end_lineno", None)
    if last is None:
        return True
    at = bisect_left(lines, getattr(node, "lineno", 0))
    return at < len(lines) and lines[at] <= last


def _on_lines(node: ast.AST, lines: Sequence[int], found: list[ast.Call]) -> None:
    """The calls below `node` on these lines."""
    if not _holds(node, lines):
        return
    if isinstance(node, ast.Call):
        found.append(node)
    for child in ast.iter_child_nodes(node):
        _on_lines(child, lines, found)


def _called(call: ast.Call) -> str:
    """`matmul` for `matmul(...)` and `matmul.compile(...)`."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in ("compile", "get_kernel_source"):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body and of the blocks in it, but not of functions defined there."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, ()))


def _assigned(statement: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            yield from _targets(target, statement.value)
    elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
        yield from _targets(statement.target, statement.value)


def _defaults(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for parameter, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        yield parameter.arg, default
    for parameter, keyword in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword is not None:
            yield parameter.arg, keyword


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        if len(target.elts) == len(value.elts):
            for t, v in zip(target.elts, value.elts, strict=True):
                yield from _targets(t, v)


def _parser_defaults(tree: ast.Module, lines: Sequence[int]) -> Iterator[tuple[str, Any]]:
    """Defaults of `parser.add_argument("--m", default=4096)`, loops over constants unrolled.

    `lines` are those that say `add_argument`: nothing else of the file is looked at.
    """
    found: list[_Named] = []
    _unrolled(tree, {}, lines, found)
    for node, names in found:
        if not (isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument"):
            continue
        flags = [f for f in (_text(a, names) for a in node.args) if f is not None]
        given = {k.arg: k.value for k in node.keywords}
        default = given.get("default")
        value = names.get(default.id) if isinstance(default, ast.Name) else None
        if isinstance(default, ast.Constant):
            value = default.value
        if flags and value is not None:
            target = given.get("dest")
            long = next((f for f in flags if f.startswith("--")), flags[0])
            name = target.value if isinstance(target, ast.Constant) else long.lstrip("-")
            yield str(name).replace("-", "_"), value


def _unrolled(
    node: ast.AST, names: dict[str, Any], lines: Sequence[int], found: list[_Named]
) -> None:
    """Every call below `node` on these lines, with the values of the constant loops around it."""
    if not _holds(node, lines):
        return
    if isinstance(node, ast.For):
        items = _constant(node.iter)
        if isinstance(items, str | tuple | list):
            for item in items:
                inner = {**names, **_bound(node.target, item)}
                for statement in node.body:
                    _unrolled(statement, inner, lines, found)
            return
    if isinstance(node, ast.Call):
        found.append((node, names))
    for child in ast.iter_child_nodes(node):
        _unrolled(child, names, lines, found)


def _constant(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except (ValueError, SyntaxError, RecursionError):
        return None


def _bound(target: ast.expr, item: Any) -> dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: item}
    if isinstance(target, ast.Tuple) and isinstance(item, tuple | list):
        found: dict[str, Any] = {}
        for t, i in zip(target.elts, item, strict=False):
            found |= _bound(t, i)
        return found
    return {}


def _text(node: ast.expr, names: Mapping[str, Any]) -> str | None:
    """A string literal, or an f-string of loop variables."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            found = [
                _text(p.value if isinstance(p, ast.FormattedValue) else p, names) for p in parts
            ]
            return None if None in found else "".join(str(f) for f in found)
        case ast.Name(id=name):
            value = names.get(name)
            return None if value is None else str(value)
        case _:
            return None


def _arithmetic(op: ast.operator, left: Any, right: Any) -> Any:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return _NOTHING
    try:
        value = _number(op, left, right)
    except (ArithmeticError, ValueError):
        return _NOTHING
    return _NOTHING if limits.is_too_large(value) else value


def _number(op: ast.operator, left: Any, right: Any) -> Any:
    if (large := _GROWS.get(type(op))) and limits.operands_too_large(large, left, right):
        return _NOTHING
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv():
            return left // right
        case ast.Mod():
            return left % right
        case ast.Pow():
            return left**right
        case ast.LShift() if isinstance(left, int) and isinstance(right, int):
            return left << right
        case _:
            return _NOTHING
