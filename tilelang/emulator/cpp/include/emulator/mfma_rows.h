// Every MFMA there is, as TL_MFMA(name, m, k, accumulator, element); n is m. Used by the header that
// declares them and by the runtime that defines them.
TL_MFMA(mfma_m32n32k8_f32_f16_f16, 32, 8, f32, f16)
TL_MFMA(mfma_m16n16k16_f32_f16_f16, 16, 16, f32, f16)
TL_MFMA(mfma_m32n32k8_f32_bf16_bf16, 32, 8, f32, bf16)
TL_MFMA(mfma_m16n16k16_f32_bf16_bf16, 16, 16, f32, bf16)
TL_MFMA(mfma_m32n32k2_f32_f32_f32, 32, 2, f32, f32)
TL_MFMA(mfma_m16n16k4_f32_f32_f32, 16, 4, f32, f32)
TL_MFMA(mfma_m32n32k16_s32_s8_s8, 32, 16, s32, s8)
TL_MFMA(mfma_m16n16k32_s32_s8_s8, 16, 32, s32, s8)
