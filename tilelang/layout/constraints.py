"""What ops demand of layouts: frozen constraint values over named variables.

An op never picks a layout for anybody else. It says what it needs, with its own source position,
and `solve` finds layouts for all variables, or the smallest set of ops that cannot agree.

A worked example: two gemms with a softmax between them, as in attention.

    >>> def op(text, line):
    ...     return Origin(text, Span("attention.py", line, 9, line, 40))
    >>> grid = partition_warps(64, 64, warps=4, policy=GemmWarpPolicy.FullRow)
    >>> atom = find_atoms("float16", "float32", 80)[0]
    >>> acc = fragment("acc_s", (64, 64), bits=32)
    >>> best = fragment("scores_max", (64,), bits=32)
    >>> cast = fragment("acc_s_cast", (64, 64), bits=16)
    >>> nest = loop("i, j", (64, 64))
    >>> problem = Problem(threads=128, constraints=(
    ...     Fixed(acc, accumulator(64, 64, grid, atom), op("T.gemm(Q, K, acc_s)", 12)),
    ...     Reduced(best, acc, 1, op("T.reduce_max(acc_s, scores_max)", 14)),
    ...     # for i, j in T.Parallel(64, 64): acc_s_cast[i, j] = exp2(acc_s[i, j] - scores_max[i])
    ...     Access(nest, acc, identity((64, 64)), Mode.READ, op("acc_s[i, j]", 16)),
    ...     Access(nest, best, Layout((64, 64), lambda i, j: (i,)), Mode.READ, op("...", 16)),
    ...     Access(nest, cast, identity((64, 64)), Mode.WRITE, op("acc_s_cast[i, j]", 16)),
    ...     Fixed(cast, operand_a(64, 64, grid, atom), op("T.gemm(acc_s_cast, V, acc_o)", 18)),
    ... ))
    >>> solution = solve(problem)
    >>> solution.conflicts, solution.conversions
    ((), ())
    >>> str(solution.layouts[best])
    'thread=i//16*32 + i%8*4 + rep, slot=i//8%2'
    >>> print(solution.why(best))
    scores_max: thread=i//16*32 + i%8*4 + rep, slot=i//8%2
      from acc_s, by T.reduce_max(acc_s, scores_max) at attention.py:14:9
    acc_s: thread=i//16*32 + i%8*4 + j//2%4
      required by T.gemm(Q, K, acc_s) at attention.py:12:9

Which constraint for what:

* an op whose instruction dictates registers: `Fixed(var, fragment, origin)`; a user's
  annotation: the same with `convertible=False`;
* a shared tile with several workable layouts: `OneOf(var, options, origin)`;
* `T.Parallel`, and copies and fills with a fragment on either side: a `loop` variable and one
  `Access` per buffer element read or written, in fragments; `Memory` per access outside them;
* tile ops that work element by element in place: `Equals`; reductions: `Reduced`;
* an extent the instruction cannot split: `Divides`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from tilelang.layout.fragment import Fragment
from tilelang.layout.index_map import checked_shape
from tilelang.layout.layout import Layout
from tilelang_diagnostics.model import Span

AnyLayout: TypeAlias = Layout | Fragment


class Kind(Enum):
    """What a variable stands for, hence what its layout is."""

    FRAGMENT = "fragment"  # a tile in registers: Fragment
    SHARED = "shared"  # a tile in shared memory: Layout
    LOOP = "loop"  # the iterations of a parallel loop nest: Fragment


@dataclass(frozen=True, slots=True)
class Variable:
    """Something that needs a layout. Equal names mean the same variable."""

    name: str
    kind: Kind
    shape: tuple[int, ...]
    bits: int = 32

    def __post_init__(self) -> None:
        checked_shape(self.shape)
        if self.bits < 1:
            raise ValueError(f"{self.name}: elements have at least one bit, got {self.bits}")

    def __str__(self) -> str:
        return f"loop {self.name}" if self.kind is Kind.LOOP else self.name


def fragment(name: str, shape: tuple[int, ...], bits: int) -> Variable:
    """A tile in registers."""
    return Variable(name, Kind.FRAGMENT, shape, bits)


def shared(name: str, shape: tuple[int, ...], bits: int) -> Variable:
    """A tile in shared memory."""
    return Variable(name, Kind.SHARED, shape, bits)


def loop(name: str, extents: tuple[int, ...]) -> Variable:
    """A parallel loop nest."""
    return Variable(name, Kind.LOOP, extents)


def identity(shape: tuple[int, ...]) -> Layout:
    """The index map of an access `buffer[i, j]` in a loop over `i, j`."""
    return Layout(shape, lambda *index: index)


@dataclass(frozen=True, slots=True)
class Origin:
    """Who says so: the op as the user wrote it, and where."""

    op: str
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.op} at {self.span}" if self.span else self.op


class Mode(Enum):
    """What an access does to a fragment."""

    READ = "reads"
    WRITE = "writes"
    UPDATE = "updates"


@dataclass(frozen=True, slots=True)
class Fixed:
    """`var` has this layout here. When another op fixed another one, and both are `convertible`,
    the first stands and this op converts at its own place."""

    var: Variable
    layout: AnyLayout
    origin: Origin
    convertible: bool = True

    def __post_init__(self) -> None:
        wanted = Layout if self.var.kind is Kind.SHARED else Fragment
        if not isinstance(self.layout, wanted):
            raise TypeError(f"{self.var} takes a {wanted.__name__}, got {self.layout!r}")
        if self.layout.shape != self.var.shape:
            raise ValueError(
                f"a layout of {self.layout.shape} does not fit {self.var}, which is "
                f"{self.var.shape}"
            )


@dataclass(frozen=True, slots=True)
class Access:
    """Iteration `x` of `loop` touches element `index(x)` of the fragment `buffer`.

    A reading iteration must run in threads that own the element, a writing one in all of them.
    The domain of `index` is the loop's extents, then those of any serial loops inside it.
    Elements outside the buffer are guarded and demand nothing. `index=None`: any element
    (its index is data).
    """

    loop: Variable
    buffer: Variable
    index: Layout | None
    mode: Mode
    origin: Origin
    convertible: bool = True

    def __post_init__(self) -> None:
        if self.loop.kind is not Kind.LOOP or self.buffer.kind is not Kind.FRAGMENT:
            raise TypeError(f"an access relates a loop and a fragment, got {self}")
        if self.index is None:
            return
        rank = len(self.loop.shape)
        if self.index.shape[:rank] != self.loop.shape:
            raise ValueError(f"{self.origin}: indices over {self.index.shape} in {self.loop}")
        if len(self.index.out_shape) != len(self.buffer.shape):
            raise ValueError(f"{self.origin}: {self.buffer} has {len(self.buffer.shape)} indices")


@dataclass(frozen=True, slots=True)
class Equals:
    """Element `x` of `left` and element `index(x)` of `right` live together: in the same threads
    (fragments), or at the same offset (shared tiles). Without `index`, at equal positions."""

    left: Variable
    right: Variable
    origin: Origin
    index: Layout | None = None
    convertible: bool = True

    def __post_init__(self) -> None:
        if (self.left.kind is Kind.SHARED) != (self.right.kind is Kind.SHARED):
            raise TypeError(f"{self.left} and {self.right} are laid out in different ways")
        if self.index is None and self.left.shape != self.right.shape:
            raise ValueError(f"{self.origin}: {self.left.shape} and {self.right.shape} differ")


@dataclass(frozen=True, slots=True)
class Reduced:
    """`out` is a reduction of `source` over `dim`: its threads are among those that took part."""

    out: Variable
    source: Variable
    dim: int
    origin: Origin
    convertible: bool = True

    def __post_init__(self) -> None:
        if not -len(self.source.shape) <= self.dim < len(self.source.shape):
            raise ValueError(f"{self.origin}: {self.source} has no dimension {self.dim}")
        axis = self.dim % len(self.source.shape)
        whole = tuple(1 if d == axis else n for d, n in enumerate(self.source.shape))
        kept = tuple(n for d, n in enumerate(self.source.shape) if d != axis)
        if self.out.shape not in (whole, kept):
            raise ValueError(f"{self.origin}: {self.out.shape} is no result of this reduction")


@dataclass(frozen=True, slots=True)
class Option:
    """One acceptable layout, its estimated cost (0 is ideal) and why."""

    layout: AnyLayout
    cost: float
    why: str = ""


@dataclass(frozen=True, slots=True)
class OneOf:
    """`var` has one of these layouts; costs of several such constraints add up."""

    var: Variable
    options: tuple[Option, ...]
    origin: Origin

    def __post_init__(self) -> None:
        if not self.options or any(o.layout.shape != self.var.shape for o in self.options):
            raise ValueError(f"{self.origin}: options for {self.var} need its shape")


@dataclass(frozen=True, slots=True)
class Divides:
    """Dimension `dim` of `var` is a multiple of `divisor` (`what` names the divisor)."""

    var: Variable
    dim: int
    divisor: int
    origin: Origin
    what: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """The loop touches memory: iteration `x` at element `sum(x * strides)` of `bits` each.

    Decides nothing alone; makes wide and coalesced distributions cheaper. A stride of None is
    unknown. `limit` is the widest vector allowed, in elements, and `least` the narrowest that is
    worth having, where there is a choice.
    """

    loop: Variable
    strides: tuple[int | None, ...]
    bits: int
    origin: Origin
    limit: int | None = None
    least: int = 1

    def __post_init__(self) -> None:
        if self.loop.kind is not Kind.LOOP or len(self.strides) != len(self.loop.shape):
            raise ValueError(f"{self.origin}: a memory access has one stride per loop dimension")


Constraint: TypeAlias = Fixed | Access | Equals | Reduced | OneOf | Divides | Memory


@dataclass(frozen=True, slots=True)
class Problem:
    """All demands of one kernel, in program order, on a block of `threads`."""

    threads: int
    constraints: tuple[Constraint, ...]
    extra: tuple[Variable, ...] = ()
    warp: int = 32

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Every variable, in order of appearance."""
        found = [v for constraint in self.constraints for v in variables_of(constraint)]
        return tuple(dict.fromkeys([*found, *self.extra]))


def variables_of(constraint: Constraint) -> tuple[Variable, ...]:
    """The variables a constraint relates."""
    match constraint:
        case Fixed(var) | OneOf(var) | Divides(var):
            return (var,)
        case Access(nest, buffer):
            return nest, buffer
        case Equals(left, right):
            return left, right
        case Reduced(out, source):
            return out, source
        case Memory(nest):
            return (nest,)
