"""What became of each statement: kept, indented, moved, renamed, changed, gone or new."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.trace.recorded import trace_of
from tilelang_diagnostics import Span
from tilelang_trace.diff import difference
from tilelang_trace.model import Line, Step
from tilelang_trace.structure import structure, word_changes


def step(text: str) -> Step:
    """One line each; `@7` at its end is the line of Python it comes from."""
    lines = []
    for row in text.strip("\n").split("\n"):
        code, _, place = row.partition(" @")
        span = Span("k.py", int(place), 1, int(place), 9) if place else None
        lines.append(Line(code, span))
    return Step("pass", tuple(lines))


MOVED = (
    """
for k in T.serial(4): @1
    for j in T.serial(8): @2
        B[j] = A[j] @3
    T.clear(C) @4
""",
    """
for k in T.serial(4): @1
    T.clear(C) @4
    for j in T.serial(8): @2
        B[j] = A[j] @3
""",
)
OUT_OF_LOOP = (
    """
for k in T.serial(4): @1
    for j in T.serial(8): @2
        B[j] = A[j] @3
    C[k] = 0 @4
""",
    """
for j in T.serial(8): @2
    B[j] = A[j] @3
for k in T.serial(4): @1
    C[k] = 0 @4
""",
)
RENAMED = (
    """
for i0_1 in T.unroll(4): @1
    A[i0_1] = B[i0_1 * 2] @2
""",
    """
for r in T.unroll(4): @1
    A[r] = B[r * 2] @2
""",
)
CASES = [
    (MOVED, {"kept": 3, "moved": 1}, ()),
    (OUT_OF_LOOP, {"kept": 2, "moved": 2}, ()),
    (RENAMED, {"renamed": 2}, (("i0_1", "r"),)),
    # Other numbers or another operand are a change, and so are names that do not all agree.
    (("A[i] = 0 @1", "A[i] = 1 @1"), {"changed": 1}, ()),
    (("A[i] = B[i] @1", "A[j] = B[k] @1"), {"changed": 1}, ()),
    # A name that is still bound was not renamed.
    (("x = T.alloc_local((4,)) @1\nT.copy(x, C) @2", "x = T.alloc_local((4,)) @1\nT.copy(y, C) @2"),
     {"kept": 1, "changed": 1}, ()),
    # Of another place, or another kind: gone, and new.
    (("T.copy(A, B) @1", "T.copy(A, B) @2"), {"kept": 1}, ()),
    (("T.copy(A, B) @1", "T.gemm(A, B) @1"), {"gone": 1, "new": 1}, ()),
    (("T.copy(A, B) @1", "T.copy(A, C[0]) @2"), {"gone": 1, "new": 1}, ()),
    (("pass", "pass\npass"), {"kept": 1, "new": 1}, ()),
    # What left one loop for another is no body that stayed.
    (("for k in T.serial(2): @1\n    T.clear(C) @2\nfor j in T.serial(3): @3\n    pass @4",
      "for k in T.serial(2): @1\n    pass @5\nfor j in T.serial(3): @3\n"
      "    for i in T.serial(1): @6\n        T.clear(C) @2"),
     {"kept": 2, "moved": 1, "new": 2, "gone": 1}, ()),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "fates", "renames"), CASES)
def test_fates(
    texts: tuple[str, str], fates: dict[str, int], renames: tuple[tuple[str, str], ...]
) -> None:
    found = structure(step(texts[0]), step(texts[1]))
    names = ("kept", "dedented", "indented", "moved", "renamed", "changed", "gone", "new")
    assert {n: c for n in names if (c := found.count(n))} == fates  # type: ignore[arg-type]
    assert found.renames == renames


# What a pass was given and made; its difference as it is shown, and the summary.
BODIES = {
    "a loop of one iteration": (
        """
T.clear(C) @9
for k in T.serial(1): @1
    for j in T.serial(8): @2
        B[j] = A[j] @3
    T.clear(C) @4
T.clear(C) @5
""",
        """
