"""How much does Python compute while a kernel is traced? Asked before it is computed.

    10**10**8        a number of more than MAX_BITS
    [0] * 10**9      a container, or text, of more than MAX_ITEMS
    sum(range(10**10))

What is too large is refused at its expression (TL148), so that neither a command nor an editor ever
hangs on a constant. All of it is far above what a kernel needs.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from string import Formatter
from types import BuiltinFunctionType, MethodDescriptorType, MethodWrapperType
from typing import Any, Final, NoReturn, TypeVar

from tilelang.program.context import Reject, make_diagnostic

_T = TypeVar("_T")

MAX_BITS: Final = 8192  # of an integer; 2,466 digits, which Python still prints
MAX_ITEMS: Final = 1 << 20  # of a container with all that is in it, characters of text included
MAX_COMPREHENDED: Final = 100_000  # items that comprehensions of one kernel run through

_LONG = (str, bytes, bytearray, list, tuple)
_CONTAINERS = (list, tuple, set, frozenset, dict)
_ITERATORS = (range, Iterator)
# Builtins that do not run through what they are given.
_ONLY_LOOK = frozenset(
    {range, len, reversed, isinstance, type, repr, str, bool, callable, hasattr, getattr, slice,
     iter, next, print}
)  # fmt: skip
_WIDTHS = frozenset(
    {"ljust", "rjust", "center", "zfill", "expandtabs", "to_bytes", "bytes", "bytearray"}
)
_FORMATS = frozenset({"format", "__format__", "format_map"})
_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "__mul__": operator.mul, "__rmul__": operator.mul, "__imul__": operator.mul,
    "__pow__": operator.pow, "__lshift__": operator.lshift, "__mod__": operator.mod,
    "__add__": operator.add, "__iadd__": operator.add,
}  # fmt: skip


class LargeValue(Reject):
    """A value is not computed; whoever evaluates the expression reports that and goes on."""


def refuse_large(
    message: str = "this value is too large to be computed while the kernel is traced",
) -> NoReturn:
    """TL148 for a value that is too large to be computed."""
    raise LargeValue(
        make_diagnostic(
            "TL148",
            message,
            label=f"more than {MAX_BITS} bits, or {MAX_ITEMS} items",
            help="compute what is large outside of the kernel, and pass it as a tensor",
        )
    )


def operands_too_large(op: Callable[[Any, Any], Any], left: Any, right: Any) -> bool:
    """Whether `op(left, right)` would be, as far as the operands tell; quick in any case."""
    if isinstance(left, str | bytes) and op is operator.mod:
        return _wide_format(left, right)
    if isinstance(left, int) and isinstance(right, int):
        bits, more = left.bit_length(), right.bit_length()
        if op is operator.pow:
            return bits > 1 and right > 0 and (bits - 1) * right > MAX_BITS
        if op is operator.lshift:
            return bits > 0 and right > 0 and bits + right > MAX_BITS
        return op is operator.mul and bits + more > MAX_BITS + 1
    if op is operator.mul:
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, _LONG) and isinstance(times, int):
                each = weight(sequence) if isinstance(sequence, list | tuple) else len(sequence)
                return times > 0 and each * times > MAX_ITEMS
    if op is operator.add and isinstance(left, _LONG) and isinstance(right, _LONG):
        return len(left) + len(right) > MAX_ITEMS
    return False


def is_too_large(value: Any) -> bool:
    """Whether a value is, which is there already."""
    if isinstance(value, int):
        return value.bit_length() > MAX_BITS
    return isinstance(value, (str, bytes, bytearray, *_CONTAINERS)) and weight(value) > MAX_ITEMS


def checked(value: _T) -> _T:
    """`value`, TL148 if it is too large."""
    if is_too_large(value):
        refuse_large()
    return value


def weight(value: Any) -> int:
    """How many items and characters a value holds, all that is in it counted wherever it occurs.

    Not counted beyond the limit: a list in a list in a list may have any size.
    """
    total, pending = 0, [value]
    while pending and total <= MAX_ITEMS:
        item = pending.pop()
        total += 1
        if isinstance(item, str | bytes | bytearray):
            total += len(item)
        elif isinstance(item, _CONTAINERS):
            if len(item) > MAX_ITEMS:
                return len(item)
            pending += item
            if isinstance(item, dict):
                pending += item.values()
    return total


def bounded(items: Any) -> Iterator[Any]:
    """The items, as long as there are not too many."""
    total = 0
    for item in items:
        total += 1 if isinstance(item, int | float) else weight(item)
        if total > MAX_ITEMS:
            refuse_large()
        yield item


def contains(container: Any, value: Any) -> bool:
    """`value in container`; of a range without running through it, where Python would."""
    if isinstance(container, range) and isinstance(value, int):
        return value in container
    return value in (bounded(container) if isinstance(container, _ITERATORS) else container)


def refuse_wide(spec: str) -> None:
    """TL148 for a format that asks for more characters than there may be."""
    if _is_wide(spec):
        refuse_large()


def call(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`function(*args, **kwargs)`; of Python's own functions neither the work nor the result is
    unbounded. What a function of the user's does is its own affair."""
    if not _is_builtin(function):
        return function(*args, **kwargs)
    if _arguments_too_large(function, args, kwargs):
        refuse_large()
    if not any(function is f for f in _ONLY_LOOK):
        args = tuple(bounded(a) if _may_be_long(a) else a for a in args)
    result = checked(function(*args, **kwargs))
    if any(isinstance(a, (*_CONTAINERS, *_ITERATORS)) for a in args):
        checked(getattr(function, "__self__", None))  # what `x.extend(x)` made of `x`
    return result


