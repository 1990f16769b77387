"""How the server ends: soon, quietly, and with all that it started."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lsp.asking import in_launch
from tests.lsp.rpc_client import PATHS, Client
from tests.support.markers import kernel_text
from tilelang_lsp import workspace
from tilelang_lsp.worker import Worker
from tilelang_lsp.workspace import Workspace

SECONDS = 2.0
SLOW = "import time\nopen('started', 'w').close()\ntime.sleep(60)\n"
TEXT = SLOW + kernel_text(in_launch("T.clear(C)"))


def _closed(client: Client) -> None:
    assert client.process.stdin is not None
    client.process.stdin.close()


def _signal(number: int) -> Callable[[Client], None]:
    return lambda client: client.process.send_signal(number)


def _shut_down(client: Client) -> None:
    client.request("shutdown", None)
    client.notify("exit", None)


WAYS = {
    "interrupt": (_signal(signal.SIGINT), 130),
    "terminate": (_signal(signal.SIGTERM), 143),
    "end of input": (_closed, 0),
    "exit alone": (lambda client: client.notify("exit", None), 1),
    "in order": (_shut_down, 0),
}


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def _children(pid: int) -> Iterator[int]:
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, children.read_text().split()):
            yield child
            yield from _children(child)


def _wait_for(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end, f"{path} does not come"
        time.sleep(0.02)


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks for processes there")
@pytest.mark.parametrize("way", ["terminate", "exit alone"])
def test_it_ends_with_all_it_started(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends, status = WAYS[way]
    temporary, file = tmp_path / "temporary", tmp_path / "k.py"
    temporary.mkdir()
    file.write_text(TEXT)
    monkeypatch.setenv("TMPDIR", str(temporary))
    client = Client(root=tmp_path)
    client.open(file.as_uri(), TEXT)
    client.diagnostics(file.as_uri(), 1)
    command = {"command": "tilelang.server.compile", "arguments": [file.as_uri(), "main"]}
    client.send("workspace/executeCommand", command)
    _wait_for(tmp_path / "started")
    assert list(temporary.glob("tilelang-lsp-*"))
    started = list(_children(client.process.pid))
    assert len(started) >= 3  # who reads, who looks, and the command
    began = time.monotonic()
    ends(client)
    assert client.process.wait(20) == status
    assert time.monotonic() - began < SECONDS
    time.sleep(0.1)
    assert not [pid for pid in started if _is_there(pid)]
    assert client.log == []
    assert not list(temporary.glob("tilelang-lsp-*"))


@pytest.mark.parametrize("way", ["interrupt", "end of input", "in order"])
def test_it_ends_while_it_starts(way: str) -> None:
    client = Client(greets=False)
    client.send("initialize", client.greeting)
    client.notify("initialized", {})
    ends, status = WAYS[way]
    if way != "end of input":  # not before Python has begun
        client.wait(1)
    ends(client)
    assert client.process.wait(20) == status
    assert client.log == []


def test_it_ends_when_nobody_reads_its_answers() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "tilelang_lsp"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATHS))},
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None
    requests, sent = process.stdin, [0.0]
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "%s"}' % (b"x" * 2000)

    def ask() -> None:
        with contextlib.suppress(OSError):
            while True:
                requests.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                requests.flush()
                sent[0] = time.monotonic()

    threading.Thread(target=ask, daemon=True).start()
    os.read(process.stdout.fileno(), 1)  # it answers
    while time.monotonic() - sent[0] < 0.3:  # and is stuck once nobody takes that
        time.sleep(0.05)
    began = time.monotonic()
    process.terminate()
    assert process.wait(20) == 143
    assert time.monotonic() - began < SECONDS
    process.stdout.close()


def test_an_interrupt_at_the_very_start_is_quiet() -> None:
    code = (
        "import os, signal, tilelang_lsp.cli as cli\n"
        "cli.gc.freeze = lambda: os.kill(os.getpid(), signal.SIGINT)\ncli.main([])"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, PATHS))}
    done = subprocess.run(
        [sys.executable, "-c", code], input=b"", capture_output=True, env=env, timeout=60
    )
    assert (done.returncode, done.stderr) == (130, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="pipes cannot be watched there")
def test_a_process_that_analyses_ends_when_nobody_asks(tmp_path: Path) -> None:
    """Also in the middle of an answer, and without a word."""
    worker = Worker()
    worker.start()
    process = worker._process
    assert process is not None and process.stdin is not None
    from tilelang_lsp.worker import send

    send(process.stdin, ("warm",))
    time.sleep(0.5)
    process.stdin.close()
    assert process.wait(20) == 0
    worker.stop()


def test_it_says_nothing_of_an_answer_that_nobody_reads() -> None:
    code = f"import sys; sys.path[:] = {sys.path!r}; from tilelang_lsp.worker import serve; serve()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    from tilelang_lsp.worker import send

    process.stdout.close()
    send(process.stdin, ("catalogue",))
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stdin.close()


def _endless(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    number = 0
    while True:
        number += 1
        time.sleep(0.001)
        yield os.path.join(folder, str(number)), [], []


def test_a_walk_ends_with_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.walk", _endless)
    files = Workspace(["/"])
    walk = threading.Thread(target=files.files, daemon=True)
    walk.start()
    time.sleep(0.05)
    assert walk.is_alive()
    files.stop()
    walk.join(1)
    assert not walk.is_alive()


def test_symbols_of_endless_folders_come_in_time(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("os.walk", _endless)
    monkeypatch.setattr(workspace, "SYMBOL_SECONDS", 0.1)
    files = Workspace(["/"])
    files.open("/kernels.py", "import tilelang\ndef matmul(): ...\n")
    for _ in range(2):
        start = time.monotonic()
        assert [d.name for d in files.symbols("mml")] == ["matmul"]
        assert time.monotonic() - start < 1
    assert [r.message for r in caplog.records] == [
        "symbols of the workspace: 0 files were found in time"
    ]  # said once


def test_a_long_word_is_looked_through_once(tmp_path: Path) -> None:
    literal = "a1_mtul" * 20_000
    (tmp_path / "k.py").write_text(f'import tilelang\nDATA = "{literal}"\ndef matmul(): ...\n')
    assert [d.name for d in Workspace([str(tmp_path)]).symbols("matml")] == ["matmul"]
    assert Workspace([str(tmp_path)]).symbols("matmul_zzz") == ()


def test_a_folder_that_is_too_large_does_not_hide_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace, "MOST_FOLDERS", 3)
    for name in ("large/a/b/c/d", "small"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "small" / "k.py").write_text("import tilelang\n")
    files = Workspace([str(tmp_path / "large"), str(tmp_path / "small")])
    assert [Path(p).name for p in files.files()] == ["k.py"] and not files.complete


def test_symbols_of_many_files_come_in_time_and_the_next_time_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        (tmp_path / f"a{number:02}.py").write_text(f"import tilelang\ndef matmul{number}(): ...\n")
    files = Workspace([str(tmp_path)])
    assert len(files.files()) == 20
    monkeypatch.setattr(workspace, "SYMBOL_SECONDS", -1.0)
    assert len(files.symbols("matmul")) == 1 and "1 of 20 files" in caplog.text
    monkeypatch.setattr(workspace, "SYMBOL_SECONDS", 60.0)
    assert len(files.symbols("matmul")) == 20 and files.symbols("matmax") == ()
    assert files.parsed == 20


def test_a_walk_takes_so_long_and_no_longer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("os.walk", _endless)
    monkeypatch.setattr(workspace, "LONGEST_WALK_SECONDS", 0.05)
    files = Workspace(["/"])
    for _ in range(2):
        files.changed()
        assert files.files() == ()
        assert not files.complete
    assert [r.message for r in caplog.records] == [
        "too many files: 0 of them are looked through"
    ]  # said once
