"""Which GPUs can this process use, and what does target `auto` therefore stand for?

Looks at drivers and system files only; no framework is imported and no context is created.
"""

from __future__ import annotations

import ctypes
import platform
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from tilelang import options
from tilelang.backends import KINDS_LAUNCHED
from tilelang.runtime.cuda_driver import start_failure
from tilelang.target import ARCHS, Probe, Resolved, is_auto, kind_alone, resolve_target

_quiet: list[bool] = []


def resolve(value: Any = None, *, announce: bool = True) -> Resolved:
    """The target to compile for; None means the environment's default.

    What `auto` stands for is said on standard error, once a process. A kind of GPU without an
    architecture, such as `cuda`, is the first GPU of that kind.
    """
    if value is None:
        value = options.DEFAULT_TARGET.get()
    kind = kind_alone(value)
    if kind is not None:
        here = next((p.arch for p in probes() if p.kind == kind and p.arch in ARCHS[kind]), None)
        return resolve_target(value if here is None else f"{kind}:{here}")
    if not is_auto(value):
        return resolve_target(value)
    resolved = resolve_target("auto", probes(), KINDS_LAUNCHED)
    if announce and not _quiet:
        say_auto(resolved)
    return resolved


def say_auto(resolved: Resolved) -> None:
    """Say on standard error what `auto` stands for, once a process."""
    if options.PRINT_ON_COMPILATION.get():
        _announce(resolved)


def resolve_quietly() -> None:
    """Say nothing about `auto` in this process: the caller shows it itself."""
    _quiet.append(True)


def determine_target(target: Any = "auto", return_object: bool = False) -> Any:
    """The resolved target, as its spelling or (`return_object`) as a `Target`."""
    resolved = resolve(target).target
    return resolved if return_object else str(resolved)


@cache
def probes() -> tuple[Probe, ...]:
    """One look per kind of GPU, in the order of preference."""
    return (probe_cuda(), probe_hip(), probe_metal())


@cache
def _announce(resolved: Resolved) -> None:
    remark = resolved.remark()
    if remark is not None:
        print(remark, file=sys.stderr)


def probe_cuda(load: Callable[[str], Any] = ctypes.CDLL) -> Probe:
    """The first NVIDIA GPU, as the CUDA driver reports it."""
    try:
        driver = load("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")
    except OSError:
        evidence = _nvidia_hardware()
        hidden = (
            f"{evidence}, but its driver library libcuda.so.1 is not here" if evidence else None
        )
        return Probe("cuda", hidden=hidden)
    status = driver.cuInit(0)
    count = ctypes.c_int(0)
    if status == 0:
        status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0 or count.value == 0:
        evidence = _nvidia_hardware() or "the CUDA driver library is installed"
        why = start_failure(driver, status) if status else "no device is visible to the driver"
        return Probe("cuda", hidden=f"{evidence}, but {why}")
    device = ctypes.c_int(0)
    driver.cuDeviceGet(ctypes.byref(device), 0)
    name = ctypes.create_string_buffer(128)
    driver.cuDeviceGetName(name, 128, device)
    major, minor = (_attribute(driver, device, which) for which in (75, 76))
    # The suffix unlocks wgmma and its successors, and a kernel compiled just in time needs no other
    # device to run it.
    suffix = "a" if major >= 9 else ""
    return Probe("cuda", f"sm_{major}{minor}{suffix}", name.value.decode(errors="replace"))


def probe_hip(topology: Path = Path("/sys/class/kfd/kfd/topology/nodes")) -> Probe:
    """The first AMD GPU, as the kernel driver lists it."""
    for properties in sorted(topology.glob("*/properties")):
        try:
            rows = dict(
                line.split() for line in properties.read_text().splitlines() if line.strip()
            )
        except (OSError, ValueError):
            continue
        version = int(rows.get("gfx_target_version", 0))
        if version:
            major, minor, step = version // 10000, version // 100 % 100, version % 100
            return Probe("hip", f"gfx{major}{minor:x}{step:x}", f"AMD gfx{major}{minor:x}{step:x}")
    return Probe("hip")


def probe_metal() -> Probe:
    """The GPU of an Apple processor."""
    if sys.platform != "darwin" or platform.machine() != "arm64":
        return Probe("metal")
    from tilelang.runtime.programs import output_of

    chip = output_of(("sysctl", "-n", "machdep.cpu.brand_string")) or "Apple M1"
    generation = next((int(w[1:]) for w in chip.split() if w[:1] == "M" and w[1:].isdigit()), 1)
    family = {1: "apple7", 2: "apple8"}.get(generation, "apple9")
    return Probe("metal", family, chip)


def _attribute(driver: Any, device: ctypes.c_int, which: int) -> int:
    value = ctypes.c_int(0)
    driver.cuDeviceGetAttribute(ctypes.byref(value), which, device)
    return value.value


def _nvidia_hardware(root: Path = Path("/")) -> str | None:
    """What says that an NVIDIA GPU is in this machine, usable or not."""
    if (root / "proc/driver/nvidia/version").exists() or (root / "dev/nvidiactl").exists():
        return "an NVIDIA driver is loaded"
    for vendor in sorted((root / "sys/bus/pci/devices").glob("*/vendor")):
        try:
            is_nvidia = vendor.read_text().strip() == "0x10de"
            is_display = vendor.with_name("class").read_text().strip().startswith("0x03")
        except OSError:
            continue
        if is_nvidia and is_display:
            return f"an NVIDIA GPU is on the PCI bus ({vendor.parent.name})"
    return None
