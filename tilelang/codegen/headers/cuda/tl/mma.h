// Matrix instructions of one warp, and the loads that feed them (PTX ISA, mma.sync, ldmatrix).
//
// `tl::mma_m16n8k16_f32_f16_f16(d, a, b)`: shape, then the types of d, a and b. Operands are the
// registers of one lane in the order of the instruction's fragments.
#pragma once
#include <tl/common.h>

namespace tl {

TL_DEVICE const uint32* words(const void* registers) { return static_cast<const uint32*>(registers); }

// Operand lists: D registers, A registers, B registers.
#define TL_MMA_D4_A4_B2(shape, types, out, T)                                                    \
  asm volatile("mma.sync.aligned." shape ".row.col." types                                       \
               " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"                          \
               : out(d[0]), out(d[1]), out(d[2]), out(d[3])                                      \
               : T(a[0]), T(a[1]), T(a[2]), T(a[3]), T(b[0]), T(b[1]))
#define TL_MMA_D4_A2_B1(shape, types, out, T)                                                    \
  asm volatile("mma.sync.aligned." shape ".row.col." types                                       \
               " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"                                   \
               : out(d[0]), out(d[1]), out(d[2]), out(d[3])                                      \
               : T(a[0]), T(a[1]), T(b[0]))
#define TL_MMA_D4_A8_B4(shape, types, out, T)                                                    \
  asm volatile("mma.sync.aligned." shape ".row.col." types                                       \
               " {%0,%1,%2,%3}, {%4,%5,%6,%7,%8,%9,%10,%11}, {%12,%13,%14,%15}, {%0,%1,%2,%3};"  \
               : out(d[0]), out(d[1]), out(d[2]), out(d[3])                                      \
               : T(a[0]), T(a[1]), T(a[2]), T(a[3]), T(a[4]), T(a[5]), T(a[6]), T(a[7]),         \
                 T(b[0]), T(b[1]), T(b[2]), T(b[3]))
#define TL_MMA_D2_A4_B2(shape, types, out, T)                                                    \
  asm volatile("mma.sync.aligned." shape ".row.col." types                                       \
               " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"                                      \
               : out(d[0]), out(d[1])                                                            \
               : T(a[0]), T(a[1]), T(a[2]), T(a[3]), T(b[0]), T(b[1]))
#define TL_MMA_D2_A2_B1(shape, types, out, T)                                                    \
  asm volatile("mma.sync.aligned." shape ".row.col." types                                       \
               " {%0,%1}, {%2,%3}, {%4}, {%0,%1};"                                               \
               : out(d[0]), out(d[1])                                                            \
               : T(a[0]), T(a[1]), T(b[0]))
#define TL_MMA_D2_A1_B1(shape, types, out, T)                                                    \
  asm volatile("mma.sync.aligned." shape ".row.col." types " {%0,%1}, {%2}, {%3}, {%0,%1};"      \
               : out(d[0]), out(d[1])                                                            \
               : T(a[0]), T(b[0]))

// name, registers, shape, d, a, b types; the accumulator in float, packed halves, int or double.
#define TL_MMA_FLOAT(name, form, shape, a_type, b_type)                                          \
  TL_DEVICE void name(float* d, const void* first, const void* second) {                         \
    const uint32 *a = words(first), *b = words(second);                                          \
    TL_MMA_##form(shape, "f32." a_type "." b_type ".f32", "+f", "r");                            \
  }
#define TL_MMA_HALF(name, form, shape, a_type, b_type)                                           \
  TL_DEVICE void name(void* result, const void* first, const void* second) {                     \
    uint32* d = static_cast<uint32*>(result);                                                    \
    const uint32 *a = words(first), *b = words(second);                                          \
    TL_MMA_##form(shape, "f16." a_type "." b_type ".f16", "+r", "r");                            \
  }
#define TL_MMA_INT(name, form, shape, a_type, b_type)                                            \
  TL_DEVICE void name(int* d, const void* first, const void* second) {                           \
    const uint32 *a = words(first), *b = words(second);                                          \
    TL_MMA_##form(shape, "s32." a_type "." b_type ".s32", "+r", "r");                            \
  }
#define TL_MMA_DOUBLE(name, form, shape)                                                         \
  TL_DEVICE void name(double* d, const double* a, const double* b) {                             \
    TL_MMA_##form(shape, "f64.f64.f64.f64", "+d", "d");                                          \
  }

TL_MMA_FLOAT(mma_m16n8k8_f32_f16_f16, D4_A2_B1, "m16n8k8", "f16", "f16")
TL_MMA_HALF(mma_m16n8k8_f16_f16_f16, D2_A2_B1, "m16n8k8", "f16", "f16")

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
TL_MMA_FLOAT(mma_m16n8k16_f32_f16_f16, D4_A4_B2, "m16n8k16", "f16", "f16")
TL_MMA_HALF(mma_m16n8k16_f16_f16_f16, D2_A4_B2, "m16n8k16", "f16", "f16")
TL_MMA_FLOAT(mma_m16n8k8_f32_bf16_bf16, D4_A2_B1, "m16n8k8", "bf16", "bf16")
TL_MMA_FLOAT(mma_m16n8k16_f32_bf16_bf16, D4_A4_B2, "m16n8k16", "bf16", "bf16")
TL_MMA_FLOAT(mma_m16n8k4_f32_tf32_tf32, D4_A2_B1, "m16n8k4", "tf32", "tf32")
TL_MMA_FLOAT(mma_m16n8k8_f32_tf32_tf32, D4_A4_B2, "m16n8k8", "tf32", "tf32")
TL_MMA_DOUBLE(mma_m8n8k4_f64_f64_f64, D2_A1_B1, "m8n8k4")
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
TL_MMA_DOUBLE(mma_m16n8k4_f64_f64_f64, D4_A2_B1, "m16n8k4")
TL_MMA_DOUBLE(mma_m16n8k8_f64_f64_f64, D4_A4_B2, "m16n8k8")
TL_MMA_DOUBLE(mma_m16n8k16_f64_f64_f64, D4_A8_B4, "m16n8k16")
#endif

// Both signs of both operands.
#define TL_MMA_SIGNS(prefix, form, shape, bits)                                                  \
  TL_MMA_INT(prefix##_s##bits##_s##bits, form, shape, "s" #bits, "s" #bits)                      \
  TL_MMA_INT(prefix##_s##bits##_u##bits, form, shape, "s" #bits, "u" #bits)                      \
  TL_MMA_INT(prefix##_u##bits##_s##bits, form, shape, "u" #bits, "s" #bits)                      \
  TL_MMA_INT(prefix##_u##bits##_u##bits, form, shape, "u" #bits, "u" #bits)

TL_MMA_SIGNS(mma_m8n8k16_s32, D2_A1_B1, "m8n8k16", 8)
TL_MMA_SIGNS(mma_m8n8k32_s32, D2_A1_B1, "m8n8k32", 4)
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
TL_MMA_SIGNS(mma_m16n8k16_s32, D4_A2_B1, "m16n8k16", 8)
TL_MMA_SIGNS(mma_m16n8k32_s32, D4_A4_B2, "m16n8k32", 8)
TL_MMA_SIGNS(mma_m16n8k32_s32, D4_A2_B1, "m16n8k32", 4)
TL_MMA_SIGNS(mma_m16n8k64_s32, D4_A4_B2, "m16n8k64", 4)
#endif

#define TL_MMA_FLOAT8(prefix, kind, form, shape)                                                 \
  TL_MMA_##kind(prefix##_e4m3_e4m3, form, shape, "e4m3", "e4m3")                                 \
  TL_MMA_##kind(prefix##_e4m3_e5m2, form, shape, "e4m3", "e5m2")                                 \
  TL_MMA_##kind(prefix##_e5m2_e4m3, form, shape, "e5m2", "e4m3")                                 \
  TL_MMA_##kind(prefix##_e5m2_e5m2, form, shape, "e5m2", "e5m2")
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
TL_MMA_FLOAT8(mma_m16n8k16_f32, FLOAT, D4_A2_B1, "m16n8k16")
TL_MMA_FLOAT8(mma_m16n8k16_f16, HALF, D2_A2_B1, "m16n8k16")
TL_MMA_FLOAT8(mma_m16n8k32_f32, FLOAT, D4_A4_B2, "m16n8k32")
TL_MMA_FLOAT8(mma_m16n8k32_f16, HALF, D2_A4_B2, "m16n8k32")
#endif

// --- matrices of 8 x 8 16-bit elements between shared memory and registers ---

#define TL_MATRIX_LOADS(suffix, qualifier)                                                       \
  TL_DEVICE void ldmatrix_x1##suffix(void* dst, shared_place row) {                               \
    uint32* r = static_cast<uint32*>(dst);                                                       \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" qualifier ".shared.b16 {%0}, [%1];"             \
                 : "=r"(r[0]) : "r"(row.address) : "memory");                            \
  }                                                                                              \
  TL_DEVICE void ldmatrix_x2##suffix(void* dst, shared_place row) {                               \
    uint32* r = static_cast<uint32*>(dst);                                                       \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" qualifier ".shared.b16 {%0,%1}, [%2];"          \
                 : "=r"(r[0]), "=r"(r[1]) : "r"(row.address) : "memory");                \
  }                                                                                              \
  TL_DEVICE void ldmatrix_x4##suffix(void* dst, shared_place row) {                               \
    uint32* r = static_cast<uint32*>(dst);                                                       \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" qualifier ".shared.b16 {%0,%1,%2,%3}, [%4];"    \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                                \
                 : "r"(row.address) : "memory");                                         \
  }
TL_MATRIX_LOADS(, "")
TL_MATRIX_LOADS(_trans, ".trans")

#define TL_MATRIX_STORES(suffix, qualifier)                                                      \
  TL_DEVICE void stmatrix_x1##suffix(shared_place row, const void* src) {                               \
    asm volatile("stmatrix.sync.aligned.m8n8.x1" qualifier ".shared.b16 [%0], {%1};"             \
                 :: "r"(row.address), "r"(words(src)[0]) : "memory");                    \
  }                                                                                              \
  TL_DEVICE void stmatrix_x2##suffix(shared_place row, const void* src) {                               \
    const uint32* r = words(src);                                                                \
    asm volatile("stmatrix.sync.aligned.m8n8.x2" qualifier ".shared.b16 [%0], {%1,%2};"          \
                 :: "r"(row.address), "r"(r[0]), "r"(r[1]) : "memory");                  \
  }                                                                                              \
  TL_DEVICE void stmatrix_x4##suffix(shared_place row, const void* src) {                               \
    const uint32* r = words(src);                                                                \
    asm volatile("stmatrix.sync.aligned.m8n8.x4" qualifier ".shared.b16 [%0], {%1,%2,%3,%4};"    \
                 :: "r"(row.address), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])         \
                 : "memory");                                                                    \
  }
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
TL_MATRIX_STORES(, "")
TL_MATRIX_STORES(_trans, ".trans")
#endif

}  // namespace tl
