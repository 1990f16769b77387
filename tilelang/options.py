"""What can a user set, by compile option or by environment variable, and what does it do?

The one home of both: every pass-config key is a row of `OPTIONS`, every environment variable a row
of `ENVIRONMENT`, and no other file reads `os.environ`. Keys that kernels in the wild carry but that
change nothing here are rows too (`accepted`), so that those kernels compile unchanged.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Any, Final, NoReturn, TypeAlias

from tilelang_diagnostics import code_of, did_you_mean, error_for, with_article
from tilelang_diagnostics.model import Diagnostic

OptionValue: TypeAlias = "bool | int | float | str | tuple[str, ...]"


class PassConfigKey(StrEnum):
    """The keys of `pass_configs`; a plain string of the same spelling does as well."""

    TL_ENABLE_FAST_MATH = "tl.enable_fast_math"
    TL_CONFIG_INDEX_BITWIDTH = "tl.config_index_bitwidth"
    TL_DISABLE_DATA_RACE_CHECK = "tl.disable_data_race_check"
    TL_DISABLE_BUFFER_INIT_CHECK = "tl.disable_buffer_init_check"
    TL_DISABLE_SAFE_MEMORY_ACCESS = "tl.disable_safe_memory_access"
    TL_DISABLE_OUT_OF_BOUND_WARNING = "tl.disable_out_of_bound_warning"
    TL_DISABLE_PRELOWER_SEMANTIC_CHECK = "tl.disable_prelower_semantic_check"
    TL_DISABLE_WARP_SPECIALIZED = "tl.disable_warp_specialized"
    TL_DISABLE_TMA_LOWER = "tl.disable_tma_lower"
    TL_DISABLE_THREAD_STORAGE_SYNC = "tl.disable_thread_storage_sync"
    TL_DISABLE_SHARED_MEMORY_REUSE = "tl.disable_shared_memory_reuse"
    TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE = "tl.enable_aggressive_shared_memory_merge"
    TL_ENABLE_ASYNC_COPY = "tl.enable_async_copy"
    TL_ENABLE_LOWER_LDGSTG = "tl.enable_lower_ldgstg"
    TL_ENABLE_LOWER_LDGSTG_PREDICATED = "tl.enable_lower_ldgstg_predicated"
    TL_DISABLE_VECTORIZE_256 = "tl.disable_vectorize_256"
    TL_DISABLE_WGMMA = "tl.disable_wgmma"
    TL_DISABLE_SHUFFLE_ELECT = "tl.disable_shuffle_elect"
    TL_DISABLE_LOOP_UNSWITCHING = "tl.disable_loop_unswitching"
    TL_LOOP_UNSWITCHING_ALLOW_NON_TRIVIAL_ELSE = "tl.loop_unswitching_allow_non_trivial_else"
    TL_IF_STMT_BINDING_INLINE_REPLAYABLE_BINDS = "tl.if_stmt_binding_inline_replayable_binds"
    TL_SIMPLIFY = "tl.Simplify"
    TL_FORCE_LET_INLINE = "tl.force_let_inline"
    TL_STORAGE_REWRITE_DETECT_INPLACE = "tl.storage_rewrite_detect_inplace"
    TL_LAYOUT_COST_MODEL = "tl.layout_cost_model"
    TL_REDUCER_FORCE_BASELINE = "tl.reducer_force_baseline"
    TL_PTXAS_REGISTER_USAGE_LEVEL = "tl.ptxas_register_usage_level"
    TL_ENABLE_PTXAS_VERBOSE_OUTPUT = "tl.enable_ptxas_verbose_output"
    TL_DEVICE_COMPILE_FLAGS = "tl.device_compile_flags"
    TL_EMIT_LINE_DIRECTIVES = "tl.emit_line_directives"
    TL_PASS_PROFILE = "tl.pass_profile"
    TL_PASS_PROFILE_THRESHOLD_MS = "tl.pass_profile_threshold_ms"
    TL_LAYOUT_VISUALIZATION_ENABLE = "tl.layout_visualization_enable"
    TL_LAYOUT_VISUALIZATION_FORMATS = "tl.layout_visualization_formats"
    TL_ENABLE_VECTORIZE_PLANNER_VERBOSE = "tl.enable_vectorize_planner_verbose"
    TL_AST_PRINT_ENABLE = "tl.ast_print_enable"
    TL_ENABLE_DUMP_IR = "tl.enable_dump_ir"
    TL_DUMP_IR_DIR = "tl.dump_ir_dir"
    TIR_DISABLE_VECTORIZE = "tir.disable_vectorize"
    TIR_USE_ASYNC_COPY = "tir.use_async_copy"
    TIR_ENABLE_DEBUG = "tir.enable_debug"
    TIR_MERGE_STATIC_SMEM = "tir.merge_static_smem"
    TIR_ADD_LOWER_PASS = "tir.add_lower_pass"
    TIR_NOALIAS = "tir.noalias"
    CUDA_KERNELS_OUTPUT_DIR = "cuda.kernels_output_dir"


@dataclass(frozen=True, slots=True)
class Option:
    """One compile option. `accepted` ones are legal and checked, but change nothing here."""

    key: PassConfigKey
    default: OptionValue
    doc: str
    choices: tuple[OptionValue, ...] = ()
    accepted: bool = False
    deprecated: str | None = None

    def check(self, value: Any) -> OptionValue:
        """`value` in the option's type; raises ValueError saying what would be legal."""
        wanted = type(self.default)
        if wanted is tuple:
            items = value.split() if isinstance(value, str) else value
            if not isinstance(items, Iterable) or not all(isinstance(i, str) for i in items):
                raise ValueError("a list of strings")
            return tuple(items)
        if wanted is bool and isinstance(value, int) and value in (0, 1):
            value = bool(value)
        if wanted is float and isinstance(value, int):
            value = float(value)
        if type(value) is not wanted:
            raise ValueError(_TYPE_WORDS[wanted])
        if self.choices and value not in self.choices:
            raise ValueError(" or ".join(str(c) for c in self.choices))
        checked: OptionValue = value
        return checked


