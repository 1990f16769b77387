"""What happens when the compiler itself fails? A report with what it takes to reproduce it.

The user sees TL900 with the path of a file that holds the versions, the traceback and the kernel's
source, and never a bare traceback of ours.
"""

from __future__ import annotations

import hashlib
import platform
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tilelang import options
from tilelang.version import VERSION
from tilelang_diagnostics import CompileError, SourceMap, diagnose, error_for, failure
from tilelang_diagnostics.model import Diagnostic, Span

# Packages that an installation brings along, and a checkout on PYTHONPATH may lack.
_DEPENDENCIES: Final = frozenset({"filelock", "ml_dtypes", "numpy", "platformdirs"})
_HELP: Final = "please report it with this file, which holds the kernel, the versions and the error"


@contextmanager
def guarded(what: str, span: Span | None = None, files: Sequence[str] = ()) -> Iterator[None]:
    """Turn an unexpected exception inside into TL900; diagnostics and interrupts pass through.

    `what` says what was being done ("compiling matmul for cpu"), `files` are the user's.
    """
    try:
        yield
    except CompileError:
        raise
    except Exception as error:
        found = getattr(error, "diagnostics", None)
        if isinstance(found, tuple) and found and all(isinstance(d, Diagnostic) for d in found):
            raise error_for(found) from None
        if isinstance(error, MemoryError):
            raise out_of_memory(f"for {what}", error, span) from error
        missing = _missing_dependency(error)
        if missing is not None:
            raise error_for((missing,)) from error
        raise error_for((internal_error(error, what, span, files),)) from error


def out_of_memory(what: str, error: MemoryError, span: Span | None = None) -> CompileError:
    """TL813: memory ran out, which is not our fault and needs no reproducer."""
    return failure(
        "TL813",
        f"there is not enough memory {what}",
        span,
        notes=(_first_line(error),) if str(error).strip() else (),
        help="choose smaller sizes or tiles, or free what is not needed",
    )


def internal_error(
    error: BaseException, what: str, span: Span | None = None, files: Sequence[str] = ()
) -> Diagnostic:
    """TL900 for `error`, its reproducer saved."""
    named = (*files, span.file) if span is not None else tuple(files)
    path = save_reproducer(error, what, tuple(dict.fromkeys(named)))
    where = f"details are in {path}" if path else "the details could not be saved"
    return diagnose(
        "TL900",
        f"internal error while {what}: {type(error).__name__}: {_first_line(error)}",
        span=span,
        notes=(where,),
        help=_HELP if path else "please report it with the traceback above",
    )


def save_reproducer(error: BaseException, what: str, files: Sequence[str]) -> Path | None:
    """Write the report; None when it cannot be: whatever goes wrong here must not hide `error`."""
    with suppress(Exception):
        # Names of files may hold bytes that are no text.
        data = "\n".join(_report(error, what, files)).encode("utf-8", "backslashreplace")
        name = f"crash-{time.strftime('%Y%m%d-%H%M%S')}-{hashlib.sha256(data).hexdigest()[:8]}"
        for folder in _folders():
            with suppress(OSError):
                folder.mkdir(parents=True, exist_ok=True)
                path = folder / f"{name}.txt"
                path.write_bytes(data)
                return path
    return None


def _report(error: BaseException, what: str, files: Sequence[str]) -> Iterator[str]:
    yield f"tilelang {VERSION}: internal error while {what}"
    yield f"command: {' '.join(sys.argv)}"
    yield f"python {platform.python_version()} on {platform.platform()}"
    with suppress(Exception):  # what failed may be what they need
        from tilelang.runtime.identity import tool_versions

        yield from tool_versions()
    yield ""
    yield "".join(traceback.format_exception(error))
    sources = SourceMap()
    for file in files:
        text = sources.text(file)
        if text is not None:
            yield f"---- {file}"
            yield text


def _folders() -> Iterator[Path]:
    from tilelang.runtime.cache import cache_root

    given = options.CRASH_DIR.get()
    if given:
        yield Path(given)
    with suppress(CompileError, ImportError):  # an installation that lacks packages
        yield cache_root() / "crashes"
    yield Path(tempfile.gettempdir())


def _missing_dependency(error: BaseException) -> Diagnostic | None:
    """TL801, TL802 or TL808 for an installation without its compiler or other packages."""
    if isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("tvm"):
        return diagnose(
            "TL801",
            f"the package {error.name} is not installed",
            help="pip install 'apache-tvm>=0.27,<0.28' 'apache-tvm-ffi==0.1.14.post1'",
        )  # fmt: skip
    if isinstance(error, ModuleNotFoundError) and error.name in _DEPENDENCIES:
        return diagnose(
            "TL808",
            f"the package {error.name} is not installed",
            help=f"pip install {error.name}; `tilelang doctor` lists what else is missing",
        )
    text = str(error)
    if "target.build.llvm" in text or "target.llvm_get_system_cpu" in text:
        return diagnose(
            "TL802",
            "the installed TVM was built without LLVM",
            help="install the apache-tvm wheel from PyPI, which has it",
        )  # fmt: skip
    return None


def _first_line(error: BaseException) -> str:
    try:
        text = str(error).strip()
    except Exception:  # an exception of the user's, say
        text = ""
    return text.splitlines()[0] if text else "no message"
