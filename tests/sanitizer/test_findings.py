"""What compute-sanitizer said on an H200, and what we make of it.

`recorded` holds the XML it wrote for the kernels of `planted.py`, with the source and the manifest
they were compiled from at that time; reports of many threads are cut to the first and the last.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tilelang.codegen.cuda_artifact import CudaArtifact
from tilelang.runtime.sanitizer_findings import findings
from tilelang.runtime.sanitizer_report import Place, read_report
from tilelang_diagnostics import SourceMap, render_text
from tilelang_diagnostics.model import Diagnostic

RECORDED = Path(__file__).parent / "recorded"


def artifact_of(name: str) -> CudaArtifact:
    manifest = json.loads((RECORDED / f"{name}.json").read_text())
    return CudaArtifact.from_files(manifest, lambda _: (RECORDED / f"{name}.cu").read_bytes())


def findings_of(name: str) -> tuple[Diagnostic, ...]:
    addresses = json.loads((RECORDED / f"{name}.addresses.json").read_text())
    records = read_report(RECORDED / f"{name}.xml")
    printed = RECORDED / f"{name}.txt"
    return findings(
        records, artifact_of(name), addresses, printed.read_text() if printed.exists() else ""
    )


def text_of(found: tuple[Diagnostic, ...]) -> str:
    source = (Path(__file__).parent / "planted.py").read_text()
    text = render_text(found, SourceMap({"planted.py": source}), 100, summary=False)
    return text.rstrip("\n") + "\n"


EXPECTED = {
    "past_the_end": """\
error[TL730]: a write of 4 bytes past the end of `B`: element 1000 of 1000
  --> planted.py:18:13
   |
18 |             B[bx * TILE + i] = T.if_then_else(bx * TILE + i < N, A[bx * TILE + i], 0.0)
   |             ^^^^^^^^^^^^^^^^
   |             |
   |             became `B[bx * 256 + i] = bx * 256 + i < 1000 ? A[bx * 256 + i] : 0.0f;`
   = note: thread (232, 0, 0) of block (3, 0, 0), and 11 more
   = note: address 0x7f1ae6801fa0
   = help: compare the index with the size of the tensor before the access; accesses through
           T.access_ptr, foreign code and `tl.disable_safe_memory_access` are not guarded
""",
    "reverse": """\
error[TL731]: a write and a read of `tile` by different threads of `reverse`, in no order
  --> planted.py:34:9
   |
34 |         tile[t] = A[t]
   |         ^^^^^^^ the write: became `tile[tx] = A[tx];`
35 |         B[t] = tile[TILE - 1 - t]
   |         ---- the read: became `B[tx] = tile[255 - tx];`
   = note: 1024 pairs of accesses meet
   = help: T.sync_threads() between the two; where the compiler places barriers itself, foreign code
           or a wrong `access_type` of T.access_ptr hides an access from it
""",
    "half_written": """\
error[TL732]: memory is read that nothing has written, in `B`: element 96 of 256
  --> planted.py:42:13
   |
42 |             B[i] += A[i]
   |             ^^^^^^^^^^^^ became `B[i] += A[i];`
   = note: thread (96, 0, 0) of block (0, 0, 0), and 11 more
   = help: write every element first (T.clear, T.fill), or pass a tensor that holds values instead
           of leaving it to out_idx
""",
    "negative": """\
error[TL722]: an assertion failed in `negative`: an input below -100
  --> planted.py:49:13
   |
49 |             T.device_assert(A[i] >= -100.0, "an input below -100")
   |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
   |             |
   |           became `tl::device_assert(A[i] >= -100.0f, "an input below -100", "planted.py", 49);`
   = note: thread (0, 0, 0) of block (0, 0, 0), and 11 more
   = help: look at the values the condition is about, or pass other arguments
""",
    "divergent": """\
error[TL510]: a barrier of `reverse` that not all of its threads reach (divergent thread(s) in warp)
  --> planted.py:35:9
   |
35 |         B[t] = tile[TILE - 1 - t]
   |         ^^^^ became `if (tx < 100) tl::sync_threads();`
   = note: thread (96, 0, 0) of block (0, 0, 0), and 3 more
   = help: move the barrier out of the branch or loop that only some threads run
""",
    "far_away": """\
error[TL730]: a write of 4 bytes past the end of `A`: element 1099511627776 of 1000
  --> planted.py:26:13
   |
26 |             A[i * step] = 1.0
   |             ^^^^^^^^^^^ became `A[i * step] = 1.0f;`
   = note: thread (1, 0, 0) of block (0, 0, 0), and 11 more
   = note: address 0x839c90800000
   = help: compare the index with the size of the tensor before the access; accesses through
           T.access_ptr, foreign code and `tl.disable_safe_memory_access` are not guarded
""",
}  # fmt: skip


@pytest.mark.parametrize("name", EXPECTED)
def test_a_planted_mistake_is_told_at_its_line(name: str) -> None:
    assert text_of(findings_of(name)) == EXPECTED[name]


def test_a_place_in_a_header_leads_to_the_kernel() -> None:
    records = read_report(RECORDED / "in_a_header.xml")
    assert records[0].places == (
        Place("mbarrier_arrive", "mbarrier.h", 26), Place("matmul_kernel", "matmul.cu", 41)
    )  # fmt: skip
    assert (records[0].thread, records[0].block) == ((160, 0, 0), (2, 0, 0))


def test_errors_of_driver_calls_are_not_about_the_kernel() -> None:
    """The process that makes the call reports them itself, under their codes."""
    text = (RECORDED / "in_a_header.xml").read_text()
    assert text.count("<kind>Api</kind>") == 3
    assert {r.kind for r in read_report(RECORDED / "in_a_header.xml")} == {"exception"}


def test_with_line_directives_places_are_python_lines() -> None:
    (record,) = read_report(RECORDED / "reverse.xml")
    moved = replace(
        record, places=(Place("reverse_kernel", "planted.py", 34),),
        others=(Place("reverse_kernel", "planted.py", 35),),
    )  # fmt: skip
    (found,) = findings((moved,), artifact_of("reverse"), {})
    assert text_of((found,)) == EXPECTED["reverse"]


def test_a_line_that_is_nobodys() -> None:
    (record, *_) = read_report(RECORDED / "past_the_end.xml")
    lost = replace(record, places=(Place("library", "other.cu", 7),))
    (found,) = findings((lost,), artifact_of("past_the_end"), {"A": (0x1000, 64)})
    assert found.span is None
    assert found.notes[-1] == "seen in library, line 7 of other.cu"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": "misaligned"},
         "a write of 4 bytes at an address that is no multiple of 4"),
        ({"space": "shared", "address": 16}, "a write of 4 bytes outside of `tile` in `reverse`"),
    ],
)  # fmt: skip
def test_other_wrong_accesses(change: dict[str, Any], message: str) -> None:
    (record, *_) = read_report(RECORDED / "past_the_end.xml")
    moved = replace(record, places=(Place("reverse_kernel", "reverse.cu", 8),), **change)
    (found,) = findings((moved,), artifact_of("reverse"), {})
    assert (found.code, found.message) == ("TL730", message)


@pytest.mark.parametrize("text", ["", "no xml", "<ComputeSanitizerOutput><record>"])
def test_a_report_that_was_cut_off(text: str, tmp_path: Path) -> None:
    (tmp_path / "report.xml").write_text(text)
    with pytest.raises(ValueError, match=r"report\.xml"):
        read_report(tmp_path / "report.xml")