_TYPE_WORDS: Final[Mapping[type, str]] = {
    bool: "True or False",
    int: "an integer",
    float: "a number",
    str: "a string",
}


def _accepted(
    key: PassConfigKey, default: OptionValue, doc: str, deprecated: str = "",
    choices: tuple[OptionValue, ...] = (),
) -> Option:  # fmt: skip
    return Option(key, default, doc, choices, accepted=True, deprecated=deprecated or None)


_K = PassConfigKey

OPTIONS: Final[tuple[Option, ...]] = (
    # What the compiler acts on.
    Option(_K.TL_ENABLE_FAST_MATH, False, "approximate functions, reassociated float arithmetic"),
    Option(_K.TL_CONFIG_INDEX_BITWIDTH, 32, "width that index arithmetic starts from",
           choices=(32, 64)),
    Option(_K.TL_DISABLE_SAFE_MEMORY_ACCESS, False,
           "leave out the bounds guards of accesses that cannot be proved in range"),
    Option(_K.TL_EMIT_LINE_DIRECTIVES, False, "write #line into generated source, for debuggers"),
    Option(_K.TL_DEVICE_COMPILE_FLAGS, (), "further flags for the device compiler"),
    Option(_K.TL_PTXAS_REGISTER_USAGE_LEVEL, 5, "ptxas --register-usage-level"),
    Option(_K.TL_DISABLE_WGMMA, False, "T.gemm by mma.sync instead of warp-group instructions"),
    Option(_K.TL_DISABLE_WARP_SPECIALIZED, False, "no warp of its own loads for a pipeline"),
    Option(_K.TL_DISABLE_TMA_LOWER, False, "no bulk copies through TMA in place of T.copy",
           deprecated="use T.copy(..., disable_tma=True)"),
    # Checks that are silent about every correct kernel always run.
    _accepted(_K.TL_DISABLE_DATA_RACE_CHECK, True, "do not look for races in T.Parallel"),
    _accepted(_K.TL_DISABLE_BUFFER_INIT_CHECK, False, "do not warn of reads before writes"),
    _accepted(_K.TL_DISABLE_OUT_OF_BOUND_WARNING, False, "do not warn of accesses out of range"),
    _accepted(_K.TL_DISABLE_PRELOWER_SEMANTIC_CHECK, False, "skip the checks before lowering"),
    # Choices there is one answer to.
    _accepted(_K.TIR_DISABLE_VECTORIZE, False, "emit every loop as scalar code"),
    _accepted(_K.TL_LAYOUT_COST_MODEL, "register-count", "what layout inference minimises",
           choices=("register-count", "io-aware")),
    # What belongs to GPUs.
    _accepted(_K.TL_DISABLE_THREAD_STORAGE_SYNC, False, "insert no barriers; the author does"),
    Option(_K.TL_DISABLE_SHARED_MEMORY_REUSE, False, "every shared buffer gets its own memory"),
    Option(_K.TL_ENABLE_AGGRESSIVE_SHARED_MEMORY_MERGE, False,
              "reuse shared memory inside loops"),
    _accepted(_K.TL_ENABLE_ASYNC_COPY, True, "asynchronous copies outside pipelines"),
    _accepted(_K.TL_ENABLE_LOWER_LDGSTG, False, "explicit global load and store instructions"),
    _accepted(_K.TL_ENABLE_LOWER_LDGSTG_PREDICATED, False, "the same, with predicates"),
    _accepted(_K.TL_DISABLE_VECTORIZE_256, False, "vectors of at most 128 bits"),
    _accepted(_K.TL_DISABLE_SHUFFLE_ELECT, False, "no elect.sync"),
    _accepted(_K.TL_ENABLE_PTXAS_VERBOSE_OUTPUT, False, "print what ptxas reports"),
    _accepted(_K.TIR_USE_ASYNC_COPY, True, "asynchronous copies in pipelines"),
    _accepted(_K.TIR_MERGE_STATIC_SMEM, True, "one static shared allocation"),
    _accepted(_K.CUDA_KERNELS_OUTPUT_DIR, "", "where device sources are kept"),
    # What names steps of another compiler.
    _accepted(_K.TL_DISABLE_LOOP_UNSWITCHING, False, "keep invariant branches inside loops"),
    _accepted(_K.TL_LOOP_UNSWITCHING_ALLOW_NON_TRIVIAL_ELSE, False, "unswitch loops with an else"),
    _accepted(_K.TL_IF_STMT_BINDING_INLINE_REPLAYABLE_BINDS, False,
              "repeat values inside branches"),
    _accepted(_K.TL_SIMPLIFY, True, "simplify between passes"),
    _accepted(_K.TL_FORCE_LET_INLINE, False, "substitute every bound value"),
    _accepted(_K.TL_STORAGE_REWRITE_DETECT_INPLACE, False,
              "reuse an operand's memory for the result"),
    _accepted(_K.TL_REDUCER_FORCE_BASELINE, False, "the plain lowering of reducers"),
    _accepted(_K.TL_PASS_PROFILE, False, "time the passes", deprecated="use tilelang trace"),
    _accepted(_K.TL_PASS_PROFILE_THRESHOLD_MS, 0.0, "leave out faster passes"),
    _accepted(_K.TL_LAYOUT_VISUALIZATION_ENABLE, False, "draw the layouts",
              deprecated="use tilelang compile --emit layouts"),
    _accepted(_K.TL_LAYOUT_VISUALIZATION_FORMATS, "", "formats of the drawings"),
    _accepted(_K.TL_ENABLE_VECTORIZE_PLANNER_VERBOSE, False, "print vectorisation decisions"),
    _accepted(_K.TL_AST_PRINT_ENABLE, False, "print the program", deprecated="use tilelang trace"),
    _accepted(_K.TL_ENABLE_DUMP_IR, False,
              "write the IR of each pass", deprecated="use tilelang trace"),
    _accepted(_K.TL_DUMP_IR_DIR, "", "where to write it"),
    _accepted(_K.TIR_ENABLE_DEBUG, False, "debug information in generated code"),
    _accepted(_K.TIR_ADD_LOWER_PASS, (), "further passes"),
    _accepted(_K.TIR_NOALIAS, True, "parameters do not overlap"),
)  # fmt: skip

