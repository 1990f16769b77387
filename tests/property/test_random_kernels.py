"""Random straight-line kernels give NumPy's numbers.

A random program is a list of steps over a few tiles; each step is a line of kernel text and the
same step in NumPy. Kernels are compiled for the CPU and compared: integers exactly, floats within
what contraction of multiply and add may change. `--full` runs the large count.
"""

from __future__ import annotations

import linecache
import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import tilelang

SAMPLE, FULL = 12, 2000
SEED = 20261129
TOLERANCE = {
    "float32": 2e-5,
    "float64": 1e-12,
    "int32": 0.0,
    "int64": 0.0,
    "int8": 0.0,
    "uint8": 0.0,
}
DTYPES = tuple(TOLERANCE)


@dataclass
class Program:
    """Kernel lines beside the values they must produce."""

    rows: int
    columns: int
    lines: list[str] = field(default_factory=list)
    tiles: dict[str, np.ndarray[Any, Any]] = field(default_factory=dict)
    inputs: list[np.ndarray[Any, Any]] = field(default_factory=list)
    count: int = 0
    # The coarsest rounding on the way to a tile: a float64 made from a float32 is no better.
    precision: dict[str, float] = field(default_factory=dict)

    def fresh(self, value: np.ndarray[Any, Any], scope: str, sources: tuple[str, ...] = ()) -> str:
        """Allocate a tile that will hold `value`, computed from `sources`."""
        name = f"t{self.count}"
        self.count += 1
        shape = ", ".join(map(str, value.shape)) + ("," if value.ndim == 1 else "")
        self.lines.append(f'{name} = T.alloc_{scope}(({shape}), "{value.dtype.name}")')
        self.tiles[name] = value
        made_from = [self.precision[source] for source in sources]
        self.precision[name] = max([TOLERANCE[value.dtype.name], *made_from])
        return name


def random_program(rng: random.Random) -> Program:
    program = Program(rng.randint(1, 40), rng.randint(1, 40))
    for _ in range(rng.randint(1, 3)):
        _load(program, rng)
    for _ in range(rng.randint(3, 12)):
        rng.choice(STEPS)(program, rng)
    return program


def _load(program: Program, rng: random.Random) -> None:
    dtype = np.dtype(rng.choice(DTYPES))
    shape = (program.rows, program.columns)
    generator = np.random.default_rng(rng.randrange(2**32))
    if dtype.kind == "f":
        data = generator.standard_normal(shape).astype(dtype)
    else:
        info = np.iinfo(dtype)
        data = generator.integers(max(info.min, -100), min(info.max, 100) + 1, shape).astype(dtype)
    program.inputs.append(data)
    name = program.fresh(data, rng.choice(("shared", "fragment")))
    program.lines.append(f"T.copy(I{len(program.inputs) - 1}, {name})")


def _elementwise(program: Program, rng: random.Random) -> None:
    a, b = _pair(program, rng)
    op = rng.choice(("+", "-", "*", "min", "max"))
    x, y = program.tiles[a], program.tiles[b]
    with np.errstate(all="ignore"):
        value = {"+": np.add, "-": np.subtract, "*": np.multiply, "min": np.minimum,
                 "max": np.maximum}[op](x, y)  # fmt: skip
    if _too_large(value):
        return
    text = f"T.{op}({a}[i, j], {b}[i, j])" if op in ("min", "max") else f"{a}[i, j] {op} {b}[i, j]"
    _store(program, rng, value, text, a, b)


def _constant(program: Program, rng: random.Random) -> None:
    a = rng.choice(list(program.tiles))
    x = program.tiles[a]
    number = rng.randint(-5, 5) if x.dtype.kind != "u" else rng.randint(0, 5)
    with np.errstate(all="ignore"):
        value = x * x.dtype.type(number) + x.dtype.type(1)
    if _too_large(value):
        return
    _store(program, rng, value, f"{a}[i, j] * {number} + 1", a)


def _select(program: Program, rng: random.Random) -> None:
    a, b = _pair(program, rng)
    x, y = program.tiles[a], program.tiles[b]
    _store(program, rng, np.where(x > y, x, y * y.dtype.type(0)),
           f"T.if_then_else({a}[i, j] > {b}[i, j], {a}[i, j], {b}[i, j] * 0)", a, b)  # fmt: skip


def _unary(program: Program, rng: random.Random) -> None:
    floats = [n for n, v in program.tiles.items() if v.dtype.kind == "f"]
    if not floats:
        return
    a = rng.choice(floats)
    x = program.tiles[a]
    bounded = np.clip(x, -4, 4)
    name = rng.choice(("exp", "sqrt", "abs", "tanh", "sigmoid"))
    value = {"exp": np.exp(bounded), "sqrt": np.sqrt(np.abs(bounded)), "abs": np.abs(bounded),
             "tanh": np.tanh(bounded), "sigmoid": 1 / (1 + np.exp(-bounded))}[name]  # fmt: skip
    inner = f"T.clamp({a}[i, j], -4, 4)"
    text = f"T.sqrt(T.abs({inner}))" if name == "sqrt" else f"T.{name}({inner})"
    _store(program, rng, value.astype(x.dtype), text, a)


