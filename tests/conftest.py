"""Options of the test suite and paths that make it run from a plain checkout."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update", action="store_true", help="rewrite expected texts and markers to what is found"
    )
    parser.addoption(
        "--full", action="store_true", help="run the large counts instead of a seeded sample"
    )


@pytest.fixture
def update(request: pytest.FixtureRequest) -> bool:
    """Whether expectations are rewritten instead of compared."""
    return bool(request.config.getoption("--update"))


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether the large counts run."""
    return bool(request.config.getoption("--full"))
