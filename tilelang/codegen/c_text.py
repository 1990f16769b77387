"""What do the printers of C share: precedences, brackets, string literals, refusal?"""

from __future__ import annotations

from typing import Any, Final

# C precedence, loosest first.
(
    TERNARY, OR, AND, BIT_OR, BIT_XOR, BIT_AND, EQUALITY, COMPARE, SHIFT, SUM, PRODUCT, UNARY,
    POSTFIX,
) = range(1, 14)  # fmt: skip

OPERATORS: Final = {
    "Or": ("||", OR), "And": ("&&", AND), "EQ": ("==", EQUALITY), "NE": ("!=", EQUALITY),
    "LT": ("<", COMPARE), "LE": ("<=", COMPARE), "GT": (">", COMPARE), "GE": (">=", COMPARE),
    "BitwiseOr": ("|", BIT_OR), "BitwiseXor": ("^", BIT_XOR), "BitwiseAnd": ("&", BIT_AND),
    "LShift": ("<<", SHIFT), "RShift": (">>", SHIFT), "Add": ("+", SUM), "Sub": ("-", SUM),
    "Mul": ("*", PRODUCT), "Div": ("/", PRODUCT), "Mod": ("%", PRODUCT),
}  # fmt: skip
COMPARISONS: Final = frozenset({"EQ", "NE", "LT", "LE", "GT", "GE"})
LOGICAL: Final = frozenset({"And", "Or"})
BITWISE: Final = frozenset({"BitwiseOr", "BitwiseXor", "BitwiseAnd", "LShift", "RShift"})


class Unsupported(Exception):
    """Something the language has no meaning for; `node` says where."""

    def __init__(self, what: str, node: Any) -> None:
        super().__init__(what)
        self.what = what
        self.node = node


def enclosed(text: str, level: int, parent: int) -> str:
    """`text`, whose loosest operator has precedence `level`, inside one of `parent`."""
    return f"({text})" if level < parent else text


def c_string(text: str) -> str:
    """A C string literal of `text`, in UTF-8."""
    out = []
    for byte in text.encode():
        char = chr(byte)
        if char in '"\\':
            out.append("\\" + char)
        elif 32 <= byte < 127 and char != "?":
            out.append(char)
        else:
            out.append("\\n" if char == "\n" else f"\\{byte:03o}")
    return '"' + "".join(out) + '"'
