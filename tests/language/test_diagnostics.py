"""What the front end says about wrong kernels: code, exact span, and what else it still finds."""

from __future__ import annotations

import pytest

from tests.support.markers import check_diagnostics
from tests.support.programs import in_kernel

# (name, body of a kernel over A and B with markers)
BODIES: list[tuple[str, str]] = [
    ("unknown name", """
        A[0] = Bb[0]
        #      ^^ error[TL110] did you mean `B` or `bx`?
     """),
    ("unknown attribute", """
        A[0] = T.exq2(B[0])
        #        ^^^^ error[TL111] did you mean `exp2`?
     """),
    ("unknown keyword", """
        s = T.alloc_shared((16,), dtyp="float32")
        #                         ^^^^ error[TL112] did you mean `dtype`?
     """),
    ("missing argument", """
        T.copy(A)
      # ^^^^^^^^^ error[TL113] dst
     """),
    ("a mistake does not hide the next", """
        A[0] = nope
        #      ^^^^ error[TL110]
        A[1] = A[0, 1]
        #      ^^^^^^^ error[TL203]
        A[2] = 1
     """),
    ("an unknown value stays silent", """
        x = nope(A[0])
        #   ^^^^ error[TL110]
        y = x * 2 + A[0]
        B[0] = y
     """),
    ("integer division", """
        n = T.alloc_var("int32", init=3)
        n = n / 2
        #   ^^^^^ error[TL232]
     """),
    ("slice step", """
        T.copy(A[0:16:2], B)
        #      ^^^^^^^^^ error[TL224]
     """),
    ("constant index outside", """
        A[16] = 0
     #  ^^^^^ error[TL220] out of bounds
     """),
    ("whole buffer arithmetic", """
        A += 1
     #  ^^^^^^ error[TL151] whole buffer
     """),
    ("buffer as condition", """
        if A:
        #  ^ error[TL150] `A` is used as a condition
            B[0] = 1
     """),
    ("endless while", """
        while True:
        #     ^^^^ error[TL139] never ends
            A[0] = 1
     """),
    ("a while that never runs", """
        while False:
        #     ^^^^^ warning[TL140] never runs
            A[0] = 1
     """),
    ("nested def", """
        def helper(x):
     #  ^^^^^^^^^^ error[TL132] `def helper`
            return x
        A[0] = 1
     """),
    ("attribute assignment", """
        A.name = 3
     #  ^^^^^^^^^^ error[TL133]
     """),
    ("zero step", """
        for i in range(0, 4, 0):
        #        ^^^^^^^^^^^^^^ error[TL142]
            A[i] = 0
     """),
    ("return in a branch", """
        if A[0] > 0:
            return
     #      ^^^^^^ error[TL136]
        A[0] = 1
     """),
    ("a false assert while tracing", """
        assert 1 > 2, "sizes"
     #  ^^^^^^^^^^^^^^^^^^^^^ error[TL184] sizes
     """),
    ("unpack count", """
        a, b = 1, 2, 3
     #  ^^^^ error[TL154]
     """),
    ("a loop variable in parts", """
        for i, (j,) in T.Parallel(8, 8):
     #         ^^^^ error[TL154] stands for one loop variable
            A[i] = 0
     """),
    ("unused value", """
        A[0] + 1
     #  ^^^^^^^^ warning[TL149]
     """),
    ("after break", """
        for i in T.serial(4):
            break
            A[i] = 0
     #      ^^^^^^^^ warning[TL146]
     """),
    ("loop over a number", """
        for i in 4:
        #        ^ error[TL141]
            A[i] = 0
     """),
    ("loop variable count", """
        for i, j in T.Parallel(4):
        #   ^^^^ error[TL144]
            A[i] = 0
     """),
    ("a string as an extent", """
        for i, j in T.Parallel(4, "4"):
        #                         ^^^ error[TL116]
            A[i] = 0
     """),
    ("too many threads in a try", """
        try:
     #  ^^^ error[TL130]
            A[0] = 1
        except ValueError:
            pass
     """),
    ("a bool where python wants a number", """
        x = [1, 2][A[0] > 0]
        #   ^^^^^^^^^^^^^^^^ error[TL228]
     """),
    ("wide characters do not shift columns", """
        A[0] = "温度" == "🌡" or nope
        #                     ^^^^ error[TL110]
     """),
]  # fmt: skip


@pytest.mark.parametrize(("name", "body"), BODIES, ids=[b[0] for b in BODIES])
def test_body(name: str, body: str) -> None:
    check_diagnostics(in_kernel(body))


def test_recursive_macro_shows_the_call_chain() -> None:
    found = check_diagnostics(
        """
        @T.macro
        def again(x):
            again(x)
          # ^^^^^^^^ error[TL180] expands itself without end

        @T.prim_func
        def main(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=16) as bx:
                again(A[0])
        """
    )
    assert found[0].calls[0].function == "again"


def test_unknown_target_function_is_refused_by_name() -> None:
    check_diagnostics(
        """
        @T.prim_func
        def main(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=128) as bx:
                bar = T.alloc_barrier(128)
                #     ^^^^^^^^^^^^^^^^^^^^ error[TL401] `T.alloc_barrier` is not available on target `cpu`
                A[0] = 0
        """,
        target="cpu",
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("def broken(:\n    pass\n", "TL101"),
        ("x = (1,\n", "TL101"),
        ("\x00", "TL101"),
    ],
)
def test_files_that_are_not_python(text: str, code: str) -> None:
    from tilelang.language.frontend import parse_static

    result = parse_static(text, "kernel.py")
    assert [d.code for d in result.diagnostics] == [code]
