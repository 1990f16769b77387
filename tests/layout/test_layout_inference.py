"""Inference: what ops demand together, what is chosen, converted and refused."""

from __future__ import annotations

import pytest

from tilelang.layout import Fragment, Layout, make_swizzled_layout
from tilelang.layout.atoms import find_atoms
from tilelang.layout.constraints import (
    Access,
    Constraint,
    Divides,
    Equals,
    Fixed,
    Memory,
    Mode,
    OneOf,
    Option,
    Origin,
    Problem,
    Reduced,
    Variable,
    fragment,
    identity,
    loop,
    shared,
)
from tilelang.layout.gemm import (
    GemmWarpPolicy,
    WarpGrid,
    accumulator,
    operand_a,
    partition_warps,
)
from tilelang.layout.loops import loop_layout
from tilelang.layout.solution import Solution, Via
from tilelang.layout.solve import solve
from tilelang.layout.swizzle import Tile
from tilelang_diagnostics.model import Span

ATOM = find_atoms("float16", "float32", 80)[0]


def op(text: str, line: int) -> Origin:
    return Origin(text, Span("k.py", line, 1, line, 20))


def lines(origins: tuple[Origin, ...]) -> list[int]:
    return [origin.span.line for origin in origins if origin.span is not None]


def run(*constraints: Constraint, threads: int = 128) -> Solution:
    return solve(Problem(threads, constraints))


