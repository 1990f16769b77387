// Every mma.sync there is, as TL_MMA(name, m, k, accumulator, a, b); n is 8. Used by the header that
// declares them and by the runtime that defines them (PTX ISA, mma.sync).
#define TL_MMA_ANY2(prefix, m, k, d, x, y)        \
  TL_MMA(prefix##_##x##_##x, m, k, d, x, x)       \
  TL_MMA(prefix##_##x##_##y, m, k, d, x, y)       \
  TL_MMA(prefix##_##y##_##x, m, k, d, y, x)       \
  TL_MMA(prefix##_##y##_##y, m, k, d, y, y)

TL_MMA(mma_m16n8k8_f32_f16_f16, 16, 8, f32, f16, f16)
TL_MMA(mma_m16n8k8_f16_f16_f16, 16, 8, f16, f16, f16)
TL_MMA(mma_m16n8k16_f32_f16_f16, 16, 16, f32, f16, f16)
TL_MMA(mma_m16n8k16_f16_f16_f16, 16, 16, f16, f16, f16)
TL_MMA(mma_m16n8k8_f32_bf16_bf16, 16, 8, f32, bf16, bf16)
TL_MMA(mma_m16n8k16_f32_bf16_bf16, 16, 16, f32, bf16, bf16)
TL_MMA(mma_m16n8k4_f32_tf32_tf32, 16, 4, f32, tf32, tf32)
TL_MMA(mma_m16n8k8_f32_tf32_tf32, 16, 8, f32, tf32, tf32)
TL_MMA(mma_m8n8k4_f64_f64_f64, 8, 4, f64, f64, f64)
TL_MMA(mma_m16n8k4_f64_f64_f64, 16, 4, f64, f64, f64)
TL_MMA(mma_m16n8k8_f64_f64_f64, 16, 8, f64, f64, f64)
TL_MMA(mma_m16n8k16_f64_f64_f64, 16, 16, f64, f64, f64)
TL_MMA_ANY2(mma_m8n8k16_s32, 8, 16, s32, s8, u8)
TL_MMA_ANY2(mma_m8n8k32_s32, 8, 32, s32, s4, u4)
TL_MMA_ANY2(mma_m16n8k16_s32, 16, 16, s32, s8, u8)
TL_MMA_ANY2(mma_m16n8k32_s32, 16, 32, s32, s8, u8)
TL_MMA_ANY2(mma_m16n8k32_s32, 16, 32, s32, s4, u4)
TL_MMA_ANY2(mma_m16n8k64_s32, 16, 64, s32, s4, u4)
TL_MMA_ANY2(mma_m16n8k16_f32, 16, 16, f32, e4m3, e5m2)
TL_MMA_ANY2(mma_m16n8k16_f16, 16, 16, f16, e4m3, e5m2)
TL_MMA_ANY2(mma_m16n8k32_f32, 16, 32, f32, e4m3, e5m2)
TL_MMA_ANY2(mma_m16n8k32_f16, 16, 32, f16, e4m3, e5m2)
#undef TL_MMA_ANY2
