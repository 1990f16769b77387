"""What became of an edited file, and how is it run?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_artifact import DeviceArtifact
from tilelang.compiler import Compiled, Start, lower_function
from tilelang_diagnostics import CompileError
from tilelang_trace.model import Trace

if TYPE_CHECKING:
    from tilelang.runtime.kernel import JITKernel


@dataclass(frozen=True, slots=True)
class Resumed:
    """The trace of a compilation that went on from a file.

    `start` is what the file held, for IR; `error` is why it did not get to the end. `artifact` is
    None where it did not, or where there is no compiler for the source.
    """

    trace: Trace
    artifact: Artifact | None = None
    start: Start | None = None
    error: CompileError | None = None

    def kernel(self, execution_backend: Any = None) -> JITKernel:
        """The kernel, to be called: on its device, or emulated. Raises CompileError."""
        from tilelang.emulator.settings import emulator_of
        from tilelang.runtime.build import Built, start
        from tilelang.runtime.kernel import JITKernel
        from tilelang_trace.replay import unpack

        if self.error is not None:
            raise self.error
        function, target, options = unpack(self.trace.program)
        emulator = emulator_of(execution_backend)
        if emulator is None and self.artifact is not None:
            compiled = Compiled(self.artifact, target, "", self.trace.remarks)
            return JITKernel(function, Built(compiled, start(compiled), False), None, options)
        from tilelang.backends import backend_for
        from tilelang.emulator.build import artifact_of, print_for
        from tilelang.emulator.kernel import EmulatedKernel
        from tilelang.emulator.settings import Emulator

        backend = backend_for(target)
        artifact = self.artifact
        if not isinstance(artifact, CudaArtifact | DeviceArtifact):
            lowered = lower_function(function, target, options, start=self.start)
            device = print_for(backend, lowered.func, options)
            artifact = artifact_of(device, target, backend.words().extension)
        assert isinstance(artifact, CudaArtifact | DeviceArtifact)
        runner = EmulatedKernel(artifact.device, function, emulator or Emulator())
        compiled = Compiled(artifact, target, "", self.trace.remarks)
        return JITKernel(function, Built(compiled, runner, False), None, options)