BY_KEY: Final[Mapping[str, Option]] = {str(row.key): row for row in OPTIONS}
# Kernels written for a later TVM spell the second family `tirx.`.
_ALIASES: Final[Mapping[str, str]] = {
    key.replace("tir.", "tirx.", 1): key for key in BY_KEY if key.startswith("tir.")
}


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """The options of one compilation: only what differs from the defaults, sorted by key."""

    changed: tuple[tuple[str, OptionValue], ...] = ()
    compile_flags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        keys = [key for key, _ in self.changed]
        if keys != sorted(set(keys)):
            raise ValueError(f"keys are not sorted and unique: {keys}")

    def __getitem__(self, key: PassConfigKey) -> Any:
        for name, value in self.changed:
            if name == key.value:
                return value
        return BY_KEY[key.value].default

    def with_defaults(self, below: CompileOptions) -> CompileOptions:
        """These options, with those of `below` where nothing was said here."""
        merged = dict(below.changed) | dict(self.changed)
        flags = below.compile_flags + self.compile_flags
        return CompileOptions(tuple(sorted(merged.items())), tuple(dict.fromkeys(flags)))

    @property
    def fast_math(self) -> bool:
        """Whether floating-point arithmetic may be reassociated and approximated."""
        return bool(self[PassConfigKey.TL_ENABLE_FAST_MATH])

    @property
    def index_bits(self) -> int:
        """The width index arithmetic starts from; it widens where 32 bits cannot hold it."""
        return int(self[PassConfigKey.TL_CONFIG_INDEX_BITWIDTH])

    @property
    def guard_accesses(self) -> bool:
        """Whether accesses that cannot be proved in range get a bounds guard."""
        return not self[PassConfigKey.TL_DISABLE_SAFE_MEMORY_ACCESS]


