"""What if the reader of a pipe (`| head`) has seen enough?

click makes an exit status of 1 of it, wherever a command is started with `main`, so that it must
not see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class PipeClosed(Exception):
    """Nobody reads standard output any more."""


@contextmanager
def closed_pipes_told() -> Iterator[None]:
    """A broken pipe inside is PipeClosed, which click passes on."""
    try:
        yield
    except BrokenPipeError as error:
        raise PipeClosed from error
    except SystemExit as ended:
        if isinstance(ended.__context__, BrokenPipeError):  # what rich makes of it
            raise PipeClosed from ended
        raise
