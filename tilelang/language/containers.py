"""Python containers while a kernel is traced: displays, comprehensions, and what is iterated."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from tilelang.language import expressions, limits
from tilelang.language.frame import Frame
from tilelang.program.buffer import Buffer, Region
from tilelang.program.context import Reject, reject
from tilelang.program.expr import Expr
from tilelang.program.indexing import refuse_iteration
from tilelang.program.unknown import Unknown, is_unknown
from tilelang_diagnostics import CompileError


def evaluate(frame: Frame, node: ast.expr) -> Any:
    """The value of a display or comprehension."""
    return limits.checked(_evaluate(frame, node))


def _evaluate(frame: Frame, node: ast.expr) -> Any:
    match node:
        case ast.Tuple(elts=elements):
            return tuple(_elements(frame, elements))
        case ast.List(elts=elements):
            return list(_elements(frame, elements))
        case ast.Set(elts=elements):
            return _hashed(lambda: set(_elements(frame, elements)))
        case ast.Dict():
            return _dict(frame, node)
        case ast.DictComp(key=key, value=value):
            pairs = _comprehend(
                frame,
                node.generators,
                lambda: (expressions.evaluate(frame, key), expressions.evaluate(frame, value)),
            )
            return pairs if isinstance(pairs, Unknown) else _hashed(lambda: dict(pairs))
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp():
            return _comprehension(frame, node)
        case _:
            raise AssertionError(f"not a container: {ast.dump(node)}")


def _elements(frame: Frame, nodes: list[ast.expr]) -> Iterator[Any]:
    for node in nodes:
        if isinstance(node, ast.Starred):
            yield from iterate(expressions.evaluate(frame, node.value))
        else:
            yield expressions.evaluate(frame, node)


def _dict(frame: Frame, node: ast.Dict) -> dict[Any, Any]:
    out: dict[Any, Any] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            merged = expressions.evaluate(frame, value)
            out.update(merged if isinstance(merged, dict) else {})
        else:
            found = expressions.evaluate(frame, key)
            item = expressions.evaluate(frame, value)
            try:
                out[found] = item
            except TypeError as error:
                _refuse_key(error)
    return out


def _comprehension(frame: Frame, node: ast.ListComp | ast.GeneratorExp | ast.SetComp) -> Any:
    values = _comprehend(frame, node.generators, lambda: expressions.evaluate(frame, node.elt))
    if isinstance(values, Unknown):
        return values
    return _hashed(lambda: set(values)) if isinstance(node, ast.SetComp) else values


def _hashed(make: Callable[[], Any]) -> Any:
    """What `make` gives; sets and dicts take no lists."""
    try:
        return make()
    except TypeError as error:
        _refuse_key(error)


def _refuse_key(error: TypeError) -> NoReturn:
    reject("TL183", f"{error}", help="use tuples as keys and as elements of sets")


def _comprehend(
    frame: Frame, generators: list[ast.comprehension], element: Callable[[], Any]
) -> list[Any] | Unknown:
    """The elements, or an unknown when the text does not tell which there are."""
    from tilelang.language import assign

    saved = dict(frame.names)
    out: list[Any] = []
    undecided = False

    def run(level: int) -> None:
        nonlocal undecided
        if level == len(generators):
            out.append(element())
            return
        generator = generators[level]
        items = expressions.evaluate(frame, generator.iter)
        undecided |= is_unknown(items) or expressions.is_symbol(items)
        for item in iterate(items):
            _count(frame)
            assign.bind_target(frame, generator.target, item)
            tests = [expressions.evaluate(frame, test) for test in generator.ifs]
            undecided |= any(is_unknown(t) or expressions.is_symbol(t) for t in tests)
            if not undecided and all(bool(t) for t in tests):
                run(level + 1)

    try:
        run(0)
    finally:
        frame.names = saved
    return Unknown("[… for …]") if undecided else out


def _count(frame: Frame) -> None:
    """TL148 once the comprehensions of a kernel run through too many items together."""
    facts = frame.trace.facts
    facts["comprehended"] = facts.get("comprehended", 0) + 1
    most = limits.MAX_COMPREHENDED
    if facts["comprehended"] > most:
        limits.refuse_large(f"more than {most} items are iterated while tracing")


def iterate(value: Any) -> Iterator[Any]:
    """Iterate a Python container at trace time."""
    if is_unknown(value) or expressions.is_symbol(value):
        return iter(())
    if isinstance(value, (Buffer, Region)):
        refuse_iteration(value)
    if isinstance(value, Expr):
        reject(
            "TL141",
            f"`{value}` is one value and cannot be iterated",
            help="loop over a range: `for i in T.serial(n):`",
        )
    try:
        return _items(iter(value))
    except TypeError:
        reject(
            "TL141",
            f"{type(value).__name__} cannot be iterated",
            help="iterate a range, a list or a tuple",
        )
    except Exception as error:
        _iterating_raised(error)


def _items(items: Iterator[Any]) -> Iterator[Any]:
    """The items, as many as a kernel can use: an iterator may have no end."""
    for _ in range(limits.MAX_ITEMS):
        try:
            item = next(items)
        except StopIteration:
            return
        except (Reject, CompileError, RecursionError):
            raise
        except Exception as error:
            _iterating_raised(error)
        yield item
    reject(
        "TL148",
        f"more than {limits.MAX_ITEMS} items are iterated while tracing",
        help="iterate something that ends, or `T.serial(n)` to keep the loop rolled",
    )


def _iterating_raised(error: Exception) -> NoReturn:
    reject(
        "TL183",
        f"iterating raised {type(error).__name__}: {error}",
        label="iterated while the kernel is traced",
        help="iterate a list made before; this runs in Python, before there is a kernel",
    )


def contains_symbol(value: Any) -> bool:
    """Whether a value, or something in it, is a symbol."""
    if isinstance(value, dict):
        return any(contains_symbol(v) for v in (*value, *value.values()))
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(contains_symbol(v) for v in value)
    return expressions.is_symbol(value)