def _convert(program: Program, rng: random.Random) -> None:
    a = rng.choice(list(program.tiles))
    x = program.tiles[a]
    target = np.dtype(rng.choice(DTYPES))
    if x.dtype.kind == "f" and target.kind in "iu":
        return  # out of range is undefined on both sides
    _store(program, rng, x.astype(target), f'T.cast({a}[i, j], "{target.name}")', a)


def _reduce(program: Program, rng: random.Random) -> None:
    full = [n for n, v in program.tiles.items() if v.dtype.name in ("float32", "float64", "int32")]
    if not full:
        return
    a = rng.choice(full)
    x = program.tiles[a]
    kind = rng.choice(("sum", "max", "min"))
    dim = rng.randint(0, 1)
    reduced = {"sum": np.sum, "max": np.max, "min": np.min}[kind](x, axis=dim).astype(x.dtype)
    if _too_large(reduced):
        return
    source = a
    out = program.fresh(reduced, "fragment", (source,))
    program.lines.append(f"T.reduce_{kind}({source}, {out}, dim={dim})")
    value = np.broadcast_to(reduced[None, :] if dim == 0 else reduced[:, None], x.shape).copy()
    del program.tiles[out]
    _store(program, rng, value, f"{out}[{'j' if dim == 0 else 'i'}]", out)


def _cumsum(program: Program, rng: random.Random) -> None:
    names = [n for n, v in program.tiles.items() if v.dtype.name in ("float32", "int32")]
    if not names:
        return
    a = rng.choice(names)
    x = program.tiles[a]
    dim = rng.randint(0, 1)
    value = np.cumsum(x, axis=dim, dtype=x.dtype)
    if _too_large(value):
        return
    out = program.fresh(value, rng.choice(("shared", "fragment")), (a,))
    program.lines.append(f"T.cumsum({a}, {out}, dim={dim})")


def _pair(program: Program, rng: random.Random) -> tuple[str, str]:
    a = rng.choice(list(program.tiles))
    same = [n for n, v in program.tiles.items() if v.dtype == program.tiles[a].dtype]
    return a, rng.choice(same)


def _store(
    program: Program, rng: random.Random, value: np.ndarray[Any, Any], text: str, *sources: str
) -> None:
    out = program.fresh(value, rng.choice(("shared", "fragment")), sources)
    program.lines.append(f"for i, j in T.Parallel({program.rows}, {program.columns}):")
    program.lines.append(f"    {out}[i, j] = {text}")


def _too_large(value: np.ndarray[Any, Any]) -> bool:
    return value.dtype.kind == "f" and not bool(np.all(np.abs(value) < 1e4))


STEPS = (_elementwise, _elementwise, _constant, _select, _unary, _convert, _reduce, _cumsum, _load)


def kernel_text(program: Program) -> tuple[str, list[str]]:
    """The kernel and the tiles it returns."""
    outputs = list(program.tiles)[-3:]
    shape = f"({program.rows}, {program.columns})"
    params = [f'I{n}: T.Tensor({shape}, "{v.dtype.name}")' for n, v in enumerate(program.inputs)]
    params += [f'O{n}: T.Tensor({shape}, "{program.tiles[n].dtype.name}")' for n in outputs]
    lines = ["import tilelang.language as T", "", "@T.prim_func", f"def main({', '.join(params)}):"]
    lines.append("    with T.Kernel(1, threads=128) as bx:")
    lines += [f"        {line}" for line in program.lines]
    lines += [f"        T.copy({n}, O{n})" for n in outputs]
    return "\n".join(lines) + "\n", outputs


def run(program: Program, name: str) -> None:
    text, outputs = kernel_text(program)
    path = f"<random kernel {name}>"
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    scope: dict[str, Any] = {}
    exec(compile(text, path, "exec"), scope)
    kernel = tilelang.compile(scope["main"], out_idx=list(range(-len(outputs), 0)), target="cpu")
    got = kernel(*program.inputs)
    got = got if isinstance(got, (list, tuple)) else [got]
    for tile, actual in zip(outputs, got, strict=True):
        expected = program.tiles[tile]
        tolerance = program.precision[tile]
        wide = expected.astype(np.float64)
        error = np.abs(np.asarray(actual).astype(np.float64) - wide)
        limit = tolerance * (np.abs(wide) + np.abs(wide).max(initial=0) + 1)
        assert np.all(error <= limit), f"{tile} of seed {name}: {error.max()}\n{text}"


@pytest.mark.parametrize("number", range(SAMPLE))
def test_sample(number: int) -> None:
    run(random_program(random.Random(SEED + number)), str(SEED + number))


def test_in_full(full: bool) -> None:
    if not full:
        pytest.skip("run with --full")
    for number in range(SAMPLE, FULL):
        run(random_program(random.Random(SEED + number)), str(SEED + number))
