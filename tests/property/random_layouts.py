"""Random tile programs whose operations want their tiles laid out in different ways.

Each is a text, made from a seed. Sizes, dtypes, threads, warp policies, transposes, shifted and
exchanged indices, explicit layouts: most programs are legal, and all are for the compiler to judge.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

SHAPES = ((64, 64), (32, 64), (64, 32), (16, 128), (128, 16), (40, 24), (96, 33))
THREADS = (32, 64, 96, 128, 256)
FLOATS = ("float16", "bfloat16", "float32", "float64")
GEMMS = (
    ("float16", "float32"), ("bfloat16", "float32"), ("float32", "float32"), ("int8", "int32"),
    ("float16", "float16"), ("float64", "float64"),
)  # fmt: skip


@dataclass
class _Program:
    rng: random.Random
    threads: int
    lines: list[str] = field(default_factory=list)
    allocated: list[str] = field(default_factory=list)
    params: list[str] = field(default_factory=list)
    tiles: list[tuple[str, tuple[int, int], str, str]] = field(default_factory=list)

    def tensor(self, shape: tuple[int, ...], dtype: str) -> str:
        name = f"A{len(self.params)}"
        self.params.append(f'{name}: T.Tensor({shape}, "{dtype}")')
        return name

    def tile(self, shape: tuple[int, int], dtype: str, scope: str = "") -> str:
        scope = scope or self.rng.choice(("fragment", "fragment", "shared"))
        name = f"t{len(self.tiles)}"
        self.allocated.append(f'{name} = T.alloc_{scope}({shape}, "{dtype}")')
        self.tiles.append((name, shape, dtype, scope))
        return name


def program_text(seed: int) -> str:
    """The kernel of a seed."""
    rng = random.Random(seed)
    p = _Program(rng, rng.choice(THREADS))
    for _ in range(rng.randint(1, 3)):
        shape, dtype = rng.choice(SHAPES), rng.choice(FLOATS)
        name = p.tile(shape, dtype)
        p.lines.append(f"T.copy({p.tensor(shape, dtype)}, {name})")
    for _ in range(rng.randint(2, 6)):
        rng.choice((_elementwise, _elementwise, _gemm, _reduce, _annotate, _turned, _piece))(p)
    for name, shape, dtype, _ in p.tiles:
        p.lines.append(f"T.copy({name}, {p.tensor(shape, dtype)})")
    body = "\n        ".join([*p.allocated, *p.lines])
    return (
        f"import tilelang.language as T\n\n\n@T.prim_func\ndef main({', '.join(p.params)}):\n"
        f"    with T.Kernel(1, threads={p.threads}):\n        {body}\n"
    )


def _elementwise(p: _Program) -> None:
    """A loop that reads one or two tiles, at its own place or at a neighbour's."""
    name, shape, dtype, _ = p.rng.choice(p.tiles)
    out = p.tile(shape, dtype)
    m, n = shape
    terms = []
    for other, size, _, _ in p.tiles[:-1]:
        if size == shape and p.rng.random() < 0.6:
            shift = p.rng.choice(("i, j", "i, j", f"i, (j + 1) % {n}", f"(i + 3) % {m}, j",
                                  f"{m - 1} - i, j", f"i, j // 2 * 2 % {n}"))  # fmt: skip
            terms.append(f'T.cast({other}[{shift}], "{dtype}")')
    value = " + ".join(terms) or f"{name}[i, j]"
    p.lines.append(f"for i, j in T.Parallel({m}, {n}):\n            {out}[i, j] = {value}")


def _turned(p: _Program) -> None:
    """A tile with its dimensions exchanged."""
    name, (m, n), dtype, _ = p.rng.choice(p.tiles)
    out = p.tile((n, m), dtype)
    p.lines.append(f"for i, j in T.Parallel({n}, {m}):\n            {out}[i, j] = {name}[j, i]")


