// Matrix instructions of a wave (AMD Instinct MI300 ISA, Matrix Arithmetic Instructions).
//
// A lane gets four neighbours of a column of D. Since D' = B' A', our B is passed as A and our A as B:
// then they are neighbours of a row, as the layouts of `layout/mfma.py` say.
#pragma once
#include <tl/bfloat16.h>
#include <tl/common.h>
#include <tl/float16.h>

namespace tl {

// Registers of a lane, as the instructions take them.
using f16x4 = _Float16 __attribute__((ext_vector_type(4)));
using i16x4 = short __attribute__((ext_vector_type(4)));
using f32x4 = float __attribute__((ext_vector_type(4)));
using f32x16 = float __attribute__((ext_vector_type(16)));
using i32x4 = int __attribute__((ext_vector_type(4)));
using i32x16 = int __attribute__((ext_vector_type(16)));

template <class V, class T> TL_DEVICE V registers(const T* first) {
  V out;
  __builtin_memcpy(&out, first, sizeof(V));
  return out;
}

#define TL_MFMA(name, instruction, sums, operands, sum, element)                             \
  TL_DEVICE void name(sum* d, const element* a, const element* b) {                          \
    const sums out = instruction(registers<operands>(b), registers<operands>(a),             \
                                 registers<sums>(d), 0, 0, 0);                               \
    __builtin_memcpy(d, &out, sizeof(sums));                                                 \
  }

TL_MFMA(mfma_m32n32k8_f32_f16_f16, __builtin_amdgcn_mfma_f32_32x32x8f16, f32x16, f16x4, float,
        float16)
TL_MFMA(mfma_m16n16k16_f32_f16_f16, __builtin_amdgcn_mfma_f32_16x16x16f16, f32x4, f16x4, float,
        float16)
TL_MFMA(mfma_m32n32k8_f32_bf16_bf16, __builtin_amdgcn_mfma_f32_32x32x8bf16_1k, f32x16, i16x4,
        float, bfloat16)
TL_MFMA(mfma_m16n16k16_f32_bf16_bf16, __builtin_amdgcn_mfma_f32_16x16x16bf16_1k, f32x4, i16x4,
        float, bfloat16)
TL_MFMA(mfma_m32n32k2_f32_f32_f32, __builtin_amdgcn_mfma_f32_32x32x2f32, f32x16, float, float,
        float)
TL_MFMA(mfma_m16n16k4_f32_f32_f32, __builtin_amdgcn_mfma_f32_16x16x4f32, f32x4, float, float,
        float)
#if !defined(__gfx90a__)
TL_MFMA(mfma_m32n32k16_s32_s8_s8, __builtin_amdgcn_mfma_i32_32x32x16_i8, i32x16, long, int, int8)
TL_MFMA(mfma_m16n16k32_s32_s8_s8, __builtin_amdgcn_mfma_i32_16x16x32_i8, i32x4, long, int, int8)
#endif
#undef TL_MFMA

}  // namespace tl
