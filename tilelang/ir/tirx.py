"""Which parts of TVM does the compiler use, and when is TVM imported?

This is the one module that imports `tvm`, at the first use of any name below and not before:
`import tilelang.ir.tirx` is free, `tirx.For` is not. Everybody else says
`from tilelang.ir import tirx`.

TVM's FFI imports PyTorch when it is installed, which costs seconds that no compilation needs;
so PyTorch is hidden while TVM is imported, unless the user has already imported it.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

from tilelang.ir.attrs import op_name
from tilelang.ir.calls import CALLS, Effect

if TYPE_CHECKING:
    Expr: TypeAlias = Any
    Stmt: TypeAlias = Any
    Var: TypeAlias = Any
    Buffer: TypeAlias = Any
    Call: TypeAlias = Any
    For: TypeAlias = Any
    Range: TypeAlias = Any
    TensorLoad: TypeAlias = Any
    TensorRegion: TypeAlias = Any
    PrimFunc: TypeAlias = Any
    IRModule: TypeAlias = Any
    Analyzer: TypeAlias = Any

_FROM_TIRX = (
    "AllocBuffer AssertStmt AttrStmt Bind Break BufferLoad BufferRegion BufferStore BufferType "
    "CallEffectKind Continue DeclBuffer Evaluate For ForKind IfThenElse IterVar PrimFunc Return "
    "SeqStmt Stmt While buffer_data decl_buffer is_buffer_var"
)
_FROM_IR = (
    "Call DictAttrs Expr Op PointerType PrimType Range SequentialSpan SourceName Span StringImm "
    "TensorLoad TensorRegion Tuple Var register_op_attr"
)
_FROM_PRIM = (
    "Add And BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Broadcast Cast Div EQ FloatImm FloorDiv "
    "FloorMod GE GT IntImm LE LShift LT Let Max Min Mod Mul NE Not Or RShift Ramp Select Shuffle "
    "Sub"
)

# Our name -> (module, attribute). Python builtins that TVM's star import would hide are not here.
_EXPORTS: dict[str, tuple[str, str]] = {
    **{name: ("tvm.tirx", name) for name in _FROM_TIRX.split()},
    **{name: ("tvm.ir", name) for name in _FROM_IR.split()},
    **{name: ("tvm.ir.prim.expr", name) for name in _FROM_PRIM.split()},
    "IRModule": ("tvm", "IRModule"),
    "Analyzer": ("tvm.sym", "Analyzer"),
    "ProofStrength": ("tvm.sym", "ProofStrength"),
    "op": ("tvm.tirx", "op"),
    "transform": ("tvm.tirx", "transform"),
    "tvm": ("tvm", ""),
    "ffi": ("tvm_ffi", ""),
    "get_global_func": ("tvm_ffi", "get_global_func"),
    "structural_map": ("tvm_ffi", "structural_map"),
    "structural_walk": ("tvm_ffi", "structural_walk"),
    "structural_equal": ("tvm_ffi", "structural_equal"),
    "structural_hash": ("tvm_ffi", "structural_hash"),
}

_loading = threading.RLock()
_declared: set[str] = set()
_tvm: dict[str, Any] = {}


def load_tvm() -> None:
    """Import TVM now and fill this module's names."""
    with _loading:
        if is_loaded():
            return
        _tvm.update(_import_without_torch())
        _declared.update(_tvm["Op"].list_op_names())
        for name, effect in CALLS.items():
            _declare(name, effect)
        globals().update(_tvm)


def is_loaded() -> bool:
    """Whether TVM has been imported through this module."""
    return "PrimFunc" in globals()


def ensure_op(name: str) -> None:
    """Make our operator for the language's `name` exist; one not in `CALLS` is opaque."""
    load_tvm()
    with _loading:
        _declare(op_name(name), Effect.OPAQUE)


def _import_without_torch() -> dict[str, Any]:
    hidden = "torch" not in sys.modules
    if hidden:
        sys.modules["torch"] = None  # type: ignore[assignment]
    try:
        found: dict[str, Any] = {}
        for name, (module, attribute) in _EXPORTS.items():
            value: Any = importlib.import_module(module)
            found[name] = getattr(value, attribute) if attribute else value
    finally:
        if hidden:
            del sys.modules["torch"]
    # AllocBuffer and DeclBuffer test their span against this one name, and so would refuse the
    # spans of inlined code.
    statements = importlib.import_module("tvm.tirx.stmt")
    statements.Span = (found["Span"], found["SequentialSpan"])  # type: ignore[attr-defined]
    return {**found, "Buffer": found["Var"]}


def _declare(name: str, effect: Effect) -> None:
    """Tell TVM an operator; one without an effect kind breaks PrimFunc construction."""
    if name in _declared:
        return
    kinds = _tvm["CallEffectKind"]
    kind = {
        Effect.PURE: kinds.Pure, Effect.READ: kinds.ReadState, Effect.OPAQUE: kinds.Opaque
    }[effect]  # fmt: skip
    _tvm["get_global_func"]("ir.RegisterOp")(name, "")
    _tvm["register_op_attr"](name, "TCallEffectKind", kind.value)
    _tvm["register_op_attr"](name, "TScriptPrinterName", name.replace(".", "_"))
    _declared.add(name)


def __getattr__(name: str) -> Any:
    if name in _EXPORTS or name == "Buffer":
        load_tvm()
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
