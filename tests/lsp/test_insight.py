"""What layouts and lowering tell about a kernel: hints, hovers, lenses and budgets."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kernels import registry
from tests.kernels.test_static import REFUSED
from tests.lsp.asking import (
    PATH,
    analysis_of,
    ask,
    in_launch,
    lines_of,
    looked_into,
    with_all_hints,
)
from tests.support.markers import kernel_text
from tilelang_lsp.analysis import analyse
from tilelang_lsp.describe_budget import assumed_line, budget_line, budget_page
from tilelang_lsp.features import code_lenses, hover
from tilelang_lsp.features.inlay_hints import LONGEST_LABEL, hints
from tilelang_lsp.insight import insight
from tilelang_lsp.insights import Insights, keys_of
from tilelang_lsp.model import HINT_KINDS, Insight
from tilelang_lsp.moves import Placed
from tilelang_lsp.options import Options

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
GEMM = """
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"),
             C: T.Tensor((256, 256), "float32")):
        with T.Kernel(4, 4, threads=128) as (bx, by):
            A_s = T.alloc_shared((64, 32), "float16")
            B_s = T.alloc_shared((32, 64), "float16")
            C_l = T.alloc_fragment((64, 64), "float32")
            row = by * 64
            T.clear(C_l)
            for k in T.Pipelined(8, num_stages=3):
                T.copy(A[row, k * 32], A_s)
                T.copy(B[k * 32, bx * 64], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[row, bx * 64])
    """


def only(text: str, target: str | None = None, **values: object) -> Insight:
    (found,) = looked_into(kernel_text(text), target, **values).known.values()
    return found.insight


def test_every_line_of_a_product_says_what_became_of_it() -> None:
    assert with_all_hints(GEMM, "cuda:sm_80") == lines_of("""
        with T.Kernel(4, 4, threads=128) as (bx, by):⟨ 16 blocks × 128 threads⟩
        A_s⟨: (64, 32) float16 shared⟩⟨ swizzle 64B⟩⟨ ×3⟩ = T.alloc_shared((64, 32), "float16")
        B_s⟨: (32, 64) float16 shared⟩⟨ swizzle 128B⟩⟨ ×3⟩ = T.alloc_shared((32, 64), "float16")
        C_l⟨: (64, 64) float32 fragment⟩⟨ 32/thread⟩ = T.alloc_fragment((64, 64), "float32")
        row⟨: int32⟩⟨ 0…192⟩ = by * 64
        for k in T.Pipelined(8, num_stages=3):⟨ 3 stages, 24 KiB⟩
        T.copy(A[row, k * 32⟨ 0…224⟩], A_s)⟨ cp.async 16 B⟩
        T.copy(B[k * 32⟨ 0…224⟩, bx * 64⟨ 0…192⟩], B_s)⟨ cp.async 16 B⟩
        T.gemm(A_s, B_s, C_l)⟨ mma m16n8k16⟩
        T.copy(C_l, C[row, bx * 64⟨ 0…192⟩])⟨ 8 B a thread⟩
    """)


LOADED = """
    @T.prim_func
    def main(A: T.Tensor((256, 256), "float16"), B: T.Tensor((256, 256), "float16"),
             C: T.Tensor((256, 256), "float32")):
        with T.Kernel(2, 2, threads=256) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            C_l = T.alloc_fragment((128, 128), "float32")
            T.clear(C_l)
            for k in T.Pipelined(4, num_stages=3):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, C_l)
            T.copy(C_l, C[by * 128, bx * 128])
    """


def test_the_warp_that_loads_a_product_is_told_of() -> None:
    assert with_all_hints(LOADED, "cuda:sm_90a") == lines_of("""
        with T.Kernel(2, 2, threads=256) as (bx, by):⟨ 4 blocks × 256 threads⟩⟨ and 32 that load⟩
        A_s⟨: (128, 64) float16 shared⟩⟨ swizzle 128B⟩⟨ ×3⟩ = T.alloc_shared((128, 64), "float16")
        B_s⟨: (64, 128) float16 shared⟩⟨ swizzle 128B⟩⟨ ×3⟩ = T.alloc_shared((64, 128), "float16")
        C_l⟨: (128, 128) float32 fragment⟩⟨ 64/thread⟩ = T.alloc_fragment((128, 128), "float32")
        for k in T.Pipelined(4, num_stages=3):⟨ 3 stages, 96 KiB⟩
        T.copy(A[by * 128⟨ 0…128⟩, k * 64⟨ 0…192⟩], A_s)⟨ TMA load⟩
        T.copy(B[k * 64⟨ 0…192⟩, bx * 128⟨ 0…128⟩], B_s)⟨ TMA load⟩
        T.gemm(A_s, B_s, C_l)⟨ wgmma⟩
        T.copy(C_l, C[by * 128⟨ 0…128⟩, bx * 128⟨ 0…128⟩])⟨ 8 B a thread⟩
    """)
    (budget,) = only(LOADED, "cuda:sm_90a").budgets
    assert budget.threads == 256 + 32


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("types", ": (64, 32) float16 shared"),
        ("values", " 0…192"),
        ("launch", " 16 blocks × 128 threads"),
        ("layouts", " swizzle 64B"),
        ("pipelines", " 3 stages, 24 KiB"),
        ("instructions", " mma m16n8k16"),
    ],
)
def test_each_kind_can_be_switched_off(kind: str, label: str) -> None:
    source = kernel_text(GEMM)
    analysis, facts = analysis_of(source), looked_into(source, "cuda:sm_80").facts
    assert label in [h.label for h in hints(analysis, facts)]
    others = [k for k in HINT_KINDS if k != kind]
    assert label not in [h.label for h in hints(analysis, facts, others)]
    assert {h.kind for h in hints(analysis, facts, [kind])} == {kind}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
def test_the_hints_of_a_line_fit_the_room_an_editor_gives(path: Path) -> None:
    source = path.read_text()
    rows: dict[int, int] = {}
    for hint in hints(analysis_of(source), looked_into(source, "cuda:sm_80").facts):
        rows[hint.line] = rows.get(hint.line, 0) + len(hint.label)
    assert max(rows.values()) <= LONGEST_LABEL


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.name)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80", "cuda:sm_90a"])
def test_examples_give_no_alarm(path: Path, target: str) -> None:
    source = path.read_text()
    found = [*analysis_of(source, target).diagnostics, *looked_into(source, target).diagnostics]
    alarms = [d for d in found if d.severity.value in ("error", "warning")]
    assert alarms == []


def test_kernels_of_the_registry_give_no_alarm_without_a_target() -> None:
    for path in sorted(Path(registry.__file__).parent.glob("*.py")):
        found = analysis_of(path.read_text()).diagnostics
        alarms = [d for d in found if d.severity.value in ("error", "warning")]
        # Some kernels are there to be refused.
        assert [d.code for d in alarms if d.code not in REFUSED.values()] == [], path.name


def test_the_budget_of_a_kernel() -> None:
    (budget,) = only(GEMM, "cuda:sm_80").budgets
    assert budget.exact
    assert (budget.shared, budget.limit, budget.threads) == (24576, 163 * 1024, 128)
    assert [(s.name, s.size, s.stages) for s in budget.shares] == [
        ("A_s", 4096, 3), ("B_s", 4096, 3)
    ]  # fmt: skip
    assert budget_line(budget) == (
        "shared 24 KiB of 163 KiB · 128 threads · 32+ registers · 6 blocks an SM, 37 % occupancy"
    )
    assert "`A_s` 3 stages × 4 KiB" in budget_page(budget)


def test_a_budget_for_each_target() -> None:
    from tilelang_lsp.insight import insight
    from tilelang_lsp.options import Options

    source = kernel_text(GEMM)
    options = Options(targets=("cuda:sm_90a", "cuda:sm_86"))
    found = insight(source, "kernel.py", "main", 5, options)
    assert [(b.target, b.limit) for b in found.budgets] == [
        ("cuda:sm_90a", 227 * 1024), ("cuda:sm_86", 99 * 1024)
    ]  # fmt: skip
    # Each as if it was the only one.
    for budget in found.budgets:
        alone = insight(source, "kernel.py", "main", 5, Options(targets=(budget.target,)))
        assert alone.budgets == (budget,)


def test_targets_that_are_none_or_named_twice_have_no_budget() -> None:
    from tilelang_lsp.insight import insight
    from tilelang_lsp.options import Options

    source = kernel_text(GEMM)
    options = Options(targets=("cuda:sm_80", "hip:gfx942", "no-target", "cuda:sm_80"))
    assert [b.target for b in insight(source, "kernel.py", "main", 5, options).budgets] == [
        "cuda:sm_80", "hip:gfx942"
    ]  # fmt: skip


def test_what_is_over_budget_is_said_with_the_biggest_tiles() -> None:
    text = GEMM.replace("num_stages=3", "num_stages=4").replace("(64, 32)", "(64, 2048)").replace(
        "(32, 64)", "(2048, 64)"
    )  # fmt: skip
    found = only(text, "cuda:sm_86")
    assert "TL406" in [d.code for d in found.diagnostics]
    (budget,) = found.budgets
    assert budget.shared > (budget.limit or 0)
    assert "OVER BUDGET" in budget_line(budget)


def test_without_a_target_an_ordinary_gpu_stands_in_and_nothing_is_refused() -> None:
    found = only(GEMM.replace("(64, 32)", "(64, 4096)"))
    assert found.nominal and found.target == "cuda:sm_80"
    assert found.diagnostics == ()


def test_the_values_a_file_gives_are_assumed_and_named() -> None:
    text = (ROOT / "examples" / "quickstart.py").read_text()
    (found,) = looked_into(text, "cuda:sm_80").known.values()
    assert ("M", "1024", "its argument parser") in found.insight.assumed
    analysis = analysis_of(text)
    (kernel,) = keys_of(analysis.kernels).values()
    assert set(kernel.open_names) >= {"M", "N", "K"}


def test_a_kernel_with_an_error_is_not_looked_into() -> None:
    found = only(GEMM.replace("T.clear(C_l)", "T.clear(missing)"), "cuda:sm_80")
    assert found.failure == "the kernel has errors"


def test_another_definition_may_be_half_written() -> None:
    text = kernel_text(GEMM) + "\n\ndef other():\n    T.copy(A[\n"
    from tilelang_lsp.insight import insight
    from tilelang_lsp.options import Options

    found = insight(text, "kernel.py", "main", 5, Options(targets=("cuda:sm_80",)))
    assert found.budgets and not found.failure


def hovered(text: str, target: str | None = None) -> str:
    source = kernel_text(text.replace("$0", ""))
    found = ask(hover.FEATURE, text, insights=looked_into(source, target))
    return "" if found is None else found.markdown


@pytest.mark.parametrize(
    ("at", "says"),
    [
        ("A_s = T", ("**layout**", "64-byte swizzle", "3 versions of 4 KiB", " 0  ")),
        ("C_l = T", ("32 elements in each thread", "32 registers", "0:0")),
        ("gemm(A_s", ("**mma m16n8k16**", "`ldmatrix_x4`")),
        ("copy(A[", ("**cp.async 16 B**",)),
        ("main(A", ("24576 of 166912 bytes", "6 blocks", "`B_s` 3 stages × 4 KiB")),
        ("A[row, k", ("`A[0…255, 0…255]` of (256, 256)",)),
        ("row = by", ("from 0 to 192",)),
    ],
)
def test_hovers_say_all_of_it(at: str, says: tuple[str, ...]) -> None:
    shown = hovered(GEMM.replace(at, f"$0{at}", 1), "cuda:sm_80")
    for words in says:
        assert words in shown


def lenses(text: str, target: str | None = None) -> list[str]:
    source = kernel_text(text)
    marked = text.rstrip() + "\n    # $0"
    found = ask(code_lenses.FEATURE, marked, insights=looked_into(source, target), uri="file:///k")
    return [lens.title for lens in found]


def test_lenses_of_a_kernel() -> None:
    assert lenses(GEMM, "cuda:sm_80") == [
        "shared 24 KiB of 163 KiB · 128 threads · 32+ registers · 6 blocks an SM, 37 % occupancy",
        "compile",
        "run on the emulator",
        "trace",
        "no target",
    ]


def test_a_lens_names_what_was_assumed_and_what_is_open() -> None:
    text = """
    # tilelang: set block=64
    def factory(block, depth):
        @T.prim_func
        def main(A: T.Tensor((128,), "int8")):
            with T.Kernel(depth) as bx:
                s = T.alloc_shared((block,), "int8")
        return main
    """
    assert lenses(text)[1] == (
        "assumes block = 64 (a comment in the file); open: depth; "
        "as on cuda:sm_80: no target is set"
    )


def test_a_lens_names_where_each_value_is_from() -> None:
    """The editor's come before the file's comment, that before the project's."""
    text = kernel_text("""
    # tilelang: set M=2, K=5, J=6, L=8
    def factory(M, N, K, J, L):
        @T.prim_func
        def main(A: T.Tensor((M, N, K, J, L), "int8")):
            with T.Kernel(M) as bx:
                T.clear(A)
        return main
    """)
    options = Options({"M": 1}, ("cuda:sm_80",), {"M": 3, "N": 4})
    (kernel,) = analyse(text, PATH, options).kernels
    found = insight(text, PATH, kernel.name, kernel.span.line, options)
    assert assumed_line(kernel, found.assumed, False, found) == (
        "assumes M = 1 (the editor's settings), N = 4 (pyproject.toml), "
        "K = 5, J = 6 (a comment in the file) and 1 more"
    )


