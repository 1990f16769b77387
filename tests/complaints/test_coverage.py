"""Where is each complaint of the collected list answered? Every row names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.complaints.cases import CASES
from tests.gpu import conversions
from tests.layouts import test_layout_complaints as layouts

TESTS = Path(__file__).resolve().parent.parent
FOLDER = Path(__file__).parent

# Numbers of the list. `L` and a name: a case of `test_layout_complaints` that begins so. Everything
# else is found by its number: cases, conversions, and tests called `test_NUMBER_…`.
NUMBERS = (
    "1", "2", "3", "5", "6", "8", "10", "11", "13", "14", "15", "17", "18", "20", "21", "22", "24",
    "25", "27", "28", "30", "32", "34", "36", "37", "39", "40", "42", "43", "44", "45", "48", "50",
    "51", "52", "53", "55", "56", "S1", "S2", "S3", "S4", "S5", "S6", "S8", "S9", "S10", "S11",
    "S12",
)  # fmt: skip
IN_LAYOUTS = {
    "1": "1165", "2": "1374", "3": "2398", "6": "3005", "8": "2957", "10": "2311", "11": "2547",
    "13": "1554", "14": "2918", "15": "3032", "18": "303", "48": "3007", "S5": "S5", "S10": "S10",
}  # fmt: skip
ELSEWHERE = {
    "28": ("gpu_passes/test_pipeline_loops.py", "test_a_conversion"),
    "50": ("runtime/test_autotune.py", "test_when_nothing_works_every_reason_is_told"),
    "S11": ("runtime/test_target.py", "test_auto_never_hides_a_gpu_it_cannot_use"),
}


@pytest.mark.parametrize("number", NUMBERS)
def test_every_complaint_is_answered(number: str) -> None:
    assert places_of(number), f"no test answers complaint {number}"


def places_of(number: str) -> list[str]:
    """The tests about a complaint."""
    bare = re.compile(rf"{number}[a-z]?")
    found = [f"case {c.number}" for c in CASES if bare.fullmatch(c.number)]
    name = re.compile(rf"def (test_{number.lower()}_\w+)")
    for path in sorted(FOLDER.glob("test_*.py")):
        found += name.findall(path.read_text())
    found += [
        c.name for c in conversions.CASES if re.fullmatch(rf"complaint_{number}(_.*)?", c.name)
    ]
    prefix = IN_LAYOUTS.get(number)
    if prefix is not None:
        listed = [c.name for c in layouts.CASES if c.name.startswith(prefix)]
        assert listed, prefix
        found += listed
    if number in ELSEWHERE:
        file, test = ELSEWHERE[number]
        assert f"def {test}" in (TESTS / file).read_text()
        found.append(f"{file}::{test}")
    return found
