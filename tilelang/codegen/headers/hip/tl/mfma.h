// Matrix instructions of a wave (AMD Instinct MI300 ISA, Matrix Arithmetic Instructions).
//
// A lane gets four neighbours of a column of D. Since D' = B' A', our B is passed as A and our A as B:
// then they are neighbours of a row, as the layouts of `layout/mfma.py` say.
#pragma once
#include <tl/bfloat16.h>
#include <tl/common.h>
#include <tl/float16.h>

namespace tl {

template <class T, int N> using lanes = T __attribute__((ext_vector_type(N)));

template <class V, class T> TL_DEVICE V packed_registers(const T* first) {
  static_assert(alignof(T) <= alignof(V), "registers are vectors of elements");
  V out;
  __builtin_memcpy(&out, first, sizeof(V));
  return out;
}

// `D`, `A`: the types of the registers a lane has of each, of the sums and of both operands.
#define TL_MFMA(name, instruction, D, A, sum, element)                               \
  TL_DEVICE void name(sum* d, const element* a, const element* b) {                  \
    const D out = instruction(packed_registers<A>(b), packed_registers<A>(a),        \
                              packed_registers<D>(d), 0, 0, 0);                      \
    __builtin_memcpy(d, &out, sizeof(D));                                            \
  }
using f32x4 = lanes<float, 4>;
using f32x16 = lanes<float, 16>;
using i32x4 = lanes<int, 4>;
using i32x16 = lanes<int, 16>;

TL_MFMA(mfma_m32n32k8_f32_f16_f16, __builtin_amdgcn_mfma_f32_32x32x8f16, f32x16,
        lanes<_Float16 TL_COMMA 4>, float, float16)
