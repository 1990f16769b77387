"""A command line is refused before anything is compiled or written."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from tilelang.cli import main
from tilelang.options import child_environment
from tilelang_diagnostics import Diagnostic, Severity, Span, to_json
from tilelang_trace.model import Failure, Line, Step, Trace
from tilelang_trace.ndjson import dump

ROOT = Path(__file__).resolve().parents[2]
KERNEL = """
import tilelang.language as T

open("imported", "w").close()


@T.prim_func
def main(A: T.Tensor((128, 1024), "float32"), B: T.Tensor((128, 1024), "float32")):
    with T.Kernel(1, threads=128) as bx:
        s = T.alloc_shared((128, 1024), "float32")
        T.copy(A, s)
        T.copy(s, B)
"""
SMALL = Trace("main", "k.py", "cpu", (Step("emit", (Line("x"),)), Step("tidy", (Line("y"),))))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k.py").write_text(KERNEL)
    (tmp_path / "old.ndjson").write_text("".join(dump(SMALL)))
    (tmp_path / "mid.py").write_text("# tilelang IR 1: main\n# after guard_bounds\n")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("k.py --json old.ndjson --pass zzz", "no pass is called 'zzz'"),
        ("k.py --json old.ndjson --pass guard_bound", "did you mean `guard_bounds`?"),
        ("k.py --json old.ndjson --pass tidyy/decide", "no pass is called 'tidyy/decide'"),
        ("k.py --json old.ndjson --ir x --from zzz", "no pass is called 'zzz'"),
        ("k.py --json old.ndjson --compare none.ndjson", "cannot read none.ndjson"),
        ("k.py --json old.ndjson --html none/x.html", "cannot write 'none/x.html': there is no"),
        ("k.py --json old.ndjson --html k.py/x", "cannot write 'k.py/x': k.py is no folder"),
        ("k.py --json old.ndjson --html .", "cannot write '.': it is a folder"),
        ("k.py --html - --json old.ndjson", "only --json takes -"),
        ("k.py --ir x --source ./x", "--ir and --source would both write"),
        ("k.py --reduce x --html y", "--reduce writes its one file"),
        ("k.py --from guard_bounds", "--from says where --reproducer or --ir begins"),
        ("mid.py", "tilelang trace KERNEL.py --resume mid.py"),
        ("old.ndjson::scale", "old.ndjson is a saved trace"),
        ("old.ndjson --reduce o.py", "--reduce takes a Python file"),
        ("old.ndjson --set N=5", "--set is for a Python file"),
        ("old.ndjson --target cpu", "--target is for a Python file"),
    ],
)
def test_refused_at_once(
    command: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {p.name: p.read_text() for p in folder.iterdir()}
    assert main(["trace", *command.split()]) == 2
    assert message in " ".join(capsys.readouterr().err.split())
    assert {p.name: p.read_text() for p in folder.iterdir()} == before


def test_a_pass_of_other_targets_is_refused_before_it_is_compiled(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (folder / "old.ndjson").read_text()
    command = ["trace", "k.py", "--target", "cpu", "--json", "old.ndjson"]
    assert main([*command, "--pass", "insert_sync"]) == 2
    assert "insert_sync does not run for cpu; there are" in capsys.readouterr().err
    assert (folder / "old.ndjson").read_text() == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_told_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "old.ndjson", "--json", "/dev/full"]) == 2
    assert "cannot write /dev/full: No space left on device" in capsys.readouterr().err
    assert main(["trace", "k.py", "--target", "cpu", "--json", "/dev/full"]) == 2
    assert "cannot write /dev/full: No space left on device" in capsys.readouterr().err


def test_what_passes_refuse_is_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["trace", "k.py", "--target", "cuda:sm_80", "--pass", "tidy"]
    assert main(command) == 1
    assert "error[TL406]" in capsys.readouterr().err
    assert main(["trace", "k.py", "--target", "cuda:sm_80", "--json", "new.ndjson"]) == 1
    assert main(["trace", "new.ndjson", "--only-changed"]) == 1
    capsys.readouterr()
    assert main(["trace", "new.ndjson", "--compare", "old.ndjson"]) == 1
    assert "error[TL406]" in capsys.readouterr().err


STEP = {
    "record": "step",
    "name": "emit",
    "reason": "",
    "seconds": 0.1,
    "lines": [["x", 0, 1, 1, 1, 2]],
}
USED = {
    "record": "resources", "kernel": "k", "threads": 1, "registers": 1, "spills": 0, "stack": 0,
    "shared": 0, "blocks": 1, "counts": {},
}  # fmt: skip
SYMBOL = {"name": "s", "scope": "", "dtype": "", "shape": [], "said": {}, "span": None}
REMARK = to_json(Diagnostic("TL306", Severity.REMARK, "told", Span("k.py", 1, 1, 1, 2)))


@pytest.mark.parametrize(
    ("head", "record", "number"),
    [
        ({"kernel": 5}, {}, 1),
        ({"file": None}, {}, 1),
        ({"target": ["cpu"]}, {}, 1),
        ({"values": ["M"]}, {}, 1),
        ({"values": {"M": 5}}, {}, 1),
        ({"options": "x"}, {}, 1),
        ({"files": [5]}, {}, 1),
        ({}, STEP | {"seconds": "long"}, 2),
        ({}, STEP | {"seconds": 1e999}, 2),
        ({}, STEP | {"seconds": True}, 2),
        ({}, STEP | {"name": 5}, 2),
        ({}, STEP | {"name": "\ud800"}, 2),
        ({}, STEP | {"lines": [[5]]}, 2),
        ({}, STEP | {"lines": [["x", "0", 1, 1, 1, 2]]}, 2),
        ({}, STEP | {"lines": [["x", {"origin": "1"}]]}, 2),
        ({}, STEP | {"symbols": [SYMBOL | {"said": ["layout"]}]}, 2),
        ({}, STEP | {"symbols": [SYMBOL | {"shape": [64]}]}, 2),
        ({}, STEP | {"decisions": [{"kind": "copy", "text": 5, "why": "", "span": None}]}, 2),
        ({}, STEP | {"remarks": [REMARK | {"message": 5}]}, 2),
        ({}, {"record": "remark", "diagnostic": REMARK | {"notes": [5]}}, 2),
        ({}, {"record": "remark", "diagnostic": REMARK | {"labels": [{"span": 5}]}}, 2),
        ({}, USED | {"counts": [1]}, 2),
        ({}, USED | {"counts": {"mma": "1"}}, 2),
        ({}, USED | {"registers": 10**40}, 2),
        ({}, {"record": "source", "file": 0, "name": "k.py", "text": 5}, 2),
        ({}, {"record": "begin", "name": "tidy", "depth": 10**9}, 2),
        ({}, {"record": "program", "data": "§§"}, 2),
        ({}, {"record": "program", "data": 5}, 2),
        ({}, {"record": "binary", "file": "k.cu", "data": "hello"}, 2),
        ({}, {"record": "end", "failure": {"step": 5, "message": ""}}, 2),
    ],
)
def test_a_damaged_trace_is_told_by_its_record(
    head: dict[str, object], record: dict[str, object], number: int, folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    first = json.loads(next(dump(SMALL)))
    rows = [first | {"files": ["k.py"]} | head, record, {"record": "end", "failure": None}]
    (folder / "bad.ndjson").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["trace", "bad.ndjson", "--html", "x.html"]) == 2
    assert f"damaged trace: record {number}: " in " ".join(capsys.readouterr().err.split())


def test_a_record_that_nests_deeply(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = "[" * 200_000 + "]" * 200_000
    (folder / "bad.ndjson").write_text(next(dump(SMALL)) + f'{{"record": {deep}}}\n')
    assert main(["trace", "bad.ndjson"]) == 2
    assert "damaged trace: record 2 nests too deeply" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--reproducer", "--ir"])
def test_a_program_that_is_none(
    option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = base64.b85encode(zlib.compress(b"hello")).decode()
    (folder / "bad.ndjson").write_text("".join(dump(replace(SMALL, program=program))))
    assert main(["trace", "bad.ndjson", option, "x.py"]) == 2
    assert "damaged trace: its `program` cannot be read" in capsys.readouterr().err
    assert not (folder / "x.py").exists()


def test_what_the_front_end_made_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", "old.ndjson", "--pass", "emit"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert "+ x" in lines and "+ y" not in lines


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--grep", "zzz"], "no pass has a change, a decision or Python that matches zzz"),
        (["--grep", "y"], ""),
    ],
)
def test_what_nothing_matches(
    more: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trace", "old.ndjson", *more]) == 0
    shown = capsys.readouterr().out
    assert (said in shown) and ("── tidy" in shown) == (not said)


def test_a_trace_that_ends_after_its_header(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    head = next(dump(replace(SMALL, target="cuda:sm_80")))
    (folder / "cut.ndjson").write_text(head)
    assert main(["trace", "cut.ndjson", "--pipeline"]) == 1
    assert "the trace ends before there is a program" in capsys.readouterr().out


def test_a_trace_is_printed_in_short() -> None:
    assert repr(SMALL) == "<Trace main for cpu: 2 steps>"
    assert repr((replace(SMALL, failure=Failure("tidy", "no")),)) == (
        "(<Trace main for cpu: 2 steps, failed in tidy>,)"
    )


def test_a_reader_that_has_seen_enough(folder: Path) -> None:
    path = ":".join(str(ROOT / part) for part in (".", "diagnostics", "trace", "lsp"))
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "w") as out:
        done = subprocess.run(
            [sys.executable, "-m", "tilelang", "trace", "old.ndjson"], stdout=out,
            stderr=subprocess.PIPE, check=False, env=child_environment(PYTHONPATH=path),
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