def _is_builtin(function: Any) -> bool:
    if isinstance(function, BuiltinFunctionType | MethodWrapperType | MethodDescriptorType):
        return True
    return isinstance(function, type) and function.__module__ in ("builtins", "itertools")


def _may_be_long(value: Any) -> bool:
    if isinstance(value, range):
        return _length(value) > MAX_ITEMS
    return isinstance(value, Iterator)


def _length(items: range) -> int:
    """`len`, which refuses what does not fit a machine word."""
    return max(0, (items.stop - items.start + items.step - (items.step > 0)) // items.step)


def _arguments_too_large(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    name = function.__name__
    owner = getattr(function, "__self__", None)
    numbers = [a for a in (*args, *kwargs.values()) if isinstance(a, int)]
    if name in _WIDTHS:
        return any(abs(n) > MAX_ITEMS for n in numbers)
    if name == "round":
        return any(isinstance(a, int) and abs(a) > MAX_BITS for a in args[1:])
    if name == "pow" and len(args) == 2:
        return operands_too_large(operator.pow, *args)
    if name in _OPERATORS and len(args) == 1 and not isinstance(owner, type(None)):
        return operands_too_large(_OPERATORS[name], owner, args[0])
    if name in ("factorial", "comb", "perm") and numbers:
        few = min(numbers[-1], numbers[0] - numbers[-1]) if name == "comb" else numbers[-1]
        return few > 0 and few * numbers[0].bit_length() > 4 * MAX_BITS
    if name in _FORMATS:
        if isinstance(owner, str) and name != "__format__":
            return _wide_fields(owner, (*args, *kwargs.values()))
        return isinstance(args[-1], str) and _is_wide(args[-1]) if args else False
    if isinstance(owner, str | bytes) and args:
        return _text_too_large(name, owner, args)
    if isinstance(owner, range) and name in ("index", "count") and not numbers:
        return _length(owner) > MAX_ITEMS
    return False


def _text_too_large(name: str, text: Any, args: tuple[Any, ...]) -> bool:
    """Whether a method makes far more of a text."""
    if name == "replace" and len(args) > 1 and all(isinstance(a, type(text)) for a in args[:2]):
        return bool(len(text) + text.count(args[0]) * len(args[1]) > MAX_ITEMS)
    if name == "join" and hasattr(args[0], "__len__"):
        return len(text) * len(args[0]) > MAX_ITEMS
    return name == "translate" and len(text) * weight(args[0]) > 16 * MAX_ITEMS


def _wide_format(text: str | bytes, given: Any) -> bool:
    """Whether `text % given` asks for more characters than there may be."""
    shown = text if isinstance(text, str) else text.decode("latin-1")
    specs = re.findall(r"%(?:\([^)]*\))?([^A-Za-z%]*)", shown)
    values = given if isinstance(given, tuple) else (given,)
    return any(_is_wide(spec) or ("*" in spec and _holds_large(values)) for spec in specs)


def _wide_fields(text: str, given: tuple[Any, ...]) -> bool:
    """Whether `text.format(*given)` does."""
    try:
        specs = [spec or "" for _, _, spec, _ in Formatter().parse(text)]
    except ValueError:
        return False  # Python says so
    return any(_is_wide(spec) or ("{" in spec and _holds_large(given)) for spec in specs)


def _is_wide(spec: str) -> bool:
    return any(len(n) > 9 or int(n) > MAX_ITEMS for n in re.findall(r"\d+", spec))


def _holds_large(values: tuple[Any, ...]) -> bool:
    return any(isinstance(v, int) and abs(v) > MAX_ITEMS for v in values)
