"""What does a user hold once a kernel is compiled? A callable that checks, launches and returns.

kernel = tilelang.compile(matmul(1024, 1024, 1024), out_idx=[-1], target="cpu")
c = kernel(a, b)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilelang.codegen.artifacts import Artifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.cuda_binary import KernelResources
from tilelang.dtypes import DType
from tilelang.options import CompileOptions
from tilelang.program.buffer import Buffer, Dim
from tilelang.program.stmt import Function
from tilelang.runtime import dynamo
from tilelang.runtime.arguments import bind
from tilelang.runtime.build import Built
from tilelang.runtime.cpu import CpuAssertionError
from tilelang.runtime.crash import out_of_memory
from tilelang.runtime.effects import written_parameters
from tilelang.runtime.fast_call import NO_FAST_PATH, make_fast_call
from tilelang.runtime.gradients import warn_of_gradients
from tilelang.runtime.place import Place, place_of
from tilelang.runtime.signature import OutIdx, Parameter, Signature, make_signature
from tilelang.runtime.tensors import Family
from tilelang.target import Target
from tilelang_diagnostics import CompileError, failure
from tilelang_diagnostics.model import Diagnostic, Span

if TYPE_CHECKING:
    from tilelang.emulator.traffic import Checked
    from tilelang.inspection.model import Inspection
    from tilelang.runtime.export import Targets
    from tilelang.runtime.inputs import TensorSupplyType
    from tilelang.runtime.profiler import Profiler


# How often a kernel on a GPU gets a call path of its own for the tensors it is given now.
_MOST_LEARNED = 4


@dataclass(frozen=True, slots=True)
class KernelParam:
    """One parameter of a kernel: a tensor, or a scalar (no shape)."""

    name: str
    dtype: DType
    shape: tuple[Dim, ...] | None = None


@dynamo.opaque("__call__")
class JITKernel:
    """A compiled kernel. Call it with the parameters that `out_idx` does not name."""

    def __init__(
        self,
        function: Function,
        built: Built,
        out_idx: OutIdx = None,
        options: CompileOptions | None = None,
        prim_func: Any = None,
    ) -> None:
        self.function = function
        self.prim_func = prim_func
        self.options = options or CompileOptions()
        self.signature: Signature = make_signature(function, out_idx)
        self.from_cache = built.from_cache
        # What a tuning run notes here.
        self.latency: float | None = None
        self.ref_latency: float | None = None
        self.config: Mapping[str, Any] | None = None
        self._built = built
        self._launch = built.runner.run
        self._written = written_parameters(function)
        # The emulator runs code for a GPU on tensors of the CPU.
        own = getattr(built.runner, "place", None)
        self._place: Place = own or place_of(built.compiled.artifact)
        self._slots = _slot_order(self.signature, built.compiled.artifact)
        allocates = getattr(built.runner, "allocates", None)
        if allocates is not None:
            allocates(frozenset(b.name for b in self.signature.results))
        self._arity = len(self.signature.inputs)
        self._fast: dict[type, Any] = {}
        self._learned = 0
        self._leader = next(
            (i for i, p in enumerate(self.signature.inputs) if isinstance(p, Buffer)), 0
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Launch the kernel; returns its result, or a list of them, or None.

        Raises ValueError or TypeError, with a diagnostic, for arguments that do not fit.
        """
        if not dynamo.is_hidden and dynamo.hide_if_loaded():
            return self(*args, **kwargs)
        try:
            if not kwargs and len(args) == self._arity and args:
                fast = self._fast.get(args[self._leader].__class__)
                if fast is not None:
                    result = fast(*args)
                    if result is not NO_FAST_PATH:
                        return result
            return self._slow_call(args, kwargs)
        except CpuAssertionError as failed:
            raise _assertion_error(failed, self.name) from None
        except MemoryError as error:
            if isinstance(error, CompileError):
                raise
            raise out_of_memory(f"to run {self.name}", error, self.signature.span) from None

    def _slow_call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if self._place.kind != "cpu":
            self._built.runner.require_device()
        bound = bind(self.signature, args, kwargs, self._written, self._place)
        if bound.family == "torch":
            warn_of_gradients(self.signature, args, kwargs)
        self._launch([bound.value(p) for p in self._slots], bound.device or 0)
        if not kwargs and args:
            self._learn(args, bound.family)
        results = bound.results
        if not results:
            return None
        return results[0] if len(results) == 1 else results

    def _learn(self, args: Sequence[Any], family: Family) -> None:
        """A call with such tensors has gone well: make the next one fast."""
        cls = args[self._leader].__class__
        if self._place.kind != "cpu" and self._learned < _MOST_LEARNED:
            self._learned += 1
            self._fast.pop(cls, None)
        if cls in self._fast:
            return
        inline = getattr(self._built.runner, "inline", None)
        made = make_fast_call(
            self.signature, self._slots, family, self._launch, self._written, self._place, inline,
            None if inline is None else JITKernel.__call__, args if family == "torch" else None,
        )  # fmt: skip
        self._fast[cls] = made if inline is None else None
        if made is not None and inline is not None:
            # A launch takes microseconds, and one call of a function less is a part of that.
            self.__class__ = type("JITKernel", (JITKernel,), {"__call__": made})

    def require_device(self) -> None:
        """Raise TL805 if there is no device that could run it."""
        self._built.runner.require_device()

    def came_from(self, entry: str, values: Mapping[str, Any]) -> None:
        """The function of the user's file it was made by, for commands that run it again."""
        remember = getattr(self._built.runner, "came_from", None)
        if remember is not None:
            remember(entry, values)

    # What it is.

    @property
    def name(self) -> str:
        """The kernel's name."""
        return self.function.name

    @property
    def __name__(self) -> str:
        return self.function.name

    @property
    def params(self) -> list[KernelParam]:
        """Every parameter, in order; T.empty outputs come last."""
        return [
            KernelParam(p.name, p.dtype, p.shape if isinstance(p, Buffer) else None)
            for p in self.signature.slots
        ]

    @property
    def out_idx(self) -> list[int]:
        """Positions in `params` of what a call returns."""
        outputs = range(len(self.signature.params), len(self.signature.slots))
        return [*self.signature.out_idx, *outputs]

    @property
    def target(self) -> Target:
        """What it was compiled for."""
        return self._built.compiled.target

    @property
    def device_kind(self) -> str:
        """Where its tensors have to be: "cpu" or "cuda"."""
        return self._place.kind

    @property
    def shared_memory_bytes(self) -> int:
        """Shared memory of a block, static and dynamic; 0 on the CPU."""
        return self.artifact.shared_memory_bytes if isinstance(self.artifact, CudaArtifact) else 0

    @property
    def resource_usage(self) -> tuple[KernelResources, ...]:
        """What each kernel takes of a multiprocessor, as the device compiler reports it."""
        artifact = self.artifact
        return artifact.binaries[0].resources if isinstance(artifact, CudaArtifact) else ()

    @property
    def n_regs(self) -> int:
        """Registers of a thread, of the kernel that takes most."""
        return max((r.registers for r in self.resource_usage), default=0)

    @property
    def n_spills(self) -> int:
        """Bytes that a thread moves between registers and memory for want of registers."""
        return sum(r.spill_stores + r.spill_loads for r in self.resource_usage)

    @property
    def ptx(self) -> str:
        """The PTX the binary was made from; empty on the CPU."""
        artifact = self.artifact
        return artifact.binaries[0].ptx if isinstance(artifact, CudaArtifact) else ""

    def inspect(self) -> Inspection:
        """What is in its machine code, by line of Python; ValueError with TL417 on the CPU."""
        from tilelang.inspection.inspect import inspect_artifact

        return inspect_artifact(
            self.artifact, self.function, self.target, self.diagnostics, self.options
        )

    @property
    def checked(self) -> Checked | None:
        """What the last call counted in the emulator's checked mode; None where there was none."""
        found: Checked | None = getattr(self._built.runner, "checked", None)
        return found

    def show_ptx(self) -> None:
        """Print the PTX."""
        print(self.ptx)

    def export_ptx(self, path: str | Path) -> None:
        """Write the PTX to a file; raises OSError with TL810 for a path that cannot be."""
        write_text(Path(path), self.ptx)

    @property
    def artifact(self) -> Artifact:
        """The compiled code and how it is called."""
        return self._built.compiled.artifact

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What the compiler noticed: warnings and remarks."""
        return self._built.compiled.diagnostics

    def written_inputs(self) -> list[int]:
        """Positions among the arguments of the tensors the kernel stores to."""
        return [i for i, p in enumerate(self.signature.inputs) if p in self._written]

    # Its source.

    @property
    def kernel_source(self) -> str:
        """The generated code."""
        return self.get_kernel_source()

    @property
    def host_source(self) -> str:
        """The IR the code was generated from, host part included."""
        return self.get_host_source()

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """The generated code: LLVM IR or CUDA C++; after the lowered IR if asked for all."""
        source = self.artifact.source
        return source if kernel_only else f"{self.get_host_source()}\n{source}"

    def get_host_source(self) -> str:
        """The lowered IR, launches included: there is no separate host program."""
        return self._built.compiled.ir

    def show_source(self, which: str = "kernel") -> None:
        """Print the source: "kernel", "host" or "both"."""
        if which in ("host", "both"):
            print(self.get_host_source())
        if which in ("kernel", "both"):
            print(self.get_kernel_source())

    def print_source_code(self, which: str = "kernel") -> None:
        """The old name of `show_source`."""
        self.show_source(which)

    def export_sources(
        self, kernel_path: str | Path | None = None, host_path: str | Path | None = None
    ) -> None:
        """Write the sources to files; raises OSError with TL810 for a path that cannot be."""
        for path, text in (
            (kernel_path, self.get_kernel_source()),
            (host_path, self.get_host_source()),
        ):
            if path is not None:
                write_text(Path(path), text)

    def export(self, path: str | Path, *, targets: Targets = None) -> Path:
        """Write it as a shared object that runs with only `apache-tvm-ffi` installed.

        `path` is that of a `.so` file, or a folder; `targets` are architectures to compile it for,
        by default its own. Returns the path of the shared object; see `tilelang.export`.
        """
        from tilelang.runtime.export import export

        return export(self, path, targets=targets)

    # How fast it is, and whether it is right.

    def get_profiler(self, tensor_supply_type: TensorSupplyType | None = None) -> Profiler:
        """Inputs, comparison with a reference, and timing for this kernel."""
        from tilelang.runtime.inputs import TensorSupplyType
        from tilelang.runtime.profiler import Profiler

        return Profiler(self, tensor_supply_type or TensorSupplyType.Auto)

    def run_once(self, *args: Any) -> Any:
        """Call it, with random inputs if none are given."""
        return self(*args) if args else self.get_profiler().run_once()

    # Nothing of a kernel changes: a copy of what holds one holds the same.

    def __deepcopy__(self, memo: Any) -> JITKernel:
        return self

    def __copy__(self) -> JITKernel:
        return self

    def __repr__(self) -> str:
        listed = ", ".join(p.name for p in self.signature.inputs)
        return f"<JITKernel {self.name}({listed}) for {self.target}>"


def write_text(path: Path, text: str) -> None:
    """Write a file the user asked for; TL810 if it cannot be written."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))  # names of files may be no text


def write_bytes(path: Path, data: bytes) -> None:
    """As `write_text`."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise failure("TL810", f"{path} cannot be written: {reason}") from None


def _slot_order(signature: Signature, artifact: Artifact) -> tuple[Parameter, ...]:
    """Which parameter or dimension goes into each slot of the artifact.

    By position: both list the runtime dimensions by first appearance, and two may share a name.
    """
    order = (*signature.slots, *signature.dims)
    kinds = [slot.kind for slot in artifact.slots]
    late = ["dim" for _ in signature.dims]
    if len(order) != len(kinds) or kinds[len(signature.slots) :] != late:
        raise ValueError(f"{signature.name}: {artifact.slots} are not {order}")
    return order


def _assertion_error(failed: CpuAssertionError, name: str) -> Exception:
    """TL721 or TL722 for an assertion that failed while the kernel ran."""
    message = failed.message
    code = "TL721" if failed.host else "TL722"
    span = None
    if message.line > 0:
        span = Span(message.file, message.line, max(1, message.column),
                    max(message.line, message.end_line), max(1, message.end_column))  # fmt: skip
    what = "the arguments break an assumption of" if failed.host else "an assertion failed in"
    return failure(code, f"{what} {name}: {message.text}", span=span)
