"""Which parameters a kernel writes, and which it only reads."""

from __future__ import annotations

import pytest

import tilelang.language as T
from tilelang.runtime.effects import pointer_tables, written_parameters


def names(buffers):
    return sorted(b.name for b in buffers)


def written_by(act):
    """The names of the parameters that the statements of macro `act` write."""

    @T.prim_func
    def kernel(A: T.Tensor((128,), "float32"), B: T.Tensor((128,), "float32")):
        with T.Kernel(1, threads=32):
            act(A, B)

    return names(written_parameters(kernel.function))


@T.macro
def stores(A, B):
    B[0] = A[0]


@T.macro
def copies(A, B):
    T.copy(A, B)


@T.macro
def stores_to_a_view(A, B):
    C = T.reshape(B, (2, 64))
    C[0, 0] = A[0]


@T.macro
def adds_atomically(A, B):
    T.atomic_add(B[0], A[0])


@T.macro
def loads_atomically(A, B):
    B[0] = T.atomic_load(A[0])


@T.macro
def stores_vectors(A, B):
    T.stg128(B[0], T.ldg128(A[0]))


@T.macro
def hands_out_pointers(A, B):
    T.evaluate(T.call_extern("handle", "f", T.access_ptr(A[0], "r", 4), T.access_ptr(B[0], "w", 4)))


@T.macro
def takes_an_address(A, B):
    B[0] = T.call_extern("float32", "f", T.address_of(A[0]))


@pytest.mark.parametrize(
    "act",
    [stores, copies, stores_to_a_view, adds_atomically, loads_atomically, stores_vectors,
     hands_out_pointers, takes_an_address],
    ids=lambda act: act.name,
)  # fmt: skip
def test_only_what_is_stored_to_counts(act) -> None:
    assert written_by(act) == ["B"]


@T.macro
def prints(A, B):
    T.print(A)


def test_a_kernel_without_stores_writes_nothing() -> None:
    assert written_by(prints) == []


def test_tensors_of_addresses() -> None:
    @T.prim_func
    def kernel(P: T.Tensor((4,), "int64"), B: T.Tensor((4, 32), "float32")):
        with T.Kernel(4, threads=32) as bx:
            A = T.make_tensor(P[bx], (32,), "float32")
            T.copy(A, B[bx, :])

    assert names(pointer_tables(kernel.function)) == ["P"]
    assert names(written_parameters(kernel.function)) == ["B"]
