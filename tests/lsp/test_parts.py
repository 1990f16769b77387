"""What is read again after an edit, and that the result is that of reading everything."""

from __future__ import annotations

import pickle
import random
from dataclasses import replace

import pytest

from benchmarks.lsp import eight_kernels, session
from tests.lsp.asking import PATH
from tests.lsp.rpc_client import ROOT
from tests.support.markers import kernel_text
from tilelang_diagnostics import Span
from tilelang_lsp import analysis as module
from tilelang_lsp.analysis import Analyser, analyse
from tilelang_lsp.assembly import MOST_FILES, Memory
from tilelang_lsp.features.inlay_hints import hints
from tilelang_lsp.hinting import Hinting
from tilelang_lsp.model import HINT_KINDS, Analysis, Fact
from tilelang_lsp.moves import Moves, Placed
from tilelang_lsp.options import Options

TWO = kernel_text("""
    BLOCK = 32
    WARM = 10
    SIZE = 4

    def helper(n):
        return 2 * n

    TWICE = SIZE * 2
    AGAIN = helper(TWICE)

    @T.macro
    def double(x):
        x[0] = x[0] * 2

    # before the first
    @T.prim_func
    def first(A: T.Tensor((64,), "float32")):
        with T.Kernel(1) as bx:
            s = T.alloc_shared((BLOCK,), "float32")
            double(A)

    @T.prim_func
    def second(B: T.Tensor((64,), "float32")):
        with T.Kernel(1) as bx:
            t = T.alloc_shared((BLOCK,), "float32")
            double(B)
            v = T.alloc_shared((AGAIN,), "float32")
            T.copy(missing, t)

    def reference(a):
        return a + 1

    def use(x):
        second(x)

    KERNELS = [first, second]
    other = second
    CALLED = other(5)

    if __name__ == "__main__":
        first(3)
""")


def normal(found: Analysis) -> Analysis:
    """Uses and facts in one order: in which parts were read does not matter."""
    symbols = tuple(replace(s, uses=tuple(sorted(s.uses))) for s in found.symbols)
    return replace(found, symbols=symbols, facts=tuple(sorted(found.facts, key=repr)))


def after(before: str, now: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, ...] | None:
    """The definitions read for the second text; None for all."""
    asked: list[tuple[str, ...] | None] = []
    real = module._read

    def noting(source: object, options: object, owners: object = None) -> object:
        asked.append(owners)  # type: ignore[arg-type]
        return real(source, options, owners)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_read", noting)
    analyser = Analyser()
    analyser.analyse(before, PATH, Options())
    found = analyser.analyse(now, PATH, Options()).analysis
    monkeypatch.undo()
    assert normal(found) == normal(analyse(now, PATH))
    return asked[-1]


@pytest.mark.parametrize(
    ("old", "new", "read"),
    [
        ("t = T.alloc_shared((BLOCK,)", "t = T.alloc_shared((8,)", ("second",)),
        ("s = T.alloc_shared((BLOCK,)", "s = T.alloc_shared((\n  8,)", ("first",)),
        ("double(A)", "double(A", ("first",)),
        ("T.copy(missing, t)", "", ("second",)),
        ("# before the first", "\n\n\n# before the first", ()),
        ("# before the first", "# before it", ()),
        ("# before the first", "# tilelang: set n=3", None),
        ("BLOCK = 32", "BLOCK = 16", ("first", "second")),
        ("BLOCK = 32", "BLOCK = 16 +", ("first", "second")),
        ("BLOCK = 32", "BLOCK, MORE = 16, 3", ("first", "second")),
        ("BLOCK = 32", "if 1:\n        BLOCK = 16", None),
        # One says what is bound at the top of the file.
        ("WARM = 10", "WARM = 100\\\n + 3", ("first",)),
        ("WARM = 10", "WARM = SIZE", ("first",)),
        ("WARM = 10", "SIZES = 3", ("first",)),
        ("SIZE = 4", "SIZE = 5", ("second",)),
        ("SIZE = 4", "SIZE = [\n    5,\n][0]", ("second",)),
        ("TWICE = SIZE * 2", "TWICE = SIZE * 3", ("second",)),
        ("return 2 * n", "return 3 * n", ("helper", "second")),
        ("KERNELS = [first, second]", "KERNELS = [first]", ("first", "second")),
        ("other = second", "other = 3", ("second",)),
        ("CALLED = other(5)", "CALLED = other(6)", ("second",)),
        ("WARM = 10", "import os", None),
        ("x[0] * 2", "x[0] * 3", ("double", "first", "second")),
        ("x[0] = x", "\n    x[0] = x", ("double", "first", "second")),
        ("def double(x)", "def double(x, y=1)", None),
        ("return a + 1", "return a + 2", ("reference",)),
        ("return a + 1", "return second(1)", ("second", "reference")),
        (
            "return a + 1",
            "@T.prim_func\n    def third(A: T.Tensor((4,), 'int8')):\n        pass",
            ("reference",),
        ),
        ("second(x)", "second(x + 1)", ("second", "use")),
        ("second(x)", "reference(x)", ("second", "use")),
        ("second(x)", "p.add_argument('--n', default=3)", None),
        ("first(3)", "first(4)", ("first",)),
        ("first(3)", "first(4", ("first",)),
        ("def second", "def third", None),
        ("BLOCK = 32", "BLOCK = 32\nMORE = 1", None),
    ],
)
def test_only_what_an_edit_touches_is_read_again(
    old: str, new: str, read: tuple[str, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert after(TWO, TWO.replace(old, new, 1), monkeypatch) == read


def test_what_was_read_once_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, ...] | None] = []
    real = module._read

    def noting(source: object, options: object, owners: object = None) -> object:
        asked.append(owners)  # type: ignore[arg-type]
        return real(source, options, owners)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "_read", noting)
    analyser = Analyser()
    other = TWO.replace("t = T.alloc_shared((BLOCK,)", "t = T.alloc_shared((8,)")
    lower, more = f"# more\n{TWO}", TWO.replace("WARM = 10", "WARM = 11")
    texts = (TWO, other, TWO, f"# more\n{other}", lower, more, TWO, f"{other}\nMORE = 1\n", other)
    for text in texts:
        found = analyser.analyse(text, PATH, Options()).analysis
        monkeypatch.setattr(module, "_read", real)
        assert normal(found) == normal(analyse(text, PATH))
        monkeypatch.setattr(module, "_read", noting)
    # With something else at the top, one part says what; with more of it, all are read.
    assert asked == [None, ("second",), (), (), (), ("second",), (), None, None]