@pytest.mark.parametrize(
    ("body", "label"),
    [
        ("for i, j in T.Parallel(16, 8 * 4): C[i, j] = 0", " 16 × 32"),
        ("for i in T.serial(n): T.clear(C)", None),
        ("for i in T.serial(2 * 4): T.clear(C)", " 8 iterations"),
        ("for i in T.serial(8): T.clear(C)", None),
        ("for i in T.unroll(T.ceildiv(100, 32)): T.clear(C)", " 4 iterations"),
    ],
)
def test_extents_of_loops(body: str, label: str | None) -> None:
    analysis = analysis_of(kernel_text(in_launch(body)))
    found = [f.label for f in analysis.facts if f.kind == "loops"]
    assert found == ([] if label is None else [label])


def test_the_cause_of_a_layout_can_be_clicked() -> None:
    source = kernel_text(GEMM)
    found = hints(analysis_of(source), looked_into(source, "cuda:sm_80").facts)
    (hint,) = [h for h in found if h.label == " 32/thread"]
    assert hint.target is not None
    assert "T.gemm" in source.split("\n")[hint.target.line - 1]


def test_what_was_known_before_a_statement_came_is_looked_into_again() -> None:
    """Nobody knows where things went that lie in macros and constants."""
    kept = Insights()
    kept.put("digest", Placed(Insight("main", 3, "cpu", nominal=False), (1, 3)))
    assert kept.get("digest", (1, 8)) is not None
    assert kept.get("digest", (1, 3, 8)) is None