T.clear(C) @9
for j in T.serial(8): @2
    B[j] = A[j] @3
T.clear(C) @4
T.clear(C) @5
""",
        """
 T.clear(C)
-for k in T.serial(1):
·body of the removed `for k in T.serial(1)` kept: 3 lines, dedented
⇤for j in T.serial(8):
⇤    B[j] = A[j]
⇤T.clear(C)
""",
        "3 dedented, +0 −1",
    ),
    "a loop that is unrolled": (
        """
for k in T.unroll(2): @1
    A[k] = 0 @2
    T.clear(C) @3
""",
        """
A[0] = 0 @2
T.clear(C) @3
A[1] = 0 @2
T.clear(C) @3
""",
        """
-for k in T.unroll(2):
·body of the removed `for k in T.unroll(2)` kept: 1 line, dedented
-    A[k] = 0
+A[0] = 0
⇤T.clear(C)
+A[1] = 0
+T.clear(C)
""",
        "1 dedented, 1 changed, +2 −1",
    ),
    "a condition that is decided": (
        """
if n < 4: @1
    T.clear(A) @2
elif n < 8: @1
    T.clear(B) @3
else:
    T.clear(C) @4
    T.clear(D) @5
""",
        """
T.clear(C) @4
T.clear(D) @5
""",
        """
-if n < 4:
-    T.clear(A)
-elif n < 8:
-    T.clear(B)
-else:
·body of the removed `else` of `elif n < 8` kept: 2 lines, dedented
⇤T.clear(C)
⇤T.clear(D)
""",
        "2 dedented, +0 −5",
    ),
    "two loops at once": (
        """
for i in T.serial(1): @1
    for j in T.serial(1): @2
        A[i] = B[j] @3
        T.clear(C) @4
""",
        """
T.clear(C) @4
""",
        """
-for i in T.serial(1):
·body of the removed `for i in T.serial(1)` kept: 1 line, dedented
-    for j in T.serial(1):
·body of the removed `for j in T.serial(1)` kept: 1 line, dedented
-        A[i] = B[j]
⇤T.clear(C)
""",
        "1 dedented, +0 −3",
    ),
    "a guard around what was there": (
        """
T.clear(C) @4
B[0] = A[0] @3
""",
        """
if n < 4: @3
    T.clear(C) @4
    B[0] = A[0] @3
""",
        """
+if n < 4:
·body of the new `if n < 4` was there before: 2 lines, indented
⇥    T.clear(C)
⇥    B[0] = A[0]
""",
        "2 indented, +1 −0",
    ),
    "a loop in place of another": (
        """
for i in T.serial(1): @1
    T.clear(C) @4
""",
        """
while n < 4: @7
    T.clear(C) @4
""",
        """
-for i in T.serial(1):
+while n < 4:
     T.clear(C)
