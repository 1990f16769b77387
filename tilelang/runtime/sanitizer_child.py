"""The process that compute-sanitizer watches: which one call of a kernel does it make?

    python -m tilelang.runtime.sanitizer_child FOLDER

`FOLDER` is what `sanitizer_call.write_call` wrote. Every tensor gets device memory of exactly its
own size, and a result is left as the driver gives it, so that the sanitizer sees where a tensor
ends and what was never written. Neither TVM nor PyTorch nor NumPy is imported.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

CALL: Final = "call.json"
ADDRESSES: Final = "addresses.json"
ERROR: Final = "error.json"


def launch_once(folder: Path) -> None:
    """Allocate, launch, wait; raises CompileError."""
    from tilelang.codegen.cuda_artifact import CudaArtifact
    from tilelang.runtime.cuda import device_memory, load_cuda, synchronize

    artifact = CudaArtifact.load(folder)
    rows: list[dict[str, Any]] = json.loads((folder / CALL).read_text(encoding="utf-8"))["values"]
    values: list[int | float] = []
    places: dict[str, tuple[int, int]] = {}
    owners = []
    for row in rows:
        if "number" in row:
            values.append(row["number"])
            continue
        data = (folder / row["file"]).read_bytes() if row["file"] else None
        memory = device_memory(artifact.name, row["bytes"], data)
        owners.append(memory)
        values.append(memory.address)
        places[row["name"]] = (memory.address, row["bytes"])
    # Before the launch, which the process may not survive.
    (folder / ADDRESSES).write_text(json.dumps(places), encoding="utf-8")
    load_cuda(artifact).run(values)
    synchronize(name=artifact.name)


def main(folder: Path) -> int:
    from tilelang_diagnostics import CompileError
    from tilelang_diagnostics.json_format import to_json

    try:
        launch_once(folder)
    except CompileError as error:
        rows = [to_json(d) for d in error.diagnostics]
        (folder / ERROR).write_text(json.dumps(rows), encoding="utf-8")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
