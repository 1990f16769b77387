"""What does a call of printed IR stand for? The inverse of what `text_expr` says of calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from tilelang.ir import attrs, build, tirx
from tilelang.ir.device_op import DeviceOp
from tilelang.ir.device_ops import ALIASES, constants_of, find_op
from tilelang.ir.read_error import Mistake, meant
from tilelang.ir.read_expr import ExprReader, is_dtype, language_name
from tilelang.ir.text_forms import (
    Meaning,
    dtype_of,
    is_element,
    known_names,
    meaning,
    result_of,
)
from tilelang.program.tile_ops import SCHEMAS

_CALL = "call"  # T.call('operator', …): what no short form stands for


class CallReader(ExprReader):
    """Reads expressions, and calls of operators."""

    def operator(self, name: str, node: ast.Call, ret: Any = None, statement: bool = False) -> Any:
        """A call of an operator; `ret` is its result where the line says it elsewhere. One that
        is a statement has none unless its operator says so."""
        place = self.site()
        usual = "void" if statement else None
        said = self._said(node)
        ret = said.pop("ret", None) if "ret" in said else ret
        if name == _CALL:
            return self._in_full(node, said, ret or usual, place)
        if name == "reinterpret" and len(node.args) == 2:
            value = self.operand(node.args[0], "value")
            return tirx.Call("tirx.reinterpret", [value], ret_ty=self.dtype(node.args[1]),
                             span=place)  # fmt: skip
        if name not in known_names() and name not in self.operators:
            hint = meant(name, sorted(known_names()))
            raise Mistake("TL111", f"the IR has no operation `T.{name}`", node.func,
                          help=hint)  # fmt: skip
        args, found = self._operands(name, node, said)
        if found.op.startswith(attrs.OP_PREFIX):
            tirx.ensure_op(attrs.short_name(found.op))
        ret = ret or result_of(found.op, args) or usual
        made = self._made(found.op, args, found.said, ret, place, node)
        self._check(found, made, node)
        return made

    def _said(self, node: ast.Call) -> dict[str, Any]:
        """Its keywords, but for those that are operands."""
        found: dict[str, Any] = {}
        for word in node.keywords:
            if word.arg is None:
                raise Mistake("TL131", "`**` has no form in the IR", word.value)
            if word.arg == "ret":
                found["ret"] = self.result(word.value)
            elif word.arg not in ("clear_accum", "mbar"):
                found[word.arg] = self.value(word.value)
        return found

    def result(self, node: ast.expr) -> Any:
        """`'float32'`, or `T.handle('float32', 'global')`, as a type."""
        if isinstance(node, ast.Call) and language_name(node.func) == "handle":
            self.count(node, 2)
            element = tirx.PrimType(self.dtype(node.args[0]))
            return tirx.PointerType(element, self.text(node.args[1]))
        text = self.text(node)
        if text not in ("void", "handle") and not is_dtype(text):
            raise Mistake("TL230", f"there is no dtype {text!r}", node)
        return text

    def _operands(
        self, name: str, node: ast.Call, said: dict[str, Any]
    ) -> tuple[list[Any], Meaning]:
        by_name = {word.arg: word.value for word in node.keywords}
        element = bool(node.args) and self._is_element(node.args[0])
        found = meaning(name, said, element)
        args = [self.operand(arg, found.kind(n)) for n, arg in enumerate(node.args)]
        if name == "clear":
            self.count(node, 1)
            args.append(build.const(0, dtype_of(args[0]), self.span))
        elif name == "gemm":
            accumulate = by_name.get("clear_accum")
            if accumulate is None:
                args.append(build.const(0, "bool", self.span))
            elif not (isinstance(accumulate, ast.Constant) and accumulate.value is None):
                args.append(self.operand(accumulate, found.kind(3)))
            if "mbar" in by_name:
                args.append(self.operand(by_name["mbar"], found.kind(4)))
        elif "clear_accum" in by_name or "mbar" in by_name:
            word = "mbar" if "mbar" in by_name else "clear_accum"
            raise Mistake("TL112", f"`T.{name}` takes no `{word}`", node)
        return args, found

    def _is_element(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call) and language_name(node.func) == "region" and node.args:
            node = node.args[0]
        kept = self._taken
        try:
            return is_element(self.region(node))
        except Mistake:
            return False
        finally:
            self._taken = kept

    def _in_full(self, node: ast.Call, said: dict[str, Any], ret: Any, place: Any) -> Any:
        if not node.args:
            raise Mistake("TL113", "T.call names an operator", node)
        op = self.text(node.args[0])
        args = [self.operand(arg, "either") for arg in node.args[1:]]
        if attrs.is_ours(op):
            short = attrs.short_name(op)
            if short not in known_names() and short not in self.operators:
                raise Mistake("TL111", f"the IR has no operator {op!r}", node.args[0])
            tirx.ensure_op(short)
        elif op not in _operators():
            raise Mistake("TL111", f"the IR has no operator {op!r}", node.args[0])
        return self._made(op, args, said.get("attrs") or {}, ret, place, node)

    def _made(
        self, op: str, args: Sequence[Any], said: Any, ret: Any, place: Any, node: ast.Call
    ) -> Any:
        """The call; without a word about its result it has that of its operator."""
        result = ret or result_of(op, args)
        if result is None:
            first = args[0] if args else None
            result = "int32" if first is None or isinstance(first, tirx.StringImm) else (
                dtype_of(first)
            )  # fmt: skip
        try:
            return tirx.Call(op, list(args), attrs=dict(said) or None, ret_ty=result, span=place)
        except Exception as error:  # whatever TVM raises for operands it refuses
            raise Mistake("TL116", f"`{ast.unparse(node.func)}` does not take these operands",
                          node) from error  # fmt: skip

    def _check(self, found: Meaning, call: Any, node: ast.Call) -> None:
        """The number of operands, and the names of attributes, where a table has them."""
        shown = ast.unparse(node.func)
        name = attrs.short_name(found.op)
        schema = SCHEMAS.get(name)
        device = find_op(name) if attrs.is_ours(found.op) else None
        if schema is not None:
            least = sum(not operand.startswith("?") for operand in schema.operands)
            count, known = len(call.args), set(schema.attrs)
            most = len(schema.operands)
        elif device is not None:
            least, count, most = device.least_operands, len(call.args), len(device.operands)
            known = {constant.name for constant in device.constants}
            known |= set(ALIASES[name][1]) if name in ALIASES else set()
        else:
            return
        if not least <= count <= most:
            code = "TL113" if count < least else "TL114"
            wanted = str(least) if least == most else f"{least} to {most}"
            raise Mistake(code, f"`{shown}` has {count} operands, not {wanted}", node)
        for word in set(found.said) - known:
            place = next((k.value for k in node.keywords if k.arg == word), node)
            hint = meant(word, sorted(known))
            raise Mistake("TL112", f"`{shown}` takes no `{word}`", place, help=hint)
        if schema is None and device is not None:
            self._check_constants(device, call, node)

    def _check_constants(self, device: DeviceOp, call: Any, node: ast.Call) -> None:
        """The constants of a device operation: there, and among those there are."""
        said = constants_of(call)
        for row in device.constants:
            value = device.constant(row.name, said)
            if value is None and not row.of_warp:
                raise Mistake("TL113", f"`{ast.unparse(node.func)}` needs `{row.name}=`", node)
            if value is not None and row.values and value not in row.values:
                place = next((k.value for k in node.keywords if k.arg == row.name), node)
                legal = ", ".join(str(v) for v in row.values)
                raise Mistake("TL117", f"`{row.name}` is {value}, not one of {legal}", place)


def _operators() -> frozenset[str]:
    return frozenset(str(name) for name in tirx.Op.list_op_names())
