"""Which binding does each name of a text mean, by Python's rules of scope?

    from pkg.ops import double            binding `double`, of the name `double` of `pkg.ops`
    def kernel(A, scale): double(A, by=scale)     uses it; calls it with the keyword `by`

Nothing is looked up in other files here: `crossing.py` follows the imports.
"""

from __future__ import annotations

import ast
import re
import unicodedata
import warnings
from dataclasses import replace

from tilelang_diagnostics import Span
from tilelang_diagnostics.sources import split_lines
from tilelang_lsp.definitions import first_line, name_column
from tilelang_lsp.lexical_rules import annotation_strings, as_evaluated, function_kind
from tilelang_lsp.names import (
    Binding,
    BindingKind,
    Chain,
    Mention,
    NamedCall,
    Names,
    Origin,
    Scope,
    ScopeKind,
)


def parse(text: str) -> ast.Module | None:
    """The tree of a text, None if there is none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def names_of(path: str, text: str, tree: ast.Module) -> Names:
    """All names of a text. Raises RecursionError where it nests too deeply."""
    lines = split_lines(text)
    module = Scope("module", "", None, (0, 0), (1, len(lines)))
    reader = _Reader(path, lines, Names(path, module, [module]))
    for statement in tree.body:
        reader.visit(statement, module)
    reader.resolve()
    return reader.names


class _Reader:
    """Collects bindings on the way; what names mean is known only at the end."""

    def __init__(self, path: str, lines: tuple[str, ...], names: Names) -> None:
        self.path, self.lines, self.names = path, lines, names
        self.loads: list[tuple[str, Span, Scope]] = []

    def resolve(self) -> None:
        for name, span, scope in self.loads:
            found = self._home(scope, name).find(name)
            if found is not None:
                found.uses.append(span)
            else:
                self.names.free.setdefault(name, []).append((span, scope))

    def visit(self, node: ast.AST, scope: Scope) -> None:
        """One node and all below it."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node, scope)
            case ast.ClassDef():
                self._class(node, scope)
            case ast.Lambda(args=args, body=body):
                inner = self._scope("function", "<lambda>", scope, node)
                self._arguments(args, scope, inner)
                self.visit(body, inner)
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._comprehension(node, scope)
            case ast.Name(id=name, ctx=ast.Load()):
                if scope.kind == "class" and name not in scope.bindings and scope.parent:
                    scope = scope.parent  # a class has a name from where it is bound
                self.loads.append((name, self._span(node, len(name)), scope))
            case ast.Name(id=name):
                self._bind(scope, name, self._span(node, len(name)))
            case ast.NamedExpr(target=target, value=value):
                home = next(s for s in scope.around() if s.kind != "comprehension")
                self._bind(home, target.id, self._span(target, len(target.id)))
                self.visit(value, scope)
            case ast.Import() | ast.ImportFrom():
                self._import(node, scope)
            case ast.Global(names=names):
                scope.elsewhere.update(dict.fromkeys(names, "global"))
                self._listed(node, scope)
            case ast.Nonlocal(names=names):
                scope.elsewhere.update(dict.fromkeys(names, "nonlocal"))
                self._listed(node, scope)
            case ast.Attribute():
                self._attribute(node, scope)
            case ast.Call():
                self._exports(node, scope)
                self._call(node, scope)
            case _:
                self._named_part(node, scope)
                self._exports(node, scope)
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Subscript):
                    self._quoted(node.value, scope)  # a type with a name
                if isinstance(node, ast.AnnAssign):
                    self._quoted(node.annotation, scope)
                    if node.value is not None and "TypeAlias" in ast.unparse(node.annotation):
                        self._quoted(node.value, scope)
                for child in as_evaluated(node):
                    self.visit(child, scope)

    def _named_part(self, node: ast.AST, scope: Scope) -> None:
        """Names that are bound by a text and no node of their own."""
        match node:
            case ast.ExceptHandler(name=str(name)):
                line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
                found = re.search(rf"\bas\s+({re.escape(name)})\b", line)
                if found is not None:
                    start = found.start(1) + 1
                    self._bind(scope, name, self._at(node.lineno, start, len(name)))
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                self._bind(scope, name, self._ending(node, len(name)))
            case _:
                pass

    def _listed(self, node: ast.Global | ast.Nonlocal, scope: Scope) -> None:
        """The names of `global a, b`, which have no nodes of their own."""
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            line = self.lines[number - 1] if number <= len(self.lines) else ""
            first = self._column(number, node.col_offset) - 1 if number == node.lineno else 0
            for word in re.compile(r"\w+").finditer(line.partition("#")[0], first):
                if unicodedata.normalize("NFKC", word[0]) in node.names:
                    span = self._at(number, word.start() + 1, len(word[0]))
                    self.loads.append((word[0], span, scope))

    def _exports(self, node: ast.AST, scope: Scope) -> None:
        """What a statement says of `__all__`."""
        match node:
            case _ if scope is not self.names.module:
                return
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                self.names.exports, self.names.lists_all = [], True
            case ast.AugAssign(target=ast.Name(id="__all__"), value=value):
                pass
            case ast.Call(
                func=ast.Attribute(ast.Name(id="__all__"), attr="append" | "extend" as word),
                args=[value],
            ):
                value = ast.List([value]) if word == "append" else value
            case _:
                return
        self._export(value)

    def _export(self, value: ast.expr) -> None:
        exports = self.names.exports = self.names.exports or []
        match value:
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                self._export(left)
                self._export(right)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                for item in elements:
                    if isinstance(item, ast.Constant) and isinstance(item.value, str):
                        span = self._span(item, len(item.value) + 1)
                        exports.append((item.value, replace(span, column=span.column + 1)))
                    else:
                        self.names.lists_all = False
            case _:
                self.names.lists_all = False

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef, scope: Scope) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator, scope)
        span = self._defined(node)
        binding = self._bind(scope, node.name, span, function_kind(node))
        inner = self._scope("function", node.name, scope, node)
        said = node.args
        binding.parameters += tuple(a.arg for a in (*said.args, *said.kwonlyargs))
        binding.inner, binding.whole = inner, self._whole(node)
        self._arguments(said, scope, inner)
        if node.returns is not None:
            self.visit(node.returns, scope)
            self._quoted(node.returns, scope)
        for statement in node.body:
            self.visit(statement, inner)

    def _quoted(self, annotation: ast.expr, scope: Scope) -> None:
        """The names of an annotation that is written as a string, or has one."""
        for node, text in annotation_strings(annotation):
            start = self._column(node.lineno, node.col_offset)
            line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
            tree = parse(text) if line[start : start + len(text)] == text else None
            for name in ast.walk(tree) if tree is not None else ():
                if isinstance(name, ast.Name) and name.lineno == 1:
                    column = len(text.encode()[: name.col_offset].decode()) + start + 1
                    self.loads.append((name.id, self._at(node.lineno, column, len(name.id)), scope))

    def _arguments(self, said: ast.arguments, around: Scope, inner: Scope) -> None:
        for default in (*said.defaults, *said.kw_defaults):
            if default is not None:
                self.visit(default, around)
        extra = [a for a in (said.vararg, said.kwarg) if a is not None]
        for argument in (*said.posonlyargs, *said.args, *said.kwonlyargs, *extra):
            if argument.annotation is not None:
                self.visit(argument.annotation, around)
                self._quoted(argument.annotation, around)
            self._bind(inner, argument.arg, self._span(argument, len(argument.arg)), "parameter")

    def _class(self, node: ast.ClassDef, scope: Scope) -> None:
        for part in (*node.decorator_list, *node.bases, *node.keywords):
            self.visit(part, scope)
        binding = self._bind(scope, node.name, self._defined(node), "class")
        binding.whole = self._whole(node)
        inner = self._scope("class", node.name, scope, node)
        for statement in node.body:
            self.visit(statement, inner)

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp, scope: Scope
    ) -> None:
        inner = self._scope("comprehension", "", scope, node)
        for number, part in enumerate(node.generators):
            self.visit(part.iter, inner if number else scope)
            self.visit(part.target, inner)
            for condition in part.ifs:
                self.visit(condition, inner)
        if isinstance(node, ast.DictComp):
            self.visit(node.key, inner)
            self.visit(node.value, inner)
        else:
            self.visit(node.elt, inner)

    def _import(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        if isinstance(node, ast.ImportFrom):
            self._import_from(node, scope)
            return
        for alias in node.names:
            first, _, rest = alias.name.partition(".")
            if alias.asname is not None:
                span = self._ending(alias, len(alias.asname))
                origin = Origin(alias.name)
                self._bind(scope, alias.asname, span, "import", origin, True)
                self._mention(self._span(alias, len(alias.name)), alias.name, origin)
            else:
                span = self._span(alias, len(first))
                self._bind(scope, first, span, "import", Origin(first))
                if rest:
                    self._mention(self._span(alias, len(alias.name)), alias.name,
                                  Origin(alias.name))  # fmt: skip

    def _import_from(self, node: ast.ImportFrom, scope: Scope) -> None:
        module, level = node.module or "", node.level
        line = self.lines[node.lineno - 1] if node.lineno <= len(self.lines) else ""
        column = self._column(node.lineno, node.col_offset)
        said = re.compile(rf"from\s*\.*\s*({re.escape(module)})(?=\s|$)").match(line, column - 1)
        if said is not None and module:
            self._mention(self._at(node.lineno, said.start(1) + 1, len(module)), module,
                          Origin(module, level))  # fmt: skip
        for alias in node.names:
            origin = Origin(module, level, alias.name)
            if alias.name == "*":
                self.names.stars.append(Origin(module, level))
            elif alias.asname is not None:
                span = self._ending(alias, len(alias.asname))
                again = alias.asname == alias.name
                self._bind(scope, alias.asname, span, "import", origin, not again)
                self._mention(self._span(alias, len(alias.name)), alias.name, origin)
            else:
                self._bind(scope, alias.name, self._span(alias, len(alias.name)), "import", origin)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> None:
        parts: list[Span] = []
        names: list[str] = []
        base: ast.expr = node
        while isinstance(base, ast.Attribute):
            parts.append(self._ending(base, len(base.attr)))
            names.append(base.attr)
            base = base.value
        self.visit(base, scope)
        if isinstance(base, ast.Name):
            root = self._span(base, len(base.id))
            spans, attributes = tuple(parts[::-1]), tuple(names[::-1])
            self.names.chains.append(Chain(root, base.id, spans, attributes, scope))

    def _call(self, node: ast.Call, scope: Scope) -> None:
        for child in ast.iter_child_nodes(node):
            self.visit(child, scope)
        owner: Span | None = None
        match node.func:
            case ast.Name(id=name):
                span = self._span(node.func, len(name))
            case ast.Attribute(value=value, attr=name):
                span = self._ending(node.func, len(name))
                if isinstance(value, ast.Name):
                    owner = self._span(value, len(value.id))
                elif isinstance(value, ast.Attribute):
                    owner = self._ending(value, len(value.attr))
            case _:
                return
        words = tuple(
            (word.arg, self._span(word, len(word.arg)))
            for word in node.keywords if word.arg is not None
        )  # fmt: skip
        self.names.calls.append(NamedCall(span, name, owner, words, scope))

    def _bind(
        self, scope: Scope, name: str, span: Span, kind: BindingKind | None = None,
        origin: Origin | None = None, renamed: bool = False,
    ) -> Binding:  # fmt: skip
        home = self._home(scope, name)
        known = home.bindings.get(name)
        if known is None:
            plain: BindingKind = "constant" if home.kind == "module" else "variable"
            known = home.bindings[name] = Binding(name, home, kind or plain)
            known.origin, known.renamed = origin, renamed
        elif kind is not None and known.kind in ("constant", "variable"):
            known.kind = kind
        if known.origin is None and origin is not None:  # `except ImportError: f = None`
            known.origin, known.renamed, known.kind = origin, renamed, "import"
        elif origin is not None and (origin, renamed) not in known.origins:
            known.others.append((origin, renamed))
        known.bound.append(span)
        known.imported += origin is not None
        return known

    def _home(self, scope: Scope, name: str) -> Scope:
        """The scope where a name is bound that is bound in `scope`."""
        said = scope.elsewhere.get(name)
        if said == "global":
            return self.names.module
        if said == "nonlocal":
            for around in scope.around():
                if around is not scope and around.kind == "function" and name in around.bindings:
                    return around
        return scope

    def _scope(self, kind: ScopeKind, name: str, parent: Scope, node: ast.AST) -> Scope:
        lines: tuple[int, int] = (node.lineno, node.end_lineno or node.lineno)  # type: ignore[attr-defined]
        made = Scope(kind, name, parent, (lines[0], node.col_offset), lines)  # type: ignore[attr-defined]
        self.names.scopes.append(made)
        return made

    def _mention(self, span: Span, text: str, origin: Origin) -> None:
        self.names.mentions.append(Mention(span, text, origin))

    def _defined(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Span:
        """The name of a definition."""
        column = self._column(node.lineno, node.col_offset)
        return self._at(node.lineno, name_column(self.lines, node.lineno, column), len(node.name))

    def _whole(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> Span:
        first = first_line(node)
        last = node.end_lineno or node.lineno
        column = self._column(node.lineno, node.col_offset)
        end = self._column(last, node.end_col_offset or 0)
        return Span(self.path, first, column, last, end)

    def _span(self, node: ast.AST, length: int) -> Span:
        line: int = node.lineno  # type: ignore[attr-defined]
        return self._at(line, self._column(line, node.col_offset), length)  # type: ignore[attr-defined]

    def _ending(self, node: ast.AST, length: int) -> Span:
        """The last `length` characters of a node."""
        line: int = node.end_lineno  # type: ignore[attr-defined]
        end = self._column(line, node.end_col_offset)  # type: ignore[attr-defined]
        return self._at(line, end - length, length)

    def _at(self, line: int, column: int, length: int) -> Span:
        return Span(self.path, line, column, line, column + length)

    def _column(self, line: int, byte_offset: int) -> int:
        text = self.lines[line - 1] if line <= len(self.lines) else ""
        if text.isascii():
            return byte_offset + 1
        return len(text.encode()[:byte_offset].decode(errors="replace")) + 1
