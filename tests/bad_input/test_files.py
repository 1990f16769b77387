"""Files that are no text, no Python, or more than Python can read: where, and what is wrong."""

from __future__ import annotations

import encodings.aliases
from pathlib import Path

import pytest

from tilelang.cli.dispatch import run_command
from tilelang.cli.files import read
from tilelang_diagnostics import CompileError, SourceMap

_ENCODINGS = {*encodings.aliases.aliases.values(), "undefined", "idna", "punycode", "no-such"}
_BODIES = (b"x = 1\n", b"x = '\\x'\n", b"\xff\xfe\x00 \xe9\n", b"x" * 70 + b"..\n")


def test_whatever_a_codec_raises(tmp_path: Path) -> None:
    """Each raises errors of its own; the excerpt reads the file again."""
    path = tmp_path / "k.py"
    refused = set()
    for encoding in _ENCODINGS:
        for body in _BODIES:
            path.write_bytes(f"# -*- coding: {encoding} -*-\n".encode() + body)
            try:
                read(path)
            except CompileError as error:
                (found,) = error.diagnostics
                assert found.code == "TL106" and found.span is not None
                refused.add(encoding)
            assert SourceMap().lines(str(path))
    assert {"undefined", "no-such", "rot_13", "utf_8"} <= refused


@pytest.mark.parametrize("command", ["lint", "trace", "compile"])
def test_an_encoding_that_never_decodes(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "u.py"
    path.write_text("# -*- coding: undefined -*-\nx = 1\n")
    assert run_command([command, str(path)]) == 1
    said = capsys.readouterr()
    assert "error[TL106]" in said.out + said.err
    assert f"{path}:1:1" in said.out + said.err
