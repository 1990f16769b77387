"""How much work is one answer? Counted, as clocks differ: an editor waits for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.layouts.test_every_kernel_infers import EXAMPLES
from tilelang.cli.files import choose
from tilelang.cli.specialise import specialise
from tilelang.layout import propagate
from tilelang.layouts import infer, shared
from tilelang.layouts.machine import machine_of


def test_flash_attention_takes_few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: Counter[str] = Counter()

    def count(owner: Any, name: str) -> None:
        real = getattr(owner, name)

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            counted[name] += 1
            return real(*args, **kwargs)

        monkeypatch.setattr(owner, name, wrapped)

    special = specialise(choose(str(EXAMPLES / "flash_attention.py")), {"kv_heads": 2}, "cpu")
    count(propagate.State, "assign")
    count(shared, "_counted")
    infer._infer.cache_clear()
    found = infer.infer_layouts(special.function, "cuda:sm_80")
    assert len(list(found)) == 23
    # 20 variables, and four widths tried for each of three copies; six accesses for each of the
    # two layouts tried of three tiles, and once more to report them.
    assert counted["assign"] <= 40
    assert counted["_counted"] <= 80
    infer.infer_layouts(special.function, machine_of("cuda:sm_80").name)
    assert counted["assign"] <= 40