def make_options(
    pass_configs: Mapping[Any, Any] | None = None, compile_flags: Iterable[str] | str | None = None
) -> CompileOptions:
    """The checked options; TL719 for a key that does not exist or a value it cannot have."""
    changed: dict[str, OptionValue] = {}
    if pass_configs is not None and not isinstance(pass_configs, Mapping):
        given_as = with_article(type(pass_configs).__name__)
        _refuse("TL719", f"compile options are given as {given_as}",
                "pass a dict: pass_configs={'tl.…': value}")  # fmt: skip
    for given, value in (pass_configs or {}).items():
        key = str(given.value if isinstance(given, Enum) else given)
        key = _ALIASES.get(key, key)
        if key not in BY_KEY:
            hint = did_you_mean(key, BY_KEY)
            _refuse("TL719", f"no compile option is called `{key}`{hint}",
                    "`tilelang.PassConfigKey` lists them")  # fmt: skip
        row = BY_KEY[key]
        try:
            checked = row.check(value)
        except ValueError as error:
            _refuse("TL719", f"{key} is {value!r}, expected {error}", f"{key}: {row.doc}")
        if checked != row.default:
            changed[key] = checked
    flags = compile_flags.split() if isinstance(compile_flags, str) else (compile_flags or ())
    return CompileOptions(tuple(sorted(changed.items())), tuple(flags))


@dataclass(frozen=True, slots=True)
class EnvVar:
    """One environment variable. `parse` raises ValueError with what would be legal."""

    name: str
    default: str
    doc: str
    parse: Callable[[str], Any] = str

    def get(self) -> Any:
        """Its value now; TL811 when it cannot be read."""
        text = os.environ.get(self.name, self.default)
        try:
            return self.parse(text)
        except ValueError as error:
            _refuse(
                "TL811",
                f"environment variable {self.name} is {text!r}, expected {error}",
                f"unset it for the default {self.default!r}",
            )

    def is_set(self) -> bool:
        """Whether the user gave it a value."""
        return self.name in os.environ


def _flag(text: str) -> bool:
    lowered = text.strip().lower()
    if lowered in ("1", "true", "yes", "on"):
        return True
    if lowered in ("", "0", "false", "no", "off"):
        return False
    raise ValueError("1, true, yes, on or 0, false, no, off")


def _count(text: str) -> int | None:
    if text.strip() in ("", "-1"):
        return None
    if not text.strip().isdigit() or int(text) < 1:
        raise ValueError("a positive integer")
    return int(text)


