"""Complaint 28: when a copy of a pipeline is not asynchronous, TL508 says why, at its span.

Each reason has a kernel with a marker: code, columns and text. Each has a variant whose copies are
asynchronous, about which nothing is said.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.support.markers import expected_of, kernel_text
from tilelang.compiler import lower_function
from tilelang.ir import tirx
from tilelang.ir.device_ops import op_of_call
from tilelang.ir.visit import collect
from tilelang.language.frontend import parse_static
from tilelang.options import CompileOptions
from tilelang.target import parse_target
from tilelang_diagnostics import SourceMap, render_text
from tilelang_diagnostics.model import Diagnostic

HEAD = """
N = T.dynamic("N")
@T.prim_func
def main({parameters}):
    with T.Kernel(1, threads=32):
        S = T.alloc_shared(({tile},), "{dtype}")
{inside}
"""
# What another analysis says of the same kernels, for reasons of its own.
OTHERS = ("TL601", "TL309", "TL513", "TL602", "TL603", "TL609")


@dataclass(frozen=True)
class Case:
    """The body of a launch, once with the marker of a copy that waits and once without."""

    name: str
    waits: str
    flows: str
    parameters: str = 'A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32")'
    tile: int = 32
    dtype: str = "float32"
    target: str = "cuda:sm_80"
    flows_parameters: str = ""
    flows_tile: int = 0
    flows_dtype: str = ""
    flows_target: str = ""

    def text(self, waits: bool) -> str:
        parameters = self.parameters if waits else self.flows_parameters or self.parameters
        body = (self.waits if waits else self.flows).strip("\n")
        tile = self.tile if waits else self.flows_tile or self.tile
        dtype = self.dtype if waits else self.flows_dtype or self.dtype
        return kernel_text(HEAD.format(parameters=parameters, tile=tile, dtype=dtype, inside=body))


PLAIN = """
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0], S)
            T.copy(S, C[k, 0])
