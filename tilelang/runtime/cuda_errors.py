"""What is said when a CUDA kernel cannot be loaded or launched, or has failed?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_source import HostCheck, KernelLaunch, KernelParam
from tilelang.runtime.cuda_driver import (
    ASSERT,
    COOPERATIVE_LAUNCH_TOO_LARGE,
    ILLEGAL_ADDRESS,
    INVALID_IMAGE,
    LAUNCH_OUT_OF_RESOURCES,
    LAUNCH_TIMEOUT,
    MISALIGNED_ADDRESS,
    NO_BINARY_FOR_GPU,
    OUT_OF_MEMORY,
    STICKY,
    UNSUPPORTED_PTX_VERSION,
    Device,
    Driver,
    Result,
)
from tilelang.runtime.cuda_ring import RING, Launched, assertions, distinct
from tilelang_diagnostics import CompileError, code_of, counted, diagnose, error_for
from tilelang_diagnostics.model import Diagnostic, Label

# CUDA programming guide, table of compute capabilities: maximum x-, y- and z-dimension of a grid.
_GRID_LIMITS = ((1 << 31) - 1, (1 << 16) - 1, (1 << 16) - 1)


def _error(code: str, message: str, help: str, **details: object) -> CompileError:
    return error_for(
        (Diagnostic(code, code_of(code).severity, message, help=help, **details),)  # type: ignore[arg-type]
    )


def no_gpu(name: str, why: str) -> CompileError:
    """TL805: there is nothing to launch on."""
    return _error(
        "TL805",
        f"`{name}` needs an NVIDIA GPU, but {why}",
        "make the GPU visible to this process (`tilelang doctor` says what is seen), run it on the "
        "processor with `tilelang run --emulate` or execution_backend='emulator', or compile for "
        "target='cpu'",
    )


def no_such_device(name: str, index: int, count: int) -> CompileError:
    """TL805: an ordinal the driver does not know."""
    return _error(
        "TL805",
        f"`{name}` is to run on cuda:{index}, but the driver sees {counted(count, 'device')}",
        "look at CUDA_VISIBLE_DEVICES",
    )


def wrong_arch(artifact: CudaArtifact, device: Device) -> CompileError:
    """TL416: no binary of the artifact runs on the device."""
    archs = ", ".join(artifact.archs) or "no architecture"
    wanted = f"{device.arch}a" if device.capability[0] >= 9 else device.arch
    return _error(
        "TL416",
        f"`{artifact.name}` was compiled for {archs}; cuda:{device.index}, {device.name}, is "
        f"{device.arch}",
        f"compile it with target='cuda:{wanted}'",
    )


def cannot_load(
    artifact: CudaArtifact, device: Device, driver: Driver, result: Result
) -> CompileError:
    """TL416 for a binary the driver does not take, TL812 for anything else."""
    said = driver.describe(result)
    if result in (INVALID_IMAGE, NO_BINARY_FOR_GPU, UNSUPPORTED_PTX_VERSION):
        version = f"{driver.version // 1000}.{driver.version % 1000 // 10}"
        return _error(
            "TL416",
            f"the driver, which is for CUDA {version}, does not take the binary of "
            f"`{artifact.name}` for {', '.join(artifact.archs)} ({said})",
            "update the driver, or compile with an NVRTC no newer than the driver",
        )
    return _error(
        "TL812",
        f"`{artifact.name}` cannot be loaded on cuda:{device.index} ({said})",
        "if an earlier kernel failed in this process, start a new one",
    )


def damaged(artifact: CudaArtifact, arch: str) -> CompileError:
    """TL416: what should be machine code is not all there."""
    return _error(
        "TL416",
        f"the binary of `{artifact.name}` for {arch} is damaged: it is no whole ELF file",
        "compile it again, or copy it again from where it was made",
    )


def no_memory(name: str, size: int, device: int, found: tuple[str, Result]) -> CompileError:
    """TL813 where a device has too little memory left, TL812 for another reason."""
    said, result = found
    if result == OUT_OF_MEMORY:
        return _error(
            "TL813",
            f"cuda:{device} has no {size} bytes left for a tensor of `{name}`",
            "free what is not needed, or choose smaller sizes",
        )
    return _error(
        "TL812",
        f"memory for `{name}` on cuda:{device} cannot be allocated ({said})",
        "if an earlier kernel failed in this process, start a new one",
    )


def too_much_shared(artifact: CudaArtifact, launch: KernelLaunch, device: Device) -> CompileError:
    """TL406: a block asks for more shared memory than this device has."""
    total = launch.static_shared + launch.dynamic_shared
    return _error(
        "TL406",
        f"a block of `{artifact.name}` needs {total} bytes of shared memory; {device.name} "
        f"({device.arch}) has {device.shared_bytes}",
        "use smaller tiles or fewer pipeline stages on this device",
    )


def cannot_pass(artifact: CudaArtifact, param: KernelParam) -> CompileError:
    """TL718: a scalar of a dtype with no form in a parameter block."""
    return _error(
        "TL718",
        f"the scalar parameter {param.source} of `{artifact.name}` has dtype {param.dtype}, which "
        "cannot be passed to a kernel",
        "pass it as float32, or in a tensor of one element",
    )


def out_of_range(artifact: CudaArtifact, values: Sequence[int | float]) -> CompileError:
    """TL718: a value that does not fit its parameter."""
    for slot, value in zip(artifact.slots, values, strict=True):
        bits = {"int32": 31, "uint32": 32, "int16": 15, "int8": 7}.get(slot.dtype)
        if bits is not None and isinstance(value, int) and not -(1 << bits) <= value < 1 << bits:
            return _error(
                "TL718",
                f"{slot.name} of `{artifact.name}` is {value}, which does not fit {slot.dtype}",
                f"declare {slot.name} as int64, or pass smaller tensors",
            )
    return _error("TL718", f"a value passed to `{artifact.name}` does not fit its type",
                  "look at the sizes of the tensors")  # fmt: skip


def check_failed(artifact: CudaArtifact, check: HostCheck) -> CompileError:
    """TL721: a condition the kernel has on its arguments does not hold."""
    return _error(
        "TL721",
        f"the arguments break an assumption of `{artifact.name}`: {check.message}",
        "pass other arguments, or drop the assertion",
        span=check.span,
    )


def launch_failed(
    artifact: CudaArtifact,
    launch: KernelLaunch,
    grid: tuple[int, int, int],
    device: Device,
    found: tuple[str, Result],
    recent: Sequence[Launched],
    resident: int | None = None,
) -> CompileError:
    """Why the driver refused a launch, or what an earlier one has done to the context."""
    said, result = found
    if result in STICKY:
        return context_lost(artifact.name, said, result, recent)
    for axis, size, limit in zip("xyz", grid, _GRID_LIMITS, strict=True):
        if size > limit:
            return _error(
                "TL414",
                f"{size} blocks along {axis} of `{artifact.name}`; {device.name} takes at most "
                f"{limit}",
                "put the long axis first, or fold two axes into one",
            )
    where = f"grid {grid}, block {launch.block}, {launch.dynamic_shared} bytes of dynamic shared"
    help = "please report this with the kernel: the compiler should have refused it"
    if result == COOPERATIVE_LAUNCH_TOO_LARGE:
        most = "" if resident is None else f"; at most {resident * device.multiprocessors} fit"
        where = f"{grid[0] * grid[1] * grid[2]} blocks have to run at once for T.sync_grid{most}"
        help = "launch fewer blocks, and let each loop over several tiles"
    elif result == LAUNCH_OUT_OF_RESOURCES:
        where += f", {launch.threads} threads"
        help = "its threads need more registers than a multiprocessor has: launch fewer threads"
    return _error(
        "TL812", f"launching `{artifact.name}` on cuda:{device.index} failed ({where}): {said}",
        help,
    )  # fmt: skip


def context_lost(name: str, said: str, result: Result, recent: Sequence[Launched]) -> CompileError:
    """TL722 or TL812: a kernel that ran earlier did something the device does not survive."""
    found = distinct(recent)
    notes = (_launched(found, len(recent)), _LOST)
    commands = tuple(f"to find it: {c}" for c in dict.fromkeys(k.command() for k in found) if c)
    if result == ASSERT:
        return _assertion_failed(name, said, found, notes)
    only = found[0].span if len(found) == 1 else None
    return error_for(
        (
            diagnose(
                "TL812",
                f"a kernel failed while it ran, noticed at `{name}`: {said}",
                only,
                label="" if only is None else "by this launch, or by what PyTorch launched",
                notes=(*notes, *commands),
                help=_MEANINGS.get(result, _ANY)
                + ("" if commands else "; `compute-sanitizer python FILE` finds the place"),
            ),
        )
    )


_LOST: Final = "the CUDA context is lost: every later CUDA call of this process fails"
_ANY: Final = "with CUDA_LAUNCH_BLOCKING=1 the error appears at the call that causes it"
_MEANINGS: Final[Mapping[int, str]] = {
    ILLEGAL_ADDRESS: "a thread touched memory that is no tensor's: an index or a pointer is wrong",
    LAUNCH_TIMEOUT: "the kernel ran longer than the driver allows while the GPU shows a desktop: "
    "a loop or a wait for a barrier does not end, or the work has to be split",
    MISALIGNED_ADDRESS: "a vector was read or written at an address that is no multiple of its "
    "size: a pointer of foreign code, or a view with an odd offset",
}


def _launched(found: Sequence[Launched], count: int) -> str:
    """The kernels that may be to blame."""
    if not found:
        return "no kernel of ours was launched since the last synchronisation"
    rows = []
    for kernel in found:
        span = kernel.span
        place = "" if span is None else f" ({span.file}:{span.line})"
        rows.append(f"`{kernel.symbol}`{place}")
    most = f"; only the last {RING} launches are remembered" if count >= RING else ""
    return f"launched since the last synchronisation: {', '.join(rows)}{most}"


def _assertion_failed(
    name: str, said: str, found: Sequence[Launched], notes: tuple[str, ...]
) -> CompileError:
    """TL722: at the assertion, if only one was launched; else at each."""
    rows = [row for artifact in {id(k.artifact): k.artifact for k in found}.values()
            for row in assertions(artifact)]  # fmt: skip
    places = {(row.text, row.line.span): None for row in rows if row.line.span is not None}
    message = f"an assertion failed on the device, noticed at `{name}`"
    span, labels = None, tuple[Label, ...]()
    if len(places) == 1:
        ((text, span),) = places
        message = f"{message}: {text}"
    else:
        labels = tuple(Label(at, text) for text, at in places if at is not None)
    return error_for(
        (
            diagnose(
                "TL722",
                message,
                span,
                label="" if span is None else "false for some thread",
                labels=labels,
                notes=(f"the driver printed text, block and thread ({said})", *notes),
                help="look at the values the condition is about, or pass other arguments",
            ),
        )
    )