def test_other_options_read_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    analyser = Analyser()
    analyser.analyse(TWO, PATH, Options())
    found = analyser.analyse(
        TWO, PATH, Options(values={"BLOCK": 1}, targets=("cuda:sm_80",))
    ).analysis
    assert normal(found) == normal(analyse(TWO, PATH, Options({"BLOCK": 1}, ("cuda:sm_80",))))


def test_a_typing_session_gives_what_reading_everything_gives(full: bool) -> None:
    text = eight_kernels()
    analyser = Analyser()
    analyser.analyse(text, PATH, Options())
    step = 1 if full else 7
    for number, (_, now) in enumerate(session(text, 300 if full else 42)):
        found = analyser.analyse(now, PATH, Options()).analysis
        if number % step == 0:
            assert normal(found) == normal(analyse(now, PATH)), number


def test_edits_anywhere_give_what_reading_everything_gives(full: bool) -> None:
    """In host code, in what kernels call, between statements: what depends on them is read."""
    rng, more = (
        random.Random(20261130),
        ("(", "\n", " ", "#", "x", "1", "T.", "def ", "\n    ", '"'),
    )
    for path in sorted((ROOT / "examples").glob("*.py"))[:: 1 if full else 5]:
        text = path.read_text()
        analyser = Analyser()
        analyser.analyse(text, PATH, Options())
        for number in range(60 if full else 12):
            at = rng.randrange(len(text))
            now = text[:at] + rng.choice(more) + text[at + rng.randrange(3) :]
            found = analyser.analyse(now, PATH, Options()).analysis
            assert normal(found) == normal(analyse(now, PATH)), (path.name, number, at)
            text = now if number % 3 else text


def test_hints_and_messages_in_parts_are_those_of_everything(full: bool) -> None:
    text, options = eight_kernels(), Options(targets=("cuda:sm_90a",))
    analyser, here, there, hinting = Analyser(), Memory(), Memory(), Hinting()
    sent: list[int] = []
    for number, (_, now) in enumerate(session(text, 300 if full else 45)):
        data = pickle.dumps(here.pack(PATH, *analyser.read(now, PATH, options)))
        sent.append(len(data))
        found = there.unpack(PATH, now, pickle.loads(data))
        drawn = hinting.hints(found, (), options.hints)
        if full or number % 7 == 0:
            whole = analyse(now, PATH, options)
            assert normal(found.analysis) == normal(whole), number
            assert drawn == hints(whole, (), options.hints), number
    assert sorted(sent)[len(sent) // 2] < sent[0] / 4  # one definition of eight


def test_facts_beyond_the_text_are_drawn_where_they_lie() -> None:
    analyser, hinting = Analyser(), Hinting()
    found = analyser.analyse(TWO, PATH, Options())
    lines = {k.name: k.span.line for k in found.kernels}
    facts = [
        (Fact(Span(PATH, line, 1, line, 5), "layouts", f" {name}"),) for name, line in lines.items()
    ]
    tops = found.head.tops
    groups = [Placed(each, tops) for each in facts]
    every = hinting.hints(found, groups, HINT_KINDS)
    assert every == hints(found.analysis, [f for each in facts for f in each], HINT_KINDS)
    made = hinting.made
    assert hinting.hints(found, groups, HINT_KINDS) == every and hinting.made == made
    other = [groups[0], Placed((), tops)]
    assert hinting.hints(found, other, HINT_KINDS) == hints(found.analysis, facts[0], HINT_KINDS)
    assert hinting.made == made + 1
    # Whole lines before them: the same hints, moved.
    found = analyser.analyse(TWO.replace("# before", "\n\n# before"), PATH, Options())
    moved = hinting.hints(found, other, HINT_KINDS)
    assert hinting.made == made + 1
    first = Moves(tops, found.head.tops, PATH).fact(facts[0][0])
    assert first.span.line == facts[0][0].span.line + 2
    assert moved == hints(found.analysis, [first], HINT_KINDS)


def test_both_ends_forget_the_same_files() -> None:
    analyser, here, there = Analyser(), Memory(), Memory()
    for number in (*range(MOST_FILES + 3), 0, MOST_FILES, 1):
        path = f"{number}.py"
        message = here.pack(path, *analyser.read(TWO, path, Options()))
        assert there.unpack(path, TWO, message).analysis == analyse(TWO, path)
