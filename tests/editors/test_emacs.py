"""Emacs with the configuration that docs/editors.md gives: what Eglot shows of a kernel file.

Skipped without Emacs and Eglot (Debian: `apt-get install emacs-nox elpa-eglot`).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.editors.session import KERNEL, column_of, environment, line_of, snippet

EMACS = shutil.which("emacs")
SCRIPT = r"""
(find-file FILE)
(python-mode)
(setq eglot-connect-timeout 90 eglot-sync-connect 90)
(call-interactively 'eglot)
(let ((n 0))
  (while (and (< n 300) (null (flymake-diagnostics))) (accept-process-output nil 0.2)
         (setq n (1+ n))))
(dolist (d (flymake-diagnostics))
  (save-excursion
    (goto-char (flymake-diagnostic-beg d))
    (message "finding %d %d %s" (1- (line-number-at-pos)) (current-column)
             (car (split-string (flymake-diagnostic-text d) "\n")))))
(goto-char (point-min))
(search-forward "tile = ")
(goto-char (match-beginning 0))
(message "hover %s" (plist-get (plist-get (jsonrpc-request (eglot--current-server-or-lose)
  :textDocument/hover (eglot--TextDocumentPositionParams)) :contents) :value))
(eglot-rename "block")
(message "renamed %d" (how-many "block" (point-min) (point-max)))
(goto-char (point-min))
(search-forward "T.copy(")
(backward-char 3)
(message "completion %s" (all-completions "alloc_fr" (nth 2 (eglot-completion-at-point))))
(search-forward "alloc_sharde")
(dolist (a (append (eglot-code-actions (line-beginning-position) (line-end-position)) nil))
  (message "action %s" (plist-get a :title)))
"""


def has_eglot() -> bool:
    if EMACS is None:
        return False
    return subprocess.run([EMACS, "--batch", "-l", "eglot"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not has_eglot(), reason="needs Emacs with Eglot")


def test_what_eglot_shows(tmp_path: Path) -> None:
    assert EMACS is not None
    file, script = tmp_path / "kernel.py", tmp_path / "script.el"
    file.write_text(KERNEL)
    body = SCRIPT.replace("FILE", f'"{file}"')
    script.write_text(f"{snippet('Emacs', 'elisp')}\n(require 'eglot)\n{body}")
    done = subprocess.run(
        [EMACS, "--batch", "-l", str(script)], cwd=tmp_path, env=environment(tmp_path),
        capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    said = done.stderr
    place = f"finding {line_of('alloc_sharde')} {column_of('alloc_sharde')} tilelang [TL111]"
    assert place in said, said
    assert "hover tile: (128,) float32 shared" in said
    assert "renamed 3" in said
    assert "action write `alloc_shared`" in said
