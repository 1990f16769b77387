"""Traces the viewer is tried with: of a kernel, of a failure, a hostile and a large one."""

from __future__ import annotations

from dataclasses import replace

from tests.trace.recorded import trace_of
from tilelang_diagnostics import Diagnostic, Severity, Span
from tilelang_trace.model import (
    Code,
    Decision,
    Failure,
    LayoutShot,
    Line,
    Part,
    Resources,
    Step,
    Symbol,
    Trace,
)

IMAGE = "<img src=x onerror=window.pwned=1>"
SCRIPT = "</script><script>window.pwned=1</script>"
ANSI = "\x1b[31mred\x1b[0m\x07\x1b]0;title\x07"
TURNED = "\u202eright to left\u2066"
NAMES = (IMAGE, SCRIPT, ANSI, TURNED, "<!-- ", "{{ 7 * 7 }}", "&lt;", "'\"`", "../../../etc/passwd")


def gemm() -> Trace:
    return trace_of("gemm", "sm_80")


def failed() -> Trace:
    trace = trace_of("gemm", "sm_80", code=False)
    steps = tuple(s for s in trace.steps if s.phase in ("front end", "tiles"))
    failure = Failure("guard_bounds", "it broke", "Traceback …\nKeyError: 'x'\n", "TL900")
    return replace(trace, steps=steps, failure=failure, parts=())


def hostile() -> Trace:
    """Everything that comes from a kernel says something that is no text elsewhere."""
    file = f"/tmp/{SCRIPT}/<k>.py"
    place = Span(file, 1, 1, 1, 9)
    lines = tuple(Line(f"x = {name!s}".replace("\n", " "), place) for name in NAMES)
    text = " ".join(NAMES)
    kernel = "<b class=evil>\x1b[31mk</b>"
    return Trace(
        kernel, file, "cuda:sm_80",
        (Step("emit", lines, 0.001, text, "front end"),
         Step("tidy", (*lines[1:], Line(f"y = {IMAGE}", place)), 0.001, text, "loops",
              decisions=(Decision("guard", text, text, place),),
              symbols=(Symbol(IMAGE, SCRIPT, text, (text,), ((IMAGE, text),), place),))),
        (("M", text), (IMAGE, SCRIPT)), ((file, "\n".join(NAMES)),),
        (Diagnostic("TL508", Severity.REMARK, text, place, label=text, help=text, notes=(text,)),),
        Failure(IMAGE, text, text, SCRIPT), (Part(IMAGE, 0.1, SCRIPT, 0),),
        (Code("source", "cuda", lines, text), Code("ptx", "ptx", lines, text),
         Code("sass", "sass", (), text)),
        (Resources(IMAGE, 1, 2, 3, 4, 5, None, ((SCRIPT, 6),)),),
        (LayoutShot(IMAGE, SCRIPT, (IMAGE,), ANSI, text, text, place,
                    f"<svg xmlns='http://www.w3.org/2000/svg' onload='pwned=1'>{SCRIPT}</svg>",
                    text),),
        ((IMAGE, SCRIPT),), SCRIPT,
    )  # fmt: skip


def large(count: int = 20_000) -> Trace:
    """A program of so many lines, of which a pass changes every hundredth."""
    spans = [Span("big.py", n % 500 + 1, 1, n % 500 + 1, 9) for n in range(count)]
    first = tuple(Line(f"    value_{n} = A[{n}] + B[{n * 3}]", s) for n, s in enumerate(spans))
    second = tuple(
        replace(x, text=x.text.replace("+", "-")) if n % 100 == 0 else x
        for n, x in enumerate(first)
    )
    source = "\n".join(f"line {n}" for n in range(500))
    codes = (
        Code("source", "cuda", tuple(
            Line(f"  value_{n} = A[{n}];", s) for n, s in enumerate(spans)
        )),
        Code("sass", "sass", tuple(
            Line(f"  /*{16 * n:05x}*/ LDG.E R{n % 250}, [R2+{n}] ;", s) for n, s in enumerate(spans)
        )),
    )  # fmt: skip
    return Trace(
        "big", "big.py", "cpu", (Step("first", first, 0.1), Step("second", second, 0.1)),
        sources=(("big.py", source),), codes=codes,
    )  # fmt: skip
