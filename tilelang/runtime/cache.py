"""Has this kernel been compiled before, on this machine or by another process?

Two keys. The *front key* hashes the typed program with the target, the options and the compiler's
own sources: a hit needs neither TVM nor a pass. It leads to the *source key*, the hash of the
generated code and everything that turns it into a binary, which names the kernel's files: code that
comes out the same is kept, and compiled, once. Beside the binary lie its source, the IR and a
manifest, for audit.

A cache that cannot be written or an entry that is damaged is a warning, never a failure.
"""

from __future__ import annotations

import hashlib
import itertools
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tilelang import options
from tilelang.backends import find_backend
from tilelang.codegen.artifacts import Artifact
from tilelang.compiler import Compiled
from tilelang.options import CompileOptions
from tilelang.runtime import cache_files
from tilelang.runtime.fingerprint import Fingerprint, rebase_diagnostic
from tilelang.runtime.identity import compiler_digest, host_identity, tool_versions
from tilelang.runtime.report import warn_once
from tilelang.runtime.shared_store import Remote, SharedStore, is_url, problem_of
from tilelang.runtime.store import Damaged, Entry, Store
from tilelang.target import Target
from tilelang_diagnostics import CompileError, diagnose, from_json, to_json

SCHEMA: Final = 2
_LOCK_SECONDS: Final = 120.0
# Enough writes between two looks at the size of the whole cache.
_SHRINK_EVERY: Final = 16
_writes: Final = itertools.count()


@dataclass(frozen=True, slots=True)
class Cached:
    """A kernel from the cache; `library` is its shared library, if it was linked to one."""

    compiled: Compiled
    library: Path | None


@dataclass(frozen=True, slots=True)
class CacheInfo:
    """What `tilelang cache info` tells. `url` is that of a shared cache, of which `root` holds
    what was fetched or made here, and `shared` the kernels and bytes behind it."""

    root: Path
    kernels: int
    bytes: int
    limit: int
    problem: str | None
    url: str | None = None
    shared: tuple[int, int] = (0, 0)


def cache_root() -> Path:
    """The folder of the cache: TILELANG_CACHE_DIR, else the platform's place for caches.

    Of a cache behind a URL it is the folder in front, there too.
    """
    given = options.CACHE_DIR.get()
    if given and not is_url(given):
        return Path(given).expanduser()
    # platformdirs knows XDG, macOS and Windows; ~/.tilelang, where another TileLang keeps its
    # kernels, is left alone.
    import platformdirs

    usual = platformdirs.user_cache_path("tilelang", appauthor=False)
    return usual / "shared" / hashlib.sha256(given.encode()).hexdigest()[:16] if given else usual


@contextmanager
def one_process(file: Path) -> Iterator[None]:
    """Only one process at a time goes on, of those that name the same file to lock.

    (`filelock` knows how to lock on every platform and how to time out.) Where locking does not
    work, two processes do the same, which is slower and otherwise harmless.
    """
    import filelock

    lock = filelock.FileLock(file, timeout=_LOCK_SECONDS)
    try:
        Path(lock.lock_file).parent.mkdir(parents=True, exist_ok=True)
        lock.acquire()
    except (OSError, filelock.Timeout, NotImplementedError):
        yield
        return
    try:
        yield
    finally:
        lock.release()


