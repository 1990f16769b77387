"""`tilelang cache info|clear`: what is kept of compiled kernels, and where."""

from __future__ import annotations

import click

from tilelang.cli.output import table
from tilelang.runtime.build import is_cache_enabled
from tilelang.runtime.cache import KernelCache
from tilelang.runtime.tensors import size_text


@click.group("cache")
def command() -> None:
    """Show or clear the cache of compiled kernels.

    Its folder is TILELANG_CACHE_DIR, its size is bounded by TILELANG_CACHE_LIMIT. A URL that
    fsspec knows (s3://…, file://…) in place of the folder is a cache that hosts share.
    """


@command.command("info")
def info() -> int:
    """Where the cache is, how much is in it, and whether it can be written."""
    found = KernelCache().info()
    shared = []
    if found.url is not None:
        count, size = found.shared
        shared = [("shared", f"{found.url}, {count} kernels, {size_text(size)}")]
    table(
        [
            *shared,
            ("folder", str(found.root)),
            ("kernels", str(found.kernels)),
            ("size", f"{size_text(found.bytes)} of {size_text(found.limit)}"),
            ("enabled", "yes" if is_cache_enabled() else "no (TILELANG_DISABLE_CACHE)"),
            ("writable", "yes" if found.problem is None else f"no: {found.problem}"),
        ]
    )
    return 0


@command.command("clear")
def clear() -> int:
    """Drop every compiled kernel."""
    cache = KernelCache()
    count = cache.clear()
    where = cache.root if cache.url is None else f"{cache.url} and {cache.root}"
    table([("dropped", f"{count} kernel{'s' * (count != 1)} from {where}")])
    return 0
