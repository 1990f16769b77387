"""A folder that would like to run something of its own, and is only read.

The server runs in it, with modules under the names of its own imports, programs under the names it
might look for, and `.` first on the path. An audit hook in each of its processes writes down what
is executed, loaded or started from there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.lsp import rpc_client
from tests.lsp.test_lens_commands import ADD, Watching, pulling
from tilelang_lsp.project import Projects

MODULES = ("json", "tomllib", "numpy", "tvm", "click", "pygls", "lsprotocol", "sitecustomize",
           "helper", "usercustomize", "tilelang_plugin", "conftest", "setup")  # fmt: skip
PROGRAMS = ("python", "python3", "nvcc", "nvidia-smi", "nvdisasm", "clang", "clang++", "g++", "cc",
            "ld", "hipcc", "node", "tilelang")  # fmt: skip
PROJECT = """
[tool.tilelang]
target = "auto"
plugins = ["tilelang_plugin"]
interpreter = ["./python"]

[tool.tilelang.set]
N = "__import__('helper')"
"""
KERNEL = """
import helper
from helper import size, WIDTH
# tilelang: set N=__import__("helper").N
# tilelang: target cuda:sm_90a
open(__file__ + ".ran", "w").close()
""" + ADD.replace("s[i] + 1.0", "s[i] + size(WIDTH)")
HOOK = """
import sys

def hook(event, args, folder={folder!r}, log={log!r}):
    if event == "exec":
        what = args[0].co_filename
    elif event in ("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "ctypes.dlopen"):
        what = repr(args)
    else:
        return
    if folder in what or "'./" in what:
        with open(log, "a") as file:
            file.write(event + " " + what + "\\n")

sys.addaudithook(hook)
"""
ASKED = ("hover", "completion", "signatureHelp", "definition", "references", "documentHighlight",
         "documentSymbol", "foldingRange", "codeLens", "inlayHint", "codeAction", "documentLink",
         "semanticTokens/full", "diagnostic", "prepareRename", "prepareCallHierarchy")  # fmt: skip


class Folder:
    """The folder, and what ran of it."""

    def __init__(self, base: Path) -> None:
        self.path, self.log = base / "opened", base / "log"
        self.path.mkdir()
        for name in MODULES:
            text = f"open({str(self.log)!r}, 'a').write('imported {name}')\nWIDTH = 4\n"
            text += "def size(n):\n    return n * 2\n"
            (self.path / f"{name}.py").write_text(text)
        for name in PROGRAMS:
            program = self.path / name
            program.write_text(f"#!/bin/sh\necho started {name} >> {self.log}\n")
            program.chmod(0o755)
        (self.path / "pyproject.toml").write_text(PROJECT)
        hooks = base / "hooks"
        hooks.mkdir()
        hook = HOOK.format(folder=str(self.path), log=str(self.log))
        (hooks / "sitecustomize.py").write_text(hook)
        self.hooks = hooks

    def ran(self) -> str:
        """What was written down; empty where nothing was run."""
        said = self.log.read_text() if self.log.exists() else ""
        return said + "".join(map(str, self.path.glob("*.ran")))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    made = Folder(tmp_path)
    monkeypatch.setenv("PATH", f".::{made.path}", prepend=":")
    monkeypatch.setattr(rpc_client, "PATHS", (made.hooks, *rpc_client.PATHS))
    return made


def opened(folder: Folder) -> Watching:
    # Settings that an editor reads from the folder come by this way.
    able = pulling(workspace__configuration=True,
                   workspace__didChangeConfiguration={"dynamicRegistration": True})  # fmt: skip
    return Watching({"trusted": False, "diagnosticMode": "workspace"}, capabilities=able,
                    cwd=folder.path, root=folder.path)  # fmt: skip


def ask_everything(client: Watching, uri: str) -> None:
    lines = KERNEL.count("\n")
    place = {"line": lines - 3, "character": 12}
    whole = {"start": {"line": 0, "character": 0}, "end": {"line": lines, "character": 0}}
    for name in ASKED:
        params: dict[str, Any] = {"textDocument": {"uri": uri}, "position": place, "range": whole}
        params["context"] = {
            "diagnostics": [], "includeDeclaration": True, "triggerKind": 1, "isRetrigger": False,
        }  # fmt: skip
        client.request(f"textDocument/{name}", params)
    client.request("workspace/diagnostic", {"previousResultIds": []})
    client.request("workspace/symbol", {"query": "a"})


def test_reading_a_folder_runs_nothing_of_it(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = [{"trusted": True, "interpreter": ["./python"], "path": ["./tilelang"]}]
    monkeypatch.setitem(rpc_client.ANSWERS, "workspace/configuration", said)
    with opened(folder) as client:
        uri = client.saved(folder.path, "kernel", KERNEL)
        ask_everything(client, uri)
        settings = {"settings": {"tilelang": {"trusted": True}}}
        client.notify("workspace/didChangeConfiguration", settings)
        for name in ("compile", "emulate", "trace"):
            assert client.do(name, uri) is None
        assert client.messages[-3:] == ["this workspace is not trusted: its kernels are read and "
                                        "not run"] * 3  # fmt: skip
        assert "workspace/configuration" in client.requests_from_server
    assert folder.ran() == ""


def test_what_runs_of_it_is_noticed(folder: Folder) -> None:
    code = "import subprocess, helper; subprocess.run(['python3'])"
    env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(folder.hooks), str(folder.path)))}
    subprocess.run([sys.executable, "-c", code], env=env, cwd=folder.path, check=True)
    said = folder.ran()
    assert f"exec {folder.path / 'helper.py'}" in said
    assert "imported helper" in said
    assert "started python3" in said


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_a_pipe_in_place_of_a_project_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    os.mkfifo(inner / "pyproject.toml")
    (tmp_path / "pyproject.toml").write_text('[tool.tilelang]\ntarget = "cpu"\n')
    read = Path.read_text

    def read_once(path: Path, *more: Any, **named: Any) -> str:
        assert path.parent != inner, "this would never end"
        return read(path, *more, **named)

    monkeypatch.setattr(Path, "read_text", read_once)
    kernel = str(inner / "kernel.py")
    assert Projects().table(kernel) == {"target": "cpu"}
    outer = tmp_path / "pyproject.toml"
    assert Projects().text(kernel) == (str(outer), read(outer))
