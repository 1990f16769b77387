"""How long does the editor wait? A recorded typing session against the language server.

    python -m benchmarks.lsp                     both files, 300 edits each
    python -m benchmarks.lsp --edits 60 --peers  a short one, with other servers beside

Each edit is one keystroke or one paste, through broken states. After it three things are awaited
for the very text it left: hints (asked for anew until they are those of that text; moved ones from
before do not count), diagnostics, and every few edits layouts and budgets. The session is the same
from run to run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.lsp_peers import measure_peers
from tests.lsp.rpc_client import CAPABILITIES, Client

ROOT = Path(__file__).resolve().parent.parent
TARGETS = {"hints": 0.050, "diagnostics": 0.150, "layouts and budgets": 1.0, "first hints": 3.0}
LOOK_EVERY = 6
SCREEN = 60  # lines that an editor shows
HINTS = "textDocument/inlayHint"
MEMORY_EVERY = 50  # edits
# As editors do: what a hint says in full is asked for when somebody points at it.
LATER: dict[str, Any] = {"inlayHint": {"resolveSupport": {"properties": ["tooltip"]}}}
SEED = 20261130
TYPED = (
    "T.copy(A_tile, B_tile)", "extra = T.alloc_shared((64, 32), 'float16')", "T.clear(acc)",
    "for n in T.serial(4):", "acc[0, 0] = acc[0, 0] * 2.0", "x = bx * 64 + 1",
)  # fmt: skip
_KERNEL = '''

@tilelang.jit
def kernel_{n}(A, B, block_M=64, block_N=64, block_K=32):
    M, N, K = T.const("M, N, K")
    A: T.Tensor((M, K), T.float16)
    B: T.Tensor((K, N), T.float16)
    C = T.empty((M, N), T.float16)
    # Each block computes one tile of C, in steps of block_K along the inner dimension.
    with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
        A_tile = T.alloc_shared((block_M, block_K), T.float16)
        B_tile = T.alloc_shared((block_K, block_N), T.float16)
        C_tile = T.alloc_shared((block_M, block_N), T.float16)
        acc = T.alloc_fragment((block_M, block_N), T.float32)
        bias = T.alloc_fragment((block_M,), T.float32)
        total = T.alloc_fragment((block_M,), T.float32)
        row = by * block_M
        column = bx * block_N

        T.clear(acc)
        T.clear(total)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
            T.copy(A[row, k * block_K], A_tile)
            T.copy(B[k * block_K, column], B_tile)
            T.gemm(A_tile, B_tile, acc)

        # The epilogue scales rows by what they sum up to.
        T.reduce_max(acc, bias, dim=1)
        for i, j in T.Parallel(block_M, block_N):
            acc[i, j] = T.exp2((acc[i, j] - bias[i]) * 1.4427)
        T.reduce_sum(acc, total, dim=1)
        for i, j in T.Parallel(block_M, block_N):
            acc[i, j] = acc[i, j] / total[i]
        for i, j in T.Parallel(block_M, block_N):
            acc[i, j] = T.max(acc[i, j], 0)
        for i, j in T.Parallel(block_M, block_N):
            acc[i, j] = T.min(acc[i, j], 65504)
        for i in T.Parallel(block_M):
            total[i] = total[i] + bias[i]
        for i in T.Parallel(block_M):
            total[i] = T.abs(total[i])
        for i in T.Parallel(block_M):
            bias[i] = T.if_then_else(total[i] > 1, bias[i], 0)

        # Through shared memory, so that rows are written in one piece.
        T.copy(acc, C_tile)
        T.copy(C_tile, C[row, column])

    return C


def reference_{n}(a, b):
    """What the kernel computes, in NumPy."""
    product = a.astype("float32") @ b.astype("float32")
    product -= product.max(axis=1, keepdims=True)
    weights = 2 ** (product * 1.4427)
    weights /= weights.sum(axis=1, keepdims=True)
    return weights.clip(0, 65504)
'''


def eight_kernels() -> str:
    """A file of about 500 lines with 8 kernels."""
    head = '"""Eight products."""\n\nimport tilelang\nimport tilelang.language as T\n\n'
    head += "# tilelang: set M=1024, N=1024, K=1024\n"
    return head + "".join(_KERNEL.replace("{n}", str(n)) for n in range(8))


@dataclass(frozen=True)
class Edit:
    """Replace `length` characters at an offset."""

    at: int
    length: int
    text: str


def session(text: str, count: int) -> Iterator[tuple[Edit, str]]:
    """Edits as somebody makes them, each with the text it leaves."""
    rng = random.Random(SEED)
    done = 0
    while done < count:
        lines = text.split("\n")
        inside = [n for n, row in enumerate(lines) if row.startswith("        ") and "T." in row]
        row = rng.choice(inside)
        start = sum(len(line) + 1 for line in lines[:row])
        indent = " " * (len(lines[row]) - len(lines[row].lstrip()))
        match rng.randrange(4):
            case 0 | 1:  # a new line, typed letter by letter, and taken away again
                typed = rng.choice(TYPED)
                edits = [Edit(start, 0, f"{indent}\n")]
                place = start + len(indent)
                edits += [Edit(place + n, 0, letter) for n, letter in enumerate(typed)]
                edits.append(Edit(start, len(indent) + len(typed) + 1, ""))
            case 2:  # a number becomes another and goes back
                digits = [n for n, c in enumerate(lines[row]) if c.isdigit()]
                if not digits:
                    continue
                at = start + rng.choice(digits)
                edits = [Edit(at, 1, ""), Edit(at, 0, "7"), Edit(at, 1, text[at])]
            case _:  # the end of a line is deleted from behind and typed again
                tail = min(6, len(lines[row].strip()))
                end = start + len(lines[row])
                edits = [Edit(end - n, 1, "") for n in range(1, tail + 1)]
                edits += [Edit(end - tail + n, 0, text[end - tail + n]) for n in range(tail)]
        for edit in edits:
            text = text[: edit.at] + edit.text + text[edit.at + edit.length :]
            yield edit, text
            done += 1
            if done == count:
                return


@dataclass
class Measured:
    """Seconds of each thing, and megabytes of all processes along the way."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    memory: list[float] = field(default_factory=list)
    processor: float = 0.0  # seconds that all processes ran
    edits: int = 0
    logged: int = 0  # lines: what was killed on a busy machine, and whatever went wrong

    def add(self, what: str, seconds: float) -> None:
        self.seconds.setdefault(what, []).append(seconds)


