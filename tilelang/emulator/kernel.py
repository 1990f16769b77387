"""What runs an emulated kernel: how do the values of a call become tensors and numbers?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_source import DeviceSource
from tilelang.codegen.host_expr import evaluate as evaluate_host
from tilelang.emulator.call import Region
from tilelang.emulator.launch import build_runtime, launch
from tilelang.emulator.settings import Emulator
from tilelang.emulator.toolchain import find_compiler
from tilelang.emulator.traffic import Checked
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Var
from tilelang.program.stmt import Function
from tilelang.runtime.dims import bytes_of
from tilelang.runtime.place import Place
from tilelang.runtime.signature import Parameter, make_signature
from tilelang_diagnostics import failure


class EmulatedKernel:
    """A kernel for a GPU that runs on the processor; `run` is that of every runner."""

    def __init__(self, device: DeviceSource, function: Function, settings: Emulator) -> None:
        self.device = device
        self.settings = settings
        # What the last call counted, in checked mode.
        self.checked: Checked | None = None
        # Tensors that are allocated for what a call returns.
        self._results: frozenset[str] = frozenset()
        signature = make_signature(function)
        self._parameters: tuple[Parameter, ...] = (*signature.slots, *signature.dims)
        # Tensors of the CPU, which a GPU would want aligned like this.
        self.place = Place("cpu", CudaArtifact(device).alignments())

    def allocates(self, results: frozenset[str]) -> None:
        """The tensors called `results` are allocated for each call, and hold nothing before."""
        self._results = results

    def require_device(self) -> None:
        """Raise TL807 if there is no C++ compiler. Builds the emulator, the first time."""
        build_runtime(find_compiler())

    def run(self, values: Sequence[int | float], device: int = 0) -> None:
        """Run every launch, with one value per slot of the kernel; addresses are of this process.

        Raises CompileError for what went wrong in the kernel, and in checked mode for what could.
        """
        slots = self.device.slots
        names = {slot.name: value for slot, value in zip(slots, values, strict=True)}
        self._check(names)
        sizes = {
            parameter: int(value)
            for parameter, value in zip(self._parameters, values, strict=True)
            if isinstance(parameter, Var)
        }
        tensors = [
            Region(slot.name, int(value), bytes_of(parameter, sizes) if value else 0,
                   slot.name in self._results)
            for slot, parameter, value in zip(slots, self._parameters, values, strict=True)
            if isinstance(parameter, Buffer)
        ]  # fmt: skip
        self.checked = None
        launch(self.device, names, tensors, self.settings, self._counted)

    def _counted(self, checked: Checked) -> None:
        self.checked = checked

    def _check(self, names: Mapping[str, Any]) -> None:
        for check in self.device.checks:
            if not evaluate_host(check.condition, names):
                raise failure(
                    "TL721",
                    f"the arguments break an assumption of `{self.device.name}`: {check.message}",
                    span=check.span,
                    help="pass other arguments, or drop the assertion",
                )
