"""What do the functions, classes and constants of a text say of themselves?

def double(x, by=2):        its parameters as they are written, and its documentation
    '''Twice.'''
BLOCK = 64                  its value as it is written
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from tilelang_lsp.model import Entry, Parameter
from tilelang_lsp.names import Binding
from tilelang_lsp.recovery import recover

MOST_TEXTS = 16  # whose declarations are kept
LONGEST_VALUE = 60  # of what is shown of a constant


@dataclass(frozen=True, slots=True)
class Declared:
    """A definition: `header` is its first line, `entry` what is told as of names of the language.

    `entry.parameters` are those of a function; `entry.line` is where its name is bound.
    """

    header: str
    entry: Entry


def declaration(text: str, binding: Binding) -> Declared | None:
    """What a text says of a name that it binds, if it does so once."""
    if binding.origin is not None or len(binding.bound) > 1:
        return None
    return declarations(text).get((binding.name, binding.bound[0].line))


@lru_cache(maxsize=MOST_TEXTS)
def declarations(text: str) -> Mapping[tuple[str, int], Declared]:
    """All of a text, by name and line."""
    readable = recover(text)
    found: dict[tuple[str, int], Declared] = {}
    try:
        for node in ast.walk(readable.tree) if readable is not None else ():
            for declared in _of(node):
                found[declared.entry.name, declared.entry.line] = declared
    except RecursionError:  # a value that nests deeply is written by recursion
        pass
    return found


def _of(node: ast.AST) -> Iterator[Declared]:
    match node:
        case ast.FunctionDef(name=name, args=args):
            entry = Entry(name, "function", _doc(node), tuple(_parameters(args)), line=node.lineno)
            yield Declared(f"def {name}({ast.unparse(args)})", entry)
        case ast.ClassDef(name=name, bases=bases):
            of = f"({', '.join(map(ast.unparse, bases))})" if bases else ""
            yield Declared(f"class {name}{of}", Entry(name, "class", _doc(node), line=node.lineno))
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield _constant(name, value, node.lineno)
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield _constant(name, value, node.lineno)
        case _:
            pass


def _constant(name: str, value: ast.expr, line: int) -> Declared:
    written = ast.unparse(value)
    shown = written if len(written) <= LONGEST_VALUE else f"{written[:LONGEST_VALUE]}…"
    return Declared(f"{name} = {shown}", Entry(name, "constant", "", line=line))


def _doc(node: ast.FunctionDef | ast.ClassDef) -> str:
    return ast.get_docstring(node) or ""


def _parameters(args: ast.arguments) -> Iterator[Parameter]:
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + [*args.defaults]
    for number, (one, default) in enumerate(zip(plain, defaults, strict=True), 1):
        yield _parameter(one, default, keyword=number > len(args.posonlyargs))
    if args.vararg is not None:
        yield Parameter(args.vararg.arg, f"*{_written(args.vararg)}", False, True)
    elif args.kwonlyargs:
        yield Parameter("*", "*", False)
    for one, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _parameter(one, default, keyword=True)
    if args.kwarg is not None:
        yield Parameter(args.kwarg.arg, f"**{_written(args.kwarg)}", False, True)


def _parameter(one: ast.arg, default: ast.expr | None, keyword: bool) -> Parameter:
    joint = "=" if one.annotation is None else " = "
    given = "" if default is None else f"{joint}{ast.unparse(default)}"
    return Parameter(one.arg, _written(one) + given, keyword)


def _written(one: ast.arg) -> str:
    return one.arg if one.annotation is None else f"{one.arg}: {ast.unparse(one.annotation)}"
