"""What can a compiled kernel be? One kind of artifact per kind of target."""

from __future__ import annotations

from typing import TypeAlias

from tilelang.codegen.cpu_artifact import CpuArtifact
from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.codegen.device_artifact import DeviceArtifact

Artifact: TypeAlias = "CpuArtifact | CudaArtifact | DeviceArtifact"
