"""Does every example end well, and say how far off it was?"""

from __future__ import annotations

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = tuple(sorted((Path(__file__).parents[2] / "examples").glob("*.py")))
# The quickstart's own sizes are for a clock; here they need only be odd.
ARGUMENTS = {"quickstart.py": ["--m", "203", "--n", "101", "--k", "77", "--repeat", "1"]}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_passes_by_exit_code(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if "import torch" in path.read_text() and importlib.util.find_spec("torch") is None:
        pytest.skip("this example is about PyTorch")
    monkeypatch.setattr(sys, "argv", [str(path), *ARGUMENTS.get(path.name, [])])
    with pytest.raises(SystemExit) as end:
        runpy.run_path(str(path), run_name="__main__")
    assert end.value.code == 0
    printed = capsys.readouterr().out
    assert "error" in printed or "wrong" in printed