"""
CASES = (
    Case(
        "a condition that what reads it does not have",
        """
        for k in T.Pipelined(64, num_stages=2):
            if k % 4 == 0:
          # ^^^^^^^^^^^^^ remark[TL508] it does not write all of `S` in every iteration
                T.copy(A[k, 0], S)
            T.copy(S, C[k, 0])
        """,
        """
        for k in T.Pipelined(64, num_stages=2):
            if k % 4 == 0:
                T.copy(A[k, 0], S)
            if k % 4 == 0:
                T.copy(S, C[k, 0])
        """,
    ),
    Case(
        "a conversion",
        """
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0], S)
          # ^^^^^^^^^^^^^^^^^^ remark[TL508] it converts float32 to float16
            T.copy(S, C[k, 0])
        """,
        PLAIN,
        dtype="float16",
        flows_dtype="float32",
    ),
    Case(
        "arithmetic on the way",
        """
        for k in T.Pipelined(64, num_stages=2):
            for i in T.Parallel(32):
          # ^^^^^^^^^^^^^^^^^^^^^^^ remark[TL508] the statement does more than move elements
                S[i] = A[k, i] * 2.0
            T.copy(S, C[k, 0])
        """,
        """
        for k in T.Pipelined(64, num_stages=2):
            for i in T.Parallel(32):
                S[i] = A[k, i]
            T.copy(S, C[k, 0])
        """,
    ),
    Case(
        "two bytes at a time, for rows that are not aligned",
        """
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0:32], S)
          # ^^^^^^^^^^^^^^^^^^^^^ remark[TL508] a thread moves 2 bytes at a time, not 4, 8 or 16
            T.copy(S, C[k, 0])
        """,
        PLAIN,
        parameters='A: T.Tensor((64, 33), "float16"), C: T.Tensor((64, 32), "float16")',
        flows_parameters='A: T.Tensor((64, 264), "float16"), C: T.Tensor((64, 256), "float16")',
        flows_tile=256,
        dtype="float16",
    ),
    *(
        Case(
            f"two bytes at a time: {why}",
            f"""
        for k in T.Pipelined(64, num_stages=2):
            {copy}
          # {"^" * len(copy)} remark[TL508] a thread moves 2 bytes at a time, not 4, 8 or 16: {why}
            T.copy(S, C[k, 0])
        """,
            """
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0:30], S)
            T.copy(S, C[k, 0])
        """,
            parameters='A: T.Tensor((64, 128), "float16"), C: T.Tensor((64, 32), "float16")',
            tile=tile,
            flows_tile=30,
            dtype="float16",
        )
        for tile, copy, why in (
            (31, "T.copy(A[k, 0:31], S)", "a row of 31 elements is no multiple of 2"),
            (1, "T.copy(A[k, 0:1], S)", "it moves one element"),
            (32, "T.copy(A[k, 0:32], S, coalesced_width=1)", "coalesced_width asks for fewer"),
            (
                32,
                "T.copy(A[k, 0:32], S, loop_layout=T.Fragment((32,), forward_fn=lambda i: (i, 0)))",
                "its loop_layout gives no thread 2 neighbours of a row",
            ),
        )
    ),
    Case(
        "elements that lie apart",
        """
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[0:32, k], S)
          # ^^^^^^^^^^^^^^^^^^^^^ remark[TL508] neighbours in the tile lie 64 elements apart in `A`
            T.copy(S, C[k, 0])
        """,
        PLAIN,
        parameters='A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")',
        dtype="float16",
    ),
    Case(
        "an edge that nobody knows",
        """
        for k in T.Pipelined(64, num_stages=2):
            for i in T.Parallel(32):
          # ^^^^^^^^^^^^^^^^^^^^^^^ remark[TL508] the edge of the tensor may lie between elements
                S[i] = A[k, i]
            T.copy(S, C[k, 0])
        """,
        """
        T.assume(N % 8 == 0)
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0], S)
            T.copy(S, C[k, 0])
        """,
        parameters='A: T.Tensor((64, N), "float16"), C: T.Tensor((64, 32), "float16")',
        dtype="float16",
    ),
    Case(
        "a row length that nobody knows",
        """
        T.assume(N > 64)
        for k in T.Pipelined(63, num_stages=2):
            for i in T.Parallel(32):
          # ^^^^^^^^^^^^^^^^^^^^^^^ remark[TL508] nothing says that `N` is a multiple of 2
                S[i] = A[k + 1, i]
            T.copy(S, C[k, 0])
        """,
        PLAIN,
        parameters='A: T.Tensor((64, N), "float16"), C: T.Tensor((64, 32), "float16")',
        flows_parameters='A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float16")',
        dtype="float16",
    ),
    Case(
        "one byte at a time",
        """
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0:32], S)
          # ^^^^^^^^^^^^^^^^^^^^^ remark[TL508] a thread moves 1 byte at a time, not 4, 8 or 16
            T.copy(S, C[k, 0])
        """,
        PLAIN,
        parameters='A: T.Tensor((64, 33), "int8"), C: T.Tensor((64, 32), "int8")',
        flows_parameters='A: T.Tensor((64, 128), "int8"), C: T.Tensor((64, 128), "int8")',
        flows_tile=128,
        dtype="int8",
    ),
    Case(
        "a tile that is read after the loop",
        """
        for k in T.Pipelined(63, num_stages=2):
            T.copy(A[k, 0], S)
          # ^^^^^^^^^^^^^^^^^^ remark[TL508] `S` is read after the loop
            T.copy(S, C[k, 0])
        T.copy(S, C[63, 0])
        """,
        PLAIN,
    ),
    Case(
        "a tile that is read before it is copied",
        """
        T.clear(S)
        for k in T.Pipelined(64, num_stages=2):
            T.copy(S, C[k, 0])
            T.copy(A[k, 0], S)
          # ^^^^^^^^^^^^^^^^^^ remark[TL508] `S` is read before it is copied
        """,
        PLAIN,
    ),
    Case(
        "an address that the loop computes",
        """
        at = T.alloc_shared((1,), "int32")
        T.clear(at)
        for k in T.Pipelined(64, num_stages=2):
            for i in T.Parallel(32):
          # ^^^^^^^^^^^^^^^^^^^^^^^ remark[TL508] it needs `at`, which the loop computes on the way
                S[i] = A[at[0], i]
            T.copy(S, C[k, 0])
            at[0] = (at[0] + 7) % 64
        """,
        """
        for k in T.Pipelined(64, num_stages=2):
            for i in T.Parallel(32):
                S[i] = A[k * 7 % 64, i]
            T.copy(S, C[k, 0])
        """,
    ),
    Case(
        "an address from another copy",
        """
        at = T.alloc_shared((32,), "int32")
        for k in T.Pipelined(64, num_stages=2):
            T.copy(I[k, 0], at)
          # ^^^^^^^^^^^^^^^^^^^ remark[TL508] another copy needs `at` at once, for its address
            for i in T.Parallel(32):
          # ^^^^^^^^^^^^^^^^^^^^^^^ remark[TL508] its address is read from `at`, copied just before
                S[i] = A[at[i], i]
            T.copy(S, C[k, 0])
        """,
        """
        at = T.alloc_shared((32,), "int32")
        for k in T.Pipelined(64, num_stages=2):
            T.copy(I[k, 0], at)
            T.copy(A[k, 0], S)
            for i in T.Parallel(32):
                C[k, i] = S[i] + at[i]
        """,
        parameters='A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32"), '
        'I: T.Tensor((64, 32), "int32")',
    ),
    Case(
        "an address from memory, which may lie outside of the tensor",
        """
        for k in T.Pipelined(64, num_stages=2):
            for i in T.Parallel(32):
          # ^^^^^^^^^^^^^^^^^^^^^^^ remark[TL508] whether an element exists depends on memory
                S[i] = A[I[k, i], i]
            T.copy(S, C[k, 0])
        """,
        """
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0], S)
            T.copy(S, C[I[k, 0], 0])
        """,
        parameters='A: T.Tensor((64, 32), "float32"), C: T.Tensor((64, 32), "float32"), '
        'I: T.Tensor((64, 32), "int32")',
    ),
    Case(
        "values beyond the edge that are not zero",
        """
        T.annotate_safe_value({A: -1.0})
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0], S)
          # ^^^^^^^^^^^^^^^^^^ remark[TL508] elements beyond `A` read as
            T.copy(S, C[k, 0])
        """,
        """
        T.annotate_safe_value({A: 0.0})
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0], S)
            T.copy(S, C[k, 0])
        """,
        parameters='A: T.Tensor((64, 40), "float32"), C: T.Tensor((64, 64), "float32")',
        tile=64,
    ),
    Case(
        "a target without such copies",
        """
        for k in T.Pipelined(64, num_stages=2):
            T.copy(A[k, 0], S)
          # ^^^^^^^^^^^^^^^^^^ remark[TL508] cuda:sm_75 has no asynchronous copies
            T.copy(S, C[k, 0])
        """,
        PLAIN,
        target="cuda:sm_75",
        flows_target="cuda:sm_80",
    ),
)


def compiled(text: str, target: str) -> tuple[list[Diagnostic], int]:
    """What the compiler says of a kernel, and how many asynchronous copies are in its code."""
    (parsed,) = parse_static(text, "kernel.py")
    assert parsed.function is not None and not parsed.diagnostics, parsed.diagnostics
    lowered = lower_function(parsed.function, parse_target(target), CompileOptions())
    copies = sum(
        (op := op_of_call(call)) is not None and op.name == "cp_async"
        for call in collect(lowered.func.body, tirx.Call)
    )
    return [d for d in lowered.diagnostics if d.code not in OTHERS], copies


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_reason_is_given_at_the_copy(case: Case) -> None:
    text = case.text(waits=True)
    found, copies = compiled(text, case.target)
    shown = render_text(found, SourceMap({"kernel.py": text}))
    expected = expected_of(text)
    assert [
        (d.span.line, d.span.column, d.code, d.severity.value) for d in sorted(found, key=_place)
        if d.span is not None
    ] == [(e.line, e.column, e.code, e.severity) for e in expected], shown  # fmt: skip
    for one, said in zip(sorted(found, key=_place), expected, strict=True):
        assert one.message.startswith("a copy of this pipeline waits for its data: ")
        assert said.text in one.message and one.label == "not asynchronous"
        # A statement of several lines ends elsewhere; its first line is marked.
        assert one.span is not None
        if one.span.end_line == one.span.line:
            assert one.span.end_column == said.end_column, shown
    assert copies == 0


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_said_of_a_copy_that_runs_ahead(case: Case) -> None:
    text = case.text(waits=False)
    found, copies = compiled(text, case.flows_target or case.target)
    assert found == [], render_text(found, SourceMap({"kernel.py": text}))
    assert copies > 0


def _place(found: Diagnostic) -> tuple[int, int]:
    assert found.span is not None
    return found.span.line, found.span.column
