"""Which values is a kernel compiled with? What `--set` says, else what the file itself uses.

The file's own values are read from its text: a comment `# tilelang: set M=1024`, a call of the
kernel with constants, names assigned around that call, defaults of an argument parser, defaults of
parameters.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tilelang.cli.files import KernelFile
from tilelang_diagnostics import failure

_NOTHING: Final = object()


@dataclass(frozen=True, slots=True)
class Value:
    """A value and where it comes from, in words."""

    value: Any
    origin: str


def parse_settings(settings: Sequence[str]) -> dict[str, Any]:
    """`M=256,N=512` and its like, as a dict; TL725 for what is no NAME=VALUE."""
    found: dict[str, Any] = {}
    for setting in settings:
        for part in _split(setting):
            name, equals, text = part.partition("=")
            if not equals or not name.strip().isidentifier() or not text.strip():
                shown = f"`{part}`" if part.strip() else f"an empty part of `{setting}`"
                raise failure(
                    "TL725",
                    f"{shown} is not NAME=VALUE",
                    help="write --set M=256,N=512; quote a value that holds a comma",
                )
            found[name.strip()] = _literal(text.strip())
    return found


_COMMENT: Final = re.compile(r"^\s*#\s*tilelang:\s*set\s+(?P<settings>\S.*)$", re.MULTILINE)


def _comment_values(text: str) -> dict[str, Any]:
    """What `# tilelang: set M=1024,N=1024` says."""
    return parse_settings([m["settings"].strip() for m in _COMMENT.finditer(text)])


def file_values(file: KernelFile, kernel: str) -> FileValues:
    """The values the file uses for `kernel`."""
    return FileValues(file, kernel)


class FileValues:
    """Looks names up in a file: first around its own call of the kernel, then in all of it."""

    def __init__(self, file: KernelFile, kernel: str) -> None:
        self.file = file
        self.scopes: list[_Scope] = []
        self.call: ast.Call | None = None
        globals_scope = _Scope(None, vars(file.module), file.tree.body, "the file")
        found = _find_call(file.tree, kernel)
        if found is not None:
            self.call, function = found
            if function is not None:
                self.scopes.append(_Scope(function, {}, function.body, f"{function.name}()"))
        self.scopes.append(globals_scope)
        self.comment = _comment_values(file.text)
        self.parser = dict(_parser_defaults(file.tree))
        for node in file.tree.body:
            if isinstance(node, ast.FunctionDef) and node.name != kernel and not any(
                scope.function is node for scope in self.scopes
            ):  # fmt: skip
                self.scopes.append(_Scope(node, {}, [], f"the defaults of {node.name}()"))

    def argument(self, position: int, name: str) -> Value | None:
        """What a comment or the file's own call gives a parameter."""
        if name in self.comment:
            return Value(self.comment[name], "a comment in the file")
        if self.call is None:
            return None
        node: ast.expr | None = None
        if position < len(self.call.args) and not any(
            isinstance(a, ast.Starred) for a in self.call.args
        ):
            node = self.call.args[position]
        for keyword in self.call.keywords:
            if keyword.arg == name:
                node = keyword.value
        value = _NOTHING if node is None else self.evaluate(node)
        if value is _NOTHING or node is None:
            return None
        return Value(value, f"the call in line {self.call.lineno}")

    def named(self, name: str) -> Value | None:
        """A number the file calls `name`, in either case."""
        if name in self.comment:
            return Value(self.comment[name], "a comment in the file")
        for candidate in dict.fromkeys((name, name.lower(), name.upper())):
            for scope in self.scopes:
                value = self._in_scope(scope, candidate)
                if isinstance(value, int | float) and not isinstance(value, bool):
                    return Value(value, scope.name)
            if isinstance(self.parser.get(candidate), int):
                return Value(self.parser[candidate], "its argument parser")
        return None

    def evaluate(self, node: ast.expr) -> Any:
        """The value of a constant expression of the file, or _NOTHING."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                for scope in self.scopes:
                    value = self._in_scope(scope, name)
                    if value is not _NOTHING:
                        return value
                return _NOTHING
            case ast.Attribute(value=ast.Name(id=base), attr=attr):
                if base in ("args", "opts", "options", "ns") and attr in self.parser:
                    return self.parser[attr]
                module = vars(self.file.module).get(base)
                # `T.float16`, `torch.float16`: attributes of modules only, nothing that computes.
                return getattr(module, attr, _NOTHING) if hasattr(module, "__path__") else _NOTHING
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                value = self.evaluate(operand)
                return -value if isinstance(value, int | float) else _NOTHING
            case ast.BinOp(left=left, op=op, right=right):
                return _arithmetic(op, self.evaluate(left), self.evaluate(right))
            case ast.Tuple(elts=items) | ast.List(elts=items):
                values = [self.evaluate(i) for i in items]
                return _NOTHING if any(v is _NOTHING for v in values) else tuple(values)
            case _:
                return _NOTHING

    def _in_scope(self, scope: _Scope, name: str) -> Any:
        node = scope.assigned(name)
        if node is not None and not (isinstance(node, ast.Name) and node.id == name):
            value = self.evaluate(node)
            if value is not _NOTHING:
                return value
        value = scope.values.get(name, _NOTHING)
        plain = isinstance(value, int | float | str | bool | tuple) or type(value).__name__ in (
            "DType", "dtype",
        )  # fmt: skip
        return value if plain else _NOTHING


class _Scope:
    """Names assigned in one body, and the defaults of the function it belongs to."""

    def __init__(
        self, function: ast.FunctionDef | None, values: Mapping[str, Any],
        body: Sequence[ast.stmt], name: str,
    ) -> None:  # fmt: skip
        self.function = function
        self.values = values
        self.name = name
        self._nodes: dict[str, ast.expr] = {}
        if function is not None:
            self._nodes.update(_defaults(function))
        if values:
            return  # a live module knows its names better than its text does
        for target, value in _assignments(body):
            self._nodes.setdefault(target, value)

    def assigned(self, name: str) -> ast.expr | None:
        return self._nodes.get(name)


def _find_call(tree: ast.Module, kernel: str) -> tuple[ast.Call, ast.FunctionDef | None] | None:
    """The first call of `kernel` outside its own definition, and the function it stands in."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == kernel:
            continue
        function = node if isinstance(node, ast.FunctionDef) else None
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call) and _called(inner) == kernel:
                return inner, function
    return None


