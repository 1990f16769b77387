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
    """The processor LLVM generates code for: its target triple, its name, its vector width."""

    triple: str
    name: str
    vector_bits: int

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith(("x86_64", "amd64"))


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
    call = tirx.get_global_func
    name = str(call("target.llvm_get_system_cpu")())
    target = tirx.tvm.target.Target({"kind": "llvm", "mcpu": name})
    bits = int(call("target.llvm_get_vector_width")(target))
    return HostCpu(str(call("target.llvm_get_system_triple")()), name, bits)


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
    if cpu.is_x86 and cpu.vector_bits >= 512:
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
