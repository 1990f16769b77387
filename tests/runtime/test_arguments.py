"""Every way a call can be wrong: which code, which argument, what the message and the help say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from tilelang.dtypes import dtype
from tilelang.program.buffer import Buffer
from tilelang.program.expr import Expr, Var
from tilelang.program.stmt import Function
from tilelang.runtime.arguments import bind
from tilelang.runtime.signature import Signature, make_signature
from tilelang_diagnostics import CompileError
from tilelang_diagnostics.model import Span

SPAN = Span("kernel.py", 3, 9, 3, 10)
M = Var("M", dtype("int32"), SPAN, "dim")
N = Var("N", dtype("int32"), SPAN, "dim")
STRIDE = Var("stride", dtype("int32"), SPAN, "dim")


def tensor(
    name: str, shape: tuple[int | Expr, ...], element: str = "float32", **more: Any
) -> Buffer:
    return Buffer(name, shape, dtype(element), "global", SPAN, "param", **more)


def scalar(name: str, element: str) -> Var:
    return Var(name, dtype(element), SPAN, "param")


def signature(*params: Buffer | Var, out_idx: Any = None) -> Signature:
    return make_signature(Function("scale", params, (), (), SPAN), out_idx)


A = tensor("A", (M, 4))
B = tensor("B", (4, N))
PLAIN = signature(A, B)
WITH_SCALARS = signature(tensor("A", (4,)), scalar("n", "int8"), scalar("s", "float32"))
STRIDED = signature(tensor("A", (M, 4), strides=(STRIDE, 1)))
NULLABLE = signature(A, tensor("bias", (M,), nullable=True))
POINTER = signature(scalar("p", "handle"))
HALF = signature(tensor("A", (4,), "bfloat16"))
FLAGS = signature(tensor("A", (4,), "bool"))

f32 = lambda *shape: np.zeros(shape, np.float32)  # noqa: E731
odd = np.zeros(4 * 4 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(4, 4)
transposed = torch.zeros(4, 8).T
nested = torch.nested.nested_tensor([torch.zeros(4), torch.zeros(3)], layout=torch.jagged)
freed = torch.zeros(2, 4)
freed.untyped_storage().resize_(0)
with FakeTensorMode():
    fake = torch.zeros(2, 4)
WITHOUT_MEMORY = (
    "call the kernel on the tensors themselves, outside of torch.compile, torch.func and "
    "FakeTensorMode, and not after its storage was freed"
)


class Exchanged:
    """What a broken library hands out."""

    def __init__(self, device: Any) -> None:
        self.device = device

    def __dlpack_device__(self) -> Any:
        return self.device

    def __dlpack__(self, **_: Any) -> Any:
        return 3


WRONG: list[tuple[str, Signature, tuple[Any, ...], dict[str, Any], str, str, str | None]] = [
    ("missing", PLAIN, (f32(2, 4),), {}, "TL701",
     "`scale` takes 2 arguments, got 1; missing B", "call it as `scale(A, B)`"),
    ("too many", PLAIN, (f32(2, 4), f32(4, 3), 1), {}, "TL701",
     "`scale` takes 2 arguments, got 3", "call it as `scale(A, B)`"),
    ("keyword", PLAIN, (f32(2, 4),), {"b": f32(4, 3)}, "TL720",
     "`scale` has no parameter `b`; did you mean `B`?", "call it as `scale(A, B)`"),
    ("twice", PLAIN, (f32(2, 4), f32(4, 3)), {"A": f32(2, 4)}, "TL720",
     "argument `A` of `scale` is given twice", "pass it by position or by name, not both"),
    ("dtype numpy", PLAIN, (np.zeros((2, 4)), f32(4, 3)), {}, "TL702",
     "argument `A` of `scale` has dtype float64, expected float32", "pass A.astype(np.float32)"),
    ("dtype torch", PLAIN, (torch.zeros(2, 4).half(), torch.zeros(4, 3)), {}, "TL702",
     "argument `A` of `scale` has dtype float16, expected float32", "pass A.to(torch.float32)"),
    ("dtype bool", FLAGS, (f32(4),), {}, "TL702",
     "argument `A` of `scale` has dtype float32, expected bool", "pass A.astype(bool)"),
    ("dtype bfloat16", HALF, (f32(4),), {}, "TL702",
     "argument `A` of `scale` has dtype float32, expected bfloat16",
     "pass A.astype(ml_dtypes.bfloat16)"),
    ("rank", PLAIN, (f32(8), f32(4, 3)), {}, "TL703",
     "argument `A` of `scale` has 1 dimension (8,), expected 2", "pass a tensor of shape (M, 4)"),
    ("shape", PLAIN, (f32(2, 5), f32(4, 3)), {}, "TL704",
     "argument `A` of `scale` has shape (2, 5), expected (M, 4): dimension 1 is 5, not 4", None),
    ("stride", STRIDED, (f32(4, 2).T.copy().T.reshape(2, 4)[:, ::-1],), {}, "TL705",
     "argument `A` of `scale` has strides (4, -1), expected (stride, 1): stride 1 is -1, "
     "not 1", None),
    ("alignment", PLAIN, (odd, f32(4, 3)), {}, "TL706",
     "argument `A` of `scale` starts at an address that is not a multiple of 4 bytes, the size of "
     "float32", "pass A.copy(), which is aligned"),
    ("device", PLAIN, (torch.zeros(2, 4, device="meta"), torch.zeros(4, 3)), {}, "TL707",
     "argument `A` of `scale` is on meta, expected cpu",
     "pass A.cpu(), or compile the kernel for that device"),
    ("view torch", PLAIN, (transposed, torch.zeros(4, 3)), {}, "TL708",
     "argument `A` of `scale` is not contiguous: it has strides (1, 8), expected (4, 1)",
     "pass A.contiguous(), or declare the parameter with its strides: "
     "T.StridedTensor(shape, strides, dtype)"),
    ("S9: a slice of columns", PLAIN, (f32(2, 5)[:, 1:], f32(4, 3)), {}, "TL708",
     "argument `A` of `scale` is not contiguous: it has strides (5, 1), expected (4, 1)",
     "pass np.ascontiguousarray(A), or declare the parameter with its strides: "
     "T.StridedTensor(shape, strides, dtype)"),
    ("list", PLAIN, ([1.0], f32(4, 3)), {}, "TL709",
     "argument `A` of `scale` is a list, expected a tensor",
     "pass torch.tensor(...) or numpy.array(...)"),
    ("sparse", PLAIN, (torch.zeros(2, 4).to_sparse(), torch.zeros(4, 3)), {}, "TL709",
     "argument `A` of `scale` is a sparse tensor (torch.sparse_coo), expected a tensor",
     "pass A.to_dense()"),
    ("nested", PLAIN, (nested, torch.zeros(4, 3)), {}, "TL709",
     "argument `A` of `scale` is a nested tensor, expected a tensor",
     "pass A.values() or a padded tensor"),
    ("negated", PLAIN, (torch._neg_view(torch.zeros(2, 4)), torch.zeros(4, 3)), {}, "TL709",
     "argument `A` of `scale` is a view whose elements are negated or conjugated when they are "
     "read, expected a tensor", "pass A.resolve_conj().resolve_neg()"),
    ("freed", PLAIN, (freed, torch.zeros(4, 3)), {}, "TL709",
     "argument `A` of `scale` is a Tensor without memory, expected a tensor", WITHOUT_MEMORY),
    ("fake", PLAIN, (fake, torch.zeros(4, 3)), {}, "TL709",
     "argument `A` of `scale` is a FakeTensor without memory, expected a tensor", WITHOUT_MEMORY),
    ("masked", PLAIN, (np.ma.masked_array(f32(2, 4), True), f32(4, 3)), {}, "TL709",
     "argument `A` of `scale` is a masked array, whose mask the kernel would not see, expected a "
     "tensor", "pass A.filled(...), and the mask as a tensor of its own"),
    ("no item size", PLAIN, (np.zeros((2, 4), "V0"), f32(4, 3)), {}, "TL709",
     "argument `A` of `scale` has strides that are no multiple of its element size, expected a "
     "tensor", "pass a NumPy array, a PyTorch tensor, or an object with __dlpack__"),
    ("no capsule", PLAIN, (Exchanged((1, 0)), f32(4, 3)), {}, "TL709",
     "argument `A` of `scale` is an Exchanged that cannot be exchanged (PyCapsule_GetPointer "
     "called with invalid PyCapsule object), expected a tensor",
     "pass a NumPy array, a PyTorch tensor, or an object with __dlpack__"),
    ("no dlpack device", PLAIN, (Exchanged(None), f32(4, 3)), {}, "TL709",
     "argument `A` of `scale` is an Exchanged that cannot be exchanged (cannot unpack non-iterable "
     "NoneType object), expected a tensor",
     "pass a NumPy array, a PyTorch tensor, or an object with __dlpack__"),
    ("byte order", PLAIN, (f32(2, 4).astype(">f4"), f32(4, 3)), {}, "TL709",
     "argument `A` of `scale` has byte-swapped elements (>f4), expected a tensor",
     "pass A.astype(np.float32)"),
    ("dim conflict", signature(A, tensor("C", (M,))), (f32(2, 4), f32(3)), {}, "TL711",
     "dimension 0 of argument `C` of `scale` is 3, but M is 2 by argument `A`", None),
    ("none", PLAIN, (None, f32(4, 3)), {}, "TL717",
     "argument `A` of `scale` is None", "pass a tensor: the kernel always uses it"),
    ("float for int", WITH_SCALARS, (f32(4), 2.5, 1.0), {}, "TL718",
     "argument `n` of `scale` is 2.5, expected an integer of dtype int8", None),
    ("int range", WITH_SCALARS, (f32(4), 128, 1.0), {}, "TL718",
     "argument `n` of `scale` is 128, outside the range of int8 (-128 to 127)", None),
    ("float range", WITH_SCALARS, (f32(4), 1, 10**400), {}, "TL718",
     "argument `s` of `scale` is an integer beyond the range of float32", None),
    ("string", WITH_SCALARS, (f32(4), 1, "x"), {}, "TL718",
     "argument `s` of `scale` is 'x', expected a number of dtype float32", None),
    ("pointer", POINTER, ("x",), {}, "TL718",
     "argument `p` of `scale` is 'x', expected an address, a tensor or None", None),
    ("unbound output dim", signature(tensor("A", (4,)), tensor("C", (N,)), out_idx=-1),
     (f32(4),), {}, "TL710",
     "the runtime dimension `N` of result `C` of `scale` is determined by no argument",
     "use N as a whole dimension of a tensor argument, or make it a scalar parameter"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("declared", "args", "kwargs", "code", "message", "help"),
    [row[1:] for row in WRONG], ids=[row[0] for row in WRONG],
)  # fmt: skip
def test_wrong_call(
    declared: Signature, args: Any, kwargs: Any, code: str, message: str, help: str | None
) -> None:
    with pytest.raises(CompileError) as caught:
        bind(declared, args, kwargs)
    (found,) = caught.value.diagnostics
    assert (found.code, found.message, found.help) == (code, message, help)
    assert found.span == SPAN


def test_every_wrong_argument_is_reported() -> None:
    with pytest.raises(CompileError) as caught:
        bind(PLAIN, (np.zeros((2, 4)), None), {})
    assert [d.code for d in caught.value.diagnostics] == ["TL702", "TL717"]


def test_the_exception_is_what_python_would_raise() -> None:
    with pytest.raises(TypeError):
        bind(PLAIN, (), {})
    with pytest.raises(ValueError, match="TL704"):
        bind(PLAIN, (f32(2, 5), f32(4, 3)), {})


def test_read_only_memory_is_refused_only_where_the_kernel_writes() -> None:
    frozen = f32(2, 4)
    frozen.flags.writeable = False
    bind(PLAIN, (frozen, f32(4, 3)), {})
    with pytest.raises(CompileError) as caught:
        bind(PLAIN, (frozen, f32(4, 3)), {}, written=frozenset({A}))
    assert caught.value.diagnostics[0].code == "TL727"


def test_dims_come_from_shapes_strides_and_scalars() -> None:
    bound = bind(STRIDED, (f32(3, 9)[:, :4],), {})
    assert bound.dims == {M: 3, STRIDE: 9}
    n = scalar("n", "int32")
    bound = bind(signature(n, tensor("A", (n,))), (4, f32(4)), {})
    assert bound.scalars[n] == 4
    with pytest.raises(CompileError, match="TL711"):
        bind(signature(n, tensor("A", (n,))), (5, f32(4)), {})


def test_dims_in_expressions_are_solved_or_checked() -> None:
    doubled = signature(tensor("A", (M * 2,)))
    assert bind(doubled, (f32(6),), {}).dims == {M: 3}
    with pytest.raises(CompileError, match="TL710"):
        bind(doubled, (f32(7),), {})
    checked = signature(tensor("A", (M,)), tensor("C", ((M + 3) // 4,)))
    assert bind(checked, (f32(9), f32(3)), {}).dims == {M: 9}
    with pytest.raises(CompileError) as caught:
        bind(checked, (f32(9), f32(2)), {})
    assert "but (M + 3) // 4 is 3 by argument `A`" in caught.value.diagnostics[0].message


def test_an_output_before_the_input_that_gives_its_size() -> None:
    """Complaint 37: the order of parameters does not matter."""
    out = tensor("C", (M, N))
    bound = bind(signature(out, A, B, out_idx=[0]), (f32(2, 4), f32(4, 3)), {})
    assert bound.results[0].shape == (2, 3)


def test_null_tensors() -> None:
    bias = NULLABLE.params[1]
    bound = bind(NULLABLE, (f32(2, 4), None), {})
    assert isinstance(bias, Buffer)
    assert (bound.addresses[bias], bound.dims) == (0, {M: 2})
    only_null = signature(tensor("bias", (N,), nullable=True))
    assert bind(only_null, (None,), {}).dims == {N: 0}


def test_axes_of_one_element_may_have_any_stride() -> None:
    view = np.lib.stride_tricks.as_strided(f32(4), (1, 4), (400, 4))
    assert bind(signature(A), (view,), {}).dims == {M: 1}
    assert bind(STRIDED, (torch.zeros(3, 1).expand(3, 4)[:1, :1].expand(1, 4).contiguous(),), {})


@pytest.mark.parametrize("make", [
    lambda: np.zeros(4, ml_dtypes.bfloat16),
    lambda: torch.zeros(4, dtype=torch.bfloat16),
    lambda: torch.nn.Parameter(torch.zeros(4, dtype=torch.bfloat16)),
])  # fmt: skip
def test_bfloat16_of_both_libraries(make: Callable[[], Any]) -> None:
    value = make()
    bound = bind(HALF, (value,), {})
    assert bound.value(HALF.params[0]) == (
        value.data_ptr() if hasattr(value, "data_ptr") else value.ctypes.data
    )


@pytest.mark.parametrize("element", ["float8_e4m3fn", "float8_e5m2"])
def test_fp8_of_both_libraries(element: str) -> None:
    declared = signature(tensor("A", (4,), element), tensor("C", (4,), element), out_idx=1)
    for value in (np.zeros(4, getattr(ml_dtypes, element)),
                  torch.zeros(4, dtype=getattr(torch, element))):  # fmt: skip
        (result,) = bind(declared, (value,), {}).results
        assert type(result) is type(value)
        assert result.dtype == value.dtype


def test_int4_is_stored_two_to_a_byte() -> None:
    declared = signature(tensor("A", (M, 8), "int4"), tensor("C", (M, 8), "int4"), out_idx=1)
    bound = bind(declared, (np.zeros((3, 4), np.int8),), {})
    assert bound.dims == {M: 3}
    assert bound.results[0].shape == (3, 4)
    with pytest.raises(CompileError, match="TL704"):
        bind(declared, (np.zeros((3, 8), np.int8),), {})


def test_results_are_of_the_family_of_the_arguments() -> None:
    declared = signature(A, B, tensor("C", (M, N)), out_idx=-1)
    assert isinstance(bind(declared, (f32(2, 4), f32(4, 3)), {}).results[0], np.ndarray)
    mixed = bind(declared, (f32(2, 4), torch.zeros(4, 3)), {}).results[0]
    assert isinstance(mixed, torch.Tensor)


def test_scalars_of_numpy_and_python() -> None:
    n, s = WITH_SCALARS.params[1:]
    bound = bind(WITH_SCALARS, (f32(4), np.int64(7), np.float32(0.5)), {})
    assert (bound.value(n), bound.value(s)) == (7, 0.5)
    assert bind(WITH_SCALARS, (f32(4), True, 1), {}).value(s) == 1.0


def test_pointers() -> None:
    p = POINTER.params[0]
    x = torch.zeros(4)
    assert bind(POINTER, (x,), {}).value(p) == x.data_ptr()
    assert bind(POINTER, (x.data_ptr(),), {}).value(p) == x.data_ptr()
    assert bind(POINTER, (None,), {}).value(p) == 0


def test_by_keyword() -> None:
    assert bind(PLAIN, (f32(2, 4),), {"B": f32(4, 3)}).dims == {M: 2, N: 3}


def test_dlpack_of_another_library() -> None:
    class Foreign:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    x = f32(2, 4)
    assert bind(signature(A), (Foreign(x),), {}).addresses[A] == x.ctypes.data


def test_lazily_negated_tensors_are_refused() -> None:
    x = torch.zeros(2, 4, dtype=torch.complex64).conj().imag
    with pytest.raises(CompileError, match="resolve_neg"):
        bind(signature(A), (x,), {})


def test_results_without_memory_are_refused() -> None:
    declared = signature(A, tensor("C", (M,)), out_idx=-1)
    x = torch.zeros(2, 4)
    with FakeTensorMode(), pytest.raises(CompileError) as caught:
        bind(declared, (x,), {})
    (found,) = caught.value.diagnostics
    assert (found.code, found.help) == ("TL709", WITHOUT_MEMORY)
    assert found.message == "result `C` of `scale` is a FakeTensor without memory"


@pytest.mark.parametrize("x", [f32(2, 4), torch.zeros(2, 4)], ids=["numpy", "torch"])
@pytest.mark.parametrize("extent", [1 << 50, 1 << 61])
def test_a_result_there_is_no_room_for(x: Any, extent: int) -> None:
    declared = signature(A, tensor("C", (M, extent)), out_idx=-1)
    with pytest.raises(MemoryError) as caught:
        bind(declared, (x,), {})
    assert isinstance(caught.value, CompileError)
    (found,) = caught.value.diagnostics
    size = "8.0 PiB" if extent == 1 << 50 else "16384.0 PiB"
    assert found.message == f"there is no memory for result `C` of `scale`: {size} on cpu"
    assert found.code == "TL813"
