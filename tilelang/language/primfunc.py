"""`PrimFunc`: what `@T.prim_func` makes of a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from tilelang.language.definitions import definition_of
from tilelang.language.tracing import Parsed, trace_kernel
from tilelang.program.buffer import Buffer
from tilelang.program.context import active_trace, reject
from tilelang.program.expr import Var
from tilelang.program.stmt import Function
from tilelang_diagnostics import error_for, failure, has_errors


class PrimFunc:
    """A traced kernel, ready to be compiled. Made by `@T.prim_func`; refuses to be called."""

    def __init__(self, parsed: Parsed, python: Callable[..., Any] | None) -> None:
        if parsed.function is None:
            raise error_for(parsed.diagnostics)
        assert parsed.function is not None
        self.parsed = parsed
        self.function: Function = parsed.function
        self.python = python
        self.__name__ = parsed.name
        self.__doc__ = getattr(python, "__doc__", None)

    @staticmethod
    def trace(function: Callable[..., Any], captured: Mapping[str, Any]) -> PrimFunc:
        """Trace a Python function; raises CompileError with every error found in it."""
        parsed = trace_kernel(definition_of(function, captured), "prim_func")
        if has_errors(parsed.diagnostics):
            raise error_for(parsed.diagnostics)
        return PrimFunc(parsed, function)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        if active_trace() is not None:
            reject(
                "TL121",
                f"`{self.name}` is a kernel, and no function of this one",
                help="make what both do a `@T.macro`",
            )
        raise failure(
            "TL121",
            f"`{self.name}` is called before it is compiled",
            self.function.span,
            help=f"compile it, then call what you get: tilelang.compile({self.name})(…)",
        )

    @property
    def name(self) -> str:
        return self.__name__

    @property
    def params(self) -> tuple[Buffer | Var, ...]:
        return self.function.params

    def script(self) -> str:
        """The kernel as the compiler read it, in the language itself."""
        from tilelang.program.printer import function_text

        return function_text(self.function)

    def __str__(self) -> str:
        return self.script()

    def __repr__(self) -> str:
        return f"<PrimFunc {self.name}>"
