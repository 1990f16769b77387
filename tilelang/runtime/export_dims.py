"""How are the dimensions of a signature written in C, and which argument gives each its value?

A tensor declared (n, 64) gives `n = t_A->shape[0]`, one declared (m * 2, 64) gives
`m = tl_solve(t_B->shape[0], 0, 2)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilelang.codegen.host_expr import HostExpr, c_text, evaluate
from tilelang.program import expr as ex
from tilelang.program.buffer import Buffer, Dim
from tilelang.program.expr import Expr, Var
from tilelang.runtime.dims import dim_vars

_OPERATORS = {"truncdiv": "trunc/", "truncmod": "trunc%"}


@dataclass(frozen=True, slots=True)
class Names:
    """What the parameters and dimensions of one signature are called in C.

    `tensors` are the C variables that hold the DLPack tensor of each buffer, `specs` those that say
    how it was declared.
    """

    values: Mapping[Var, str]
    tensors: Mapping[Buffer, str]
    specs: Mapping[Buffer, str]


@dataclass(frozen=True, slots=True)
class Site:
    """One place where a call shows a size: an extent or a stride of a tensor argument."""

    buffer: Buffer
    axis: int
    dim: Dim
    is_stride: bool

    @property
    def key(self) -> tuple[Buffer, int, bool]:
        """Which place it is: dimensions have no equality."""
        return self.buffer, self.axis, self.is_stride

    def c(self, names: Names) -> str:
        """What the tensor has there, in C."""
        tensor = names.tensors[self.buffer]
        if self.is_stride:
            return f"tl_stride({tensor}, {self.axis})"
        if self.buffer.dtype.is_packed and self.axis == self.buffer.ndim - 1:
            return f"tl_extent(&{names.specs[self.buffer]}, {tensor}, {self.axis})"
        return f"{tensor}->shape[{self.axis}]"


def sites_of(buffers: Sequence[Buffer]) -> tuple[Site, ...]:
    """Every extent, then every declared stride, in the order they are looked at."""
    extents = [Site(b, axis, d, False) for b in buffers for axis, d in enumerate(b.shape)]
    strides = [Site(b, axis, d, True) for b in buffers for axis, d in enumerate(b.strides or ())]
    return (*extents, *strides)


@dataclass(frozen=True, slots=True)
class Binding:
    """How one runtime dimension gets its value; `giver` is the argument that says it."""

    var: Var
    c: str
    giver: str
    site: Site


def bindings(
    dims: Sequence[Var], scalars: Sequence[Var], sites: Sequence[Site], names: Names
) -> tuple[Binding, ...]:
    """A way to each of `dims`, in an order in which they can be computed; some may be missing."""
    known: set[Var] = set(scalars)
    found: list[Binding] = []
    for var in dims:
        plain = [s for s in sites if s.dim is var]
        if plain:
            found.append(Binding(var, _first_given(plain, names), plain[0].buffer.name, plain[0]))
            known.add(var)
    for site in sites:
        unknown = [v for v in dim_vars(site.dim) if v not in known]
        if len(unknown) != 1:
            continue
        solved = _solved(site, unknown[0], names)
        if solved is not None:
            found.append(Binding(unknown[0], solved, site.buffer.name, site))
            known.add(unknown[0])
    return tuple(found)


def host_dim(dim: Dim, names: Mapping[Var, str]) -> HostExpr:
    """A dimension or a condition over dimensions as a host expression over C names."""
    match dim:
        case int():
            return dim
        case ex.Const(value=value):
            return int(value) if isinstance(value, bool) else value
        case Var():
            return names[dim]
        case ex.Binary(op=op, left=left, right=right):
            parts = (host_dim(left, names), host_dim(right, names))
            return _folded((_OPERATORS.get(op, op), *parts))
        case ex.Unary(op="-", operand=operand):
            return _folded(("-", 0, host_dim(operand, names)))
        case ex.Unary(op="not", operand=operand):
            return ("not", host_dim(operand, names))
        case ex.Unary(operand=operand):
            return _folded(("^", host_dim(operand, names), -1))
        case ex.Cast(operand=operand):
            return host_dim(operand, names)
        case ex.Select(condition=condition, true=true, false=false):
            return ("if", *(host_dim(e, names) for e in (condition, true, false)))
        case _:
            raise ValueError(f"{dim} cannot be a dimension")


def renamed(expr: HostExpr, names: Mapping[str, str]) -> HostExpr:
    """A host expression with its names replaced."""
    match expr:
        case str():
            return names[expr]
        case tuple() | list():
            operator, *operands = expr
            return _folded((operator, *(renamed(o, names) for o in operands)))
        case _:
            return expr


def c_dim(dim: Dim, names: Names) -> str:
    """A dimension in C."""
    return c_text(host_dim(dim, names.values))


def _folded(expr: tuple[HostExpr, ...]) -> HostExpr:
    """Constant parts as numbers: C would compute them in 32 bits."""
    if all(isinstance(e, int) for e in expr[1:]):
        try:
            return int(evaluate(expr, {}))
        except ZeroDivisionError:
            return 0
    return expr


def _first_given(sites: Sequence[Site], names: Names) -> str:
    """The size at the first of `sites` whose tensor was passed; 0 if none was."""
    text = ""
    for site in sites:
        if not site.buffer.nullable:
            return f"{text}{site.c(names)}"
        text += f"{names.tensors[site.buffer]} ? {site.c(names)} : "
    return f"{text}0"


def _solved(site: Site, unknown: Var, names: Names) -> str | None:
    """C for the value of `unknown` that makes the dimension at `site` what the tensor has."""
    dim, size = site.dim, site.c(names)
    if isinstance(dim, ex.Binary) and dim.op == "//" and dim.left is unknown:
        # `N // 2` is that of an even N: a packed tensor holds whole bytes.
        found = f"{size} * {c_dim(dim.right, names)}"
    else:
        assert isinstance(dim, Expr)
        at = [c_text(host_dim(dim, {**names.values, unknown: _Number(x)})) for x in (0, 1)]
        if at[0] == at[1]:
            return None
        found = f"tl_solve({size}, {at[0]}, {at[1]})"
    if site.buffer.nullable:
        found = f"{names.tensors[site.buffer]} ? {found} : 0"
    return found


class _Number(str):
    """A number where a name is expected: it prints as itself."""

    def __new__(cls, value: int) -> _Number:
        return super().__new__(cls, f"{value}ll")


def variables(dims: Sequence[Dim]) -> Iterator[Var]:
    """Every variable of `dims`, each once."""
    yield from dict.fromkeys(v for dim in dims for v in dim_vars(dim))
