"""How do threads that have become loop iterations exchange values?

An exchange is two loops: in the first every thread leaves its operand in a temporary with one
place per thread, in the second it reads the place, or the warp's places, that the exchange names.

Before: y = T.shfl_xor(x, 1)
After:  for t in range(128): given[t] = x[t]
        for t in range(128): y[t] = given[lane t ^ 1 of its warp]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilelang.ir import build, tirx
from tilelang.ir.tile_op import op_of
from tilelang.ops.combine import combine, identity
from tilelang.passes.cpu_divergence import (
    BLOCK_EXCHANGES,
    EXCHANGES,
    MATCHES,
    SHUFFLES,
    VOTES,
    WARP_REDUCTIONS,
    calls_named,
)

WARP = 32


@dataclass
class Exchange:
    """One exchange taken out of an expression.

    `give` stores the operand of thread `t` (to run per thread), `settle` combines what was given
    (to run once), `result` is what stands for the exchange in thread `t` afterwards.
    """

    buffers: list[Any]
    give: Any
    settle: list[Any]
    result: Any


@dataclass(frozen=True)
class Exchanger:
    """Takes exchanges out of expressions for blocks of `threads` threads; `t` is any of them."""

    threads: int
    t: Any

    def warps(self) -> int:
        return -(-self.threads // WARP)

    def exchange(self, call: Any) -> Exchange:
        """What replaces `call`, whose operands hold no further exchange."""
        name = op_of(call) or ""
        if name in SHUFFLES:
            return self._shuffle(name, call)
        if name in VOTES:
            return self._vote(name, call)
        if name in BLOCK_EXCHANGES:
            return self._block_vote(name, call)
        if name in WARP_REDUCTIONS:
            return self._warp_reduce(name, call)
        assert name in MATCHES
        return self._match(name, call)

    # --- kinds ---

    def _shuffle(self, name: str, call: Any) -> Exchange:
        span = call.span
        value, lane, *_ = call.args
        dtype = build.dtype_of(value)
        given = self._buffer("given", dtype, self.threads, span)
        width = int(_attr(call, "width", WARP))

        own = tirx.FloorMod(self.t, _int(width), span)
        amount = build.cast(lane, "int32", span)
        if name == "shfl_sync":
            source = tirx.FloorMod(amount, _int(width), span)
        elif name == "shfl_xor":
            source = tirx.BitwiseXor(own, amount, span)
        elif name == "shfl_up":
            source = tirx.Sub(own, amount, span)
        else:
            source = tirx.Add(own, amount, span)
        place = tirx.Add(tirx.Sub(self.t, own, span), source, span)
        inside = tirx.And(
            tirx.And(tirx.GE(source, _int(0)), tirx.LT(source, _int(width)), span),
            tirx.LT(place, _int(self.threads)), span,
        )  # fmt: skip
        # Beyond the segment a lane gets its own value back.
        safe = tirx.Select(inside, place, self.t, span)
        give = build.store(given, [self.t], value, span)
        return Exchange([given], give, [], build.load(given, [safe], span))

    def _vote(self, name: str, call: Any) -> Exchange:
        span = call.span
        predicate = call.args[0] if name != "activemask" else build.const(True, "bool", span)
        given = self._buffer("voted", "uint32", self.threads, span)
        votes = self._buffer("votes", "uint32", self.warps(), span)
        present = self._buffer("present", "uint32", self.warps(), span)
        one = build.const(1, "uint32", span)
        zero = build.const(0, "uint32", span)
        settle = [
            self._fill(votes, self.warps(), zero, span),
            self._fill(present, self.warps(), zero, span),
        ]
        t = tirx.Var("t", "int32", span)
        warp = tirx.FloorDiv(t, _int(WARP), span)
        lane = build.cast(tirx.FloorMod(t, _int(WARP), span), "uint32", span)
        bit = tirx.LShift(build.load(given, [t], span), lane, span)
        here = tirx.LShift(one, lane, span)
        voted = tirx.BitwiseOr(build.load(votes, [warp], span), bit, span)
        there = tirx.BitwiseOr(build.load(present, [warp], span), here, span)
        body = build.seq(
            [build.store(votes, [warp], voted, span), build.store(present, [warp], there, span)]
        )
        settle.append(build.loop(t, _int(self.threads), body, span=span))
        mask = call.args[1] if len(call.args) > 1 else build.const(0xFFFFFFFF, "uint32", span)

        give = build.store(given, [self.t], build.cast(_bool(predicate), "uint32", span), span)
        place = [self._segment(WARP, span)]
        lanes = tirx.BitwiseAnd(build.load(present, place, span), mask, span)
        found = tirx.BitwiseAnd(build.load(votes, place, span), mask, span)
        if name == "any_sync":
            found = tirx.NE(found, zero, span)
        elif name == "all_sync":
            found = tirx.EQ(found, lanes, span)
        result = build.cast(found, build.dtype_of(call), span)
        return Exchange([given, votes, present], give, settle, result)

    def _block_vote(self, name: str, call: Any) -> Exchange:
        span = call.span
        given = self._buffer("voted", "int32", self.threads, span)
        count = self._buffer("count", "int32", 1, span)
        t = tirx.Var("t", "int32", span)
        total = tirx.Add(build.load(count, [_int(0)], span), build.load(given, [t], span), span)
        settle = [
            build.store(count, [_int(0)], _int(0), span),
            build.loop(
                t, _int(self.threads), build.store(count, [_int(0)], total, span), span=span
            ),
        ]

        vote = build.cast(_bool(call.args[0]), "int32", span)
        give = build.store(given, [self.t], vote, span)
        found = build.load(count, [_int(0)], span)
        if name == "syncthreads_and":
            found = tirx.EQ(found, _int(self.threads), span)
        elif name == "syncthreads_or":
            found = tirx.NE(found, _int(0), span)
        result = build.cast(found, build.dtype_of(call), span)
        return Exchange([given, count], give, settle, result)

    def _warp_reduce(self, name: str, call: Any) -> Exchange:
        span = call.span
        kind = name.removeprefix("warp_reduce_")
        width = int(_attr(call, "logical_width", None) or WARP)
        value = call.args[0]
        dtype = build.dtype_of(value)
        segments = -(-self.threads // width)
        given = self._buffer("given", dtype, self.threads, span)
        folded = self._buffer("folded", dtype, segments, span)
        t = tirx.Var("t", "int32", span)
        segment = [tirx.FloorDiv(t, _int(width), span)]
        update = combine(
            kind, build.load(folded, segment, span), build.load(given, [t], span), span
        )
        settle = [
            self._fill(folded, segments, identity(kind, dtype, span), span),
            build.loop(
                t, _int(self.threads), build.store(folded, segment, update, span), span=span
            ),
        ]

        give = build.store(given, [self.t], value, span)
        result = build.load(folded, [self._segment(width, span)], span)
        return Exchange([given, folded], give, settle, result)

    def _match(self, name: str, call: Any) -> Exchange:
        span = call.span
        value = call.args[0]
        mask = call.args[1] if len(call.args) > 1 else build.const(0xFFFFFFFF, "uint32", span)
        given = self._buffer("given", build.dtype_of(value), self.threads, span)
        peers = self._buffer("peers", "uint32", self.threads, span)
        t, lane = tirx.Var("t", "int32", span), tirx.Var("lane", "int32", span)
        own = tirx.FloorMod(t, _int(WARP), span)
        other = tirx.Add(tirx.Sub(t, own, span), lane, span)
        same = tirx.EQ(build.load(given, [other], span), build.load(given, [t], span), span)
        bit = tirx.LShift(build.const(1, "uint32", span), build.cast(lane, "uint32", span), span)
        step = tirx.IfThenElse(
            same,
            build.store(peers, [t], tirx.BitwiseOr(build.load(peers, [t], span), bit, span), span),
            None, span,
        )  # fmt: skip
        lanes = tirx.Min(
            _int(WARP), tirx.Sub(_int(self.threads), tirx.Sub(t, own, span), span), span
        )
        body = build.seq(
            [
                build.store(peers, [t], build.const(0, "uint32", span), span),
                build.loop(lane, lanes, step, span=span),
            ]
        )
        settle = [build.loop(t, _int(self.threads), body, span=span)]

        found = tirx.BitwiseAnd(build.load(peers, [self.t], span), mask, span)
        if name == "match_all_sync":
            wanted = tirx.BitwiseAnd(self._present_lanes(span), mask, span)
            none = build.const(0, "uint32", span)
            found = tirx.Select(tirx.EQ(found, wanted, span), wanted, none, span)
        give = build.store(given, [self.t], value, span)
        return Exchange([given, peers], give, settle, found)

    def _present_lanes(self, span: Any) -> Any:
        """One bit per lane that exists in the warp of thread `t`."""
        own = tirx.FloorMod(self.t, _int(WARP), span)
        left = tirx.Sub(_int(self.threads), tirx.Sub(self.t, own, span), span)
        missing = tirx.Sub(_int(WARP), tirx.Min(_int(WARP), left, span), span)
        full = build.const(0xFFFFFFFF, "uint32", span)
        return tirx.RShift(full, build.cast(missing, "uint32", span), span)

    # --- helpers ---

    def _segment(self, width: int, span: Any) -> Any:
        """Which run of `width` lanes thread `t` is in; plainly 0 when there is only one."""
        if self.threads <= width:
            return _int(0)
        return tirx.FloorDiv(self.t, _int(width), span)

    def _buffer(self, name: str, dtype: str, size: int, span: Any) -> Any:
        return tirx.decl_buffer(
            [_int(size)], dtype, name=name, scope="shared", data_alignment=64, span=span,
            layout=None,
        )  # fmt: skip

    def _fill(self, buffer: Any, size: int, value: Any, span: Any) -> Any:
        w = tirx.Var("w", "int32", span)
        return build.loop(w, _int(size), build.store(buffer, [w], value, span), span=span)


def innermost_exchange(expr: Any) -> Any | None:
    """An exchange in `expr` whose operands hold none, or None."""
    found = calls_named(expr, EXCHANGES)
    return found[-1] if found else None


def _bool(value: Any) -> Any:
    return build.cast(value, "bool", value.span)


def _int(value: int) -> Any:
    return build.const(value, "int32")


def _attr(call: Any, key: str, default: Any) -> Any:
    attrs = call.attrs
    return attrs[key] if attrs is not None and key in attrs else default
