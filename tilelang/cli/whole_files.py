"""How does a file get to its place, so that nobody ever finds half of it?"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from threading import get_ident


def write_whole(path: str | Path, data: bytes) -> None:
    """Write a file at once: beside its place, and then renamed, with the rights it had. Of two that
    write at the same time one wins. Raises OSError."""
    real = os.path.realpath(path)
    beside = f"{real}.{os.getpid()}-{get_ident()}.part"
    try:
        if os.path.exists(real) and not os.path.isfile(real):
            raise PermissionError  # such as /dev/null, which stays what it is
        file = open(beside, "wb")  # noqa: SIM115
    except PermissionError:
        Path(path).write_bytes(data)
        return
    try:
        with file:
            file.write(data)
        if os.path.exists(real):
            os.chmod(beside, stat.S_IMODE(os.stat(real).st_mode))
        os.replace(beside, real)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
