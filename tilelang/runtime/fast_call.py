"""How is a call that fits checked and launched in a few microseconds?

By a Python function generated for one signature and one kind of tensors, which checks everything
with the cheapest expression there is and gives up (`NO_FAST_PATH`) at the first doubt. `arguments`
then says what is wrong, or binds what is merely unusual (a subclass, a null tensor, DLPack).

For `A: T.Tensor((M, 64), "float16")` and a returned `C` the function reads

    def call(a0):
        try:
            if a0.__class__ not in TENSORS or a0.dtype is not D0 ...: return NO_FAST_PATH
            s0_0, s0_1 = a0.shape
            if s0_1 != 64: return NO_FAST_PATH
            p0 = a0.data_ptr()
        except Exception: return NO_FAST_PATH
        r0 = empty((s0_0, 64), dtype=D1)
        launch((p0, r0.data_ptr(), s0_0))
        return r0

For a kernel on a GPU every tensor has to be on the device of the first, and the launch itself is
written out in the function (`Inline`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from tilelang.program.buffer import Buffer, Dim
from tilelang.program.expr import Var
from tilelang.runtime.dims import dim_source, dim_vars, tuple_source
from tilelang.runtime.fast_guard import MISSES, same_kind
from tilelang.runtime.place import CPU, Place
from tilelang.runtime.signature import Parameter, Signature
from tilelang.runtime.tensors import Family, elements_per_item, numpy_dtype, storage_names

NO_FAST_PATH: Final = object()

Launch = Callable[..., None]
# From expressions of the values and of the device: tests, statements, and the names they use.
Inline = Callable[[Sequence[str], str], tuple[list[str], list[str], Mapping[str, Any]]]


def make_fast_call(
    signature: Signature,
    slots: Sequence[Parameter],
    family: Family,
    launch: Launch,
    written: frozenset[Buffer] = frozenset(),
    place: Place = CPU,
    inline: Inline | None = None,
    slow: Callable[..., Any] | None = None,
    sample: Sequence[Any] | None = None,
) -> Callable[..., Any] | None:
    """The generated function, or None for a signature that is left to the slow path.

    It takes the inputs by position and returns one result, a list of them, None, or NO_FAST_PATH.
    `slots` is what `launch` takes, in order; off the CPU `inline` does its work. With `slow` it is
    a method, which calls that method where it would give up. With `sample`, the arguments of a
    call that was fine, tensors like those are told in one step.
    """
    if place.kind != "cpu" and (family != "torch" or inline is None):
        return None
    writer = _Writer(signature, family, written, place, inline)
    if sample is not None and place.kind != "cpu":
        writer.recognise(sample)
    try:
        source = writer.function(slots, slow is not None)
    except _Unsupported:
        return None
    namespace = {**writer.constants, "NO_FAST_PATH": NO_FAST_PATH, "launch": launch,
                 "ABSENT": _ABSENT, "Doubt": _Doubt, "given": _given, "slow": slow,
                 "__builtins__": {"min": min, "max": max, "int": int, "float": float, "abs": abs,
                                  "__import__": __import__,  # C code below imports through it
                                  "Exception": Exception, "IndexError": IndexError,
                                  "next": next}}  # fmt: skip
    exec(compile(source, f"<call of {signature.name}>", "exec"), namespace)
    made: Callable[..., Any] = namespace["call"]
    return made


class _Unsupported(Exception):
    pass


class _Doubt(Exception):
    """A call that the generated method leaves to the complete check."""


_ABSENT: Final = object()


def _given(*args: Any) -> tuple[Any, ...]:
    """The arguments that were passed: the first that was not ends them."""
    for n, value in enumerate(args):
        if value is _ABSENT:
            return args[:n]
    return args


class _Writer:
    def __init__(
        self, signature: Signature, family: Family, written: frozenset[Buffer], place: Place,
        inline: Inline | None,
    ) -> None:  # fmt: skip
        self.inline = inline
        self.signature = signature
        self.family = family
        self.written = written
        self.place = place
        self.has_device = False
        self.addresses: dict[int, list[str]] = {}  # what has to be a multiple of what
        self.allocated: list[str] = []  # addresses that are 0 only for tensors without elements
        self.constants: dict[str, Any] = {}
        self.kinds: list[str] = []  # what `same` tells of all tensors at once
        self.known: dict[str, int] = {}  # sizes and strides of the tensors it recognises
        self.sample: dict[int, Any] | None = None  # tensors that `same` recognises, by position
        self.checks: list[str] = []
        self.names: dict[Var, str] = {}  # runtime dimensions and scalars already known
        self.values: dict[Parameter, str] = {}  # what goes into a slot
        self.late: list[tuple[Dim, str]] = []  # sizes to compare once every dimension is known

    def recognise(self, sample: Sequence[Any]) -> None:
        """Compare with the tensors of `sample` first."""
        inputs = enumerate(self.signature.inputs)
        tensors = {i: sample[i] for i, p in inputs if isinstance(p, Buffer)}
        same = same_kind(tuple(tensors.values())) if tensors else None
        if same is not None:
            self.constants |= {"same": same, "misses": count(1)}
            self.sample = tensors

    def function(self, slots: Sequence[Parameter], is_method: bool = False) -> str:
        inputs = self.signature.inputs
        argument_names = [f"a{i}" for i in range(len(inputs))]
        self.constants["TENSORS"] = _classes(self.family)
        self.constants["TENSOR"] = _plain_class(self.family)
        for name, parameter in zip(argument_names, inputs, strict=True):
            if isinstance(parameter, Var):
                self.scalar(name, parameter)
        for i, parameter in enumerate(inputs):
            if isinstance(parameter, Buffer):
                self.tensor(i, parameter)
        for dim, name in self.late:
            self.require_size(name, dim)
        for promise in self.signature.promises:
            self.require(self.dim(promise.condition))
        self.aligned()
        body = self.results()
        values = [self.slot(p) for p in slots]
        if self.place.kind == "cpu":
            body.append(f"launch({tuple_source(values)})")
        else:
            body += self.inlined(values)
        body.append(f"return {self.returned()}")
        checks = [f"        {line}" for line in self.tests()] or ["        pass"]
        if is_method:
            return _method(argument_names, checks, body)
        return "\n".join(
            [f"def call({', '.join(argument_names)}):", "    try:", *checks,
             "    except Exception: return NO_FAST_PATH", *(f"    {line}" for line in body)]
        )  # fmt: skip

    def tests(self) -> list[str]:
        """All lines that look at the arguments."""
        if self.sample is None:
            return [*self.kinds, *self.checks]
        device = next(iter(self.sample.values())).get_device()
        used = {*self.names.values(), *re.findall(r"\w+", " ".join(self.checks))}
        return [
            f"if same({', '.join(f'a{i}' for i in self.sample)}):",
            f"    d = {device}",
            *(f"    {name} = {n}" for name, n in self.known.items() if name in used),
            "else:",
            # The complete check lets this call through, and a function for its tensors is made.
            f"    if next(misses) == {MISSES}: return NO_FAST_PATH",
            *(f"    {line}" for line in self.kinds), *self.checks,
        ]  # fmt: skip

    def require_kind(self, condition: str) -> None:
        self.kinds.append(f"if not ({condition}): return NO_FAST_PATH")

    def require(self, condition: str) -> None:
        self.checks.append(f"if not ({condition}): return NO_FAST_PATH")

    def scalar(self, name: str, var: Var) -> None:
        if var.dtype.is_float:
            # An int is a fine float argument, and the launch converts it.
            held = f"{name}.__class__ is int and -1e308 < {name} < 1e308"
            self.require(f"{name}.__class__ is float or {held}")
        elif var.dtype.is_integer:
            low, high = var.dtype.integer_range()
            self.require(f"{name}.__class__ is int and {low} <= {name} <= {high}")
            self.names[var] = name
        else:
            raise _Unsupported
        self.values[var] = name

    def tensor(self, index: int, buffer: Buffer) -> None:
        name = f"a{index}"
        if elements_per_item(buffer.dtype) != 1 or buffer.dtype.lanes != 1:
            raise _Unsupported
        self.require_kind(f"{name}.__class__ is TENSOR or {name}.__class__ in TENSORS")
        self.constants[f"D{index}"] = dtypes = self.dtypes(buffer)
        if self.family == "torch":
            same = f"{name}.dtype is D{index}" if len(dtypes) == 1 else f"{name}.dtype in D{index}"
            if len(dtypes) == 1:
                self.constants[f"D{index}"] = dtypes[0]
            # A lazily negated tensor is the imaginary part of a conjugate: every other number.
            # On a GPU, where every tenth of a microsecond counts, only strided ones are asked.
            asks = buffer.strides is not None or self.place.kind == "cpu"
            plain = f" and not {name}.is_neg()" if asks else ""
            self.require_kind(f"{same} and {self.on_place(name)}{plain}")
        else:
            self.constants[f"D{index}"] = dtypes[0] if len(dtypes) == 1 else dtypes
            self.require_kind(f"{name}.dtype {'==' if len(dtypes) == 1 else 'in'} D{index}")
            if buffer in self.written:
                self.require_kind(f"{name}.flags.writeable")
        if buffer.strides is None:
            contiguous = "is_contiguous()" if self.family == "torch" else "flags.c_contiguous"
            self.require_kind(f"{name}.{contiguous}")
        self.sizes(f"s{index}", f"{name}.shape", buffer.shape)
        if buffer.strides is not None:
            self.strides(index, buffer)
        if self.sample is not None:
            self.remember(index, "s", self.sample[index].shape)
            self.remember(index, "t", self.sample[index].stride())
        address = "data_ptr()" if self.family == "torch" else "__array_interface__['data'][0]"
        self.checks.append(f"p{index} = {name}.{address}")
        if self.family == "torch":
            self.allocated.append(f"p{index}")
        size = self.place.alignment_of(buffer)
        if size > 1:
            self.addresses.setdefault(size, []).append(f"p{index}")
        self.values[buffer] = f"p{index}"

    def on_place(self, name: str) -> str:
        """That a tensor is where the kernel works; on a GPU, on the device `d` of the first."""
        if self.place.kind != "cpu" and self.has_device:
            return f"{name}.get_device() == d"
        if self.place.kind != "cpu":
            # Nothing is loaded on device -1, the CPU.
            self.kinds.append(f"d = {name}.get_device()")
            self.has_device = True
            return "d >= 0"
        return f"{name}.is_cpu"

    def aligned(self) -> None:
        """Addresses that need the same alignment are tested at once: it is a power of two."""
        if self.allocated:  # a tensor whose memory was freed has address 0
            each = (f"({p} or not a{p[1:]}.numel())" for p in self.allocated)
            self.require(f"{' and '.join(self.allocated)} or {' and '.join(each)}")
        for size, names in self.addresses.items():
            self.require(f"({' | '.join(names)}) % {size} == 0")

    def inlined(self, values: Sequence[str]) -> list[str]:
        """The launch itself."""
        if not self.has_device or self.inline is None:
            raise _Unsupported
        tests, lines, names = self.inline(values, "d")
        for test in tests:
            self.require(test)
        self.constants.update(names)
        return lines

    def sizes(self, prefix: str, source: str, dims: Sequence[Dim]) -> None:
        """Compare or bind every size of `source`, which has as many as `dims`."""
        if all(isinstance(d, int) for d in dims):
            self.constants[prefix] = tuple(dims)
            self.require_kind(f"{source} == {prefix}")
            return
        names = [f"{prefix}_{axis}" for axis in range(len(dims))]
        self.kinds.append(f"{', '.join(names)}, = {source}")
        for name, dim in zip(names, dims, strict=True):
            self.size(name, dim)

    def remember(self, index: int, prefix: str, numbers: Sequence[int]) -> None:
        """Sizes or strides that a recognised tensor has."""
        self.known |= {f"{prefix}{index}_{axis}": n for axis, n in enumerate(numbers)}

    def require_size(self, name: str, dim: Dim) -> None:
        """That a size is what its dimension says; it is not asked of recognised tensors, unless
        a scalar argument decides."""
        scalars = [p for p in self.signature.inputs if isinstance(p, Var)]
        decides = any(v in scalars for v in dim_vars(dim))
        (self.require if decides else self.require_kind)(f"{name} == {self.dim(dim)}")

    def size(self, name: str, dim: Dim) -> None:
        if isinstance(dim, Var) and dim not in self.names:
            self.names[dim] = name
        elif all(v in self.names for v in dim_vars(dim)):
            self.require_size(name, dim)
        else:
            self.late.append((dim, name))

    def strides(self, index: int, buffer: Buffer) -> None:
        assert buffer.strides is not None
        source = f"a{index}.stride()" if self.family == "torch" else f"a{index}.strides"
        names = [f"t{index}_{axis}" for axis in range(buffer.ndim)]
        self.kinds.append(f"{', '.join(names)}, = {source}")
        item = buffer.dtype.scalar.bytes
        for name, dim in zip(names, buffer.strides, strict=True):
            if self.family == "numpy" and item > 1:
                self.require_kind(f"{name} % {item} == 0")
                self.kinds.append(f"{name} //= {item}")
            self.size(name, dim)

    def results(self) -> list[str]:
        lines = []
        self.constants["empty"] = _empty(self.family)
        for i, buffer in enumerate(self.signature.results):
            if elements_per_item(buffer.dtype) != 1 or buffer.dtype.lanes != 1:
                raise _Unsupported
            self.constants[f"R{i}"] = self.dtypes(buffer)[0]
            shape = tuple_source(self.dim(d) for d in buffer.shape)
            where = "'cpu'" if self.place.kind == "cpu" else "d"
            device = f", device={where}" if self.family == "torch" else ""
            lines.append(f"r{i} = empty({shape}, dtype=R{i}{device})")
            if self.family == "torch":
                # Under FakeTensorMode what `empty` makes has no memory.
                lines.append(f"if r{i}.__class__ not in TENSORS: return NO_FAST_PATH")
            self.values[buffer] = (
                f"r{i}.data_ptr()"
                if self.family == "torch"
                else f"r{i}.__array_interface__['data'][0]"
            )
        return lines

    def returned(self) -> str:
        names = [f"r{i}" for i in range(len(self.signature.results))]
        if not names:
            return "None"
        return names[0] if len(names) == 1 else f"[{', '.join(names)}]"

    def slot(self, parameter: Parameter) -> str:
        if parameter in self.values:
            return self.values[parameter]
        if isinstance(parameter, Var) and parameter in self.names:
            return self.names[parameter]
        raise _Unsupported

    def dim(self, dim: Dim) -> str:
        if any(v not in self.names for v in dim_vars(dim)):
            raise _Unsupported
        return dim_source(dim, self.names)

    def dtypes(self, buffer: Buffer) -> tuple[Any, ...]:
        names = storage_names(buffer.dtype, self.family)
        if not names:
            raise _Unsupported
        if self.family == "torch":
            import torch

            return tuple(getattr(torch, n) for n in names)
        if len(names) > 1:
            import numpy

            return tuple(numpy.dtype(n) for n in names)
        return (numpy_dtype(buffer.dtype),)


def _method(names: Sequence[str], checks: Sequence[str], body: Sequence[str]) -> str:
    """The same as a method that takes every call there is."""
    parameters = "".join(f"{name}=ABSENT, " for name in names)
    # Left before the complete check begins, so that what it raises has no other exception behind.
    doubts = [c.replace("return NO_FAST_PATH", "raise Doubt") for c in checks]
    passed = f"slow(self, *given({', '.join(names)}), *more, **named)"
    return "\n".join(
        [f"def call(self, {parameters}*more, **named):", "    try:",
         "        if more or named: raise Doubt", *doubts,
         "    except Exception: fits = False", "    else: fits = True",
         f"    if not fits: return {passed}", *(f"    {line}" for line in body)]
    )  # fmt: skip


def _classes(family: Family) -> frozenset[type]:
    if family == "torch":
        import torch

        return frozenset({torch.Tensor, torch.nn.Parameter})
    import numpy

    return frozenset({numpy.ndarray})


def _plain_class(family: Family) -> Any:
    if family == "torch":
        import torch

        return torch.Tensor
    import numpy

    return numpy.ndarray


def _empty(family: Family) -> Any:
    if family == "torch":
        import torch

        return torch.empty
    import numpy

    return numpy.empty
