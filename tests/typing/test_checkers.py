"""Pyright and mypy underline nothing in valid kernels, and every mistake in the others.

`valid_anywhere.py` holds without settings; the examples, the kernels of the tests and `valid.py`
with those that docs/editors.md recommends, which are in pyproject.toml and `mypy.ini`.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
MISTAKES = HERE / "mistakes.py"
PATHS = [str(ROOT), *(str(ROOT / folder) for folder in ("diagnostics", "trace", "lsp"))]
Found = set[tuple[str, int]]

needs_pyright = pytest.mark.skipif(
    importlib.util.find_spec("pyright") is None, reason="pyright is not installed"
)
needs_mypy = pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed"
)


def marked(path: Path) -> Found:
    lines = path.read_text(encoding="utf-8").split("\n")
    return {(path.name, n) for n, line in enumerate(lines, 1) if line.endswith("# wrong")}


def python(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)},
    )  # fmt: skip


def pyright(folder: Path, files: Sequence[str], **settings: object) -> Found:
    """What is underlined; settings are those of a file `pyrightconfig.json`."""
    relative = [os.path.relpath(ROOT / file, folder) for file in files]
    config = {"pythonVersion": "3.11", "extraPaths": PATHS, "include": relative, **settings}
    path = folder / "pyrightconfig.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    done = python(
        "-m", "pyright", "--outputjson", "-p", str(path), "--pythonpath", sys.executable
    )  # fmt: skip
    try:
        report = json.loads(done.stdout)
    except json.JSONDecodeError:
        pytest.fail(f"pyright printed no report: {done.stdout}{done.stderr}")
    assert report["summary"]["filesAnalyzed"] >= len(files)
    return {
        (Path(d["file"]).name, d["range"]["start"]["line"] + 1)
        for d in report["generalDiagnostics"]
    }


def mypy(cache: Path, *arguments: str) -> Found:
    done = python("-m", "mypy", "--cache-dir", str(cache), *arguments)
    assert done.returncode in (0, 1), done.stderr + done.stdout
    assert "Found" in done.stdout or "Success" in done.stdout
    lines = re.findall(r"^(\S+?):(\d+): (?:error|note): ", done.stdout, re.MULTILINE)
    return {(Path(file).name, int(line)) for file, line in lines}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mypy")


@needs_pyright
def test_pyright_with_the_recommended_settings(tmp_path: Path) -> None:
    ours = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pyright"]
    rules = {name: value for name, value in ours.items() if name.startswith("report")}
    if importlib.util.find_spec("torch") is None:  # which some examples import
        rules["reportMissingImports"] = False
    files = [*ours["include"], str(MISTAKES)]
    assert pyright(tmp_path, files, **rules) == marked(MISTAKES)


@needs_pyright
@pytest.mark.parametrize("mode", ["off", "standard"])
def test_pyright_without_settings(tmp_path: Path, mode: str) -> None:
    found = pyright(tmp_path, ["tests/typing/valid_anywhere.py"], typeCheckingMode=mode)
    assert found == set()


@needs_pyright
def test_an_annotation_that_is_a_call_needs_the_settings(tmp_path: Path) -> None:
    """If this fails, Pyright has learned it, and the settings can go."""
    assert pyright(tmp_path, ["examples/quickstart.py"]) != set()


@needs_mypy
def test_mypy_with_the_recommended_settings(cache: Path) -> None:
    files = ["examples", "tests/kernels", "tests/typing/valid.py", "tests/typing/valid_anywhere.py"]
    config = str(HERE / "mypy.ini")
    found = mypy(cache, "--config-file", config, *files, str(MISTAKES))
    assert {f for f in found if f not in marked(MISTAKES)} == set()
    assert marked(MISTAKES) <= found


@needs_mypy
def test_mypy_without_settings(cache: Path, tmp_path: Path) -> None:
    config = tmp_path / "mypy.ini"
    path = ":".join(PATHS)
    config.write_text(
        f"[mypy]\nmypy_path = {path}\nexplicit_package_bases = true\nfollow_imports = silent\n",
        encoding="utf-8",
    )
    assert mypy(cache, "--config-file", str(config), "tests/typing/valid_anywhere.py") == set()


@needs_mypy
def test_stubtest_finds_no_difference_to_what_is_there(tmp_path: Path) -> None:
    config = tmp_path / "mypy.ini"
    config.write_text(
        f"[mypy]\nmypy_path = {':'.join(PATHS)}\nexplicit_package_bases = true\n", encoding="utf-8"
    )
    done = python(str(HERE / "run_stubtest.py"), str(config), str(tmp_path / "allowed"))
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_settings_are_the_same_wherever_they_are_written() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    rules = {n for n, on in project["tool"]["pyright"].items() if on is False}
    assert rules == {"reportInvalidTypeForm", "reportRedeclaration"}
    guide = (ROOT / "docs/editors.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    [shown] = (block for block in blocks if "tool.pyright" in block)
    recommended = tomllib.loads(shown)["tool"]
    assert recommended["pyright"] == dict.fromkeys(rules, False)
    ini = (HERE / "mypy.ini").read_text(encoding="utf-8")
    codes = ", ".join(recommended["mypy"]["disable_error_code"])
    assert f"disable_error_code = {codes}\n" in ini
    extension = json.loads((ROOT / "vscode-extension/package.json").read_text(encoding="utf-8"))
    pylance = extension["contributes"]["configurationDefaults"]
    overrides = pylance["python.analysis.diagnosticSeverityOverrides"]
    assert overrides == dict.fromkeys(rules, "none")