def _piece(p: _Program) -> None:
    """A part of a tile is written again."""
    name, (m, n), dtype, _ = p.rng.choice(p.tiles)
    rows = p.rng.choice((m // 2, m // 4, m - 1))
    at = p.rng.choice((0, 1))
    value = p.rng.choice((f"{name}[i + {at}, j] * 2", f'T.cast(i + j, "{dtype}")'))
    p.lines.append(
        f"for i, j in T.Parallel({rows}, {n}):\n            {name}[i + {at}, j] = {value}"
    )


def _gemm(p: _Program) -> None:
    dtype, accum = p.rng.choice(GEMMS)
    m, n, k = p.rng.choice((16, 32, 64)), p.rng.choice((16, 32, 64)), p.rng.choice((8, 16, 32, 48))
    ta, tb = p.rng.random() < 0.4, p.rng.random() < 0.4
    fitting = [
        name for name, shape, kind, _ in p.tiles
        if kind == dtype and shape == ((k, m) if ta else (m, k))
    ]  # fmt: skip
    b_shape = (n, k) if tb else (k, n)
    a = p.rng.choice(fitting) if fitting else None
    if a is None:
        a = p.tile((k, m) if ta else (m, k), dtype)
        p.lines.append(f"T.copy({p.tensor((k, m) if ta else (m, k), dtype)}, {a})")
    b = p.tile(b_shape, dtype)
    p.lines.append(f"T.copy({p.tensor(b_shape, dtype)}, {b})")
    sums = [
        name for name, shape, kind, scope in p.tiles
        if kind == accum and shape == (m, n) and scope == "fragment" and name not in (a, b)
    ]  # fmt: skip
    c = p.rng.choice(sums) if sums and p.rng.random() < 0.7 else p.tile((m, n), accum, "fragment")
    if c not in sums:
        p.lines.append(f"T.clear({c})")
    policy = p.rng.choice(("Square", "FullRow", "FullCol"))
    p.lines.append(
        f"T.gemm({a}, {b}, {c}, transpose_A={ta}, transpose_B={tb}, "
        f"policy=T.GemmWarpPolicy.{policy})"
    )


def _reduce(p: _Program) -> None:
    """Statistics of rows or columns, used by a loop over the whole tile."""
    name, (m, n), dtype, _ = p.rng.choice(p.tiles)
    dim = p.rng.choice((0, 1))
    kept = n if dim == 0 else m
    row = f"r{len(p.lines)}"
    p.allocated.append(f'{row} = T.alloc_fragment(({kept},), "{dtype}")')
    kind = p.rng.choice(("sum", "max"))
    p.lines.append(f"T.reduce_{kind}({name}, {row}, dim={dim})")
    index = "j" if dim == 0 else "i"
    p.lines.append(
        f"for i, j in T.Parallel({m}, {n}):\n"
        f"            {name}[i, j] = {name}[i, j] - {row}[{index}]"
    )


def _annotate(p: _Program) -> None:
    """An explicit layout, of threads for a fragment and of places for a shared tile."""
    name, (m, n), _, scope = p.rng.choice(p.tiles)
    if any(f"annotate_layout({{{name}:" in line for line in p.lines):
        return
    threads = p.threads
    if scope == "fragment":
        layout = p.rng.choice((
            f"T.Fragment(({m}, {n}), lambda i, j: ((i * {n} + j) % {threads}, "
            f"(i * {n} + j) // {threads}))",
            f"T.Fragment(({m}, {n}), lambda i, j: ((j * {m} + i) % {threads}, "
            f"(j * {m} + i) // {threads}))",
        ))  # fmt: skip
    else:
        layout = p.rng.choice((
            f"T.Layout(({m}, {n}), lambda i, j: j * {m} + i)",
            f"T.Layout(({m}, {n}), lambda i, j: i * {n + 8} + j)",
            "lambda i, j: (i, j)",
        ))  # fmt: skip
    p.lines.insert(0, f"T.annotate_layout({{{name}: {layout}}})")
