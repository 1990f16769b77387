"""What calls a parameter or dimension of a kernel by its name without being a use of it?

# tilelang: set page=16                 a comment of the file: it follows
N = T.const("N")                        what values are given to: follows, if it is the same
[tool.tilelang.set]  page = 16          the project: a rename is refused
def attention_reference(Q, K, page):    the file's own reference and `inputs`, which are given what
def inputs(page): return {"Q": …}       they call so: refused, too
"""

from __future__ import annotations

import ast
import os
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.crossing import Crossing
from tilelang_lsp.lexical import parse
from tilelang_lsp.names import Binding
from tilelang_lsp.set_comments import Set, sets_of

# As `tilelang run` looks for them, the first that there is.
_REFERENCES = ("{}_reference", "reference_{}", "{}_ref", "ref_{}", "reference", "ref_program",
               "reference_program", "ref")  # fmt: skip
_INPUTS = ("{}_inputs", "inputs")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_TENSORS = ("Tensor", "Buffer", "ptr", "prim_func", "macro")


@dataclass(frozen=True, slots=True)
class ByName:
    """Places to rename as well, or why there can be no new name."""

    places: tuple[Span, ...] = ()
    refused: str = ""


def by_name(across: Crossing, root: Binding, project: tuple[str, str] | None) -> ByName:
    """What else calls a parameter, or a dimension, by its name."""
    text = across.text(root.path) or ""
    if root.kind != "parameter":
        return _of_dimension(across, root, project, text)
    tree = parse(text)
    top = None if tree is None else _around(tree, root.bound[0].line)
    if tree is None or top is None or not _holds_a_kernel(top):
        return ByName()
    for refused in (_given(tree, top, root, _is_value(top, root)), _of_project(root.name, project)):
        if refused:
            return ByName(refused=refused)
    found = [s for s in sets_of(text, tree, root.path) if s.name == root.name]
    refused = _shared(tree, top, found)
    own = tuple(s.place for s in found if s.owner in ("", top.name))
    return ByName(refused=refused) if refused else ByName(own)


def _of_dimension(
    across: Crossing, root: Binding, project: tuple[str, str] | None, text: str
) -> ByName:
    tree = parse(text)
    written = None if tree is None else name_in_string(tree, text, root)
    if tree is None or written is None:
        return ByName()
    top = _around(tree, root.bound[0].line)
    users = [top] if top is not None else [
        n for n in tree.body if isinstance(n, _Function) and _mentions(n, root.name)
    ]  # fmt: skip
    found = [s for s in sets_of(text, tree, root.path) if s.name == root.name]
    reasons = [
        *(_given(tree, user, root, True) for user in users), _of_project(root.name, project),
        *(_in_calls(tree, user, root.name) for user in users),
        _shared_dimension(tree, users, found),
        *(_set_elsewhere(across, root) if top is None else ()),
    ]  # fmt: skip
    refused = next((reason for reason in reasons if reason), "")
    owners = {"", *(user.name for user in users)}
    own = tuple(s.place for s in found if s.owner in owners)
    return ByName(refused=refused) if refused else ByName((written, *own))


def name_in_string(tree: ast.Module, text: str, root: Binding) -> Span | None:
    """Where `"M, N"` of `M, N = T.const("M, N")` says the name that is bound; None if it says
    another one."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(
                targets=[target],
                value=ast.Call(
                    func=ast.Attribute(attr="const" | "dynamic"),
                    args=[ast.Constant(value=str(names)) as said, *_],
                ),
            ) if node.lineno <= root.bound[0].line <= (node.end_lineno or node.lineno):
                targets = target.elts if isinstance(target, ast.Tuple) else [target]
                bound = [t.id if isinstance(t, ast.Name) else "" for t in targets]
                parts = names.split(",")
                plain = ast.get_source_segment(text, said) in (f'"{names}"', f"'{names}'")
                if not plain or len(parts) != len(bound) or root.name not in bound:
                    return None
                at = bound.index(root.name)
                if parts[at].strip() != root.name:
                    return None
                lead = len(parts[at]) - len(parts[at].lstrip())
                before = len(",".join(parts[:at])) + (at > 0) + lead
                line = split_lines(text)[said.lineno - 1]
                start = len(line.encode()[: said.col_offset].decode()) + 2 + before
                return Span(root.path, said.lineno, start, said.lineno, start + len(root.name))
    return None


def _mentions(function: _Function, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(function))


def _in_calls(tree: ast.Module, kernel: _Function, name: str) -> str:
    """Why a value that calls give by name keeps it from being renamed."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and any(k.arg == name for k in node.keywords):
            called = ast.unparse(node.func)
            if called.split(".")[0] == kernel.name:
                return f"line {node.lineno} gives `{called}` `{name}` by that name"
    return ""