_SIZES: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def _size(text: str) -> int:
    cleaned = text.strip().upper().removesuffix("B").removesuffix("I")
    unit = cleaned[-1:] if cleaned[-1:] in ("K", "M", "G", "T") else ""
    number = cleaned.removesuffix(unit)
    if not number.isdigit():
        raise ValueError("a size such as 500M or 2G")
    return int(number) * _SIZES[unit]


# Three weeks: what waits for a process takes no more milliseconds than 31 bits hold.
_LONGEST: Final = 2e6


def _seconds(text: str) -> float | None:
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not value > 0:
        raise ValueError("a positive number of seconds")
    return min(value, _LONGEST)


CACHE_DIR: Final = EnvVar(
    "TILELANG_CACHE_DIR", "", "where compiled kernels are kept: a folder, or a URL hosts share"
)
CACHE_LIMIT: Final = EnvVar(
    "TILELANG_CACHE_LIMIT", "2G", "size at which the oldest cached kernels are dropped", _size
)
DISABLE_CACHE: Final = EnvVar("TILELANG_DISABLE_CACHE", "0", "compile every time", _flag)
DEFAULT_TARGET: Final = EnvVar(
    "TILELANG_DEFAULT_TARGET", "auto", "the target where none is given; JSON for a dict"
)
VERBOSE: Final = EnvVar("TILELANG_VERBOSE", "0", "say what is compiled and why", _flag)
PRINT_ON_COMPILATION: Final = EnvVar(
    "TILELANG_PRINT_ON_COMPILATION", "1",
    "say once what target auto stands for, and when the emulator is built", _flag,
)  # fmt: skip
NUM_THREADS: Final = EnvVar(
    "TILELANG_NUM_THREADS", "", "cores a CPU kernel runs on (default: all it may use)", _count
)
COMPILE_TIMEOUT: Final = EnvVar(
    "TILELANG_COMPILE_TIMEOUT_SECONDS", "", "give up on a worker after this long", _seconds
)
CRASH_DIR: Final = EnvVar(
    "TILELANG_CRASH_DIR", "", "where reproducers of compiler failures go (default: in the cache)"
)
TRACE: Final = EnvVar(
    "TILELANG_TRACE", "", "a folder: each compilation of a program leaves its trace there"
)
COMPILER: Final = EnvVar("CC", "", "C compiler of exports (default: cc, gcc, clang, ziglang)")
CXX: Final = EnvVar("CXX", "", "C++ compiler of the emulator (default: g++, clang++, ziglang)")
EMULATE: Final = EnvVar(
    "TILELANG_EMULATE", "", "run GPU kernels on the emulator: 1, check, shuffle:SEED, with commas"
)
EMULATOR_TIMEOUT: Final = EnvVar(
    "TILELANG_EMULATOR_SECONDS", "600", "give up on an emulated call after this long", _seconds
)
SANITIZER_TIMEOUT: Final = EnvVar(
    "TILELANG_SANITIZER_SECONDS", "1800", "give up on `run --sanitize` after this long", _seconds
)
CUDA_HOME: Final = EnvVar("CUDA_HOME", "", "where the CUDA toolkit is (nvcc, compute-sanitizer)")
SEARCH_PATH: Final = EnvVar("PATH", "", "where programs are looked for")

ENVIRONMENT: Final[tuple[EnvVar, ...]] = (
    CACHE_DIR, CACHE_LIMIT, DISABLE_CACHE, DEFAULT_TARGET, VERBOSE, PRINT_ON_COMPILATION,
    NUM_THREADS, COMPILE_TIMEOUT, CRASH_DIR, TRACE, COMPILER, CXX, EMULATE, EMULATOR_TIMEOUT,
    SANITIZER_TIMEOUT, CUDA_HOME, SEARCH_PATH,
)  # fmt: skip


def child_environment(**changes: str) -> dict[str, str]:
    """The environment for a process of ours: that of this one, with `changes`."""
    return {**os.environ, **changes}


def _refuse(code: str, message: str, help: str | None) -> NoReturn:
    row = code_of(code)
    raise error_for((Diagnostic(code, row.severity, message, help=help),))
