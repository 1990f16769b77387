"""How targets are spelled, what is said of wrong ones, and what `auto` stands for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tilelang.runtime import devices
from tilelang.target import ARCHS, Probe, Target, parse_target, resolve_target
from tilelang_diagnostics import CompileError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("cpu", "cpu"),
        (" CPU ", "cpu"),
        ("llvm", "cpu"),
        ("c", "cpu"),
        ("cuda:sm_90a", "cuda:sm_90a"),
        ("hip:gfx942", "hip:gfx942"),
        ("rocm:gfx942", "hip:gfx942"),
        ("metal:apple9", "metal:apple9"),
        ({"kind": "cuda", "arch": "sm_90a"}, "cuda:sm_90a"),
        ({"kind": "cuda", "arch": "sm_90a", "code": ["sm_90a"]}, "cuda:sm_90a"),
        ({"kind": "llvm"}, "cpu"),
        ('{"kind": "cuda", "arch": "sm_80"}', "cuda:sm_80"),
        (Target("cuda", "sm_80"), "cuda:sm_80"),
    ],
)
def test_spellings(value: Any, text: str) -> None:
    assert str(parse_target(value)) == text


def test_every_target_reads_back() -> None:
    for kind, archs in ARCHS.items():
        for arch in archs:
            assert parse_target(str(Target(kind, arch))) == Target(kind, arch)


@pytest.mark.parametrize(
    ("value", "code", "message"),
    [
        ("cudda:sm_90a", "TL403", "there is no target 'cudda'; did you mean `cuda`?"),
        (7, "TL403", "7 is not a target"),
        ({"arch": "sm_90"}, "TL403", "a target dict with no key 'kind'"),
        ({"kind": "cuda", "archh": "sm_90"}, "TL403", "a target dict with an unknown key 'archh'"),
        ("cuda", "TL404", "target 'cuda' names no architecture"),
        ("cuda:sm90a", "TL404", "cuda has no architecture 'sm90a'; did you mean `sm_90a`?"),
        ("cuda:90", "TL404", "cuda has no architecture '90'; did you mean `cuda:sm_90`?"),
        ("cuda:sm_90A", "TL404", "cuda has no architecture 'sm_90A'; did you mean `cuda:sm_90a`?"),
        ("", "TL403", "there is no target ''"),
        ("sm_90a", "TL403", "there is no target 'sm_90a'; did you mean `cuda:sm_90a`?"),
        ("sm_90A", "TL403", "there is no target 'sm_90A'; did you mean `cuda:sm_90a`?"),
        ("gfx942", "TL403", "there is no target 'gfx942'; did you mean `hip:gfx942`?"),
        ("GPU", "TL403", "there is no target 'GPU'; did you mean `cuda`?"),
        ("cuda -arch=sm_90a", "TL405", "'cuda -arch=sm_90a' is an option string, not a target"),
    ],
)
def test_wrong_targets(value: Any, code: str, message: str) -> None:
    with pytest.raises(CompileError) as caught:
        parse_target(value)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == (code, message)
    assert found.help


H200 = Probe("cuda", "sm_90a", "NVIDIA H200")
HIDDEN = Probe("cuda", hidden="an NVIDIA driver is loaded, but libcuda.so.1 is not here")


def test_auto_takes_the_first_usable_gpu() -> None:
    resolved = resolve_target("auto", (Probe("hip"), H200), ("cpu", "cuda"))
    assert str(resolved.target) == "cuda:sm_90a"
    remark = resolved.remark()
    assert remark is not None
    assert remark.message == "target auto is cuda:sm_90a: NVIDIA H200 is the first GPU"


def test_auto_without_a_gpu_is_the_cpu_and_says_so() -> None:
    resolved = resolve_target(None, (Probe("cuda"), Probe("hip")))
    remark = resolved.remark()
    assert remark is not None
    assert (remark.code, remark.message) == ("TL415", "target auto is cpu: no GPU was found")


def test_auto_never_hides_a_gpu_it_cannot_use() -> None:
    """S11: a container without access to the GPU of its host."""
    with pytest.raises(CompileError) as caught:
        resolve_target("auto", (HIDDEN,), ("cpu", "cuda"))
    (found,) = caught.value.diagnostics
    assert found.code == "TL805"
    assert found.help is not None and "target='cpu'" in found.help
    assert str(resolve_target("cpu", (HIDDEN,), ("cpu", "cuda")).target) == "cpu"


def test_auto_says_when_it_has_no_backend_for_the_gpu() -> None:
    remark = resolve_target("auto", (H200,), ("cpu",)).remark()
    assert remark is not None
    assert remark.message == (
        "target auto is cpu: NVIDIA H200 is there, but this version has no backend for it"
    )


def test_auto_on_an_unknown_gpu() -> None:
    with pytest.raises(CompileError, match="TL404"):
        resolve_target("auto", (Probe("cuda", "sm_999", "NVIDIA X"),), ("cpu", "cuda"))


def test_a_named_target_gives_no_remark() -> None:
    assert resolve_target("cpu", (H200,)).remark() is None


class FakeDriver:
    """libcuda with one Hopper device, or with an error."""

    def __init__(self, status: int = 0, count: int = 1) -> None:
        self.status, self.count = status, count

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDeviceGetCount(self, out: Any) -> int:
        out._obj.value = self.count
        return 0

    def cuGetErrorName(self, result: int, out: Any) -> int:
        out._obj.value = b"CUDA_ERROR_NO_DEVICE"
        return 0

    def cuGetErrorString(self, result: int, out: Any) -> int:
        out._obj.value = b"no CUDA-capable device is detected"
        return 0

    def cuDeviceGet(self, out: Any, index: int) -> int:
        return 0

    def cuDeviceGetName(self, out: Any, size: int, device: Any) -> int:
        out.value = b"NVIDIA H200"
        return 0

    def cuDeviceGetAttribute(self, out: Any, which: int, device: Any) -> int:
        out._obj.value = {75: 9, 76: 0}[which]
        return 0


def test_the_cuda_driver_is_asked() -> None:
    assert devices.probe_cuda(lambda name: FakeDriver()) == H200


@pytest.mark.parametrize(
    ("driver", "reason"),
    [(FakeDriver(status=100),
      "the CUDA driver cannot start: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected; "
      "CUDA_VISIBLE_DEVICES hides every device, or the container was started without access to one "
      "(docker run --gpus all)"),
     (FakeDriver(count=0), "no device is visible to the driver")],
)  # fmt: skip
def test_a_driver_without_a_usable_device(driver: FakeDriver, reason: str) -> None:
    probe = devices.probe_cuda(lambda name: driver)
    assert probe.arch is None and probe.hidden is not None and probe.hidden.endswith(reason)


def test_a_gpu_on_the_bus_without_a_driver(tmp_path: Path) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:01:00.0"
    device.mkdir(parents=True)
    (device / "vendor").write_text("0x10de\n")
    (device / "class").write_text("0x030200\n")
    assert devices._nvidia_hardware(tmp_path) == "an NVIDIA GPU is on the PCI bus (0000:01:00.0)"
    (device / "class").write_text("0x040300\n")
    assert devices._nvidia_hardware(tmp_path) is None


def test_an_amd_gpu(tmp_path: Path) -> None:
    for node, version in (("0", 0), ("1", 90402)):
        folder = tmp_path / node
        folder.mkdir()
        (folder / "properties").write_text(f"simd_count 4\ngfx_target_version {version}\n")
    assert devices.probe_hip(tmp_path) == Probe("hip", "gfx942", "AMD gfx942")


def test_determine_target(monkeypatch: pytest.MonkeyPatch) -> None:
    assert devices.determine_target("cuda:sm_80") == "cuda:sm_80"
    assert devices.determine_target({"kind": "cpu"}, return_object=True) == Target("cpu")
    monkeypatch.setenv("TILELANG_DEFAULT_TARGET", '{"kind": "cuda", "arch": "sm_80"}')
    assert str(devices.resolve(None).target) == "cuda:sm_80"


@pytest.mark.parametrize("spelled", ["cuda", " CUDA ", {"kind": "cuda"}])
def test_a_kind_alone_is_the_first_gpu_of_that_kind(
    spelled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(devices, "probes", lambda: (H200, Probe("hip"), Probe("metal")))
    resolved = devices.resolve(spelled)
    assert str(resolved.target) == "cuda:sm_90a"
    assert resolved.remark() is None


@pytest.mark.parametrize("probe", [Probe("cuda"), HIDDEN])
def test_a_kind_alone_needs_a_gpu(probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "probes", lambda: (probe,))
    with pytest.raises(CompileError, match="names no architecture"):
        devices.resolve("cuda")
