"""What stands where a kernel would be launched, for kinds of device this version cannot start?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from tilelang.codegen.device_artifact import DeviceArtifact
from tilelang.runtime.place import Place
from tilelang_diagnostics import failure


class NoLauncher:
    """A runner that refuses by name: the kernel is compiled, and nothing here starts it."""

    def __init__(self, artifact: DeviceArtifact) -> None:
        self.artifact = artifact
        self.place = Place("cpu", artifact.alignments())

    def require_device(self) -> None:
        """Raise TL821."""
        self._refuse()

    def run(self, values: Sequence[int | float], device: int = 0) -> None:
        """Raise TL821."""
        self._refuse()

    def _refuse(self) -> NoReturn:
        target = self.artifact.target
        kind = target.partition(":")[0]
        raise failure(
            "TL821",
            f"`{self.artifact.name}` is compiled for {target}, and this version starts no kernels "
            f"on {kind} devices",
            help="run it here with execution_backend='emulator', or `tilelang run --emulate`; "
            f"`tilelang compile --emit {kind} -o FILE` writes its source for a program of your own",
        )
