"""Which diagnostics exist: one row per code, the only home of code numbers and names.

The hundreds digit is the area (`AREAS`). A number, once published, never changes meaning; gaps are
room for relatives. `severity` is the usual one: a diagnostic may be built milder, never harsher.
`exception` is what Python code catches when the diagnostic stops a compilation or a call. Every
row has a page in `pages/`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tilelang_diagnostics.model import Diagnostic, Fix, Frame, Label, Severity, Span
from tilelang_diagnostics.suggest import did_you_mean

AREAS: Final[dict[str, str]] = {
    "TL1": "front end and names",
    "TL2": "shapes and dtypes",
    "TL3": "layouts",
    "TL4": "targets and budgets",
    "TL5": "pipelines and synchronisation",
    "TL6": "performance",
    "TL7": "arguments and launch",
    "TL8": "toolchain and environment",
    "TL9": "our own fault",
}


@dataclass(frozen=True, slots=True)
class Code:
    """One row of the catalogue. `summary` is a phrase: lower case, no full stop."""

    code: str
    name: str
    summary: str
    severity: Severity
    exception: type[Exception]

    def __post_init__(self) -> None:
        if not re.fullmatch(r"TL[1-9]\d\d", self.code):
            raise ValueError(f"not a code: {self.code!r}")
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise ValueError(f"{self.code}: not a kebab-case name: {self.name!r}")
        if not self.summary or self.summary.endswith("."):
            raise ValueError(f"{self.code}: not a phrase: {self.summary!r}")

    @property
    def area(self) -> str:
        """What the code is about, in words."""
        return AREAS[self.code[:3]]

    def __str__(self) -> str:
        return f"{self.code} {self.name}"


def code_of(key: str) -> Code:
    """The row of a code (`"TL204"`) or a name (`"gemm-k-mismatch"`), in any case."""
    found = find_code(key)
    if found is None:
        raise KeyError(f"no diagnostic is called {key!r}{did_you_mean(key, (*BY_CODE, *BY_NAME))}")
    return found


def find_code(key: str) -> Code | None:
    """As `code_of`, but None for what is not in the catalogue."""
    return BY_CODE.get(key.strip().upper()) or BY_NAME.get(key.strip().lower())


def diagnose(
    code: str,
    message: str,
    span: Span | None = None,
    *,
    label: str = "",
    labels: tuple[Label, ...] = (),
    notes: tuple[str, ...] = (),
    help: str | None = None,
    fixes: tuple[Fix, ...] = (),
    calls: tuple[Frame, ...] = (),
    severity: Severity | None = None,
) -> Diagnostic:
    """A diagnostic with the severity the catalogue gives its code, unless a milder one is given."""
    severity = severity or code_of(code).severity
    return Diagnostic(code, severity, message, span, label, labels, notes, help, fixes, calls)


_ERROR, _WARNING, _REMARK = Severity.ERROR, Severity.WARNING, Severity.REMARK

# fmt: off
CATALOGUE: Final[tuple[Code, ...]] = (
    # Reading the file and finding the kernel.
    Code("TL101", "syntax-error", "the file is not valid Python", _ERROR, SyntaxError),
    Code("TL102", "source-unavailable", "a function without source text", _ERROR, OSError),
    Code("TL103", "unreadable-file", "the file cannot be read", _ERROR, OSError),
    Code("TL104", "kernel-not-found", "no kernel of that name is in the file", _ERROR, LookupError),
    Code("TL105", "ambiguous-kernel", "the file has several kernels and none was named",
         _ERROR, LookupError),
    Code("TL106", "undecodable-file", "the file is not text in its declared encoding",
         _ERROR, SyntaxError),
    Code("TL107", "import-failed", "the file raised while it was imported", _ERROR, ImportError),
    # Names and arguments of calls inside a kernel.
    Code("TL110", "unknown-name", "a name that is bound nowhere", _ERROR, NameError),
    Code("TL111", "unknown-attribute", "an attribute that does not exist", _ERROR, AttributeError),
    Code("TL112", "unknown-keyword", "a keyword the call does not take", _ERROR, TypeError),
    Code("TL113", "missing-argument", "a required argument is missing", _ERROR, TypeError),
    Code("TL114", "too-many-arguments", "more arguments than the call takes", _ERROR, TypeError),
    Code("TL115", "repeated-argument", "an argument is given twice", _ERROR, TypeError),
    Code("TL116", "wrong-argument-kind", "an argument of the wrong kind", _ERROR, TypeError),
    Code("TL117", "bad-argument-value", "an argument outside its legal values", _ERROR, ValueError),
    Code("TL118", "deprecated-name", "a deprecated spelling", _WARNING, DeprecationWarning),
    Code("TL119", "lowercase-parallel", "T.parallel where T.Parallel is probably meant",
         _WARNING, ValueError),
    Code("TL120", "used-before-assignment", "a name is read before the line that binds it",
         _ERROR, NameError),
    Code("TL121", "not-callable", "a call of something that is not a function", _ERROR, TypeError),
    # Statements and expressions.
    Code("TL130", "unsupported-statement", "a statement that kernels do not have",
         _ERROR, NotImplementedError),
    Code("TL131", "unsupported-expression", "an expression that kernels do not have",
         _ERROR, NotImplementedError),
    Code("TL132", "nested-function", "a def or class inside a kernel", _ERROR, NotImplementedError),
    Code("TL133", "attribute-assignment", "an assignment to an attribute",
         _ERROR, NotImplementedError),
    Code("TL134", "used-outside-region", "a value used outside the branch or loop that defines it",
         _ERROR, RuntimeError),
    Code("TL135", "immutable-rebind", "a device value is bound again", _WARNING, RuntimeError),
    Code("TL136", "return-in-device-branch", "return inside device control flow",
         _ERROR, NotImplementedError),
    Code("TL137", "bad-return-value", "a kernel returns something other than T.empty tensors",
         _ERROR, TypeError),
    Code("TL138", "empty-not-returned", "a T.empty tensor is not returned", _ERROR, RuntimeError),
    Code("TL139", "infinite-while", "a while loop that never ends", _ERROR, RuntimeError),
    Code("TL140", "while-never-runs", "a while loop whose condition is always false",
         _WARNING, RuntimeError),
    Code("TL141", "bad-loop-iterable", "a for loop over something that is not a loop",
         _ERROR, TypeError),
    Code("TL142", "zero-step", "a loop with step 0", _ERROR, ValueError),
    Code("TL143", "non-constant-step", "a loop step that is not a constant", _WARNING, ValueError),
    Code("TL144", "loop-target-count", "the number of loop variables is not that of the extents",
         _ERROR, ValueError),
    Code("TL145", "loop-variable-assigned", "an assignment to a loop variable",
         _WARNING, RuntimeError),
    Code("TL146", "unreachable-statement", "a statement that is never reached",
         _WARNING, RuntimeError),
    Code("TL147", "misplaced-break", "break or continue where no serial loop can take it",
         _ERROR, SyntaxError),
    Code("TL148", "trace-too-large", "unrolling makes the kernel too large", _ERROR, RuntimeError),
    Code("TL149", "unused-expression", "a statement whose value is dropped",
         _WARNING, RuntimeError),
    Code("TL150", "buffer-as-condition", "a buffer is used as a condition", _ERROR, TypeError),
    Code("TL151", "whole-buffer-arithmetic", "an operator applied to a whole buffer",
         _ERROR, RuntimeError),
    Code("TL152", "symbolic-as-python-value", "a device value where Python needs a number or bool",
         _ERROR, ValueError),
    Code("TL153", "object-as-condition", "a condition that is neither a number nor a bool",
         _WARNING, TypeError),
    Code("TL154", "unpack-count", "the number of targets is not that of the values",
         _ERROR, ValueError),
    Code("TL155", "annotation-has-no-effect", "an annotation that does not convert the value",
         _WARNING, TypeError),
    Code("TL156", "loop-not-iterated", "a loop constructor outside a for statement",
         _ERROR, TypeError),
    # The kernel launch and the signature.
    Code("TL160", "no-kernel-launch", "a kernel without with T.Kernel(...)", _ERROR, ValueError),
    Code("TL161", "several-kernel-launches", "T.Kernel inside another T.Kernel, a loop or a branch",
         _ERROR, ValueError),
    Code("TL162", "outside-kernel-launch", "a device statement outside with T.Kernel(...)",
         _ERROR, ValueError),
    Code("TL163", "grid-as-tuple", "the grid is given as one tuple", _ERROR, TypeError),
    Code("TL164", "bad-threads", "a thread count outside 1 to 1024", _ERROR, ValueError),
    Code("TL165", "bad-grid", "a grid that is not one to three integers", _ERROR, ValueError),
    Code("TL166", "grid-name-count", "the number of block names is not that of the grid axes",
         _ERROR, ValueError),
    Code("TL167", "parameter-without-annotation", "a kernel parameter without an annotation",
         _ERROR, TypeError),
    Code("TL168", "bad-annotation", "an annotation that is neither a tensor nor a dtype",
         _ERROR, TypeError),
    Code("TL169", "used-outside-kernel", "a T function is called outside any kernel",
         _ERROR, RuntimeError),
    Code("TL170", "const-unused", "a T.const that is no dim or stride of a tensor",
         _ERROR, RuntimeError),
    Code("TL171", "const-outside-eager", "T.const outside an eager @tilelang.jit function",
         _ERROR, RuntimeError),
    Code("TL172", "out-idx-in-eager", "out_idx on an eager @tilelang.jit function",
         _ERROR, ValueError),
    Code("TL173", "factory-returns-no-kernel", "a @tilelang.jit factory that returns no kernel",
         _ERROR, TypeError),
    # Macros, helpers and what they do with buffers.
    Code("TL180", "macro-recursion", "a macro that expands itself", _ERROR, RecursionError),
    Code("TL181", "macro-in-condition", "a macro call inside and, or, or a conditional expression",
         _ERROR, ValueError),
    Code("TL182", "bad-ref-argument", "a T.Ref argument that cannot be written to",
         _ERROR, TypeError),
    Code("TL183", "helper-raised", "Python code called by the kernel raised", _ERROR, RuntimeError),
    Code("TL184", "assert-failed", "an assert that is false while tracing", _ERROR, AssertionError),
    Code("TL185", "read-before-write", "a buffer is read before anything is written to it",
         _WARNING, ValueError),
    Code("TL186", "unused-buffer", "a buffer that is allocated and never read",
         _WARNING, ValueError),
    Code("TL187", "reducer-misuse", "a reducer used outside init, update, finalize",
         _ERROR, ValueError),
    Code("TL188", "rng-not-initialised", "T.rng_rand before T.rng_init", _ERROR, ValueError),
    Code("TL189", "source-kernel-misfit", "CUDA source that does not fit its launch",
         _ERROR, ValueError),
    # Shapes.
    Code("TL201", "copy-rank-mismatch", "the two sides of a copy differ in rank",
         _ERROR, ValueError),
    Code("TL202", "copy-shape-mismatch", "the two sides of a copy differ in shape",
         _ERROR, ValueError),
    Code("TL203", "index-count", "the number of indices is not the rank", _ERROR, IndexError),
    Code("TL204", "gemm-k-mismatch", "the K extents of a gemm's operands differ",
         _ERROR, ValueError),
    Code("TL205", "gemm-shape-mismatch", "the accumulator of a gemm has not the shape M x N",
         _ERROR, ValueError),
    Code("TL206", "gemm-dtype-mismatch", "dtypes that a gemm cannot combine", _ERROR, TypeError),
    Code("TL207", "gemm-rank", "a gemm operand that is not a matrix", _ERROR, ValueError),
    Code("TL208", "wrong-scope", "a buffer in a memory scope the operation cannot use",
         _ERROR, ValueError),
    Code("TL210", "reduce-output-shape", "the output of a reduction has the wrong shape",
         _ERROR, ValueError),
    Code("TL211", "axis-out-of-range", "an axis the buffer does not have", _ERROR, ValueError),
    Code("TL212", "scan-shape", "the output of a scan has not the input's shape",
         _ERROR, ValueError),
    Code("TL213", "reshape-size", "a view of a different total size", _ERROR, ValueError),
    Code("TL214", "transpose-shape", "the output of a transpose has not the swapped shape",
         _ERROR, ValueError),
    Code("TL215", "bad-shape", "a shape that is not made of positive integers", _ERROR, ValueError),
    Code("TL216", "symbolic-tile-shape", "an on-chip buffer whose shape is not constant",
         _ERROR, ValueError),
    Code("TL217", "stride-count", "the number of strides is not the rank", _ERROR, ValueError),
    # Indices, slices and loop ranges.
    Code("TL220", "index-out-of-bounds", "an index that always leaves the buffer at some iteration",
         _ERROR, IndexError),
    Code("TL221", "region-out-of-bounds", "a region that always leaves the buffer",
         _ERROR, IndexError),
    Code("TL222", "possibly-out-of-bounds", "an access that cannot be proved inside the buffer",
         _REMARK, IndexError),
    Code("TL223", "swapped-grid-axes", "block indices that are used for each other's axis",
         _ERROR, IndexError),
    Code("TL224", "slice-step", "a slice with a step", _ERROR, RuntimeError),
    Code("TL225", "negative-slice-start", "a slice that starts below zero", _ERROR, IndexError),
    Code("TL226", "empty-slice", "a slice without elements", _ERROR, ValueError),
    Code("TL227", "loop-drops-tail", "a loop whose rounded-down trip count misses the tail",
         _WARNING, ValueError),
    Code("TL228", "not-indexable", "an index into something that is not a buffer",
         _ERROR, TypeError),
    # Dtypes.
    Code("TL230", "unknown-dtype", "a dtype that does not exist", _ERROR, ValueError),
    Code("TL231", "ambiguous-dtype", "a dtype name that stands for several formats",
         _WARNING, ValueError),
    Code("TL232", "int-division", "/ between two integers", _ERROR, RuntimeError),
    Code("TL233", "mixed-index-dtypes", "integer dtypes mixed in one index or bound",
         _WARNING, TypeError),
    Code("TL234", "non-integer-index", "an index that is not an integer", _ERROR, TypeError),
    Code("TL235", "constant-out-of-range", "a constant its dtype cannot hold", _ERROR, ValueError),
    Code("TL236", "dtype-not-supported-by-op", "an operation that is not defined for the dtype",
         _ERROR, TypeError),
    Code("TL237", "bad-cast", "a cast with impossible options", _ERROR, ValueError),
    Code("TL238", "reinterpret-width", "a bit-cast between different widths", _ERROR, ValueError),
    Code("TL239", "bad-vector-width", "a vector loop or vector dtype of impossible width",
         _ERROR, ValueError),
    # What may stand inside T.Parallel.
    Code("TL240", "data-race", "two iterations of T.Parallel write the same element",
         _WARNING, ValueError),
    Code("TL241", "tile-op-in-parallel", "a tile operation inside T.Parallel", _ERROR, ValueError),
    Code("TL242", "nested-parallel", "T.Parallel inside T.Parallel", _ERROR, ValueError),
    Code("TL243", "pipelined-in-parallel", "T.Pipelined inside T.Parallel", _ERROR, ValueError),
    Code("TL244", "local-indexed-by-parallel", "a local buffer indexed by a T.Parallel variable",
         _ERROR, ValueError),
    Code("TL245", "fragment-in-symbolic-parallel",
         "a fragment indexed by a T.Parallel variable of symbolic extent", _ERROR, ValueError),
    Code("TL246", "overlapping-regions", "source and destination of an operation overlap",
         _ERROR, ValueError),
    # Layouts.
    Code("TL301", "layout-conflict", "operations that need different layouts of one fragment",
         _ERROR, ValueError),
    Code("TL302", "layout-not-injective", "a layout that puts two elements in one place",
         _ERROR, ValueError),
    Code("TL303", "not-a-fragment-layout", "a fragment is given a layout without threads",
         _ERROR, TypeError),
    Code("TL304", "cross-thread-read", "a loop reads what another thread writes in it",
         _ERROR, ValueError),
    Code("TL305", "layout-pinned-by-smaller-loop", "a loop covers only a part of a fragment",
         _WARNING, ValueError),
    Code("TL306", "bank-conflicts", "an access pattern with shared-memory bank conflicts",
         _REMARK, ValueError),
    Code("TL307", "layout-conversion", "a fragment changes its layout, which costs time",
         _REMARK, ValueError),
    Code("TL308", "layout-shape-mismatch", "a layout made for another shape", _ERROR, ValueError),
    Code("TL309", "padded-threads", "extents that do not divide the threads evenly",
         _REMARK, ValueError),
    Code("TL310", "non-owner-write", "a thread writes a fragment element of another thread",
         _ERROR, ValueError),
    Code("TL311", "bad-layout-function", "a layout function that gives no integer index",
         _ERROR, TypeError),
    Code("TL312", "layout-annotated-twice", "a buffer is given two layouts", _ERROR, ValueError),
    Code("TL313", "loop-layout-rank", "a loop layout whose rank is not that of the loop",
         _ERROR, ValueError),
    Code("TL314", "no-warp-partition", "a gemm tile that the warps cannot cover",
         _ERROR, ValueError),
    # Targets and budgets.
    Code("TL401", "not-on-target", "an operation the target does not have", _ERROR, ValueError),
    Code("TL402", "needs-newer-arch", "an operation that needs a newer architecture",
         _ERROR, ValueError),
    Code("TL403", "unknown-target", "a target that does not exist", _ERROR, ValueError),
    Code("TL404", "unknown-arch", "an architecture the target does not have", _ERROR, ValueError),
    Code("TL405", "target-option-string", "a target written as an option string",
         _ERROR, ValueError),
    Code("TL406", "shared-memory-over-budget", "more shared memory than the target has",
         _ERROR, ValueError),
    Code("TL407", "registers-over-budget", "more registers than a thread has",
         _WARNING, ValueError),
    Code("TL408", "bad-thread-count-for-op", "a thread count the operation cannot work with",
         _ERROR, ValueError),
    Code("TL409", "illegal-mma-tile", "a gemm tile the matrix instructions do not cover",
         _ERROR, ValueError),
    Code("TL410", "k-below-atom", "a gemm K tile below the matrix instruction's",
         _ERROR, ValueError),
    Code("TL411", "illegal-mma-operand", "a gemm operand layout the instruction cannot read",
         _ERROR, ValueError),
    Code("TL412", "dtype-not-on-target", "a dtype the target cannot compute with",
         _ERROR, ValueError),
    Code("TL413", "needs-cooperating-threads", "threads that must cooperate, on the CPU",
         _ERROR, ValueError),
    Code("TL414", "grid-too-large", "a grid axis above the target's limit", _ERROR, ValueError),
    Code("TL415", "target-resolved", "what target auto stands for", _REMARK, ValueError),
    Code("TL416", "artifact-target-mismatch", "a compiled kernel for another architecture",
         _ERROR, RuntimeError),
    Code("TL417", "no-machine-code", "an inspection of what is not compiled for a GPU",
         _ERROR, ValueError),
    Code("TL418", "opaque-code", "code of a kernel that the compiler cannot see into",
         _REMARK, ValueError),
    Code("TL419", "not-by-tma", "a copy that the bulk copy engine cannot make",
         _ERROR, ValueError),
    # Pipelines, asynchronous copies, barriers.
    Code("TL501", "pipeline-list-length", "stage and order lists of the wrong length",
         _ERROR, ValueError),
    Code("TL502", "pipeline-order-invalid", "an order list that is not a permutation",
         _ERROR, ValueError),
    Code("TL503", "pipeline-producer-late", "a producer in a later stage than its consumer",
         _ERROR, ValueError),
    Code("TL504", "bad-num-stages", "a num_stages that is not a small constant",
         _ERROR, ValueError),
    Code("TL505", "pipelines-share-buffer", "two pipelines with different depths share a buffer",
         _WARNING, ValueError),
    Code("TL506", "pipeline-unsafe-replay", "a value that cannot be recomputed in another stage",
         _ERROR, ValueError),
    Code("TL507", "pipeline-without-producer", "a pipelined loop with nothing to prefetch",
         _WARNING, ValueError),
    Code("TL508", "copy-not-async", "a copy in a pipeline that is not asynchronous",
         _REMARK, ValueError),
    Code("TL509", "shared-memory-race", "threads that meet in shared memory without a barrier",
         _WARNING, ValueError),
    Code("TL510", "barrier-in-divergent-code", "a barrier that not all threads reach",
         _ERROR, ValueError),
    Code("TL511", "bad-barrier", "a barrier with an impossible count or phase", _ERROR, ValueError),
    Code("TL512", "async-copy-never-waited", "an asynchronous copy that nothing waits for",
         _WARNING, ValueError),
    Code("TL513", "pipeline-depth", "how deep a pipeline is, and could be", _REMARK, ValueError),
    # Performance.
    Code("TL601", "strided-fast-axis", "the fastest axis of an access has a stride",
         _REMARK, ValueError),
    Code("TL602", "copy-not-vectorised", "a copy that moves one element at a time",
         _REMARK, ValueError),
    Code("TL603", "guard-not-removed", "a bounds check that stays in the inner loop",
         _REMARK, ValueError),
    Code("TL604", "coalesced-width-clamped", "a coalesced_width wider than the access allows",
         _WARNING, ValueError),
    Code("TL605", "loop-not-vectorised", "a loop that could not be vectorised",
         _REMARK, ValueError),
    Code("TL606", "gemm-without-mma", "a gemm that uses no matrix instruction",
         _REMARK, ValueError),
    Code("TL607", "low-precision-accumulator", "a gemm that accumulates in 16 bits or fewer",
         _REMARK, ValueError),
    Code("TL608", "ragged-tile-waste", "tiles that cover much more than the tensor",
         _REMARK, ValueError),
    Code("TL609", "low-occupancy", "a kernel that leaves most of the device idle",
         _REMARK, ValueError),
    Code("TL610", "expectation-missed", "code that does not hold what --expect asks for",
         _ERROR, ValueError),
    # The call, the command line and the launch.
    Code("TL701", "argument-count", "a call with the wrong number of arguments", _ERROR, TypeError),
    Code("TL702", "argument-dtype", "a tensor of the wrong dtype", _ERROR, TypeError),
    Code("TL703", "argument-rank", "a tensor of the wrong rank", _ERROR, ValueError),
    Code("TL704", "argument-shape", "a tensor of the wrong shape", _ERROR, ValueError),
    Code("TL705", "argument-stride", "a tensor with the wrong strides", _ERROR, ValueError),
    Code("TL706", "argument-alignment", "a tensor whose memory is not aligned", _ERROR, ValueError),
    Code("TL707", "argument-device", "a tensor on the wrong device", _ERROR, ValueError),
    Code("TL708", "argument-not-contiguous", "a tensor view that is not contiguous",
         _ERROR, ValueError),
    Code("TL709", "argument-not-a-tensor", "an argument that is not a tensor", _ERROR, TypeError),
    Code("TL710", "unbound-dim", "a dim of an output that no input determines", _ERROR, ValueError),
    Code("TL711", "dim-conflict", "two tensors give one dim different values", _ERROR, ValueError),
    Code("TL712", "out-idx-out-of-range", "an out_idx that names no parameter", _ERROR, ValueError),
    Code("TL713", "out-idx-conflict", "out_idx together with returned T.empty tensors",
         _ERROR, ValueError),
    Code("TL714", "unhashable-argument", "a compile-time argument that cannot be hashed",
         _ERROR, TypeError),
    Code("TL715", "missing-const-value", "a T.const without a value", _ERROR, ValueError),
    Code("TL716", "missing-kernel-value", "a kernel parameter without a value to compile with",
         _ERROR, ValueError),
    Code("TL717", "argument-null", "None for a tensor that is always used", _ERROR, TypeError),
    Code("TL718", "argument-scalar", "a scalar argument of the wrong type or range",
         _ERROR, TypeError),
    Code("TL719", "unknown-option", "a compile option that does not exist", _ERROR, ValueError),
    Code("TL720", "argument-keyword", "a keyword the kernel does not have", _ERROR, TypeError),
    Code("TL721", "assumption-violated", "arguments that break a T.assume", _ERROR, ValueError),
    Code("TL722", "device-assert-failed", "an assert that is false on the device",
         _ERROR, RuntimeError),
    Code("TL723", "result-mismatch", "a result that differs from the reference",
         _ERROR, AssertionError),
    Code("TL724", "every-config-failed", "no configuration of a tuning run works",
         _ERROR, RuntimeError),
    Code("TL725", "bad-set-value", "a --set that is not NAME=VALUE", _ERROR, ValueError),
    Code("TL726", "unsupported-parameter", "inputs cannot be made for a parameter",
         _ERROR, ValueError),
    Code("TL727", "argument-read-only", "a read-only array for a tensor that is written",
         _ERROR, ValueError),
    Code("TL728", "export-conflict", "kernels that cannot be in one exported file",
         _ERROR, ValueError),
    Code("TL730", "access-outside-memory", "an access outside of memory, seen on the device",
         _ERROR, RuntimeError),
    Code("TL731", "race-on-device", "threads that race in shared memory, seen on the device",
         _ERROR, RuntimeError),
    Code("TL732", "uninitialised-read", "a read of memory never written, seen on the device",
         _ERROR, RuntimeError),
    Code("TL733", "deadlock", "threads that wait for what never comes", _ERROR, RuntimeError),
    Code("TL734", "read-in-flight", "an access where an asynchronous copy is still under way",
         _ERROR, RuntimeError),
    # Toolchain and environment.
    Code("TL801", "tvm-missing", "apache-tvm is missing or of the wrong version",
         _ERROR, ImportError),
    Code("TL802", "llvm-missing", "TVM was built without LLVM", _ERROR, RuntimeError),
    Code("TL803", "cache-unwritable", "the kernel cache cannot be written", _WARNING, OSError),
    Code("TL804", "cache-entry-damaged", "a damaged entry of the kernel cache",
         _WARNING, OSError),
    Code("TL805", "no-gpu", "no GPU can be used from here", _ERROR, RuntimeError),
    Code("TL806", "toolchain-error", "a device compiler rejected the generated source",
         _ERROR, RuntimeError),
    Code("TL807", "compiler-not-found", "no compiler for the target is installed",
         _ERROR, FileNotFoundError),
    Code("TL808", "package-missing", "an optional package is needed here", _ERROR, ImportError),
    Code("TL809", "compile-timeout", "compilation took longer than allowed", _ERROR, TimeoutError),
    Code("TL810", "output-not-writable", "an output file cannot be written", _ERROR, OSError),
    Code("TL811", "bad-environment-value", "an environment variable with an impossible value",
         _ERROR, ValueError),
    Code("TL812", "launch-failed", "the device refused or aborted the launch",
         _ERROR, RuntimeError),
    Code("TL813", "out-of-memory", "memory ran out", _ERROR, MemoryError),
    Code("TL814", "export-stale", "exported files that no longer follow from their source",
         _ERROR, RuntimeError),
    Code("TL815", "sanitizer-unusable", "compute-sanitizer is missing or cannot work here",
         _ERROR, FileNotFoundError),
    Code("TL816", "embedded-source-error", "CUDA source of the kernel's own does not compile",
         _ERROR, ValueError),
    Code("TL817", "nothing-to-emulate", "the emulator is asked for and the target is no GPU's",
         _ERROR, ValueError),
    # Our own fault.
    Code("TL900", "internal-error", "the compiler failed; the kernel is not to blame",
         _ERROR, RuntimeError),
    Code("TL901", "invalid-ir", "a pass produced a program that is not legal",
         _ERROR, RuntimeError),
)
# fmt: on

BY_CODE: Final[dict[str, Code]] = {row.code: row for row in CATALOGUE}
BY_NAME: Final[dict[str, Code]] = {row.name: row for row in CATALOGUE}
