"""`tilelang trace` on real kernels."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from tests.kernels import gemm
from tilelang.cli import main
from tilelang.cli.files import choose
from tilelang.cli.specialise import specialise
from tilelang.pipeline import PIPELINE
from tilelang.target import Target
from tilelang_diagnostics import Diagnostic, Severity, error_for
from tilelang_trace import recorder as recording
from tilelang_trace.model import Trace
from tilelang_trace.ndjson import load
from tilelang_trace.recorder import FIRST, record
from tilelang_trace.wanted import target_of_file

KERNEL = """
import tilelang.language as T


@T.prim_func
def main(A: T.Tensor((100, 64), "float16"), C: T.Tensor((100, 64), "float32")):
    with T.Kernel(T.ceildiv(100, 32), threads=128) as bx:
        s = T.alloc_shared((32, 64), "float16")
        T.copy(A[bx * 32, 0], s)
        for i, j in T.Parallel(32, 64):
            s[i, j] = s[i, j] * 2
        T.copy(s, C[bx * 32, 0])
"""


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    file = tmp_path / "kernel.py"
    file.write_text(textwrap.dedent(KERNEL))
    return file


def trace_of(spec: str, **values: object) -> Trace:
    trace, error = record(specialise(choose(spec), values), Target("cpu"), spec.split("::")[0])
    assert error is None
    return trace


@pytest.mark.parametrize(
    ("head", "options", "target"),
    [
        ("", [], "cpu"),
        ("# tilelang: target cuda:sm_80", [], "cuda:sm_80"),
        ("# tilelang: target cuda:sm_80, cuda:sm_90a", [], "cuda:sm_80"),
        ("# tilelang: target cuda:sm_80", ["--target", "hip:gfx942"], "hip:gfx942"),
    ],
)
def test_the_target_of_the_file_counts_after_the_option(
    kernel: Path, capsys: pytest.CaptureFixture[str], head: str, options: list[str], target: str
) -> None:
    kernel.write_text(f"{head}\n{kernel.read_text()}")
    assert main(["trace", str(kernel), "--pass", "guard_bounds", *options]) == 0
    assert capsys.readouterr().out.startswith(f"main from {kernel} for {target}\n")


def test_the_target_of_the_kernel_counts_before_that_of_the_file() -> None:
    text = "# tilelang: target cuda:sm_80\n"
    assert target_of_file(text, "auto") == target_of_file(text) == "cuda:sm_80"
    assert target_of_file(text, "cpu") is None


def test_one_step_per_pass_that_ran(kernel: Path) -> None:
    trace = trace_of(str(kernel))
    names = [step.name for step in PIPELINE]
    ran = [step.name for step in trace.steps]
    assert ran[0] == FIRST
    assert ran[1:] == [name for name in names if name in ran[1:]]
    assert "lower_tile_ops" in ran
    assert all(step.seconds > 0 and step.reason for step in trace.steps[1:])


def test_tile_operations_go_in_the_pass_that_lowers_them(kernel: Path) -> None:
    trace = trace_of(str(kernel))
    lowered = trace.step("lower_tile_ops")
    before = trace.steps[trace.steps.index(lowered) - 1]
    assert "T.copy(" in before.text
    assert "T.copy(" not in lowered.text


def test_lines_know_their_python(kernel: Path) -> None:
    trace = trace_of(str(kernel))
    assert dict(trace.sources)[str(kernel)] == kernel.read_text()
    copied = next(n for n, text in enumerate(kernel.read_text().split("\n"), 1) if "A[bx" in text)
    last = trace.steps[-1]
    assert any(line.span and line.span.line == copied and "A[" in line.text for line in last.lines)


@pytest.mark.parametrize("name", ["matmul_relu", "matmul"])
def test_nearly_every_line_has_a_place(name: str) -> None:
    values = {"M": 64, "N": 64, "K": 64, "block_M": 32, "block_N": 32, "block_K": 32}
    trace = trace_of(f"{gemm.__file__}::{name}", **values)
    lines = [line for step in trace.steps for line in step.lines if line.text.strip()]
    placed = [line for line in lines if line.span and line.span.file == gemm.__file__]
    # The decorator, `else:` and closing lines stand for no statement.
    assert len(placed) >= 0.9 * len(lines)


def test_the_command_prints_and_saves(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "out.ndjson"
    assert main(["trace", str(kernel), "--target", "cpu", "--json", str(saved)]) == 0
    printed = capsys.readouterr().out
    assert "── lower_tile_ops · " in printed
    with saved.open() as file:
        trace = load(file)
    assert trace.steps[0].name == FIRST
    assert main(["trace", str(saved)]) == 0
    assert capsys.readouterr().out == printed


def test_one_pass_and_changes_only(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(kernel), "--target", "cpu", "--pass", "guard_bounds", "-U0"]) == 0
    printed = capsys.readouterr().out
    headers = [line for line in printed.split("\n") if line.startswith("── ")]
    assert len(headers) == 1 and headers[0].startswith("── guard_bounds")
    assert main(["trace", str(kernel), "--target", "cpu", "--changed"]) == 0
    assert "no change" not in capsys.readouterr().out


def test_json_on_standard_output(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trace", str(kernel), "--target", "cpu", "--json", "-"]) == 0
    assert load(capsys.readouterr().out.splitlines()).kernel == "main"


@pytest.mark.parametrize(
    ("more", "status", "message"),
    [
        (["--pass", "lower_tile_op"], 2, "did you mean `lower_tile_ops`?"),
        (["--json", "no/such/dir/x"], 2, "cannot write"),
        (["--context", "-1"], 2, "context"),
        (["--set", "nonsense"], 1, "TL725"),
    ],
)
def test_wrong_usage(
    kernel: Path, capsys: pytest.CaptureFixture[str], more: list[str], status: int, message: str
) -> None:
    assert main(["trace", str(kernel), "--target", "cpu", *more]) == status
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "status", "message"),
    [
        ("k.py", "x = (", 1, "TL101"),
        ("k.py", "x = 1", 1, "TL104"),
        ("none.py", None, 1, "TL103"),
        ("k.ndjson", "x = 1", 2, "line 1 is not JSON"),
        ("none.ndjson", None, 2, "cannot read"),
        ("k.ndjson", b"\xff\xfe", 2, "k.ndjson"),
    ],
)
def test_files_without_a_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, text: str | bytes | None,
    status: int, message: str,
) -> None:  # fmt: skip
    file = tmp_path / name
    if text is not None:
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
    assert main(["trace", str(file)]) == status
    assert message in capsys.readouterr().err


def test_a_pass_that_fails_leaves_what_came_before(
    kernel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lower = recording.lower_function

    def fail(
        function: object, target: object, options: object, observers: list[object], **more: object
    ) -> object:  # fmt: skip
        (recorder,) = observers
        assert isinstance(recorder, recording.Recorder)
        after = recorder.after

        def failing(name: str, *rest: object) -> None:
            if name == "guard_bounds":
                raise error_for([Diagnostic("TL901", Severity.ERROR, "it is not legal")])
            after(name, *rest)  # type: ignore[arg-type]

        monkeypatch.setattr(recorder, "after", failing)
        return lower(function, target, options, [recorder], **more)  # type: ignore[arg-type]

    monkeypatch.setattr(recording, "lower_function", fail)
    trace, error = record(specialise(choose(str(kernel)), {}), Target("cpu"), str(kernel))
    assert error is not None
    assert trace.failure is not None
    assert (trace.failure.step, trace.failure.message) == ("guard_bounds", "it is not legal")
    assert trace.steps[-1].name == "lower_tile_ops"


def test_our_own_failure_is_shown_and_exits_with_3(
    kernel: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail(*_: object, **more: object) -> object:
        raise KeyError("oops")

    monkeypatch.setattr(recording, "lower_function", fail)
    assert main(["trace", str(kernel), "--target", "cpu"]) == 3
    shown = capsys.readouterr()
    assert "did not finish" in shown.out
    assert "TL900" in shown.err


def test_grep_keeps_passes_whose_changes_match(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def headers(*more: str) -> list[str]:
        assert main(["trace", str(kernel), "--target", "cpu", *more]) == 0
        lines = capsys.readouterr().out.split("\n")
        return [line.split(" ")[1] for line in lines if line.startswith("── ")]

    assert "lower_tile_ops" in headers("--grep", r"T\.copy\(s")
    assert headers("--grep", "^no such thing$") == []
    assert headers("--grep", "^unswitch") == ["unswitch_guards"]
    assert main(["trace", str(kernel), "--grep", "("]) == 2
    assert "is no regular expression" in capsys.readouterr().err


def test_a_page_is_written(kernel: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    command = ["trace", str(kernel), "--target", "cpu", "--only-changed", "--html", str(page)]
    assert main(command) == 0
    text = page.read_text()
    assert text.startswith("<!doctype html>")
    assert "src=" not in text.split("</style>")[1].split("<script")[0]
    assert len(text) < 1_000_000


def test_opening_it(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["trace", str(kernel), "--target", "cpu", "--open"]) == 0
    (address,) = opened
    assert address.startswith("file://") and address.endswith("/trace.html")


def test_the_text_of_a_stage_is_the_same_from_run_to_run(kernel: Path) -> None:
    first, second = trace_of(str(kernel)), trace_of(str(kernel))
    assert [step.text for step in first.steps] == [step.text for step in second.steps]
    assert [step.lines for step in first.steps] == [step.lines for step in second.steps]


def test_the_ir_is_edited_and_goes_on(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "ir.py"
    assert main(["trace", str(kernel), "--target", "cpu", "--ir", str(saved)]) == 0
    text = saved.read_text()
    assert "s[i, j] = s[i, j] * T.float16(2.0)  #@ kernel.py:11:13" in text
    first = trace_of(str(kernel)).steps[-1].text
    assert trace_of(str(saved)).steps[-1].text == first
    edited = tmp_path / "edited.py"
    edited.write_text(text.replace("T.float16(2.0)", "T.float16(3.0)"))
    changed = trace_of(str(edited)).steps[-1].text
    assert changed == first.replace("T.float16(2.0)", "T.float16(3.0)") != first
    later = tmp_path / "later.py"
    command = ["trace", str(kernel), "--target", "cpu", "--ir", str(later)]
    assert main([*command, "--from", "guard_bounds"]) == 0
    assert "T.copy" not in later.read_text()
    assert main([*command, "--from", "nothing"]) == 2
    capsys.readouterr()
