// Conversions between float and the 16-bit formats, to nearest, ties to even. Also used by the
// runtime, so it needs nothing but memcpy.
#pragma once
#include <stdint.h>
#include <string.h>
#ifdef __F16C__
#include <immintrin.h>
#endif

static inline float tl_float_of_bits(uint32_t bits) {
  float x;
  memcpy(&x, &bits, 4);
  return x;
}
static inline uint32_t tl_bits_of_float(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  return bits;
}

static inline float tl_bfloat_to_float(uint16_t bits) {
  return tl_float_of_bits(uint32_t(bits) << 16);
}
static inline uint16_t tl_float_to_bfloat(float x) {
  const uint32_t bits = tl_bits_of_float(x);
  if (x != x) return 0x7fff;
  return uint16_t((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

#ifdef __F16C__
static inline float tl_half_to_float(uint16_t bits) { return _cvtsh_ss(bits); }
static inline uint16_t tl_float_to_half(float x) {
  return x != x ? 0x7fff : uint16_t(_cvtss_sh(x, _MM_FROUND_TO_NEAREST_INT));
}
#else
static inline float tl_half_to_float(uint16_t bits) {
  const uint32_t sign = uint32_t(bits & 0x8000) << 16, magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return tl_float_of_bits(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  // Under the exponent field of float the code reads as value * 2^-112, denormals included.
  const float value = tl_float_of_bits(magnitude << 13) * 0x1p112f;
  return tl_float_of_bits(tl_bits_of_float(value) | sign);
}
static inline uint16_t tl_float_to_half(float x) {
  const uint32_t bits = tl_bits_of_float(x), sign = bits >> 16 & 0x8000,
                 magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return 0x7fff;
  if (magnitude >= 0x477ff000) return uint16_t(sign | 0x7c00);
  if (magnitude < 0x38800000) {  // denormals count steps of 2^-24
    const float steps = tl_float_of_bits(magnitude) * 0x1p24f;
    const uint32_t whole = uint32_t(steps);
    const float rest = steps - float(whole);
    return uint16_t(sign | (whole + (rest > 0.5f || (rest == 0.5f && (whole & 1)))));
  }
  return uint16_t(sign | ((magnitude + 0xfff + (magnitude >> 13 & 1) - 0x38000000) >> 13));
}
#endif
