"""How fluent is the page of a trace with 20,000 lines? Measured in headless Chromium, and printed.

    python -m tests.trace.frames [--keep PAGE]

Nothing is asserted: what a frame takes depends on the machine. A frame of 60 a second has 16.7 ms;
a long task is one of more than 50 ms, in which the page answers to nothing.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.trace import pages
from tests.trace.test_viewer import BROWSERS, modules
from tilelang_trace.html.page import page_of

SCRIPT = Path(__file__).with_suffix(".mjs")
COLUMNS = ("frames", "median_ms", "p95_ms", "worst_ms", "long_tasks", "longest_ms")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keep", type=Path, help="where to leave the page")
    given = parser.parse_args()
    browser = next((b for name in BROWSERS if (b := shutil.which(name))), None)
    if browser is None:
        raise SystemExit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        page = given.keep or Path(folder) / "large.html"
        text = page_of(pages.large())
        page.write_text(text, encoding="utf-8")
        done = subprocess.run(
            ["node", str(SCRIPT), str(page.resolve()), browser, str(modules())],
            capture_output=True, text=True, check=False, timeout=600,
        )  # fmt: skip
    if done.returncode != 0:
        raise SystemExit(done.stderr)
    found = json.loads(done.stdout.splitlines()[-1])
    print(f"20,000 lines, {len(text.encode()) / 1e6:.1f} MB; "
          f"ready after {found['load']['ready_ms']} ms")  # fmt: skip
    print("| | " + " | ".join(COLUMNS) + " |")
    print("|---" * (len(COLUMNS) + 1) + "|")
    for name, row in found.items():
        print(f"| {name} | " + " | ".join(str(row.get(c, "")) for c in COLUMNS) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