""",
        "+1 −1",
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_body_that_stayed_is_told_from_what_is_new(name: str) -> None:
    before, after, expected, summary = BODIES[name]
    changes = difference(step(before), step(after), by_structure=True)
    shown = [row.sign + row.line.text for hunk in changes.hunks for row in hunk.rows]
    assert shown == expected.strip("\n").split("\n")
    assert changes.structure is not None and changes.structure.summary() == summary


def test_how_deep_a_changed_line_is_indented_is_no_difference() -> None:
    before, after, _, _ = BODIES["a loop that is unrolled"]
    (hunk,) = difference(step(before), step(after), by_structure=True).hunks
    marked = [row.line.text[a:b] for row in hunk.rows for a, b in row.words]
    assert marked == ["k", "0"]


def test_a_long_body_is_shown_as_far_as_other_lines_around_a_change() -> None:
    body = [f"A[{n}] = 0 @{n + 2}" for n in range(20)]
    before = "\n".join(("for k in T.serial(1): @1", *(f"    {x}" for x in body), "T.clear(C) @30"))
    after = "\n".join((*body, "T.clear(D) @31"))
    first, second = difference(step(before), step(after), by_structure=True).hunks
    assert [row.sign for row in first.rows] == ["-", "·", "⇤", "⇤", "⇤"]
    assert (first.header, second.header) == ("@@ -1,4 +1,3 @@", "@@ -19,4 +18,4 @@")
    assert [row.sign for row in second.rows] == ["⇤", "⇤", "⇤", "-", "+"]


def test_a_moved_loop_is_shown_where_it_was_and_where_it_is() -> None:
    (hunk,) = difference(step(OUT_OF_LOOP[0]), step(OUT_OF_LOOP[1]), by_structure=True).hunks
    assert [row.sign + row.line.text for row in hunk.rows] == [
        ">for j in T.serial(8):", ">    B[j] = A[j]",
        " for k in T.serial(4):",
        "<    for j in T.serial(8):", "<        B[j] = A[j]",
        "     C[k] = 0",
    ]  # fmt: skip


def test_what_was_changed_stands_before_what_became_of_it() -> None:
    before, after = step("A[i] = 0 @1\nB[i] = 0 @2"), step("A[i] = 1 @1\npass\nB[i] = 1 @2")
    (hunk,) = difference(before, after, by_structure=True).hunks
    assert [row.sign + row.line.text for row in hunk.rows] == [
        "-A[i] = 0", "+A[i] = 1", "-B[i] = 0", "+pass", "+B[i] = 1",
    ]  # fmt: skip


def test_a_renamed_variable_is_shown_once_with_its_name_marked() -> None:
    (hunk,) = difference(step(RENAMED[0]), step(RENAMED[1]), by_structure=True).hunks
    shown = [(row.sign, [row.line.text[a:b] for a, b in row.words]) for row in hunk.rows]
    assert shown == [("~", ["r"]), ("~", ["r", "r"])]


def test_summary() -> None:
    assert structure(step(RENAMED[0]), step(RENAMED[1])).summary() == "2 renamed, i0_1 → r"
    assert structure(step("a"), step("a\nb")).summary() == "+1 −0"


LINES = st.lists(
    st.builds(Line, st.sampled_from(["a = b", "  a = b", "c = b", "T.f(a)", "  T.f(c)"]),
              st.sampled_from([None, Span("k.py", 1, 1, 1, 2), Span("k.py", 2, 1, 2, 2)])),
    max_size=9,
).map(lambda lines: Step("x", tuple(lines)))  # fmt: skip


@given(LINES, LINES)
def test_every_line_has_exactly_one_fate(before: Step, after: Step) -> None:
    found = structure(before, after)
    assert sorted(m.old for m in found.matches if m.old is not None) == [*range(len(before.lines))]
    assert sorted(m.new for m in found.matches if m.new is not None) == [*range(len(after.lines))]
    for m in found.matches:
        assert (m.old is None) == (m.fate == "new")
        assert (m.new is None) == (m.fate == "gone")


@given(LINES)
def test_nothing_happened_to_the_same(same: Step) -> None:
    found = structure(same, same)
    assert found.changed == 0 and found.summary() == ""


@given(st.text(max_size=12), st.text(max_size=12))
def test_what_is_not_marked_is_the_same(old: str, new: str) -> None:
    gone, come = word_changes(old, new)

    def rest(text: str, ranges: list[tuple[int, int]]) -> str:
        return "".join(c for n, c in enumerate(text) if not any(a <= n < b for a, b in ranges))

    assert rest(old, gone) == rest(new, come)


def test_in_a_real_pipeline_most_statements_are_followed() -> None:
    trace = trace_of("gemm", "sm_80", code=False)
    pairs = {after.name: (before, after) for before, after in trace.pairs}
    copied = structure(*pairs["apply_layouts"])
    assert copied.count("indented") >= 3, "copies get a frame around them that says their layout"
    assert copied.count("gone") == copied.count("moved") == 0
    placed = structure(*pairs["place_versions"])
    assert placed.count("dedented") > 20 and placed.bodies, "frames that said versions are gone"
