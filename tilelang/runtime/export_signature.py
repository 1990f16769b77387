"""Which C takes the arguments of a call apart, and refuses those that do not fit?

For `scale(A: (n, 64) float16, factor: float32)` it reads

    const DLTensor *t_A = NULL;
    if (tl_take(e, "scale", &scale_A, &args[0], &t_A, &device, &leader)) return -1;
    double v_factor = 0;
    if (tl_take_float(e, "scale", "factor", "float32", &args[1], &v_factor)) return -1;
    const int64_t v_n = t_A->shape[0];
    if (TL_RARE(t_A->shape[1] != 64)) return tl_wrong_extent(e, "scale", &scale_A, t_A, 1, 64, …);
    if (TL_RARE(!tl_is_contiguous(t_A))) return tl_not_contiguous(e, "scale", &scale_A, t_A);
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final, NoReturn

from tilelang.codegen.host_expr import HostExpr, c_text
from tilelang.dtypes import TORCH_STORAGE, DType
from tilelang.program.buffer import Buffer, Dim
from tilelang.program.expr import Var
from tilelang.program.text import expr_text
from tilelang.runtime.export_dims import (
    Binding,
    Names,
    Site,
    bindings,
    c_dim,
    host_dim,
    sites_of,
    variables,
)
from tilelang.runtime.signature import Parameter, Signature
from tilelang.runtime.tensors import elements_per_item
from tilelang_diagnostics import failure
from tilelang_diagnostics.model import Span

# dlpack.h, DLDataTypeCode, of the dtypes that PyTorch stores ours in.
_CODES: Final = {
    "bfloat16": (4, 16), "bool": (6, 8), "float8_e3m4": (7, 8), "float8_e4m3": (8, 8),
    "float8_e4m3b11fnuz": (9, 8), "float8_e4m3fn": (10, 8), "float8_e4m3fnuz": (11, 8),
    "float8_e5m2": (12, 8), "float8_e5m2fnuz": (13, 8), "float8_e8m0fnu": (14, 8),
    "float6_e2m3fn": (15, 6), "float6_e3m2fn": (16, 6),
}  # fmt: skip
_BY_KIND: Final = {"int": 0, "uint": 1, "float": 2}


@dataclass(frozen=True, slots=True)
class SignatureCode:
    """The C of one signature. `prefix` begins every name of it that is visible in the file.

    `alignment` is what every build of the kernel assumes of the address of each buffer, in bytes.
    """

    signature: Signature
    function: str
    prefix: str
    place: str
    names: Names
    bound: tuple[Binding, ...]
    alignment: Mapping[Buffer, int]

    def declarations(self) -> Iterator[str]:
        """What stands before the function: how each tensor was declared."""
        yield f"/* {signature_text(self.signature, self.function)} */"
        for buffer, spec in self.names.specs.items():
            types = [f"{{{code}, {bits}, {lanes}}}" for code, bits, lanes in stored(buffer.dtype)]
            strides = "" if buffer.strides is None else dims_text(buffer.strides)
            yield (
                f"static const tl_tensor {spec} = {{{quoted(buffer.name)}, "
                f"{quoted(buffer.dtype.name)}, {quoted(dims_text(buffer.shape))}, "
                f"{quoted(strides)}, {buffer.ndim}, {elements_per_item(buffer.dtype)}, "
                f"{int(buffer.nullable)}, TL_{self.place.upper()}, {len(types)}, "
                f"{{{', '.join(types)}}}}};"
            )

    def lines(self) -> Iterator[str]:
        """Statements of the function, up to where everything fits; they return -1 else."""
        yield "int device = -1;"
        yield "const char *leader = NULL;"
        for number, parameter in enumerate(self.signature.slots):
            yield from self._taken(number, parameter)
        yield from self._dims()
        for buffer in self.names.specs:
            checks = [*self._extents(buffer), *self._strides(buffer)]
            if self.alignment.get(buffer, 1) > 1:
                checks.append(self.aligned(buffer, self.alignment[buffer], "e", -1))
            if buffer.nullable and checks:
                yield f"if ({self.names.tensors[buffer]} != NULL) {{"
                yield from (f"  {line}" for line in checks)
                yield "}"
            else:
                yield from checks
        yield from self._promises()

    def aligned(self, buffer: Buffer, size: int, error: str, status: int) -> str:
        """Return `status` for an address that is not a multiple of `size` bytes."""
        address = f"tl_address({self.names.tensors[buffer]})"
        return (f"if (TL_RARE((uintptr_t){address} % {size} != 0)) {{ tl_misaligned({error}, "
                f"{quoted(self.function)}, {quoted(buffer.name)}, {address}, {size}); "
                f"return {status}; }}")  # fmt: skip

    def _taken(self, number: int, parameter: Parameter) -> Iterator[str]:
        value, function = f"&args[{number}]", quoted(self.function)
        if isinstance(parameter, Buffer):
            tensor, spec = self.names.tensors[parameter], self.names.specs[parameter]
            yield f"const DLTensor *{tensor} = NULL;"
            yield (f"if (tl_take(e, {function}, &{spec}, {value}, &{tensor}, &device, &leader)) "
                   "return -1;")  # fmt: skip
            return
        name, dtype = self.names.values[parameter], parameter.dtype
        said = f"e, {function}, {quoted(parameter.name)}, {quoted(dtype.name)}, {value}"
        if dtype.is_float:
            yield f"double {name} = 0;"
            yield f"if (tl_take_float({said}, &{name})) return -1;"
        elif dtype.base == "handle":
            yield f"int64_t {name} = 0;"
            yield f"if (tl_take_pointer({said}, &{name})) return -1;"
        else:
            low, high = dtype.integer_range()
            limits = f"{_int64(low)}, {_int64(high)}"
            yield f"int64_t {name} = 0;"
            yield f"if (tl_take_int({said}, {limits}, &{name})) return -1;"

    def _dims(self) -> Iterator[str]:
        for binding in self.bound:
            yield f"const int64_t {self.names.values[binding.var]} = {binding.c};"
        reached = {b.var for b in self.bound}
        for var in self.signature.dims:
            if var not in reached:
                self._unbound(var)

    def _extents(self, buffer: Buffer) -> Iterator[str]:
        for site in self._sites(buffer, strides=False):
            wanted, giver = c_dim(site.dim, self.names), self._giver(site)
            said = ", ".join((
                f"e, {quoted(self.function)}, &{self.names.specs[buffer]}",
                self.names.tensors[buffer], str(site.axis), wanted, quoted(expr_text(site.dim)),
                "NULL" if giver is None else quoted(giver),
            ))  # fmt: skip
            differs = f"TL_RARE({site.c(self.names)} != {wanted})"
            yield f"if ({differs}) return tl_wrong_extent({said});"

    def _strides(self, buffer: Buffer) -> Iterator[str]:
        tensor, spec = self.names.tensors[buffer], self.names.specs[buffer]
        said = f"e, {quoted(self.function)}, &{spec}, {tensor}"
        if buffer.strides is None:
            yield f"if (TL_RARE(!tl_is_contiguous({tensor}))) return tl_not_contiguous({said});"
            return
        for site in self._sites(buffer, strides=True):
            wanted = c_dim(site.dim, self.names)
            # The stride of an axis with one element is never used.
            differs = f"{site.c(self.names)} != {wanted}"
            yield (f"if (TL_RARE({tensor}->shape[{site.axis}] > 1 && {differs})) "
                   f"return tl_wrong_stride({said}, {site.axis}, {wanted});")  # fmt: skip

    def _promises(self) -> Iterator[str]:
        for promise in self.signature.promises:
            condition = c_text(host_dim(promise.condition, self.names.values))
            about = tuple(variables([promise.condition]))
            shown = ", ".join(f"{v.name} = %lld" for v in about)
            said = f"{expr_text(promise.condition).replace('%', '%%')}, but {shown}"
            form = quoted(f"[TL721] `{self.function}` assumes {said}{place_text(promise.span)}")
            values = "".join(f", (long long){self.names.values[v]}" for v in about)
            yield f'if (TL_RARE(!{condition})) return tl_fail(e, "ValueError", {form}{values});'

    def _sites(self, buffer: Buffer, *, strides: bool) -> Iterator[Site]:
        """Where a size of `buffer` has to be compared with what it should be."""
        sources = {b.site.key for b in self.bound if b.site.dim is b.var}
        for site in sites_of([buffer]):
            if site.is_stride == strides and site.key not in sources:
                yield site

    def _giver(self, site: Site) -> str | None:
        """Which other argument a runtime dimension got its value from."""
        givers = {b.var: b.giver for b in self.bound}
        givers |= {p: p.name for p in self.signature.params if isinstance(p, Var)}
        found = next((givers[v] for v in variables([site.dim]) if v in givers), None)
        return None if found == site.buffer.name else found

    def _unbound(self, var: Var) -> NoReturn:
        raise failure(
            "TL710",
            f"the runtime dimension `{var.name}` of `{self.signature.name}` is determined by no "
            "argument",
            var.span or self.signature.span,
            help=f"use {var.name} as a whole dimension of a tensor argument, or make it a scalar "
            "parameter",
        )


def signature_code(
    signature: Signature, function: str, prefix: str, place: str, alignment: Mapping[Buffer, int]
) -> SignatureCode:
    """The C of `signature` for a function called `function`, with names for everything in it."""
    taken: set[str] = set()
    buffers = [p for p in signature.slots if isinstance(p, Buffer)]
    scalars = [p for p in (*signature.params, *signature.dims) if isinstance(p, Var)]
    tensors = {b: _unique(f"t_{b.name}", taken) for b in buffers}
    specs = {b: _unique(f"{prefix}_{b.name}", taken) for b in buffers}
    values = {v: _unique(f"v_{v.name}", taken) for v in dict.fromkeys(scalars)}
    names = Names(values, tensors, specs)
    given = [p for p in signature.params if isinstance(p, Var)]
    bound = bindings(signature.dims, given, sites_of(buffers), names)
    return SignatureCode(signature, function, prefix, place, names, bound, alignment)


def signature_text(signature: Signature, name: str) -> str:
    """`scale(A: (n, 64) float16, B: (n, 64) float16, factor: float32)`, of a function `name`."""
    parts = [
        f"{p.name}: {dims_text(p.shape)} {p.dtype.name}{' or None' if p.nullable else ''}"
        if isinstance(p, Buffer) else f"{p.name}: {p.dtype.name}"
        for p in signature.slots
    ]  # fmt: skip
    return f"{name}({', '.join(parts)})"


def checks_of(signature: Signature) -> Hashable:
    """What decides the checks of a call, besides names and dtypes: equal for kernels whose
    variables differ, as those traced for another architecture do."""
    values = {p: None for p in (*signature.params, *signature.dims) if isinstance(p, Var)}
    numbers = {v: f"v{n}" for n, v in enumerate(values)}

    def numbered(dims: Iterable[Dim]) -> tuple[HostExpr, ...]:
        return tuple(host_dim(d, numbers) for d in dims)

    buffers = (p for p in signature.slots if isinstance(p, Buffer))
    sizes = tuple((numbered(b.shape), b.strides and numbered(b.strides)) for b in buffers)
    return sizes, frozenset(numbered(p.condition for p in signature.promises))


def place_text(span: Span | None) -> str:
    """` (gemm.py:12)`, at the end of a message: the folder it lay in means nothing elsewhere."""
    if span is None:
        return ""
    return f" ({PurePath(span.file).name}:{span.line})".replace("%", "%%")


def dims_text(dims: tuple[Dim, ...]) -> str:
    """`(M, 64)`."""
    parts = [expr_text(d) for d in dims]
    return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"


def stored(dtype: DType) -> tuple[tuple[int, int, int], ...]:
    """The DLPack types (code, bits, lanes) that may hold elements of `dtype`."""
    match dtype.base:
        case "handle":
            return (0, 64, 1), (1, 64, 1), (3, 64, 1)
        case "int4" | "uint4":
            return (0, 8, 1), (1, 8, 1)
        case "float4_e2m1fn":
            return (17, 4, 2), (17, 4, 1), (1, 8, 1)
    name = TORCH_STORAGE.get(dtype.base, dtype.base)
    found = _CODES.get(name)
    if found is None:
        letters = re.fullmatch(r"([a-z]+)(\d+)", name)
        assert letters is not None, name
        found = (_BY_KIND[letters[1]], int(letters[2]))
    return ((*found, dtype.lanes),)


def quoted(text: str) -> str:
    """A C string literal, and one of the assembler. What does not print is three octal digits."""
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in '\\"':
        return f"\\{char}"
    if char.isprintable():
        return char
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogateescape"))


def _unique(wish: str, taken: set[str]) -> str:
    name, count = wish, 1
    while name in taken:
        count += 1
        name = f"{wish}_{count}"
    taken.add(name)
    return name


def _int64(value: int) -> str:
    """A limit of a range; what does not fit is cut to what can be passed."""
    if value <= -(1 << 63):
        return "INT64_MIN"
    return "INT64_MAX" if value >= (1 << 63) - 1 else f"{value}ll"