def two_gemms(
    m: int, n: int, threads: int, policy: GemmWarpPolicy, convertible: bool = True
) -> Solution:
    """acc_s = Q @ K; scores_max = max(acc_s); cast = exp2(acc_s - max); acc_o = cast @ V."""
    grid = partition_warps(m, n, threads // 32, policy)
    assert isinstance(grid, WarpGrid)
    acc = fragment("acc_s", (m, n), 32)
    cast = fragment("acc_s_cast", (m, n), 16)
    best = fragment("scores_max", (m,), 32)
    nest = loop("i, j", (m, n))
    row = Layout((m, n), lambda i, j: (i,))
    return run(
        Fixed(acc, accumulator(m, n, grid, ATOM), op("T.gemm(Q, K, acc_s)", 1)),
        Reduced(best, acc, 1, op("T.reduce_max(acc_s, scores_max)", 2)),
        Access(nest, acc, identity((m, n)), Mode.READ, op("acc_s[i, j]", 3)),
        Access(nest, best, row, Mode.READ, op("scores_max[i]", 4)),
        Access(nest, cast, identity((m, n)), Mode.WRITE, op("cast[i, j]", 5), convertible),
        Fixed(cast, operand_a(m, n, grid, ATOM), op("T.gemm(cast, V, acc_o)", 6)),
        threads=threads,
    )


def test_attention_with_warps_along_rows_needs_nothing() -> None:
    solution = two_gemms(64, 64, 128, GemmWarpPolicy.FullRow)
    assert (solution.conflicts, solution.conversions) == ((), ())
    shown = {str(var): str(layout) for var, layout in solution.layouts.items()}
    assert shown == {
        "acc_s": "thread=i//16*32 + i%8*4 + j//2%4",
        "acc_s_cast": "thread=i//16*32 + i%8*4 + j//2%4",
        "scores_max": "thread=i//16*32 + i%8*4 + rep, slot=i//8%2",
        "loop i, j": "thread=i//16*32 + i%8*4 + j//2%4",
    }


@pytest.mark.parametrize(
    ("m", "threads", "policy"),
    [(64, 256, GemmWarpPolicy.FullRow), (64, 128, GemmWarpPolicy.Square)],
)
def test_attention_with_split_columns_converts_the_operand(
    m: int, threads: int, policy: GemmWarpPolicy
) -> None:
    """tile-ai/tilelang#1165: 64 rows for 8 warps."""
    solution = two_gemms(m, 64, threads, policy)
    assert solution.ok
    (conversion,) = solution.conversions
    assert (conversion.var.name, conversion.via) == ("acc_s_cast", Via.SHARED)
    assert str(conversion) == "acc_s_cast goes through shared memory for cast[i, j] at k.py:5:1"
    assert lines(conversion.origins) == [1, 3, 5, 6]
    assert conversion.cost > 0


def test_without_a_legal_conversion_it_is_a_conflict_that_names_both_gemms() -> None:
    solution = two_gemms(64, 64, 256, GemmWarpPolicy.FullRow, convertible=False)
    (conflict,) = solution.conflicts
    assert lines(conflict.origins) == [1, 3, 5, 6]
    assert conflict.var.name == "acc_s_cast"
    assert str(conflict) == (
        "acc_s_cast cannot have one layout for all its uses: "
        "thread=rep*128 + i//16*32 + i%8*4 + j//2%4 or t=j//32*128 + i//16*32 + i%8*4 + j//2%4"
    )
    assert str(conflict.example) == "element (0, 0) lives in thread 0, 128, used in 0"
    assert solution.layouts[conflict.var] == conflict.have


def test_why_leads_to_the_op_that_decided() -> None:
    solution = two_gemms(64, 64, 128, GemmWarpPolicy.FullRow)
    best = next(var for var in solution.layouts if var.name == "scores_max")
    assert str(solution.why(best)) == (
        "scores_max: thread=i//16*32 + i%8*4 + rep, slot=i//8%2\n"
        "  from acc_s, by T.reduce_max(acc_s, scores_max) at k.py:2:1\n"
        "acc_s: thread=i//16*32 + i%8*4 + j//2%4\n"
        "  required by T.gemm(Q, K, acc_s) at k.py:1:1"
    )
    assert lines(solution.why(best).origins) == [2, 1]


def test_a_scatter_by_quotient_runs_where_the_target_lives() -> None:
    """tile-ai/tilelang#1374: A[i, j // 32] += B[i, j] with A (16, 14), B (16, 448)."""
    a, b = fragment("A", (16, 14), 32), fragment("B", (16, 448), 32)
    nest = loop("i, j", (16, 448))
    target = Layout((16, 448), lambda i, j: (i, j // 32))
    solution = run(
        Access(nest, a, target, Mode.UPDATE, op("A[i, j // 32]", 1)),
        Access(nest, b, identity((16, 448)), Mode.READ, op("B[i, j]", 2)),
    )
    assert (solution.conflicts, solution.conversions) == ((), ())
    where = solution.layouts[nest]
    assert isinstance(where, Fragment)
    assert {t for j in range(32) for t, _ in where.owners(3, j)} == {where.thread(3, 0)}


def test_a_scatter_from_pinned_data_is_a_conflict() -> None:
    a, b = fragment("A", (16, 14), 32), fragment("B", (16, 448), 32)
    nest = loop("i, j", (16, 448))
    spread = loop_layout((16, 448), 128)
    solution = run(
        Fixed(nest, spread, op("loop_layout", 1), convertible=False),
        Access(nest, a, Layout((16, 448), lambda i, j: (i, j // 32)), Mode.UPDATE, op("A[...]", 2)),
        Access(nest, b, identity((16, 448)), Mode.READ, op("B[i, j]", 3)),
    )
    (conflict,) = solution.conflicts
    assert lines(conflict.origins) == [1, 2]


@pytest.mark.parametrize(("width", "idle"), [(128, 0), (192, 64), (229, 27), (257, 127)])
def test_any_width_has_a_layout(width: int, idle: int) -> None:
    """tile-ai/tilelang#2398."""
    tile, nest = fragment("x", (width,), 32), loop("i", (width,))
    solution = run(Access(nest, tile, identity((width,)), Mode.WRITE, op("x[i]", 1)))
    assert solution.ok
    layout = solution.layouts[tile]
    assert isinstance(layout, Fragment)
    assert layout.holes(128) == idle


def test_a_neighbour_read_crosses_threads() -> None:
    """tile-ai/tilelang#3005: fa[i] and fa[(i + 1) % N]."""
    n = 128
    tile, nest = fragment("fa", (n,), 32), loop("i", (n,))
    neighbour = Layout((n,), lambda i: ((i + 1) % n,))
    own = Access(nest, tile, identity((n,)), Mode.READ, op("fa[i]", 1), convertible=False)
    other = Access(nest, tile, neighbour, Mode.READ, op("fa[(i + 1) % N]", 2))
    one_each = Fixed(tile, loop_layout((n,), n), op("T.annotate_layout", 3), convertible=False)
    (conversion,) = run(own, other, one_each).conversions
    assert (conversion.via, lines(conversion.origins)) == (Via.SHARED, [1, 2])
    # Left to itself, the solver packs the tile into one warp, which can shuffle.
    (cheaper,) = run(own, other).conversions
    assert (cheaper.via, cheaper.cost < conversion.cost) == (Via.WARP, True)
    strict = run(
        own,
        one_each,
        Access(nest, tile, neighbour, Mode.READ, op("fa[(i + 1) % N]", 2), convertible=False),
    )
    (conflict,) = strict.conflicts
    assert lines(conflict.origins) == [1, 2]
    assert str(conflict.example) == "element (1,) lives in thread 1, used in 0"


def test_a_smaller_loop_does_not_pin_a_buffer() -> None:
    """tile-ai/tilelang#2957: T.Parallel(100), then T.Parallel(256) on a (256,) fragment."""
    tile, small, large = fragment("x", (256,), 32), loop("i", (100,)), loop("k", (256,))
    solution = run(
        Access(small, tile, Layout((100,), lambda i: (i,)), Mode.WRITE, op("x[i]", 1)),
        Access(large, tile, identity((256,)), Mode.UPDATE, op("x[k]", 2)),
    )
    assert (solution.conflicts, solution.conversions) == ((), ())
    only_small = run(Access(small, tile, Layout((100,), lambda i: (i,)), Mode.WRITE, op("x[i]", 1)))
    assert only_small.ok
    assert only_small.layouts[tile].shape == (256,)


def test_sibling_reads_of_an_accumulator_agree() -> None:
    """tile-ai/tilelang#2311: acc[i, 2j] and acc[i, 2j + 1] lie in one thread."""
    acc, nest = fragment("acc", (16, 64), 32), loop("i, j", (16, 32))
    solution = run(
        Fixed(acc, accumulator(16, 64, WarpGrid(1, 4), ATOM), op("T.gemm", 1)),
        Access(nest, acc, Layout((16, 32), lambda i, j: (i, 2 * j)), Mode.READ, op("a", 2)),
        Access(nest, acc, Layout((16, 32), lambda i, j: (i, 2 * j + 1)), Mode.READ, op("b", 3)),
    )
    assert (solution.conflicts, solution.conversions) == ((), ())


def test_two_gemms_that_split_one_accumulator_differently() -> None:
    """tile-ai/tilelang#2547: the second gemm converts there and back, or both are named."""
    acc = fragment("acc_o", (64, 64), 32)
    rows = accumulator(64, 64, WarpGrid(4, 1), ATOM)
    square = accumulator(64, 64, WarpGrid(2, 2), ATOM)
    converted = run(
        Fixed(acc, rows, op("T.gemm(A, B, acc_o)", 1)),
        Fixed(acc, square, op("T.gemm(C, D, acc_o)", 2)),
    )
    (conversion,) = converted.conversions
    assert lines(conversion.origins) == [1, 2]
    assert (conversion.source, conversion.target) == (rows, square)
    annotated = run(
        Fixed(acc, rows, op("T.gemm(A, B, acc_o)", 1)),
        Fixed(acc, square, op("T.annotate_layout", 2), convertible=False),
    )
    assert annotated.layouts[acc] == square
    strict = run(
        Fixed(acc, rows, op("a", 1), convertible=False),
        Fixed(acc, square, op("b", 2), convertible=False),
    )
    assert lines(strict.conflicts[0].origins) == [1, 2]


def test_other_slots_of_the_same_threads_are_moves() -> None:
    tile = fragment("x", (4, 2), 32)
    solution = run(
        Fixed(tile, Fragment((4, 2), lambda i, j: (i, j)), op("a", 1)),
        Fixed(tile, Fragment((4, 2), lambda i, j: (i, 1 - j)), op("b", 2)),
    )
    (conversion,) = solution.conversions
    assert conversion.via is Via.REGISTERS
    assert str(conversion.example) == "element (0, 0) lives in slot 0, used in 1"


def test_free_inference_prefers_few_registers() -> None:
    """A (128, 4) tile that reads S[j]: 4 registers a thread, not a copy of the tile in each."""
    tile, row, nest = fragment("A", (128, 4), 32), fragment("S", (4,), 32), loop("i, j", (128, 4))
    solution = run(
        Access(nest, tile, identity((128, 4)), Mode.UPDATE, op("A[i, j]", 1)),
        Access(nest, row, Layout((128, 4), lambda i, j: (j,)), Mode.READ, op("S[j]", 2)),
    )
    assert (solution.conflicts, solution.conversions) == ((), ())
    layouts = {var.name: layout for var, layout in solution.layouts.items()}
    assert isinstance(layouts["A"], Fragment)
    assert isinstance(layouts["S"], Fragment)
    assert layouts["A"].registers(32) == 4
    assert layouts["S"].registers(32) == 1


@pytest.mark.parametrize(
    ("bits", "strides", "limit", "expected"),
    [
        (16, (64, 1), None, "thread=i%16*8 + j//8, slot=i//16*8 + j%8"),
        (32, (64, 1), None, "thread=i%8*16 + j//4, slot=i//8*4 + j%4"),
        (16, (64, 1), 2, "thread=i%4*32 + j//2, slot=i//4*2 + j%2"),
        (16, (1, 128), None, "thread=j%8*16 + i//8, slot=j//8*8 + i%8"),
    ],
)
def test_copies_are_wide_and_coalesced(
    bits: int, strides: tuple[int, int], limit: int | None, expected: str
) -> None:
    """The last case is a column-major tensor: threads run along its unit stride."""
    nest = loop("i, j", (128, 64))
    solution = run(Memory(nest, strides, bits, op("T.copy", 1), limit))
    assert str(solution.layouts[nest]) == expected


def test_a_row_is_dealt_out_among_its_owners() -> None:
    """A loop over (i, j) that reads a reduction S[i] runs in the threads that know S[i]."""
    acc, total = fragment("acc", (64, 64), 32), fragment("S", (64,), 32)
    nest = loop("i, j", (64, 32))
    solution = run(
        Fixed(acc, accumulator(64, 64, WarpGrid(4, 1), ATOM), op("T.gemm", 1)),
        Reduced(total, acc, 1, op("T.reduce_sum", 2)),
        Access(nest, total, Layout((64, 32), lambda i, j: (i,)), Mode.READ, op("S[i]", 3)),
        Memory(nest, (32, 1), 32, op("O[i, j]", 4)),
    )
    assert (solution.conflicts, solution.conversions) == ((), ())
    layout = solution.layouts[nest]
    assert isinstance(layout, Fragment)
    assert layout.slots == 16
    assert layout.vector_width() == 4
    assert solution.reasons[nest].note == "4 wide among the owners of S"


def test_a_loop_layout_of_the_user_is_honoured() -> None:
    mine = Fragment((128, 4), lambda i, j, rep: (i % 64 + 64 * rep, i // 64 * 4 + j), replicate=2)
    nest, tile = loop("i, j", (128, 4)), fragment("x", (128, 4), 32)
    solution = run(
        Access(nest, tile, identity((128, 4)), Mode.WRITE, op("x[i, j]", 2)),
        Fixed(nest, mine, op("loop_layout=", 1), convertible=False),
    )
    assert solution.layouts[nest] == solution.layouts[tile] == mine


def test_serial_loops_inside_are_part_of_the_index() -> None:
    """for i in T.Parallel(64): for k in range(4): x[i] += y[i, k]"""
    x, y, nest = fragment("x", (64,), 32), fragment("y", (64, 4), 32), loop("i", (64,))
    inner = Layout((64, 4), lambda i, k: (i, k))
    good = run(
        Access(nest, x, identity((64,)), Mode.UPDATE, op("x[i]", 1)),
        Access(nest, y, inner, Mode.READ, op("y[i, k]", 2)),
    )
    assert (good.conflicts, good.conversions) == ((), ())
    spread = run(
        Fixed(y, loop_layout((64, 4), 128), op("y", 3), convertible=False),
        Access(nest, x, identity((64,)), Mode.UPDATE, op("x[i]", 1)),
        Access(nest, y, inner, Mode.READ, op("y[i, k]", 2)),
    )
    assert [c.var.name for c in spread.conversions] == ["y"]


def test_an_index_that_is_data_needs_every_element_everywhere() -> None:
    table, out, nest = fragment("table", (8,), 32), fragment("y", (128,), 32), loop("i", (128,))
    free = run(
        Access(nest, table, None, Mode.READ, op("table[idx[i]]", 1)),
        Access(nest, out, identity((128,)), Mode.WRITE, op("y[i]", 2)),
    )
    assert (free.conflicts, free.conversions) == ((), ())
    everywhere = free.layouts[table]
    assert isinstance(everywhere, Fragment)
    assert everywhere.replicas == 128
    pinned = run(
        Fixed(table, Fragment((8,), lambda i: (i, 0)), op("annotation", 3), convertible=False),
        Fixed(nest, loop_layout((128,), 128), op("loop_layout=", 4), convertible=False),
        Access(nest, table, None, Mode.READ, op("table[idx[i]]", 1)),
        Access(nest, out, identity((128,)), Mode.WRITE, op("y[i]", 2)),
    )
    assert [c.via for c in pinned.conversions] == [Via.SHARED]
    written = run(
        Fixed(table, Fragment((8,), lambda i: (i, 0)), op("annotation", 3), convertible=False),
        Access(nest, table, None, Mode.WRITE, op("table[idx[i]]", 1)),
    )
    assert written.ok
    assert written.reasons[nest].note == "all of it in every thread"
    apart = run(
        Fixed(table, Fragment((8,), lambda i: (i, 0)), op("annotation", 3), convertible=False),
        Fixed(nest, loop_layout((128,), 128), op("loop_layout=", 4), convertible=False),
        Access(nest, table, None, Mode.WRITE, op("table[idx[i]]", 1)),
    )
    assert [lines(c.origins) for c in apart.conflicts] == [[4, 1]]


def test_guarded_accesses_demand_nothing_outside() -> None:
    """if i < 100: x[i] = ... in a loop over 128."""
    tile, nest = fragment("x", (100,), 32), loop("i", (128,))
    solution = run(
        Fixed(tile, loop_layout((100,), 128), op("annotation", 1), convertible=False),
        Access(nest, tile, Layout((128,), lambda i: (i,)), Mode.WRITE, op("x[i]", 2)),
    )
    assert (solution.conflicts, solution.conversions) == ((), ())


def test_shared_tiles_take_the_cheapest_common_option() -> None:
    tile = shared("A_shared", (64, 64), 16)
    plain, swizzled = Layout.row_major((64, 64)), make_swizzled_layout(Tile((64, 64), 16))
    column = Layout((64, 64), lambda i, j: j * 64 + i)
    both = (Option(plain, 7.0, "8-way conflicts"), Option(swizzled, 0.0, "conflict-free"))
    solution = run(
        OneOf(tile, both, op("T.gemm", 1)),
        OneOf(tile, (Option(plain, 0.0), Option(swizzled, 1.0)), op("T.copy", 2)),
    )
    assert solution.layouts[tile] == swizzled
    assert "conflict-free" in str(solution.why(tile))
    apart = run(OneOf(tile, both, op("a", 1)), OneOf(tile, (Option(column, 0.0),), op("b", 2)))
    (conflict,) = apart.conflicts
    assert lines(conflict.origins) == [1, 2]
    annotated = run(
        OneOf(tile, both, op("T.gemm", 1)),
        Fixed(tile, column, op("T.annotate_layout", 2), convertible=False),
    )
    assert annotated.layouts[tile] == column
    assert lines(annotated.conflicts[0].origins) == [1, 2]


def test_two_annotations_of_one_shared_tile() -> None:
    tile = shared("A_shared", (64, 64), 16)
    solution = run(
        Fixed(tile, Layout.row_major((64, 64)), op("a", 1)),
        Fixed(tile, make_swizzled_layout(Tile((64, 64), 16)), op("b", 2)),
    )
    (conflict,) = solution.conflicts
    assert str(conflict.example) == "element (1, 0) lives in offset 64, used in 72"
    assert str(conflict).endswith(": row-major 64x64 or (i*64 + j) ^ i%8*8")


def test_views_share_their_storage() -> None:
    tile, view = shared("A", (64, 64), 16), shared("A_flat", (4096,), 16)
    swizzled = make_swizzled_layout(Tile((64, 64), 16))
    index = Layout((4096,), lambda p: (p // 64, p % 64))
    down = run(
        Fixed(tile, swizzled, op("T.annotate_layout", 1)),
        Equals(view, tile, op("T.reshape", 2), index),
    )
    assert down.layouts[view] == swizzled.reshape((4096,))
    up = run(
        Fixed(view, swizzled.reshape((4096,)), op("T.annotate_layout", 1)),
        Equals(view, tile, op("T.reshape", 2), index),
    )
    assert up.layouts[tile] == swizzled


def test_equal_fragments_through_a_transposition() -> None:
    left, right = fragment("x", (64, 8), 32), fragment("xt", (8, 64), 32)
    base = loop_layout((64, 8), 128)
    turned = Layout((64, 8), lambda i, j: (j, i))
    solution = run(Fixed(left, base, op("a", 1)), Equals(left, right, op("T.transpose", 2), turned))
    assert solution.layouts[right] == base.permute((1, 0))
    back = run(
        Fixed(right, base.permute((1, 0)), op("a", 1)),
        Equals(left, right, op("T.transpose", 2), turned),
    )
    assert back.layouts[left] == base


def test_a_reduction_into_pinned_threads() -> None:
    acc, out = fragment("acc", (64, 64), 32), fragment("out", (64,), 32)
    solution = run(
        Fixed(acc, accumulator(64, 64, WarpGrid(4, 1), ATOM), op("T.gemm", 1)),
        Fixed(out, loop_layout((64,), 128), op("annotation", 2), convertible=False),
        Reduced(out, acc, 1, op("T.reduce_sum", 3)),
    )
    (conversion,) = solution.conversions
    assert (conversion.var, conversion.via) == (out, Via.SHARED)
    assert lines(conversion.origins) == [1, 2, 3]


def test_an_extent_the_instruction_cannot_split() -> None:
    tile = shared("A_shared", (64, 16), 8)
    solution = run(Divides(tile, 1, 32, op("T.gemm", 1), "the K of m16n8k32"))
    (conflict,) = solution.conflicts
    assert str(conflict) == (
        "extent 16 of dimension 1 of A_shared is no multiple of the K of m16n8k32 32"
    )
    assert run(Divides(tile, 0, 32, op("T.gemm", 1))).ok


def test_running_out_of_fuel_is_a_value() -> None:
    tile, nest = fragment("x", (64,), 32), loop("i", (64,))
    access = Access(nest, tile, identity((64,)), Mode.WRITE, op("x[i]", 1))
    solution = solve(Problem(128, (access,)), fuel=1)
    assert [str(c) for c in solution.conflicts] == ["layout inference took more than 1 steps"]


def test_variables_nothing_speaks_about() -> None:
    lonely = fragment("x", (64, 8), 16)
    solution = solve(Problem(128, (), (lonely, shared("s", (8, 8), 16))))
    assert {str(v): str(x) for v, x in solution.layouts.items()} == {
        "s": "row-major 8x8",
        "x": "thread=i*2 + j//4, slot=j%4",
    }


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Fixed(fragment("x", (4,), 32), Layout.row_major((4,)), op("a", 1)),
            "takes a Frag",
        ),
        (lambda: Fixed(shared("x", (4,), 32), Layout.row_major((8,)), op("a", 1)), "does not fit"),
        (
            lambda: Access(
                loop("i", (4,)), fragment("x", (4, 4), 32), identity((4,)), Mode.READ, op("a", 1)
            ),
            "has 2 indices",
        ),
        (
            lambda: Reduced(fragment("o", (3,), 32), fragment("x", (4, 4), 32), 1, op("a", 1)),
            "no result of this reduction",
        ),
        (lambda: Memory(loop("i", (4,)), (1, 1), 32, op("a", 1)), "one stride per loop dimension"),
        (lambda: Variable("x", fragment("y", (4,), 32).kind, (4,), 0), "at least one bit"),
    ],
)
def test_malformed_demands_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises((TypeError, ValueError), match=message):
        make()