class Watch(Client):
    """A client that notes when what came."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.changed = threading.Condition()
        self.came: dict[tuple[str, int], float] = {}
        text = {**CAPABILITIES["textDocument"], **LATER}
        super().__init__(
            {**options, "status": True}, capabilities={**CAPABILITIES, "textDocument": text}
        )

    def _take(self, message: dict[str, Any]) -> None:
        params = message.get("params") or {}
        key = None
        if message.get("method") == "tilelang/status":
            key = (params["what"], params["version"])
        elif message.get("method") == "textDocument/publishDiagnostics":
            key = ("diagnostics", params.get("version") or 0)
        if key is not None:
            with self.changed:
                self.came.setdefault(key, time.perf_counter())
                self.changed.notify_all()
        super()._take(message)

    def when(self, what: str, version: int, timeout: float = 60.0) -> float:
        """The time something came for a version; waits for it."""
        with self.changed:
            if not self.changed.wait_for(lambda: (what, version) in self.came, timeout):
                raise TimeoutError(f"no {what} of version {version}")
            return self.came[what, version]


def measure(name: str, text: str, count: int, options: dict[str, Any]) -> Measured:
    """One session with one file."""
    found = Measured()
    uri = f"file:///session/{name}"
    began = time.perf_counter()
    with Watch(options) as client:
        client.open(uri, text, 1)
        client.when("static", 1)
        assert client.hints(uri)
        found.add("first hints", time.perf_counter() - began)
        client.when("deep", 1)
        found.memory.append(_memory(client.process.pid))
        before, found.edits = _processor(client.process.pid), count
        for number, (edit, new) in enumerate(session(text, count), 2):
            _one(client, uri, number, edit, text, found)
            text = new
            if (number - 1) % MEMORY_EVERY == 0:
                found.memory.append(_memory(client.process.pid))
        found.processor = _processor(client.process.pid) - before
        found.logged = len(client.log)
    return found


def _one(
    client: Watch, uri: str, version: int, edit: Edit, text: str, found: Measured
) -> None:  # fmt: skip
    began = time.perf_counter()
    change = {"range": _range(text, edit.at, edit.at + edit.length), "text": edit.text}
    client.edit(uri, version, [change])
    seen = _screen(text, edit.at)
    client.request(HINTS, {"textDocument": {"uri": uri}, "range": seen})
    answered = time.perf_counter()
    analysed = client.when("static", version)
    if analysed > answered:  # those were moved ones
        client.request(HINTS, {"textDocument": {"uri": uri}, "range": seen})
        answered = time.perf_counter()
    found.add("hints", answered - began)
    found.add("diagnostics", client.when("diagnostics", version) - began)
    if version % LOOK_EVERY == 0:
        found.add("layouts and budgets", client.when("deep", version) - began)
    # A fast typist: ten letters a second, so that what runs beside is in the way as it would be.
    time.sleep(max(0.0, 0.1 - (time.perf_counter() - began)))


def _screen(text: str, offset: int) -> dict[str, Any]:
    """The lines an editor shows around a place: it asks for the hints of those."""
    line = text.count("\n", 0, offset)
    return {
        "start": {"line": max(0, line - SCREEN // 2), "character": 0},
        "end": {"line": line + SCREEN // 2, "character": 0},
    }


def _range(text: str, start: int, end: int) -> dict[str, Any]:
    return {"start": _position(text, start), "end": _position(text, end)}


def _position(text: str, offset: int) -> dict[str, int]:
    before = text[:offset]
    return {"line": before.count("\n"), "character": offset - (before.rfind("\n") + 1)}


def _below(pid: int) -> list[int]:
    """A process and all that it started, and they in turn."""
    found, pending = [], [pid]
    while pending:
        one = pending.pop()
        found.append(one)
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                pending += [int(child) for child in children.read_text().split()]
            except OSError:
                continue
    return found


def _memory(pid: int) -> float:
    """Megabytes of a process and all below it."""
    total = 0.0
    for one in _below(pid):
        try:
            status = Path(f"/proc/{one}/status").read_text()
        except OSError:
            continue
        rss = next((line for line in status.split("\n") if line.startswith("VmRSS")), "VmRSS: 0")
        total += int(rss.split()[1]) / 1024
    return total


def _processor(pid: int) -> float:
    """Seconds that a process and all below it have run: busy machines do not change these."""
    ticks = 0
    for one in _below(pid):
        try:
            fields = Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of all lies."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


def table(results: dict[str, Measured]) -> str:
    """What was measured, the goals beside."""
    rows = [f"{'file':<20} {'what':<22} {'n':>4} {'p50':>9} {'p95':>9} {'max':>9}   goal"]
    for name, found in results.items():
        for what, values in found.seconds.items():
            p95 = percentile(values, 0.95)
            goal = TARGETS[what]
            met = "met" if p95 <= goal else "MISSED"
            rows.append(
                f"{name:<20} {what:<22} {len(values):>4} {_ms(statistics.median(values))} "
                f"{_ms(p95)} {_ms(max(values))}   p95 <= {goal * 1000:.0f} ms: {met}"
            )
        each = found.processor / max(1, found.edits)
        rows.append(f"{name:<20} processor time of all processes: {_ms(each)} an edit")
        if found.logged:
            rows.append(f"{name:<20} {found.logged} lines in the log")
        first, last, most = found.memory[0], found.memory[-1], max(found.memory)
        rows.append(f"{name:<20} memory of all processes: {first:.0f} MB at first, "
                    f"{last:.0f} MB at the end, {most:.0f} MB at most")  # fmt: skip
        shown = " ".join(f"{megabytes:.0f}" for megabytes in found.memory)
        rows.append(f"{name:<20} every {MEMORY_EVERY} edits: {shown} MB")
    return "\n".join(rows)


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:>6.1f} ms"


def main() -> int:
    """Measure, print the table, and write it as JSON where asked."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--edits", type=int, default=300)
    parser.add_argument("--target", default="cuda:sm_90a")
    parser.add_argument("--file", choices=("attention", "eight", "both"), default="both")
    parser.add_argument("--peers", action="store_true", help="ruff, ty and pyrefly if on the path")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    texts = {
        "flash_attention.py": (ROOT / "examples" / "flash_attention.py").read_text(),
        "eight_kernels.py": eight_kernels(),
    }
    if args.file != "both":
        texts = {
            n: t for n, t in texts.items() if n.startswith(("flash", "eight")[args.file == "eight"])
        }
    results = {
        name: measure(name, text, args.edits, {"target": args.target})
        for name, text in texts.items()
    }
    print(table(results))
    print(f"load of the machine: {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
    if args.peers:
        with tempfile.TemporaryDirectory() as folder:
            for name, text in texts.items():
                edits = list(session(text, args.edits))
                for line in measure_peers(Path(folder), name, text, edits):
                    print(line)
    if args.json is not None:
        args.json.write_text(json.dumps({n: m.seconds for n, m in results.items()}) + "\n")
    missed = [
        what
        for found in results.values()
        for what, values in found.seconds.items()
        if percentile(values, 0.95) > TARGETS[what]
    ]
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
