"""How are several kernels compiled at once?

By worker processes: threads gain nothing, as TVM holds the GIL. A worker is a fresh interpreter
that reads pickled work from its standard input, so it neither imports nor runs the user's program
(which `multiprocessing` would: a script without a main guard would start over in each worker).
"""

from __future__ import annotations

import os
import pickle
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tilelang import options as settings
from tilelang.compiler import Compiled, compile_function, effective_options
from tilelang.options import CompileOptions, make_options
from tilelang.program.stmt import Function
from tilelang.runtime.build import Built, build, is_cache_enabled, start
from tilelang.runtime.cache import KernelCache
from tilelang.runtime.cpu_pool import available_cores
from tilelang.runtime.crash import guarded
from tilelang.runtime.devices import resolve
from tilelang.runtime.fingerprint import fingerprint
from tilelang.runtime.jit import as_prim_func
from tilelang.runtime.kernel import JITKernel
from tilelang.runtime.report import warn
from tilelang.runtime.signature import OutIdx
from tilelang.target import Target
from tilelang.watching import is_watched, is_watched_only_here
from tilelang_diagnostics import CompileError, failure

Work = tuple[Function, Target, CompileOptions]


def build_all(
    functions: Sequence[Function],
    target: Target,
    options: CompileOptions,
    workers: int | None = None,
    ignore_error: bool = False,
) -> list[Built | None]:
    """A launchable kernel per function, in order; None for failures if errors are ignored."""
    todo: dict[int, Work] = {}
    results: dict[int, Built | Exception] = {}
    for index, function in enumerate(functions):
        found = _from_cache(function, target, options)
        if found is not None:
            results[index] = found
        else:
            todo[index] = (function, target, effective_options(function, options))
    for index, outcome in _compile_all(todo, workers).items():
        results[index] = _finish(todo[index], outcome)
    failed = [r for _, r in sorted(results.items()) if isinstance(r, Exception)]
    if failed and not ignore_error:
        raise failed[0]
    ordered = [results[i] for i in range(len(functions))]
    return [None if isinstance(r, Exception) else r for r in ordered]


def par_compile(
    funcs: Iterable[Any],
    out_idx: OutIdx = None,
    target: Any = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: Iterable[str] | str | None = None,
    num_workers: int | None = None,
    ignore_error: bool = False,
    **ignored: Any,
) -> list[JITKernel | None]:
    """Compile several `@T.prim_func` kernels at once; the arguments are those of `compile`."""
    prim_funcs = [as_prim_func(f) for f in funcs]
    options = make_options(pass_configs, compile_flags)
    resolved = resolve(target).target
    built = build_all(
        [p.function for p in prim_funcs], resolved, options, num_workers, ignore_error
    )
    return [
        None if b is None else JITKernel(p.function, b, out_idx, options, p)
        for p, b in zip(prim_funcs, built, strict=True)
    ]


def worker_main() -> int:
    """The loop of a worker: one pickled `Work` in, one pickled outcome out, until end of input."""
    source, sink = sys.stdin.buffer, sys.stdout.buffer
    # Nothing a pass prints may get between the pickles.
    sys.stdout = sys.stderr
    while True:
        try:
            function, target, options = pickle.load(source)
        except EOFError:
            return 0
        outcome: Compiled | Exception
        try:
            with guarded(f"compiling {function.name} for {target}", function.span):
                outcome = compile_function(function, target, options)
        except CompileError as error:
            outcome = error
        pickle.dump(outcome, sink)
        sink.flush()


def _from_cache(function: Function, target: Target, options: CompileOptions) -> Built | None:
    mark = fingerprint(function) if is_cache_enabled() and not is_watched() else None
    if mark is None:
        return None
    cache = KernelCache()
    key = cache.front_key(mark, target, effective_options(function, options))
    if cache.load(key, mark) is None:
        return None
    return build(function, target, options)


def _compile_all(todo: dict[int, Work], workers: int | None) -> dict[int, Compiled | Exception]:
    """Compile everything in worker processes; what cannot travel is compiled here, and so is
    everything while somebody watches whom a worker would not know."""
    if is_watched_only_here():
        return {index: _compile_here(work) for index, work in todo.items()}
    jobs: queue.SimpleQueue[tuple[int, bytes]] = queue.SimpleQueue()
    outcomes: dict[int, Compiled | Exception] = {}
    for index, work in todo.items():
        try:
            jobs.put((index, pickle.dumps(work)))
        except (pickle.PicklingError, TypeError, AttributeError, RecursionError):
            outcomes[index] = _compile_here(work)
    count = min(jobs.qsize(), workers or available_cores())
    threads = [threading.Thread(target=_feed, args=(jobs, outcomes)) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


def _feed(
    jobs: queue.SimpleQueue[tuple[int, bytes]], outcomes: dict[int, Compiled | Exception]
) -> None:
    """One worker process, fed until there is no more work."""
    process: subprocess.Popen[bytes] | None = None
    timeout = settings.COMPILE_TIMEOUT.get()
    while True:
        try:
            index, work = jobs.get_nowait()
        except queue.Empty:
            break
        if process is None:
            process = _start_worker()
        outcome = _ask(process, work, timeout)
        outcomes[index] = outcome
        if process.poll() is not None:
            process = None
    if process is not None and process.stdin is not None:
        process.stdin.close()
        process.wait()


def _ask(
    process: subprocess.Popen[bytes], work: bytes, timeout: float | None
) -> Compiled | Exception:
    assert process.stdin is not None and process.stdout is not None
    timer = threading.Timer(timeout, process.kill) if timeout is not None else None
    if timer is not None:
        timer.start()
    try:
        process.stdin.write(work)
        process.stdin.flush()
        outcome: Compiled | Exception = pickle.load(process.stdout)
        return outcome
    except (OSError, EOFError, pickle.UnpicklingError) as error:
        process.kill()
        process.wait()
        if timer is not None and not timer.is_alive():
            return failure(
                "TL809",
                f"a kernel took longer than {timeout:g} s to compile",
                help="raise TILELANG_COMPILE_TIMEOUT_SECONDS, or unset it")  # fmt: skip
        return failure(
            "TL900",
            f"a compiling process died with status {process.returncode} ({type(error).__name__})",
            help="compile the kernel alone to see why")  # fmt: skip
    finally:
        if timer is not None:
            timer.cancel()


def _finish(work: Work, outcome: Compiled | Exception) -> Built | Exception:
    if isinstance(outcome, Exception):
        return outcome
    function, target, options = work
    warn(outcome.diagnostics)
    mark = fingerprint(function) if is_cache_enabled() else None
    if mark is not None:
        cache = KernelCache()
        key = cache.front_key(mark, target, options)
        cache.save(key, mark, outcome, cache.found_anywhere(mark, target, options))
    return Built(outcome, start(outcome), False)


def _compile_here(work: Work) -> Compiled | Exception:
    function, target, options = work
    try:
        with guarded(f"compiling {function.name} for {target}", function.span):
            return compile_function(function, target, options)
    except CompileError as error:
        return error


def _start_worker() -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c",
         "import sys; from tilelang.runtime.parallel import worker_main; sys.exit(worker_main())"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        env=settings.child_environment(PYTHONPATH=os.pathsep.join(p for p in sys.path if p)),
    )  # fmt: skip
