// The element types of matrix instructions.
#pragma once
#include <emulator/bits16.h>
#include <math.h>
#include <stdint.h>

namespace tl::emulator {

// How elements of a type lie in registers: `bits` of one, `get` the i-th of a lane as a number.
struct f16 {
  static constexpr int bits = 16;
  using number = float;
  static float get(const void* r, int i) {
    return tl_half_to_float(static_cast<const uint16_t*>(r)[i]);
  }
  static void put(void* r, int i, float x) { static_cast<uint16_t*>(r)[i] = tl_float_to_half(x); }
};
struct bf16 {
  static constexpr int bits = 16;
  using number = float;
  static float get(const void* r, int i) {
    return tl_bfloat_to_float(static_cast<const uint16_t*>(r)[i]);
  }
};
struct tf32 {  // the lower 13 bits of a float are not looked at
  static constexpr int bits = 32;
  using number = float;
  static float get(const void* r, int i) {
    return tl_float_of_bits(static_cast<const uint32_t*>(r)[i] & ~0x1fffu);
  }
};
template <class T, int width>
struct plain {
  static constexpr int bits = width;
  using number = T;
  static T get(const void* r, int i) { return static_cast<const T*>(r)[i]; }
  static void put(void* r, int i, T x) { static_cast<T*>(r)[i] = x; }
};
using f32 = plain<float, 32>;
using f64 = plain<double, 64>;
using s32 = plain<int, 32>;
template <class T>
struct byte {
  static constexpr int bits = 8;
  using number = int;
  static int get(const void* r, int i) { return static_cast<const T*>(r)[i]; }
};
using s8 = byte<int8_t>;
using u8 = byte<uint8_t>;
template <bool is_signed>
struct nibble {
  static constexpr int bits = 4;
  using number = int;
  static int get(const void* r, int i) {
    const int code = static_cast<const uint8_t*>(r)[i / 2] >> i % 2 * 4 & 15;
    return is_signed && code >= 8 ? code - 16 : code;
  }
};
using s4 = nibble<true>;
using u4 = nibble<false>;
struct e5m2 {  // the upper half of a half
  static constexpr int bits = 8;
  using number = float;
  static float get(const void* r, int i) {
    return tl_half_to_float(uint16_t(static_cast<const uint8_t*>(r)[i] << 8));
  }
};
struct e4m3 {
  static constexpr int bits = 8;
  using number = float;
  static float get(const void* r, int i) {
    const unsigned code = static_cast<const uint8_t*>(r)[i];
    if ((code & 0x7f) == 0x7f) return NAN;
    // Moved under the exponent of a half the code reads as value * 2^-8.
    return tl_half_to_float(uint16_t((code & 0x80) << 8 | (code & 0x7f) << 7)) * 256.0f;
  }
};

}  // namespace tl::emulator
