"""Options of the test suite, its Hypothesis profiles, and the report of a full run."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))

# Property tests draw the same examples in every run of the sample, and new ones in a full run,
# whose seed is printed and written to the report.
FULL_EXAMPLES = 2000
settings.register_profile("sample", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("full", deadline=None, max_examples=FULL_EXAMPLES, print_blob=True)

# Of the rows of these tests one in so many runs by default, always the same, and all with --full.
SAMPLED = {
    "tests/complaints/test_gpu_budgets.py": 2,
    "tests/cpu/test_gemm.py": 3,
    "tests/emulator/test_absent_lanes.py": 2,
    "tests/gpu/test_compiles.py": 3,
    "tests/gpu_passes/test_partial_blocks.py": 3,
    "tests/hip/test_compiles.py": 2,
    "tests/hip/test_emulated.py": 3,
    "tests/ir/test_text_round_trip.py": 2,
    "tests/kernels/test_cpu.py": 2,
    "tests/kernels/test_front_end.py": 3,
    "tests/kernels/test_static.py": 3,
    "tests/lsp/test_insight.py": 2,
    "tests/metal/test_emulated.py": 3,
    "tests/ops/test_reduce.py": 3,
    "tests/test_pages.py": 3,
    "tests/trace/test_trace_mapping.py": 2,
    "tests/trace/test_trace_pipelines.py": 2,
}

# Kernels compiled by tests stay out of the user's cache.
os.environ.setdefault("TILELANG_CACHE_DIR", tempfile.mkdtemp(prefix="tilelang-tests-"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite expected texts and markers to what is found"
    )
    parser.addoption(
        "--full", action="store_true", help="run the large counts instead of a seeded sample"
    )
    parser.addoption(
        "--report", type=Path, help="with --full: write what ran, with seeds and counts, to a file"
    )


# PyTorch is optional: without it, the test files that are about it are left out.
HAS_TORCH = importlib.util.find_spec("torch") is not None


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    if HAS_TORCH or collection_path.suffix != ".py":
        return None
    return True if "\nimport torch\n" in collection_path.read_text() else None


def pytest_report_header() -> str | None:
    return None if HAS_TORCH else "no PyTorch: tests that need it are left out"


def pytest_runtest_setup(item: pytest.Item) -> None:
    if not HAS_TORCH and item.get_closest_marker("needs_torch"):
        pytest.skip("no PyTorch")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "needs_torch: a test that calls PyTorch in what it runs")
    settings.load_profile("full" if config.getoption("--full") else "sample")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the rows that a sample does without; tests asked for by file are all run."""
    if config.getoption("--full") or any("::" in str(x) or ".py" in str(x) for x in config.args):
        return
    kept, left = [], []
    for item in items:
        file, _, name = item.nodeid.partition("::")
        # By what a row is called: every n-th would leave out whole values of a parameter.
        drawn = zlib.crc32(item.nodeid.encode()) % SAMPLED.get(file, 1) == 0
        (kept if drawn or "[" not in name else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = kept


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """The report of a full run: what ran, on which commit, with which seeds and counts."""
    config = session.config
    path = config.getoption("--report")
    if path is None or not config.getoption("--full") or hasattr(config, "workerinput"):
        return
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    counts = {k: len(v) for k, v in reporter.stats.items() if k} if reporter else {}
    report = {
        "commit": _git("rev-parse", "HEAD"),
        "clean": not _git("status", "--porcelain", "--untracked-files=no"),
        "exit_status": int(exitstatus),
        "outcomes": counts,
        "hypothesis_examples_per_test": FULL_EXAMPLES,
        "seeds": {"random_kernels": 20261129, "random_edits": 20261129},
        "random_kernels": 2000,
        "random_edits": 2500,
    }
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(report, indent=2) + "\n")


def _git(*args: str) -> str:
    found = subprocess.run(["git", *args], cwd=ROOT, capture_output=True, text=True, check=False)
    return found.stdout.strip()


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are rewritten instead of compared."""
    return bool(request.config.getoption("--update"))


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the large counts run."""
    return bool(request.config.getoption("--full"))