def _called(call: ast.Call) -> str:
    """`matmul` for `matmul(...)` and `matmul.compile(...)`."""
    function = call.func
    if isinstance(function, ast.Attribute) and function.attr in ("compile", "get_kernel_source"):
        function = function.value
    return function.id if isinstance(function, ast.Name) else ""


def _defaults(function: ast.FunctionDef) -> Iterator[tuple[str, ast.expr]]:
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    for parameter, default in zip(reversed(positional), reversed(arguments.defaults), strict=False):
        yield parameter.arg, default
    for parameter, keyword in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword is not None:
            yield parameter.arg, keyword


def _assignments(body: Sequence[ast.stmt]) -> Iterator[tuple[str, ast.expr]]:
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    yield from _targets(target, node.value)
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                yield from _targets(node.target, node.value)


def _targets(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        if len(target.elts) == len(value.elts):
            for t, v in zip(target.elts, value.elts, strict=True):
                yield from _targets(t, v)


def _parser_defaults(tree: ast.Module) -> Iterator[tuple[str, Any]]:
    """Defaults of `parser.add_argument("--m", default=4096)`, loops over constants unrolled."""
    for node, names in _unrolled(tree, {}):
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


def _unrolled(node: ast.AST, names: dict[str, Any]) -> Iterator[tuple[ast.Call, dict[str, Any]]]:
    """Every call below `node`, with the values of the constant loops around it."""
    if isinstance(node, ast.For):
        items = _constant(node.iter)
        if isinstance(items, str | tuple | list):
            for item in items:
                inner = {**names, **_bound(node.target, item)}
                for statement in node.body:
                    yield from _unrolled(statement, inner)
            return
    if isinstance(node, ast.Call):
        yield node, names
    for child in ast.iter_child_nodes(node):
        yield from _unrolled(child, names)


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
            case ast.Pow() if abs(right) < 64:
                return left**right
            case ast.LShift() if isinstance(left, int) and isinstance(right, int) and right < 64:
                return left << right
            case _:
                return _NOTHING
    except (ArithmeticError, ValueError):
        return _NOTHING


def _split(setting: str) -> Iterator[str]:
    """The parts between commas that are not inside brackets or quotes."""
    part, depth, quote = "", 0, ""
    for character in setting:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{":
            depth += 1
        elif character in ")]}":
            depth -= 1
        if character == "," and depth <= 0 and not quote:
            yield part
            part = ""
        else:
            part += character
    yield part


def _literal(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
