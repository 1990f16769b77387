"""Which names does the language have? The compiler's own catalogue, as values that travel."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Any

import tilelang
import tilelang.language as language
from tilelang.dtypes import SCALARS, VECTOR_LANES, DType
from tilelang.language.catalog import LanguageFunction
from tilelang.options import OPTIONS
from tilelang.target import ARCHS
from tilelang_lsp.model import Catalogue, Entry, Parameter

_BY_NAME = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)
_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
# What a line with a name looks like, where its own documentation has none.
_EXAMPLES = {
    "Tensor": 'A: T.Tensor((M, K), "float16")',
    "StridedTensor": 'A: T.StridedTensor((M, K), (lda, 1), "float16")',
    "Buffer": "def load(tile: T.Buffer): ...",
    "SharedBuffer": 'def load(tile: T.SharedBuffer((64, 64), "float16")): ...',
    "FragmentBuffer": 'def scale(acc: T.FragmentBuffer((64, 64), "float32")): ...',
    "LocalBuffer": 'def add(part: T.LocalBuffer((8,), "float32")): ...',
    "Ref": "def bump(count: T.Ref): ...",
    "ptr": "def main(table: T.ptr): ...",
    "PrimFunc": "kernel: T.PrimFunc = factory(1024)",
    "dtype": "def factory(in_dtype: T.dtype = T.float16): ...",
    "DType": 'bits = T.DType("float16").bits',
    "GemmWarpPolicy": "T.gemm(A_shared, B_shared, C_local, policy=T.GemmWarpPolicy.FullRow)",
    "Layout": "T.annotate_layout({A_shared: T.Layout((64, 64), lambda i, j: i * 72 + j)})",
    "Fragment": "T.Fragment((64, 64), forward_thread_fn=lambda i, j: i * 2 + j // 32)",
    "fp8": "dtype = T.fp8.determine_fp8_type()",
    "types": "accum = T.types.float32",
    "WSID": 'load = T.WSID("load")',
    "WSRole": 'producer = T.WSRole("producer", warps_lo=0, warps_hi=4, max_nreg=24)',
    "WSPipeline": 'tiles = T.WSPipeline("tiles", (A_shared, B_shared), depth=3)',
    "WSSync": 'wait = T.WSSync.consumer_wait("tiles")',
    "WSScope": "body = T.WSScope(T.WSScope.ROOT, {producer: [load], consumer: [multiply]})",
    "WSSchedule": "schedule = T.WSSchedule(8, roles, pipelines, scopes)",
}
# Annotations take their arguments freely; this is how they are written.
_SHAPED = (("shape", ""), ("dtype", "='float32'"), ("strides", "=None"))
_STRIDED = (("shape", ""), ("strides", ""), ("dtype", "='float32'"))
_ANNOTATIONS = {
    **dict.fromkeys(("Tensor", "SharedBuffer", "FragmentBuffer", "LocalBuffer"), _SHAPED),
    "StridedTensor": _STRIDED,
}
_NOT_CALLED = frozenset({"Buffer", "DType", "PrimFunc", "Ref", "WSSync"})
_POLICIES = {
    "Square": "Warps share rows and columns of the tile evenly.",
    "FullRow": "Every warp has whole rows: reductions along a row stay in one warp.",
    "FullCol": "Every warp has whole columns.",
}


def read_catalogue() -> Catalogue:
    """Every public name of `tilelang.language`, functions first, and what stands beside it."""
    entries = {name: _function(name, f) for name, f in language.FUNCTIONS.items()}
    vectors = (f"{base}x{lanes}" for base in SCALARS for lanes in VECTOR_LANES)
    for name in (*language.__all__, *vectors):
        if name not in entries and hasattr(language, name):
            entries[name] = _other(name, getattr(language, name))
    for member, doc in _POLICIES.items():
        text = f"{doc}\n\n>>> {_EXAMPLES['GemmWarpPolicy'].replace('FullRow', member)}"
        entries[f"GemmWarpPolicy.{member}"] = Entry(member, "constant", text)
    options = tuple((str(o.key), o.doc, _values(o.default, o.choices)) for o in OPTIONS)
    return Catalogue(entries, dict(_package()), options, tuple(_targets()))


def _function(name: str, function: LanguageFunction) -> Entry:
    code = inspect.unwrap(function.function).__code__
    return Entry(
        name,
        function.kind,
        function.doc,
        parameters(function.signature),
        function.targets,
        code.co_filename,
        code.co_firstlineno,
    )


def _other(name: str, value: Any) -> Entry:
    """A dtype, a type for annotations, or a constant."""
    match value:
        case DType():
            return Entry(name, "dtype", _dtype_doc(value))
        case LanguageFunction():
            return _function(name, value)
        case bool() | int() | float() | str():
            return Entry(name, "constant", f"The constant {value!r}.")
        case type():
            doc = _with_example(name, inspect.getdoc(value) or "")
            return Entry(name, "type", doc, _of_call(name, value))
        case _:
            doc = _with_example(name, inspect.getdoc(type(value)) or "")
            return Entry(name, "type", doc, _of_call(name, value))


def _of_call(name: str, value: Any) -> tuple[Parameter, ...] | None:
    """The parameters of what is called without being a function; None for what is not."""
    if name in _ANNOTATIONS:
        return tuple(Parameter(n, f"{n}{default}", True) for n, default in _ANNOTATIONS[name])
    if (
        name in _NOT_CALLED
        or not callable(value)
        or (isinstance(value, type) and issubclass(value, Enum))
    ):
        return None
    try:
        found = parameters(inspect.signature(value))
    except (TypeError, ValueError):
        return None
    return found or None


def _with_example(name: str, doc: str) -> str:
    example = _EXAMPLES.get(name)
    return doc if example is None or ">>>" in doc else f"{doc}\n\n>>> {example}".lstrip()


def _dtype_doc(dtype: DType) -> str:
    width = f"{dtype.lanes} × {dtype.bits}" if dtype.lanes > 1 else f"{dtype.bits}"
    example = f'tile = T.alloc_shared((64, 64), "{dtype.name}")'
    if dtype.lanes > 1:
        example = f'A: T.Tensor((N,), "{dtype.name}")'
    return f"The dtype {dtype.name}, {width} bits wide.\n\n>>> {example}"


def _package() -> Iterator[tuple[str, Entry]]:
    """The names of `tilelang` itself."""
    for name in tilelang.__all__:
        value = None if name.startswith("_") else getattr(tilelang, name)
        doc = "" if value is None else inspect.getdoc(value) or ""
        if inspect.ismodule(value):
            yield name, Entry(name, "module", doc)
        elif inspect.isfunction(value):
            code = inspect.unwrap(value).__code__
            found = parameters(inspect.signature(value))
            yield name, Entry(name, "meta", doc, found, (), code.co_filename, code.co_firstlineno)
        elif isinstance(value, type):
            kind = "constant" if issubclass(value, Enum) else "type"
            yield name, Entry(name, kind, doc)


def _targets() -> Iterator[tuple[str, str]]:
    """How targets are written, and what there is."""
    yield "auto", "the GPU of this machine, else the CPU"
    for kind, archs in ARCHS.items():
        for arch, has in archs.items():
            limit = has.shared_bytes
            about = "" if limit is None else f"{limit >> 10} KiB shared memory a block, {has.mma}"
            yield f"{kind}:{arch}" if arch else kind, about or "LLVM, this processor"


def _values(default: Any, choices: tuple[Any, ...]) -> tuple[str, ...]:
    """The values of an option, the one that is no default first."""
    if choices:
        return tuple(repr(choice) for choice in choices)
    return (repr(not default), repr(default)) if isinstance(default, bool) else (repr(default),)


def parameters(signature: inspect.Signature) -> tuple[Parameter, ...]:
    """The parameters of a signature, without annotations, as one writes a call."""
    out: list[Parameter] = []
    marked = False
    for p in signature.parameters.values():
        if p.kind is p.VAR_POSITIONAL:
            marked = True
        if p.kind is p.KEYWORD_ONLY and not marked:
            out.append(Parameter("*", "*", keyword=False))
            marked = True
        out.append(Parameter(p.name, _text(p), p.kind in _BY_NAME, p.kind in _VARIADIC))
    return tuple(out)


def _text(parameter: inspect.Parameter) -> str:
    plain = parameter.replace(annotation=inspect.Parameter.empty)
    if parameter.default is not inspect.Parameter.empty:
        shown = repr(parameter.default)
        if len(shown) > 24 or " at 0x" in shown:
            shown = "…"
        return f"{parameter.name}={shown}"
    return str(plain)
