"""How does LLVM IR text become object code, and which CPU does it get made for?

TVM brings LLVM but offers no entry for text as such; importing it into a module of thin forwarding
functions does the job, and runs LLVM's full optimisation pipeline over both. Imported functions
are inlined into their forwarders and vanish.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from tilelang.ir import tirx


@dataclass(frozen=True, slots=True)
class HostCpu:
    """A processor LLVM generates code for: target triple, name, width of its vector registers,
    and whether it multiplies and adds in one instruction."""

    triple: str
    name: str
    vector_bits: int
    has_fma: bool = True

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith(("x86_64", "amd64"))

    @property
    def vector_registers(self) -> int:
        """How many vector registers there are."""
        return 16 if self.is_x86 and self.vector_bits < 512 else 32

    @property
    def has_scale(self) -> bool:
        """Whether one instruction scales a vector by powers of two (AVX-512)."""
        return self.is_x86 and self.vector_bits >= 512


@dataclass(frozen=True, slots=True)
class Forwarder:
    """Exports `symbol`, which passes its parameters on to the internal function `callee`.

    `params` are `i64` or `ptr`; both functions return nothing.
    """

    symbol: str
    callee: str
    params: tuple[str, ...]


class LlvmError(RuntimeError):
    """LLVM rejected the text; always a fault of the printer that wrote it."""


@cache
def host_cpu() -> HostCpu:
    """The processor this process runs on."""
    return cpu_named(str(tirx.get_global_func("target.llvm_get_system_cpu")()))


def cpu_named(name: str) -> HostCpu:
    """The processor LLVM calls `name`, with this system's target triple."""
    triple = str(tirx.get_global_func("target.llvm_get_system_triple")())
    has_feature = tirx.get_global_func("target.llvm_cpu_has_feature")
    target = tirx.tvm.target.Target({"kind": "llvm", "mcpu": name})
    if not triple.startswith(("x86_64", "amd64")):
        return HostCpu(triple, name, 128)
    bits = 512 if has_feature("avx512f", target) else 256 if has_feature("avx", target) else 128
    return HostCpu(triple, name, bits, bool(has_feature("fma", target)))


@cache
def features_of(name: str, triple: str) -> tuple[str, ...]:
    """What code that is compiled for a processor may use, in LLVM's names."""
    target = tirx.tvm.target.Target({"kind": "llvm", "mcpu": name, "mtriple": triple})
    return tuple(sorted(map(str, tirx.get_global_func("target.llvm_get_cpu_features")(target))))


def compile_llvm(text: str, forwarders: Sequence[Forwarder], cpu: HostCpu) -> bytes:
    """Relocatable object code of `text`, exporting `forwarders`, optimised for `cpu`."""
    return bytes(_build(text, forwarders, cpu)("o"))


def assembly(text: str, forwarders: Sequence[Forwarder], cpu: HostCpu, kind: str = "s") -> str:
    """The optimised program as assembly (`s`) or as LLVM IR (`ll`)."""
    return str(_module(text, forwarders, cpu).inspect_source(kind))


def _build(text: str, forwarders: Sequence[Forwarder], cpu: HostCpu) -> Any:
    import tempfile
    from pathlib import Path

    module = _module(text, forwarders, cpu)

    def save(kind: str) -> bytes:
        # The module's writer only knows files.
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"kernel.{kind}"
            module.write_to_file(str(path), kind)
            return path.read_bytes()

    return save


def _module(text: str, forwarders: Sequence[Forwarder], cpu: HostCpu) -> Any:
    said: dict[str, Any] = {"kind": "llvm", "mcpu": cpu.name, "mtriple": cpu.triple}
    if cpu.has_scale:
        # LLVM vectorises for 256 bits on Intel by default, to spare clock speed that processors
        # since Ice Lake no longer give up.
        said["mattr"] = ["-prefer-256-bit"]
    target = tirx.tvm.target.Target(said)
    functions = {}
    for index, forwarder in enumerate(forwarders):
        function = _forward(forwarder, text if index == 0 else "")
        functions[forwarder.symbol] = function.with_attr("target", target)
    try:
        return tirx.get_global_func("target.build.llvm")(tirx.IRModule(functions), target)
    except Exception as error:
        raise LlvmError(str(error)) from error


def _forward(forwarder: Forwarder, text: str) -> Any:
    pointer = tirx.PointerType(tirx.PrimType("int64"))
    params = [
        tirx.Var(f"a{i}", pointer if kind == "ptr" else "int64")
        for i, kind in enumerate(forwarder.params)
    ]
    callee = tirx.StringImm(forwarder.callee)
    body = tirx.Evaluate(tirx.Call("tirx.call_extern", [callee, *params], ret_ty="void"))
    if text:
        anchor = tirx.StringImm("text")
        body = tirx.AttrStmt(anchor, "pragma_import_llvm", tirx.StringImm(text), body)
    return tirx.PrimFunc(params, body).with_attr("global_symbol", forwarder.symbol)
