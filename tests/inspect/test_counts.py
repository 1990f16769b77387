"""Under which names do instructions count?"""

from __future__ import annotations

import pytest

from tilelang.inspection.counts import NAMES, Counts, counted, of_ptx, of_sass
from tilelang.inspection.expect import names_help


@pytest.mark.parametrize(
    ("opcode", "names"),
    [
        ("HMMA.16816.F32", "mma"),
        ("IMMA.16832.S8.S8", "mma"),
        ("DMMA.8x8x4", "mma"),
        ("QMMA.16832.F32.E4M3.E4M3", "mma"),
        ("HGMMA.64x128x16.F32", "mma wgmma"),
        ("UTCHMMA", "mma tcgen05.mma"),
        ("LDSM.16.MT88.4", "ldmatrix"),
        ("STSM.16.M88.4", "stmatrix"),
        ("LDGSTS.E.BYPASS.128", "cp.async cp.async.b128"),
        ("LDGSTS.E", "cp.async cp.async.b32"),
        ("LDGDEPBAR", "cp.async.commit"),
        ("DEPBAR.LE", "cp.async.wait"),
        ("LDG.E.128.CONSTANT", "ld.global ld.global.b128 ld.global.nc"),
        ("LDG.E.U16.CONSTANT", "ld.global ld.global.b16 ld.global.nc"),
        ("LDG.E.LTC128B.64", "ld.global ld.global.b64 ld.global.plain"),
        ("LDG.E", "ld.global ld.global.b32 ld.global.plain"),
        ("STG.E.U8", "st.global st.global.b8"),
        ("LDS.U.128", "ld.shared ld.shared.b128"),
        ("STS.S16", "st.shared st.shared.b16"),
        ("LDL.64", "ld.local ld.local.b64"),
        ("STL", "st.local st.local.b32"),
        ("LD.E.128", "ld.generic ld.generic.b128"),
        ("UTMALDG.2D", "tma"),
        ("SYNCS.ARRIVE.TRANS64.A1T0", "mbarrier"),
        ("BAR.SYNC.DEFER_BLOCKING", "barrier"),
        ("SHFL.BFLY", "shuffle"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", "atomic"),
        ("ATOMS.ADD", "atomic"),
        ("IMAD.WIDE", ""),
        ("DEPBAR", ""),
        ("LDC.64", ""),
        ("FADD", ""),
    ],
)
def test_machine_instructions(opcode: str, names: str) -> None:
    assert list(of_sass(opcode)) == ["instructions", *names.split()]


@pytest.mark.parametrize(
    ("opcode", "names"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "mma"),
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16", "mma wgmma"),
        ("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16", "ldmatrix"),
        ("cp.async.cg.shared.global, 16", "cp.async cp.async.b128"),
        ("cp.async.ca.shared.global, 4", "cp.async cp.async.b32"),
        ("cp.async.commit_group", "cp.async.commit"),
        ("cp.async.wait_group", "cp.async.wait"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global", "tma"),
        ("cp.async.bulk.wait_group", "cp.async.wait"),
        ("cp.async.bulk.commit_group", ""),
        ("ld.global.nc.v4.u32", "ld.global ld.global.b128 ld.global.nc"),
        ("ld.global.v2.f32", "ld.global ld.global.b64 ld.global.plain"),
        ("ld.volatile.shared.b16", "ld.shared ld.shared.b16"),
        ("st.global.u16", "st.global st.global.b16"),
        ("st.local.v4.b32", "st.local st.local.b128"),
        ("bar.sync", "barrier"),
        ("bar.warp.sync", ""),
        ("barrier.sync", "barrier"),
        ("mbarrier.init.shared::cta.b64", "mbarrier"),
        ("shfl.sync.bfly.b32", "shuffle"),
        ("atom.global.add.f32", "atomic"),
        ("red.global.add.f32", "atomic"),
        ("add.s32", ""),
        ("ld.param.u64", ""),
    ],
)
def test_ptx_instructions(opcode: str, names: str) -> None:
    assert list(of_ptx(opcode)) == ["instructions", *names.split()]


def test_sums() -> None:
    found = counted(["LDG.E.128", "LDG.E.128.CONSTANT", "HMMA.16816.F32", "IADD3"])
    assert (found["ld.global"], found["ld.global.b128"], found["mma"]) == (2, 2, 1)
    assert found["ld.global.nc"] == found["ld.global.plain"] == 1
    assert found["instructions"] == 4 and found["st.global"] == 0
    assert (found + found)["ld.global"] == 4
    assert not Counts() and bool(found)
    with pytest.raises(KeyError):
        found["ld.globl"]
    with pytest.raises(ValueError, match="is no count"):
        Counts((("mma", 0),))


def test_every_name_is_explained() -> None:
    text = names_help()
    assert all(f"  {name} " in text for name in NAMES if ".b" not in name)
