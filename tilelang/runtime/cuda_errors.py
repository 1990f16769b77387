"""What is said when a CUDA kernel cannot be loaded or launched, or has failed?"""

from __future__ import annotations

from collections.abc import Sequence

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_source import HostCheck, KernelLaunch, KernelParam
from tilelang.runtime.cuda_driver import (
    ASSERT,
    COOPERATIVE_LAUNCH_TOO_LARGE,
    INVALID_IMAGE,
    LAUNCH_OUT_OF_RESOURCES,
    NO_BINARY_FOR_GPU,
    OUT_OF_MEMORY,
    STICKY,
    UNSUPPORTED_PTX_VERSION,
    Device,
    Driver,
    Result,
)
from tilelang_diagnostics import CompileError, code_of, error_for
from tilelang_diagnostics.model import Diagnostic

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
        "make the GPU visible to this process (`tilelang doctor` says what is seen), or compile "
        "for target='cpu'",
    )


def no_such_device(name: str, index: int, count: int) -> CompileError:
    """TL805: an ordinal the driver does not know."""
    return _error(
        "TL805",
        f"`{name}` is to run on cuda:{index}, but the driver sees {count} device(s)",
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
    recent: Sequence[str],
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


def context_lost(name: str, said: str, result: Result, recent: Sequence[str]) -> CompileError:
    """TL722 or TL812: a kernel that ran earlier did something the device does not survive."""
    kernels = ", ".join(f"`{k}`" for k in dict.fromkeys(recent)) or "none of ours"
    if result == ASSERT:
        return _error(
            "TL722",
            f"an assertion failed on the device, noticed at `{name}` ({said})",
            f"its text was printed by the device; launched since the last synchronisation: "
            f"{kernels}. The CUDA context is lost: start a new process",
        )
    return _error(
        "TL812",
        f"a kernel failed while it ran, noticed at `{name}`: {said}; launched since the last "
        f"synchronisation: {kernels}",
        "the CUDA context is lost, start a new process. To find the place: "
        "`tilelang run --sanitize FILE`, or `compute-sanitizer python FILE`; with "
        "CUDA_LAUNCH_BLOCKING=1 the error appears at the call that causes it",
    )
