"""The page of a trace in a real Chromium, driven by `viewer.mjs`.

Needs node, npm and Chromium; playwright-core and axe-core come from npm into a folder for
temporary files. Where one of them is missing the tests are skipped, and say so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.trace import pages
from tilelang.runtime.cache import one_process
from tilelang_trace.html.page import page_of

SCRIPT = Path(__file__).with_name("viewer.mjs")
CHECKS = re.findall(r'^  async "([^"]+)"\(\)', SCRIPT.read_text(encoding="utf-8"), re.MULTILINE)
PACKAGES = ("playwright-core@1", "axe-core@4")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What each check of the script found."""
    browser = next((b for name in BROWSERS if (b := shutil.which(name))), None)
    if browser is None:
        pytest.skip("Chromium is not installed")
    # Processes that share the tests share the browser's answers: one asks, the others wait.
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    kept = shared / "viewer.json"
    with one_process(shared / "viewer.lock"):
        if not kept.exists():
            kept.write_text(json.dumps(checked(browser, tmp_path_factory.mktemp("pages"))))
    return json.loads(kept.read_text())  # type: ignore[no-any-return]


def checked(browser: str, folder: Path) -> dict[str, Any]:
    """What the script says of each check; pages are written into `folder`."""
    found_modules = modules()
    for name in ("gemm", "failed", "hostile", "large"):
        (folder / f"{name}.html").write_text(page_of(getattr(pages, name)()), encoding="utf-8")
    done = subprocess.run(
        ["node", str(SCRIPT), str(folder), browser, str(found_modules)],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    print(json.dumps(found["figures"]))
    return found["checks"]  # type: ignore[no-any-return]


def modules() -> Path:
    """The folder with the packages of the script; installed once a machine."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("node and npm are not installed")
    folder = Path(tempfile.gettempdir()) / "tilelang-tests-viewer"
    wanted = [folder / "node_modules" / name.partition("@")[0] for name in PACKAGES]
    if not all(path.is_dir() for path in wanted):
        folder.mkdir(exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n')
        done = subprocess.run(
            ["npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", *PACKAGES],
            cwd=folder, capture_output=True, text=True, check=False, timeout=180,
        )  # fmt: skip
        if done.returncode != 0:
            last = (done.stderr.strip() or "npm failed").splitlines()[-1]
            pytest.skip(f"playwright-core cannot be installed: {last}")
    return folder


@pytest.mark.parametrize("name", CHECKS)
def test_in_chromium(results: dict[str, Any], name: str) -> None:
    assert results[name] is None, results[name]


def test_the_script_has_checks() -> None:
    assert len(CHECKS) >= 15
