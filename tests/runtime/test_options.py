"""Compile options and environment variables: what is legal, and what is said otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tilelang import options
from tilelang.options import BY_KEY, CompileOptions, PassConfigKey, make_options
from tilelang_diagnostics import CompileError

ROOT = Path(__file__).parents[2]


def test_every_key_has_a_row() -> None:
    assert [str(key) for key in PassConfigKey] == sorted(
        BY_KEY, key=[str(k) for k in PassConfigKey].index
    )


def test_keys_may_be_strings_members_or_later_spellings() -> None:
    for key in ("tl.enable_fast_math", PassConfigKey.TL_ENABLE_FAST_MATH):
        assert make_options({key: True}).fast_math
    assert make_options({"tirx.disable_vectorize": True})[PassConfigKey.TIR_DISABLE_VECTORIZE]
    assert make_options(None) == CompileOptions()


# Properties of CompileOptions, for the options that are read through one.
READ_AS = {
    PassConfigKey.TL_ENABLE_FAST_MATH: ".fast_math",
    PassConfigKey.TL_CONFIG_INDEX_BITWIDTH: ".index_bits",
    PassConfigKey.TL_DISABLE_SAFE_MEMORY_ACCESS: ".guard_accesses",
}


@pytest.mark.parametrize("row", options.OPTIONS, ids=lambda row: str(row.key))
def test_what_changes_nothing_says_so(row: options.Option) -> None:
    sources = (p for p in (ROOT / "tilelang").rglob("*.py") if p.name != "options.py")
    word = re.escape(READ_AS.get(row.key, f"PassConfigKey.{row.key.name}")) + r"\b"
    assert any(re.search(word, p.read_text()) for p in sources) == (not row.accepted)


def test_defaults_leave_no_trace() -> None:
    assert make_options({"tl.enable_fast_math": False}).changed == ()


@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"tl.enable_fastmath": True},
         "no compile option is called `tl.enable_fastmath`; did you mean `tl.enable_fast_math`?"),
        ({"tl.enable_fast_math": "yes"}, "tl.enable_fast_math is 'yes', expected True or False"),
        ({"tl.config_index_bitwidth": 33}, "tl.config_index_bitwidth is 33, expected 32 or 64"),
        ({"tl.layout_cost_model": "best"},
         "tl.layout_cost_model is 'best', expected register-count or io-aware"),
        ({"tl.ptxas_register_usage_level": 1.5},
         "tl.ptxas_register_usage_level is 1.5, expected an integer"),
    ],
)  # fmt: skip
def test_wrong_options(configs: dict[str, object], message: str) -> None:
    with pytest.raises(CompileError) as caught:
        make_options(configs)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("TL719", message)


def test_the_caller_wins_over_the_kernel() -> None:
    kernel = make_options({"tl.enable_fast_math": True, "tl.config_index_bitwidth": 64}, ["-a"])
    caller = make_options({"tl.disable_safe_memory_access": True}, "-b -a")
    merged = caller.with_defaults(kernel)
    assert merged.fast_math and merged.index_bits == 64 and not merged.guard_accesses
    assert merged.compile_flags == ("-a", "-b")


@pytest.mark.parametrize(
    ("variable", "text", "value"),
    [
        (options.DISABLE_CACHE, "YES", True),
        (options.DISABLE_CACHE, "off", False),
        (options.CACHE_LIMIT, "500M", 500 << 20),
        (options.CACHE_LIMIT, "2GiB", 2 << 30),
        (options.CACHE_LIMIT, "1000", 1000),
        (options.NUM_THREADS, "", None),
        (options.NUM_THREADS, "3", 3),
        (options.COMPILE_TIMEOUT, "1.5", 1.5),
    ],
)
def test_environment(
    monkeypatch: pytest.MonkeyPatch, variable: options.EnvVar, text: str, value: object
) -> None:
    monkeypatch.setenv(variable.name, text)
    assert variable.get() == value


@pytest.mark.parametrize(
    ("variable", "text"),
    [(options.DISABLE_CACHE, "maybe"), (options.CACHE_LIMIT, "lots"), (options.NUM_THREADS, "0"),
     (options.COMPILE_TIMEOUT, "soon"), (options.COMPILE_TIMEOUT, "-1")],
)  # fmt: skip
def test_impossible_environment(
    monkeypatch: pytest.MonkeyPatch, variable: options.EnvVar, text: str
) -> None:
    monkeypatch.setenv(variable.name, text)
    with pytest.raises(CompileError) as caught:
        variable.get()
    (found,) = caught.value.diagnostics
    assert found.code == "TL811"
    assert found.message.startswith(f"environment variable {variable.name} is {text!r}, expected ")


def test_the_environment_is_read_in_one_place() -> None:
    reading = re.compile(r"\bos\.environ\b|\bgetenv\b")
    found = [
        str(path.relative_to(ROOT))
        for folder in ("tilelang", "diagnostics", "lsp", "trace")
        for path in (ROOT / folder).rglob("*.py")
        if reading.search(path.read_text(encoding="utf-8"))
    ]
    assert found == ["tilelang/options.py"]
