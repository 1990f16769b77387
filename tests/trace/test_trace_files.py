"""Files that a trace is written to and read from: two writers, special files, names of bytes."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import click
import pytest

from tests.trace import pages
from tilelang.cli import main
from tilelang.runtime.crash import save_reproducer
from tilelang_trace.files import LARGEST, readable, saved, streamed
from tilelang_trace.ndjson import dump, load

KERNEL = """
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
    with T.Kernel(2, threads=64) as bx:
        for i in T.Parallel(64):
            B[bx * 64 + i] = A[bx * 64 + i] * 2.0
"""
UNIX = pytest.mark.skipif(os.name == "nt", reason="of Unix")


@UNIX
def test_a_name_that_is_no_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"\xff.py")
    Path(name).write_text(KERNEL)
    written = {"--html": "o.html", "--json": os.fsdecode(b"\xfe.ndjson"), "--perfetto": "o.json",
               "--reproducer": "r.py", "--ir": "ir.py", "--source": "o.ll"}  # fmt: skip
    command = ["trace", name, "--target", "cpu", "--from", "simplify"]
    assert main([*command, *(x for pair in written.items() for x in pair)]) == 0
    assert all(Path(path).stat().st_size for path in written.values())
    capsys.readouterr()
    assert main(["trace", written["--json"], "--pass", "simplify"]) == 0
    with open(written["--json"], encoding="utf-8") as file:
        found = load(file)
    assert (found.file, tuple(dict(found.sources))) == (name, (str(tmp_path / name),))
    assert main(["trace", name, "--resume", "ir.py"]) == 0
    assert main(["compile", name, "--target", "cpu", "--emit", "source", "-o", "k.ll"]) == 0
    assert main(["lint", name, "--format", "json"]) == 0


@pytest.mark.parametrize("text", ["\udcff", "\ud800"])
def test_a_crash_is_always_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("TILELANG_CRASH_DIR", str(tmp_path))
    path = save_reproducer(KeyError(text), f"compiling {text}", (f"{text}.py",))
    assert path is not None and b"compiling \\ud" in path.read_bytes()


def test_a_trace_that_is_being_written_is_refused_to_others(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    path.write_text("of before, and longer than what comes")
    with streamed(str(path)) as write:
        write("first\n")
        with (
            pytest.raises(click.UsageError, match="another process is writing"),
            streamed(str(path)),
        ):
            pass
        assert path.read_text() == "first\n"  # there at once, and whole
    with streamed(str(path)) as write:
        write("second\n")
    assert path.read_text() == "second\n"


def test_of_two_that_write_a_page_at_once_one_wins(tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    texts = [c * 3_000_000 for c in "ab"]
    started = threading.Barrier(2)

    def write(text: str) -> None:
        started.wait()
        for _ in range(5):
            saved(path, text)
            assert path.read_text() in texts

    failed: list[object] = []
    monkey, threading.excepthook = threading.excepthook, failed.append
    try:
        threads = [threading.Thread(target=write, args=(text,)) for text in texts]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        threading.excepthook = monkey
    assert not failed
    assert os.listdir(tmp_path) == ["page.html"]


@UNIX
def test_what_is_written_keeps_links_and_modes(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("")
    real.chmod(0o640)
    link.symlink_to(real)
    saved(link, "x")
    assert link.is_symlink() and real.read_text() == "x" and real.stat().st_mode & 0o777 == 0o640
    saved("/dev/null", "x")
    assert not Path("/dev/null").is_file()


@UNIX
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["lint", "{fifo}"], 1),
        (["run", "{fifo}"], 1),
        (["trace", "{fifo}"], 1),
        (["trace", "{kernel}", "--target", "cpu", "--resume", "{fifo}"], 2),
        (["trace", "{kernel}", "--target", "cpu", "--resume", "/dev/zero"], 2),
        (["trace", "{trace}", "--compare", "{fifo}"], 2),
        (["trace", "{trace}", "--compare", "/dev/zero"], 2),
    ],
)
def test_nothing_waits_for_a_special_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], status: int
) -> None:
    os.mkfifo(tmp_path / "fifo.py")
    (tmp_path / "kernel.py").write_text(KERNEL)
    (tmp_path / "t.ndjson").write_text("".join(dump(pages.large(10))))
    names = {"fifo": tmp_path / "fifo.py", "kernel": tmp_path / "kernel.py",
             "trace": tmp_path / "t.ndjson"}  # fmt: skip
    # A hang here would be one of the test, too: the last resort is a writer.
    writer = threading.Timer(20, lambda: (tmp_path / "fifo.py").write_text(""))
    writer.start()
    try:
        assert main([word.format(**names) for word in words]) == status
    finally:
        writer.cancel()
    shown = capsys.readouterr()
    assert "no regular file" in shown.out + shown.err


def test_a_file_without_end_is_refused_by_its_size(tmp_path: Path) -> None:
    path = tmp_path / "t.ndjson"
    with path.open("wb") as file:
        file.truncate(LARGEST + 1)
    with pytest.raises(click.UsageError, match="more than 1 GiB"):
        readable(path)


def test_several_targets_are_each_compiled_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    page = tmp_path / "page.html"
    assert main(["trace", str(file), "--target", "cpu, cpu", "--html", str(page)]) == 0
    assert page.exists()  # there is one target
    capsys.readouterr()
    assert main(["trace", str(file), "--target", "cuda:sm_80,cpu,cuda:sm_80", "--pipeline"]) == 0
    heads = [x for x in capsys.readouterr().out.split("\n") if x.startswith("main for ")]
    assert heads == ["main for cuda:sm_80", "main for cpu"]


def test_unknown_passes_are_answered_with_each_name_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "kernel.py"
    file.write_text(KERNEL)
    saved_trace = tmp_path / "t.ndjson"
    assert main(["trace", str(file), "--target", "cuda:sm_80", "--json", str(saved_trace)]) == 0
    capsys.readouterr()
    assert main(["trace", str(saved_trace), "--pass", "zzzzzzzz"]) == 2
    names = capsys.readouterr().err.partition("there are ")[2].strip().split(", ")
    assert "tidy/decide" in names and len(names) == len(set(names))


def test_json_of_half_characters_is_damaged_unless_a_file_may_be_called_so() -> None:
    head, *rest = dump(pages.large(10))
    row = json.loads(head)
    assert load([json.dumps(row | {"file": "\udcff.py"}) + "\n", *rest]).file == "\udcff.py"
    with pytest.raises(ValueError, match="damaged"):
        load([json.dumps(row | {"file": "\ud800.py"}) + "\n", *rest])
