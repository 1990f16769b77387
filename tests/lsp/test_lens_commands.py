"""Commands behind lenses, over stdio: what they return, show, find and leave behind."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lsp.rpc_client import CAPABILITIES, Client
from tests.lsp.test_more_protocol import Modern, capabilities
from tests.support.markers import kernel_text

SHOWING: dict[str, Any] = {
    "window__workDoneProgress": True,
    "window__showDocument": {"support": True},
    "workspace__applyEdit": True,
}
ADD = """
@tilelang.jit
def add(N=256):
    @T.prim_func
    def main(A: T.Tensor((N,), "float32"), B: T.Tensor((N,), "float32")):
        with T.Kernel(N // 128, threads=128) as bx:
            s = T.alloc_shared((128,), "float32")
            T.copy(A[bx * 128], s)
            for i in T.Parallel(128):
                B[bx * 128 + i] = s[i] + 1.0
    return main
"""
CLASH = """
@T.prim_func
def clash(A: T.Tensor((256,), "float32"), B: T.Tensor((64,), "float32")):
    with T.Kernel(4, threads=64) as bx:
        for i in T.Parallel(64):
            B[i] = A[bx * 64 + i]
"""
WRONG = ADD + "\n\ndef add_reference(A):\n    return A + 2\n"
OPEN = ADD.replace("N=256", "N")
SLEEPS = (
    ADD
    + """
import os, pathlib, time
print("started", flush=True)
pathlib.Path(__file__).with_suffix(".pid").write_text(f"{os.getpid()} {os.getppid()}")
time.sleep(100)
"""
)


class Watching(Modern):
    """Keeps progress, what is to be shown, and log messages; answers what it was told to."""

    def __init__(self, options: dict[str, Any] | None = None, **more: Any) -> None:
        self.progress: list[dict[str, Any]] = []
        self.shown: list[dict[str, Any]] = []
        self.said: list[str] = []
        self.choice: dict[str, str] | None = None
        self.choices: list[str] = []
        super().__init__(options, **more)

    def _take(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        match message.get("method"):
            case "$/progress":
                self.progress.append(params)
            case "window/logMessage":
                self.said.append(params["message"])
            case "window/showDocument":
                self.shown.append(params)
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": {"success": True}})
                return
            case "window/showMessageRequest":
                self.choices = [a["title"] for a in params["actions"]]
                self._send({"jsonrpc": "2.0", "id": message["id"], "result": self.choice})
                return
        super()._take(message)

    def forget(self) -> None:
        """Start anew."""
        for kept in (self.progress, self.shown, self.said, self.messages, self.edits):
            kept.clear()

    def saved(self, folder: Path, name: str, body: str, version: int = 1) -> str:
        """Write a file, open it, and wait until it was looked into."""
        path = folder / f"{name}.py"
        text = kernel_text(body).replace("import tilelang.", "import tilelang\nimport tilelang.", 1)
        path.write_text(text)
        self.open(path.as_uri(), text, version)
        self.until(path.as_uri(), "deep", version)
        self.forget()
        return path.as_uri()

    def command(self, name: str, uri: str, *more: Any) -> int:
        """Send a command for the first kernel of a document, as its lens does."""
        lenses = self.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        full = f"tilelang.server.{name}"
        lens = next(x for x in lenses if x["command"]["command"] == full)
        arguments = [*lens["command"]["arguments"][:3], *more]
        return self.send("workspace/executeCommand", {"command": full, "arguments": arguments})

    def do(self, name: str, uri: str, *more: Any) -> Any:
        """Its result."""
        return self.wait(self.command(name, uri, *more))

    def codes(self, uri: str) -> list[tuple[str, int]]:
        """The findings of a document that are errors, with their lines, from 0."""
        found = self.request("textDocument/diagnostic", {"textDocument": {"uri": uri}})["items"]
        return [(d["code"], d["range"]["start"]["line"]) for d in found if d["severity"] == 1]


def pulling(**more: Any) -> dict[str, Any]:
    """The capabilities of an editor that shows everything, and asks for diagnostics."""
    return capabilities(
        textDocument__diagnostic={"dynamicRegistration": False},
        workspace__diagnostics={"refreshSupport": True}, **{**SHOWING, **more},
    )  # fmt: skip


@pytest.fixture(scope="module")
def client() -> Iterator[Watching]:
    with Watching(capabilities=pulling()) as made:
        yield made


def line_of(uri: str, text: str) -> int:
    lines = Path(uri.removeprefix("file://")).read_text().split("\n")
    return next(n for n, line in enumerate(lines) if text in line)


def until(condition: Any, what: str) -> None:
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"


def pids(uri: str) -> tuple[int, int]:
    """The process that imports a file of `SLEEPS`, and its parent."""
    file = Path(uri.removeprefix("file://")).with_suffix(".pid")
    until(lambda: file.exists() and " " in file.read_text(), "the file was not imported")
    own, parent = file.read_text().split()
    return int(own), int(parent)


def test_a_kernel_beside_one_that_is_wrong(client: Watching, tmp_path: Path) -> None:
    wrong = CLASH.replace("clash", "wrong").replace("T.Parallel", "T.Parallell")
    uri = client.saved(tmp_path, "beside", ADD + wrong)
    assert [code for code, _ in client.codes(uri)] == ["TL111"]
    found = client.do("compile", uri)
    assert (found["failed"], found["diagnostics"]) == (False, [])
    assert client.messages[0].startswith("add compiled")


def test_every_lens_has_a_command_and_every_command_a_lens(
    client: Watching, tmp_path: Path
) -> None:
    uri = client.saved(tmp_path, "lenses", OPEN)
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    named = [(x["command"]["title"], x["command"]["command"].split(".")[-1]) for x in lenses]
    assert [n for n in named if n[1] not in ("show", "set")] == [
        ("compile", "compile"), ("run on the emulator", "emulate"), ("trace", "trace"),
        ("no target", "target"),
    ]  # fmt: skip
    offered = {x.split(".")[-1] for x in client.capabilities["executeCommandProvider"]["commands"]}
    assert offered == {command for _, command in named}


def test_a_budget_is_a_page(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "budget", ADD)
    page = client.do("show", uri)
    assert "- shared memory: 512 of 166912 bytes (0 %)" in page
    (shown,) = client.shown
    assert shown["uri"].endswith("/add.md") and not shown["external"]
    assert Path(shown["uri"].removeprefix("file://")).read_text() == page + "\n"
    assert client.messages == []


@pytest.mark.parametrize(
    ("target", "ending", "within", "fact"),
    [
        ("cuda:sm_80", ".cu", "__global__", "no spills"),
        ("hip:gfx942", ".hip", "__global__", "hip:gfx942"),
        ("metal:apple9", ".metal", "[[kernel, ", "metal:apple9"),
        ("cpu", ".ll", "define ", "cpu"),
    ],
)
def test_compile_shows_the_source(
    client: Watching, tmp_path: Path, target: str, ending: str, within: str, fact: str
) -> None:
    uri = client.saved(tmp_path, "compiled", f"# tilelang: target {target}\n{ADD}")
    found = client.do("compile", uri)
    assert not found["failed"] and found["diagnostics"] == []
    if target.startswith("cuda") and not any("registers" in f for f in found["facts"]):
        pytest.skip("no compiler for CUDA: " + found["facts"][0])
    assert any(fact in f for f in found["facts"]), found["facts"]
    (shown,) = client.shown
    assert shown["uri"].endswith(f"/add{ending}")
    first, *rest = Path(shown["uri"].removeprefix("file://")).read_text().split("\n")
    assert first.endswith(f"compiled.py::add: {', '.join(found['facts'])}")
    assert any(within in line for line in rest)
    (message,) = client.messages
    assert message.startswith("add compiled: " + target)


def test_progress(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "progress", f"# tilelang: target cpu\n{ADD}")
    client.do("compile", uri)
    steps = [p["value"] for p in client.progress]
    assert [s["kind"] for s in steps] == ["begin", "report", "end"]
    assert steps[0] == {"kind": "begin", "title": "tilelang: compile add", "cancellable": True}
    assert steps[1]["message"] == "compiling for cpu"
    assert len({p["token"] for p in client.progress}) == 1
    assert "window/workDoneProgress/create" in client.requests_from_server


def test_a_run_on_the_emulator_is_summed_up(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "good", ADD + "\n\ndef add_reference(A):\n    return A + 1\n")
    found = client.do("emulate", uri)
    assert not found["failed"] and found["diagnostics"] == [] and found["shown"] is None
    facts = found["facts"]
    assert facts[0] == "cuda:sm_80"
    assert any(f.startswith("B differs by ") for f in facts), facts
    assert "64 sectors of tensors, the least" in facts
    (message,) = client.messages
    assert message == f"add ran on the emulator: {', '.join(facts)}"


def test_a_fault_on_the_emulator_is_at_its_line_until_the_kernel_changes(
    client: Watching, tmp_path: Path
) -> None:
    uri = client.saved(tmp_path, "faulty", CLASH)
    assert client.codes(uri) == []
    found = client.do("emulate", uri)
    assert found["failed"] and len(client.messages) == 1
    line = line_of(uri, "B[i] = A")
    code = found["diagnostics"][0]["code"]
    assert client.codes(uri) == [(code, line)]
    text = Path(uri.removeprefix("file://")).read_text()
    client.replace(uri, "\n" + text, 2)
    client.until(uri, "deep", 2)
    assert client.codes(uri) == [(code, line + 1)]
    client.replace(uri, text.replace("T.Kernel(4", "T.Kernel(1"), 3)
    client.until(uri, "deep", 3)
    assert client.codes(uri) == []


def test_a_wrong_result_is_a_finding_until_it_is_right(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "wrong", WRONG)
    found = client.do("emulate", uri)
    assert found["failed"]
    (wrong,) = client.codes(uri)
    assert wrong[0] == found["diagnostics"][0]["code"]
    (message,) = client.messages
    assert message == "add: " + found["diagnostics"][0]["message"]
    before = len(client.requests_from_server)
    path = Path(uri.removeprefix("file://"))
    path.write_text(path.read_text().replace("A + 2", "A + 1"))
    client.replace(uri, path.read_text(), 2)
    client.until(uri, "deep", 2)
    assert client.codes(uri) == []
    assert not client.do("emulate", uri)["failed"]
    assert client.codes(uri) == []
    assert "workspace/diagnostic/refresh" in client.requests_from_server[before:]


def test_what_the_file_raises_is_a_finding(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "raising", ADD + "\nprint('so far')\nx = [][1]\n")
    found = client.do("compile", uri)
    assert found["failed"]
    assert client.codes(uri) == [(found["diagnostics"][0]["code"], line_of(uri, "[][1]"))]
    assert any("so far" in said for said in client.said)
    assert "IndexError" in client.messages[0] and len(client.messages) == 1


def test_a_value_that_nobody_gives_is_a_finding(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "unknown", OPEN)
    found = client.do("emulate", uri)
    assert found["failed"] and "N" in found["diagnostics"][0]["message"]
    assert [line for _, line in client.codes(uri)] == [line_of(uri, "def main")]
    assert client.do("set", uri, {"N": ""})
    (change,) = client.edits[0]["changes"][uri]
    assert change["newText"] == "# tilelang: set N=1024\n"


def test_a_file_that_ends_its_process(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "ending", ADD + "\nimport os\nos._exit(7)\n")
    assert client.do("compile", uri) == {
        "failed": True, "diagnostics": [], "shown": None,
        "facts": ["its process ended with status 7"],
    }  # fmt: skip
    assert client.messages == ["add: its process ended with status 7"]


def test_trace_opens_a_page(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "traced", f"# tilelang: target cpu\n{ADD}")
    found = client.do("trace", uri)
    assert not found["failed"]
    (shown,) = client.shown
    assert shown["external"] and shown["uri"].endswith("/add.html")
    page = Path(shown["uri"].removeprefix("file://")).read_text()
    assert "<html" in page and "guard_bounds" in page
    assert client.messages == ["add traced: cpu"]


@pytest.mark.parametrize("way", ["progress", "request", "again"])
def test_a_run_is_cancelled(client: Watching, tmp_path: Path, way: str) -> None:
    uri = client.saved(tmp_path, f"slow_{way}", SLEEPS)
    number = client.command("compile", uri)
    own, parent = pids(uri)
    assert own != client.process.pid and parent == client.process.pid
    if way == "progress":
        token = client.progress[0]["token"]
        client.notify("window/workDoneProgress/cancel", {"token": token})
        assert client.wait(number) is None
    elif way == "request":
        client.notify("$/cancelRequest", {"id": number})
        with pytest.raises(RuntimeError, match="-32800"):
            client.wait(number)
    else:
        path = Path(uri.removeprefix("file://"))
        path.write_text(path.read_text().replace("time.sleep(100)", "pass"))
        client.replace(uri, path.read_text(), 2)
        client.until(uri, "static", 2)
        again = client.command("compile", uri)
        assert client.wait(number) is None
        assert not client.wait(again)["failed"]
    until(lambda: not is_alive(own), "the process goes on")
    # Whoever asked is answered at once; the end of the progress may come after that.
    until(lambda: any(p["value"]["kind"] == "end" for p in client.progress), "no end is told")
    ends = [p["value"] for p in client.progress if p["value"]["kind"] == "end"]
    assert ends[0] == {"kind": "end", "message": "cancelled"}
    assert not [m for m in client.messages if not m.startswith("add compiled")]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("how", ["shutdown", "killed"])
def test_no_run_outlives_the_server(tmp_path: Path, how: str) -> None:
    made = Watching(capabilities=pulling())
    uri = made.saved(tmp_path, "left", SLEEPS)
    made.command("compile", uri)
    own, _ = pids(uri)
    if how == "shutdown":
        made.__exit__()
    else:
        os.kill(made.process.pid, signal.SIGKILL)
        made.process.wait()
    until(lambda: not is_alive(own), "the process goes on")


def test_what_is_not_run(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "unsaved", ADD)
    text = Path(uri.removeprefix("file://")).read_text()
    client.replace(uri, text + "\n# more\n", 2)
    client.until(uri, "static", 2)
    assert client.do("compile", uri) is None
    untitled = "untitled:Untitled-7"
    client.open(untitled, text)
    client.until(untitled, "deep", 1)
    assert client.do("trace", untitled) is None
    assert client.messages == [
        "save the file first: what runs is the file",
        "only a kernel in a file can be run: this document is none",
    ]
    nothing = {"command": "tilelang.server.compile", "arguments": []}
    assert client.request("workspace/executeCommand", nothing) is None


def test_nothing_of_an_untrusted_workspace_is_run(tmp_path: Path) -> None:
    with Watching({"trusted": False}, capabilities=pulling()) as client:
        uri = client.saved(tmp_path, "untrusted", SLEEPS)
        for name in ("compile", "emulate", "trace"):
            assert client.do(name, uri) is None
        assert client.messages == ["this workspace is not trusted: its kernels are read and not "
                                   "run"] * 3  # fmt: skip
        assert not (tmp_path / "untrusted.pid").exists()


def test_an_editor_that_shows_nothing(tmp_path: Path) -> None:
    with Watching(capabilities=CAPABILITIES) as client:
        uri = client.saved(tmp_path, "plain", WRONG)
        assert client.do("show", uri) == client.messages.pop()
        shown = client.do("compile", uri)["shown"]
        assert Path(shown).is_file()
        assert client.messages[1] == f"compile: see {shown}"
        assert client.do("emulate", uri)["failed"]
        found = client.diagnostics(uri, 1)
        while not [d for d in found if d["severity"] == 1]:
            found = client.diagnostics(uri, 1)
        assert client.progress == [] and client.shown == []
        assert "window/workDoneProgress/create" not in client.requests_from_server
    assert not Path(shown).exists()  # gone with the server


def test_the_target_is_changed(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "aimed", ADD)
    client.choice = {"title": "cuda:sm_90a"}
    assert client.do("target", uri)
    assert "cuda:sm_90a" in client.choices
    (change,) = client.edits[-1]["changes"][uri]
    assert change["newText"] == "# tilelang: target cuda:sm_90a\n"
    assert change["range"]["start"] == change["range"]["end"] == {"line": 0, "character": 0}
    text = change["newText"] + Path(uri.removeprefix("file://")).read_text()
    client.replace(uri, text, 2)
    client.until(uri, "deep", 2)
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    assert "target cuda:sm_90a" in [x["command"]["title"] for x in lenses]
    assert client.do("target", uri, "cpu")
    (change,) = client.edits[-1]["changes"][uri]
    assert change["newText"] == "# tilelang: target cpu"
    assert change["range"] == {"start": {"line": 0, "character": 0},
                               "end": {"line": 0, "character": 30}}  # fmt: skip
    client.choice = None
    assert client.do("target", uri) is False


def test_the_target_of_a_file_counts_before_that_of_the_settings(tmp_path: Path) -> None:
    with Watching({"target": "cuda:sm_80"}, capabilities=pulling()) as client:
        uri = client.saved(tmp_path, "set", ADD)
        assert client.do("target", uri, "cuda:sm_90a")
        (change,) = client.edits[-1]["changes"][uri]
        text = change["newText"] + Path(uri.removeprefix("file://")).read_text()
        client.replace(uri, text, 2)
        client.until(uri, "deep", 2)
        lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
        assert "target cuda:sm_90a" in [x["command"]["title"] for x in lenses]


def test_a_click_on_values_of_a_comment_leads_there(client: Watching, tmp_path: Path) -> None:
    uri = client.saved(tmp_path, "commented", OPEN.replace("@", "# tilelang: set N=512\n@", 1))
    lenses = client.request("textDocument/codeLens", {"textDocument": {"uri": uri}})
    titles = [x["command"]["title"] for x in lenses]
    assert any(t.startswith("assumes N = 512 (a comment in the file)") for t in titles)
    assert client.do("set", uri)
    (shown,) = client.shown
    line = line_of(uri, "# tilelang")
    assert shown["uri"] == uri and shown["selection"]["start"] == {"line": line, "character": 0}
    assert client.messages == []


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("set", {"N": "1\nimport os"}, "cannot be the value of `N`"),
        ("set", {"N": "1\r2"}, "cannot be the value"),
        ("set", {"N": "\x1b[0m"}, "cannot be the value"),
        ("set", {"N": "1, M=2"}, "cannot be the value"),
        ("set", {"N": "(1"}, "cannot be the value"),
        ("set", {"N": "'"}, "cannot be the value"),
        ("set", {"N\n": "1"}, "is no name"),
        ("target", "cuda:sm_80\nimport os", "is no target"),
        ("target", "toaster", "toaster"),
    ],
)
def test_what_a_comment_cannot_hold_is_refused(
    client: Watching, tmp_path: Path, name: str, given: Any, said: str
) -> None:
    uri = client.saved(tmp_path, "refused", OPEN)
    assert client.do(name, uri, given) is False
    assert client.edits == []
    (message,) = client.messages
    assert said in message


def test_what_is_set_already_stays(client: Watching, tmp_path: Path) -> None:
    text = OPEN.replace("@", "# tilelang: set dims=(1, 2), note='a,b'\n@", 1)
    uri = client.saved(tmp_path, "merged", text)
    assert client.do("set", uri, {"N": "[3, 4]"})
    (change,) = client.edits[0]["changes"][uri]
    assert change["newText"] == "# tilelang: set dims=(1, 2), note='a,b', N=[3, 4]"


def test_nothing_went_wrong(client: Client) -> None:
    assert client.log == []