class KernelCache:
    """The kernels below one folder, or behind the URL that TILELANG_CACHE_DIR names."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or cache_root()
        given = options.CACHE_DIR.get()
        self.url: str | None = given if root is None and given and is_url(given) else None
        self.fronts = self._store("front")
        self.kernels = self._store("kernels")

    def _store(self, kind: str) -> Store:
        if self.url is None:
            return Store(self.root / kind)
        return SharedStore(self.root / kind, Remote(self.url), kind, self._unreachable)

    def front_key(self, mark: Fingerprint, target: Target, compile_options: CompileOptions) -> str:
        """The name of a kernel before it is compiled."""
        return _key(mark, target, compile_options, _maker(target, compile_options))

    def printed_key(
        self, mark: Fingerprint, target: Target, compile_options: CompileOptions
    ) -> str:  # fmt: skip
        """The name of what is printed for the emulator, which no compiler of a device has seen."""
        return _key(mark, target, compile_options, "emulator")

    def found_anywhere(
        self, mark: Fingerprint, target: Target, compile_options: CompileOptions
    ) -> str | None:
        """The name it has on a host without a compiler, which takes what any compiler made; None
        where the host itself decides what comes out."""
        if target.kind != "cuda":
            return None
        return _key(mark, target, compile_options, _any_compiler(compile_options))

    def load(self, key: str, mark: Fingerprint) -> Cached | None:
        """The kernel of front key `key`, its positions moved to where the kernel stands now."""
        front = self._read(self.fronts, key)
        if front is None:
            return None
        try:
            source_key = str(front.meta["kernel"])
            entry = self._read(self.kernels, source_key)
            if entry is None:
                # Its kernel was dropped to make room; the next write puts both back.
                self.fronts.remove(key)
                return None
            found = _from_entries(front, entry, mark)
        except (KeyError, TypeError, ValueError, OSError) as error:
            self._damaged(self.fronts, key, f"it cannot be read ({error})")
            return None
        self.fronts.touch(key)
        self.kernels.touch(source_key)
        return found

    def save(
        self, key: str, mark: Fingerprint, compiled: Compiled, anywhere: str | None = None
    ) -> None:
        """Keep `compiled`, under the name `anywhere` too; a disk that does not take it is one
        warning."""
        artifact = compiled.artifact
        source_key = source_key_of(artifact)
        try:
            if not self.kernels.has(source_key):
                self._write_kernel(source_key, compiled)
            meta = {
                "kernel": source_key,
                "origins": [list(o) for o in mark.origins],
                "places": cache_files.places_of(artifact),
                "diagnostics": [to_json(d) for d in compiled.diagnostics],
            }
            for name in dict.fromkeys(n for n in (key, anywhere) if n is not None):
                self.fronts.write(name, {}, meta)
        except OSError as error:
            self._unwritable(error)
            return
        if next(_writes) % _SHRINK_EVERY == 0:
            self.shrink()

    def _write_kernel(self, source_key: str, compiled: Compiled) -> None:
        with tempfile.TemporaryDirectory(prefix="tilelang-") as scratch:
            files = cache_files.files_of(compiled.artifact, Path(scratch))
            files["kernel.ir"] = compiled.ir.encode()
            self.kernels.write(source_key, files, _manifest(compiled))

    def find_object(self, artifact: Artifact) -> Any:
        """The binary of `artifact`, which has all but that, if it was compiled before.

        Object code for the CPU; a cubin per architecture for CUDA.
        """
        entry = self._read(self.kernels, source_key_of(artifact))
        try:
            return None if entry is None else cache_files.binary_of(entry, artifact)
        except (OSError, KeyError, TypeError, ValueError):
            return None

    def compiling(self, key: str) -> AbstractContextManager[None]:
        """Only one process compiles `key` at a time; the others wait and then find it done."""
        return one_process(self.root / "locks" / key[:2])

    def shrink(self) -> None:
        """Drop the least recently used kernels beyond the limit."""
        self.kernels.shrink(options.CACHE_LIMIT.get())
        # Front entries are small; those of dropped kernels go when they are met.
        self.fronts.shrink(options.CACHE_LIMIT.get() // 8)

    def info(self) -> CacheInfo:
        """Size and state."""
        sizes = [size for _, size, _ in self.kernels.entries()]
        shared = list(self.kernels.sizes()) if isinstance(self.kernels, SharedStore) else []
        return CacheInfo(
            self.root, len(sizes), sum(sizes), options.CACHE_LIMIT.get(), self.problem(),
            self.url, (len(shared), sum(shared)),
        )  # fmt: skip

    def clear(self) -> int:
        """Drop every kernel; returns how many there were."""
        self.fronts.clear()
        return self.kernels.clear()

    def problem(self) -> str | None:
        """Why nothing can be written, or None."""
        broken = None if self.url is None else problem_of(self.url)
        if broken is not None:
            return f"{self.url} cannot be reached: {broken}"
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=self.root) as probe:
                probe.write(b"x")
        except OSError as error:
            return error.strerror or str(error)
        return None

    def _read(self, store: Store, key: str) -> Entry | None:
        try:
            return store.read(key)
        except Damaged as damage:
            self._damaged(store, key, str(damage))
            return None

    def _damaged(self, store: Store, key: str, why: str) -> None:
        path = store.path(key)
        store.remove(key)
        warn_once(
            diagnose(
                "TL804",
                f"a damaged kernel cache entry was dropped: {why} ({path})",
                help="nothing to do: the kernel is compiled again",
            )
        )  # fmt: skip

    def _unreachable(self, error: Exception) -> None:
        warn_once(
            diagnose(
                "TL803",
                f"the shared kernel cache at {self.url} cannot be used: {error}",
                help="kernels work but are compiled here, and kept in "
                f"{self.root}; the package for that kind of URL has to be installed, and its "
                "credentials be where that package looks for them",
            ),
            key=f"TL803 {self.url}",
        )

    def _unwritable(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        warn_once(
            diagnose(
                "TL803",
                f"the kernel cache in {self.root} cannot be written: {reason}",
                help="kernels work but are compiled again by every process; set "
                "TILELANG_CACHE_DIR to a folder with room, or TILELANG_DISABLE_CACHE=1",
            ),
            key=f"TL803 {self.root}",
        )  # fmt: skip


def source_key_of(artifact: Artifact) -> str:
    """The name of a binary: everything that decides its bytes and how it is called.

    The binary itself is not asked: the name is known before there is any.
    """
    parts = (SCHEMA, cache_files.code_identity(artifact), tool_versions())
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _maker(target: Target, compile_options: CompileOptions) -> Any:
    """What turns generated code into a binary, other than TVM, and decides what comes out.

    Code for a GPU is the same whichever host made it.
    """
    if target.kind == "cpu":
        return host_identity()
    backend = find_backend(target.kind)
    if backend is not None and backend.toolchain:
        try:
            return backend.compiler().identity(target, compile_options)
        except CompileError:
            return None  # there is none, which is said if one is needed
    from tilelang.runtime.cuda_compiler import identity

    try:
        return identity(compile_options)
    except CompileError:
        return _any_compiler(compile_options)  # there is none, which is said if one is needed


def _any_compiler(compile_options: CompileOptions) -> Any:
    from tilelang.runtime.cuda_compiler import flags_of

    return None, flags_of(compile_options)


def _key(
    mark: Fingerprint, target: Target, compile_options: CompileOptions, maker: Any
) -> str:  # fmt: skip
    parts = (SCHEMA, compiler_digest(), mark.digest, str(target), maker,
             compile_options.changed, compile_options.compile_flags)  # fmt: skip
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _from_entries(front: Entry, entry: Entry, mark: Fingerprint) -> Cached:
    old = tuple((str(file), int(line)) for file, line in front.meta["origins"])
    diagnostics = tuple(
        rebase_diagnostic(from_json(d), old, mark.origins) for d in front.meta["diagnostics"]
    )
    compiled = Compiled(
        cache_files.artifact_of(entry, front.meta["places"], old, mark.origins),
        Target(**entry.meta["target"]),
        entry.read("kernel.ir").decode(),
        diagnostics,
    )
    return Cached(compiled, cache_files.library_of(entry))


def _manifest(compiled: Compiled) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "artifact": cache_files.manifest_of(compiled.artifact),
        "target": {"kind": compiled.target.kind, "arch": compiled.target.arch},
        "compiler": compiler_digest(),
        "tools": list(tool_versions()),
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
