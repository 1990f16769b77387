"""The table of device operations: what it says is consistent, and the headers define all of it."""

import re

import pytest

from tests.support.cuda import ARCHS, compiled_ops, needs_nvdisasm, needs_nvrtc
from tests.support.every_op import cases
from tilelang.codegen.headers.wgmma import wgmma_header
from tilelang.ir import device_ops
from tilelang.ir.device_op import Constant, DeviceOp, Operand
from tilelang.layout.atoms import ATOMS
from tilelang.runtime.sass import disassemble
from tilelang.runtime.toolchain_cuda import HEADERS

OPS = tuple(device_ops.DEVICE_OPS.values())


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_row(op):
    assert op.doc and not op.doc.endswith("."), "one line, no full stop"
    assert (HEADERS.parent / (op.only or "cuda") / "tl" / op.header).exists()
    assert not op.waits or any(c.name == "groups" for c in op.constants)
    assert not op.closes or not op.operands


def test_names_are_unique():
    rows = (
        *device_ops.ROWS, *device_ops.MMA_ROWS, *device_ops.HOPPER_ROWS, *device_ops.RANDOM_ROWS,
        *device_ops.METAL_ROWS,
    )  # fmt: skip
    assert len(rows) == len(device_ops.DEVICE_OPS)


def test_every_matrix_instruction_has_a_row():
    wanted = {
        (a.m, a.n, a.k): {o.lanes for o in op.operands}
        for a in ATOMS
        for op in OPS
        if op.name.startswith(f"mma_m{a.m}n{a.n}k{a.k}_")
    }
    assert set(wanted) == {(a.m, a.n, a.k) for a in ATOMS}
    row = device_ops.DEVICE_OPS["mma_m16n8k16_f32_f16_f16"]
    assert [(o.name, o.lanes, o.dtype, o.access) for o in row.operands] == [
        ("d", 4, "float32", "update"), ("a", 8, "float16", "read"), ("b", 4, "float16", "read"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("alias", "name"), [(alias, row[0]) for alias, row in device_ops.ALIASES.items()]
)
def test_alias(alias, name):
    assert device_ops.find_op(f"tl.{alias}") is device_ops.DEVICE_OPS[name]


@pytest.mark.parametrize(
    ("name", "count", "attrs", "problem"),
    [
        ("cp_async", 2, {"bytes": 16}, None),
        ("cp_async", 3, {"bytes": 4, "cache": "ca"}, None),
        ("cp_async", 1, {"bytes": 16}, "T.cp_async has 1 operands, not 2 to 3"),
        ("cp_async", 2, {}, "T.cp_async needs the attribute bytes"),
        ("cp_async", 2, {"bytes": 12}, "T.cp_async has bytes=12, not one of 4, 8, 16"),
        ("sync_warp", 0, {"mask": 1}, "T.sync_warp knows no attribute mask"),
        ("set_max_nreg", 0, {"reg_count": 25, "is_inc": 1}, "T.set_max_nreg has reg_count=25, not "
         "one of " + ", ".join(str(n) for n in range(24, 257, 8))),
    ],
)  # fmt: skip
def test_problems(name, count, attrs, problem):
    found = device_ops.DEVICE_OPS[name].problems(count, attrs)
    assert found == ([] if problem is None else [problem])


@pytest.mark.parametrize(
    ("name", "archs"),
    [
        ("cp_async", "sm_80 sm_90 sm_120a"),
        ("mma_m16n8k32_f32_e4m3_e4m3", "sm_89 sm_90a sm_100"),
        ("wgmma_commit", "sm_90a"),
        ("set_max_nreg", "sm_90a sm_100a sm_120a"),
        ("stmatrix_x4", "sm_90 sm_90a sm_100a"),
    ],
)
def test_where_it_exists(name, archs):
    known = ("sm_75", "sm_80", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_120a")
    found = [arch for arch in known if device_ops.DEVICE_OPS[name].exists_on(arch)]
    assert set(archs.split()) <= set(found)
    assert not {"sm_75"} & set(found)
    if name == "wgmma_commit":
        assert found == ["sm_90a"]


def test_a_row_is_checked_when_built():
    scalar = Operand("x", "scalar")
    with pytest.raises(ValueError, match="queue"):
        DeviceOp("x", "d", operands=(Operand("a", "shared", asynchronous=True),))
    with pytest.raises(ValueError, match="optional operands come last"):
        DeviceOp("x", "d", operands=(Operand("a", "scalar", optional=True), scalar))
    with pytest.raises(ValueError, match="passed by value"):
        Operand("x", "scalar", "write")


def test_template_arguments_end_where_the_defaults_begin():
    op = DeviceOp("x", "d", constants=(Constant("a"), Constant("b", (1, 2), 1)))
    assert op.template_arguments({"a": 5}) == (5,)
    assert op.template_arguments({"a": 5, "b": 2}) == (5, 2)


def test_generated_header_is_current():
    path = HEADERS / "tl" / "wgmma.h"
    assert path.read_text() == wgmma_header(), "run python -m tilelang.codegen.headers.wgmma"


@needs_nvrtc
@pytest.mark.parametrize("arch", ARCHS)
def test_every_operation_compiles(arch, full):
    """The printer's calls and the headers agree, on each architecture, without a warning."""
    if arch not in ("sm_80", "sm_90a") and not full:
        pytest.skip("runs with --full")
    source, binary = compiled_ops(arch)
    called = {case.op.name for case in cases(arch)}
    assert called == {op.name for op in OPS if op.exists_on(arch)}
    assert len(source.launches) == len(called)
    assert binary.warnings == ()
    assert len(binary.resources) == len(called)


def _machine_instruction(name: str, arch: str) -> tuple[str, int]:
    """The opcode and count a matrix operation becomes. Formats that an architecture's tensor cores
    do not take are computed in the next wider one, in two steps."""
    m, n, k, accumulator, a, b = re.fullmatch(
        r"mma_m(\d+)n(\d+)k(\d+)_(\w+)_(\w+)_(\w+)", name
    ).groups()
    shape = f"{m}{n}{k}"
    half = f"{m}{n}{int(k) // 2}"
    hopper = arch == "sm_90a"
    if a == "f64":
        return ("DMMA." + (f"{m}x{n}x{k}" if hopper else shape), 1)
    if a in ("e4m3", "e5m2"):
        accumulator = accumulator.upper()
        if hopper:
            return (f"HMMA.{half}.{accumulator}", 2)
        return (f"QMMA.{shape}.{accumulator}.{a.upper()}.{b.upper()}", 1)
    if a in ("s4", "u4") and hopper:
        return (f"IMMA.{half}.{a[0].upper()}8.{b[0].upper()}8", 2)
    if accumulator == "s32":
        return (f"IMMA.{shape}.{a.upper()}.{b.upper()}", 1)
    suffix = "" if a == "f16" else f".{a.upper()}"
    return (f"HMMA.{shape}.{accumulator.upper()}{suffix}", 1)


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90a"])
def test_matrix_instructions_in_machine_code(arch):
    """One operation is one matrix instruction, of its shape and types."""
    source, binary = compiled_ops(arch)
    listing = disassemble(binary.cubin)
    names = list(dict.fromkeys(case.op.name for case in cases(arch)))
    found, wanted = {}, {}
    for name, launch in zip(names, source.launches, strict=True):
        if not name.startswith("mma_"):
            continue
        wanted[name] = dict([_machine_instruction(name, arch)])
        opcodes = listing.opcodes(launch.symbol)
        found[name] = {op: n for op, n in opcodes.items() if op.partition(".")[0].endswith("MMA")}
    assert found == wanted


@needs_nvrtc
@needs_nvdisasm
@pytest.mark.parametrize(
    ("arch", "name", "opcodes"),
    [
        ("sm_80", "cp_async", {"LDGSTS.E": 3, "LDGSTS.E.64": 1, "LDGSTS.E.BYPASS.128": 2}),
        ("sm_80", "ldmatrix_x4", {"LDSM.16.M88.4": 1}),
        ("sm_80", "ldmatrix_x2_trans", {"LDSM.16.MT88.2": 1}),
        ("sm_80", "warp_reduce_sum", {"REDUX.SUM.S32": 1, "REDUX.SUM": 1}),
        ("sm_90a", "stmatrix_x4", {"STSM.16.M88.4": 1}),
        ("sm_90a", "elect_one", {"ELECT": 1}),
        ("sm_90a", "tma_load", {"UTMALDG.1D": 3, "UTMALDG.2D": 1, "UTMALDG.3D": 1,
                                "UTMALDG.4D": 1, "UTMALDG.5D": 1}),
        ("sm_90a", "wgmma_ss_k16_f32_f16_f16", {"HGMMA.64x64x16.F32": 1,
                                                "HGMMA.64x256x16.F32": 1}),
    ],
)  # fmt: skip
def test_machine_instruction(arch, name, opcodes):
    source, binary = compiled_ops(arch)
    names = list(dict.fromkeys(case.op.name for case in cases(arch)))
    symbol = source.launches[names.index(name)].symbol
    found = disassemble(binary.cubin).opcodes(symbol)
    heads = {op.partition(".")[0] for op in opcodes}
    assert {op: n for op, n in found.items() if op.partition(".")[0] in heads} == opcodes | {
        op: n for op, n in found.items() if op.startswith("ELECT") and name != "elect_one"
        and "ELECT" in heads
    }  # fmt: skip