def _shared_dimension(tree: ast.Module, users: list[_Function], found: list[Set]) -> str:
    """Why a comment for all kernels of a file cannot follow the dimension of some."""
    for said in found:
        for other in tree.body if not said.owner else ():
            if isinstance(other, _Function) and other not in users and _holds_a_kernel(other):
                if _mentions(other, said.name) or said.name in {a.arg for a in _parameters(other)}:
                    return (f"line {said.place.line} sets `{said.name}` for `{other.name}`, too: "
                            "write that comment above each of them")  # fmt: skip
    return ""


def _set_elsewhere(across: Crossing, root: Binding) -> Iterator[str]:
    """Why comments of other files, which take the dimension from this one, keep its name."""
    for path in across.holding({root.name}, root):
        text = across.text(path) or ""
        tree = parse(text) if path != root.path else None
        for said in sets_of(text, tree, path) if tree is not None else ():
            if said.name == root.name:
                file = os.path.basename(path)
                yield f"line {said.place.line} of {file} sets `{root.name}`: rename it there first"


def _around(tree: ast.Module, line: int) -> _Function | None:
    functions = (n for n in tree.body if isinstance(n, _Function))
    return next((f for f in functions if f.lineno <= line <= (f.end_lineno or 0)), None)


def _holds_a_kernel(function: _Function) -> bool:
    """Whether it may be one, or make one: it launches."""
    return any(isinstance(n, ast.Attribute) and n.attr == "Kernel" for n in ast.walk(function))


def _shared(tree: ast.Module, top: _Function, found: list[Set]) -> str:
    """Why a comment for all kernels of a file cannot follow the parameter of one."""
    for said in found:
        for other in tree.body if not said.owner else ():
            if isinstance(other, _Function) and other is not top and _holds_a_kernel(other):
                if said.name in {a.arg for a in _parameters(other)}:
                    return (f"line {said.place.line} sets `{said.name}` for `{other.name}`, too: "
                            "write that comment above each of them")  # fmt: skip
    return ""


def _of_project(name: str, project: tuple[str, str] | None) -> str:
    try:
        said = tomllib.loads(project[1]) if project is not None else {}
        values = said.get("tool", {}).get("tilelang", {}).get("set", {})
    except (tomllib.TOMLDecodeError, AttributeError):
        return ""
    if isinstance(values, dict) and name in values:
        return f"[tool.tilelang.set] of pyproject.toml sets `{name}`: rename it there first"
    return ""


def _given(tree: ast.Module, top: _Function, root: Binding, is_value: bool) -> str:
    """Why the functions that a run calls with, or for, a parameter keep it from being renamed."""
    functions = {n.name: n for n in tree.body if isinstance(n, _Function)}
    reference, inputs = (_first(functions, names, top.name) for names in (_REFERENCES, _INPUTS))
    if is_value:
        for function in (reference, inputs):
            if function is not None and root.name in {a.arg for a in _own_parameters(function)}:
                return (
                    f"`{function.name}` is given `{root.name}` by that name: rename it there first"
                )
    elif inputs is not None and root.name in _keys(inputs):
        return f"`{inputs.name}` makes `{root.name}` by that name: rename it there first"
    return ""


def _first(
    functions: dict[str, _Function], names: tuple[str, ...], kernel: str
) -> _Function | None:
    return next((functions[n] for name in names if (n := name.format(kernel)) in functions), None)


def _is_value(top: _Function, root: Binding) -> bool:
    """Whether it is a value to compile with: none that is given to the kernel when it runs."""
    own = next((a for a in _own_parameters(top) if a.arg == root.name), None)
    if own is None or root.scope.name != top.name:
        return False
    said = [own.annotation, *top.decorator_list]
    said += [n.annotation for n in ast.walk(top) if isinstance(n, ast.AnnAssign)
             and isinstance(n.target, ast.Name) and n.target.id == root.name]  # fmt: skip
    text = " ".join(ast.unparse(node) for node in said if node is not None)
    return not any(word in text for word in _TENSORS)


def _keys(function: _Function) -> Iterator[str]:
    """The keys of the dicts in a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.Dict):
            yield from (str(k.value) for k in node.keys if isinstance(k, ast.Constant))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "dict":
            yield from (k.arg for k in node.keywords if k.arg is not None)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
            if isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str):
                yield node.slice.value


def _own_parameters(function: _Function) -> list[ast.arg]:
    given = function.args
    return [*given.posonlyargs, *given.args, *given.kwonlyargs]


def _parameters(function: _Function) -> Iterator[ast.arg]:
    """Its own, and those of the functions in it."""
    for node in ast.walk(function):
        if isinstance(node, _Function):
            yield from _own_parameters(node)
