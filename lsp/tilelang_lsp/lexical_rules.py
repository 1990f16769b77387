"""What does Python say of a piece of syntax: in which order it runs, its kind, types in strings?"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator

from tilelang_lsp.definitions import marks
from tilelang_lsp.names import BindingKind

# What stands in their brackets are types.
_OF_TYPES = frozenset({
    "list", "dict", "tuple", "set", "frozenset", "type", "Optional", "Union", "Iterator",
    "Iterable", "Sequence", "Mapping",
})  # fmt: skip


def as_evaluated(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of a node, what is bound after that which it is bound to."""
    match node:
        case ast.Assign(targets=targets, value=value):
            return (value, *targets)
        case ast.AnnAssign(target=target, annotation=annotation, value=ast.expr() as value):
            return (annotation, value, target)
        case ast.For(target=target, iter=iterated, body=body, orelse=orelse):
            return (iterated, target, *body, *orelse)
        case _:
            return ast.iter_child_nodes(node)


def annotation_strings(annotation: ast.expr) -> Iterator[tuple[ast.Constant, str]]:
    """The strings of an annotation that are annotations themselves: no dtype, no `Literal`."""
    match annotation:
        case ast.Constant(value=str(text)):
            yield annotation, text
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from annotation_strings(left)
            yield from annotation_strings(right)
        case ast.Subscript(value=ast.Name(id=name), slice=inner) if name in _OF_TYPES:
            for part in inner.elts if isinstance(inner, ast.Tuple) else (inner,):
                yield from annotation_strings(part)
        case _:
            pass


def function_kind(node: ast.FunctionDef | ast.AsyncFunctionDef) -> BindingKind:
    """What a definition is, by its decorators."""
    found = marks(node)
    if "macro" in found:
        return "macro"
    return "kernel" if {"prim_func", "jit"} & found else "function"
