// mma.sync (PTX ISA, Matrix Fragments for mma.m16n8k…). All shapes follow one rule. With g = lane /
// 4, t = lane % 4, and E elements in a 32-bit register (1 of f64):
//   A: register r holds row g + 8 (r mod m/8), columns (4 (r div m/8) + t) E … + E - 1
//   B: register r holds column g, rows (4 r + t) E … + E - 1
//   C: element i holds row g + 8 (i div 2), column 2t + i mod 2
// Products are summed in float (double of f64, int of integers), k ascending. Real tensor cores sum
// in another order and with a few bits more; both are within a rounding of the exact sum.
#include <emulator/bits16.h>
#include <math.h>

#include "block.h"

namespace tl::emulator {

namespace {

// How elements of a type lie in registers: `bits` of one, `get` the i-th of a lane as a number.
struct f16 {
  static constexpr int bits = 16;
  using number = float;
  static float get(const void* r, int i) { return tl_half_to_float(static_cast<const uint16_t*>(r)[i]); }
  static void put(void* r, int i, float x) { static_cast<uint16_t*>(r)[i] = tl_float_to_half(x); }
};
struct bf16 {
  static constexpr int bits = 16;
  using number = float;
  static float get(const void* r, int i) { return tl_bfloat_to_float(static_cast<const uint16_t*>(r)[i]); }
};
struct tf32 {  // the lower 13 bits of a float are not looked at
  static constexpr int bits = 32;
  using number = float;
  static float get(const void* r, int i) {
    return tl_float_of_bits(static_cast<const uint32_t*>(r)[i] & ~0x1fffu);
  }
};
template <class T, int width> struct plain {
  static constexpr int bits = width;
  using number = T;
  static T get(const void* r, int i) { return static_cast<const T*>(r)[i]; }
  static void put(void* r, int i, T x) { static_cast<T*>(r)[i] = x; }
};
using f32 = plain<float, 32>;
using f64 = plain<double, 64>;
using s32 = plain<int, 32>;
template <class T> struct byte {
  static constexpr int bits = 8;
  using number = int;
  static int get(const void* r, int i) { return static_cast<const T*>(r)[i]; }
};
using s8 = byte<int8_t>;
using u8 = byte<uint8_t>;
template <bool is_signed> struct nibble {
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

struct Lane {
  void* d;
  const void *a, *b;
};

template <int m, int k, class D, class A, class B> void multiply(void* const* lanes) {
  using number = typename D::number;
  constexpr int n = 8, row_blocks = m / 8, per_word = A::bits >= 32 ? 1 : 32 / A::bits;
  static_assert(A::bits == B::bits, "A and B have elements of one size");
  number a[m][k], b[k][n], d[m][n];
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    if (lanes[lane] == nullptr) continue;
    const Lane& mine = *static_cast<const Lane*>(lanes[lane]);
    for (int i = 0; i < m * k / 32; ++i) {
      const int word = i / per_word;
      const int column = (4 * (word / row_blocks) + t) * per_word + i % per_word;
      a[g + 8 * (word % row_blocks)][column] = number(A::get(mine.a, i));
    }
    for (int i = 0; i < k * n / 32; ++i)
      b[(4 * (i / per_word) + t) * per_word + i % per_word][g] = number(B::get(mine.b, i));
    for (int i = 0; i < m * n / 32; ++i) d[g + 8 * (i / 2)][2 * t + i % 2] = number(D::get(mine.d, i));
  }
  for (int row = 0; row < m; ++row)
    for (int step = 0; step < k; ++step)
      for (int column = 0; column < n; ++column) d[row][column] += a[row][step] * b[step][column];
  for (int lane = 0; lane < 32; ++lane) {
    if (lanes[lane] == nullptr) continue;
    const Lane& mine = *static_cast<const Lane*>(lanes[lane]);
    for (int i = 0; i < m * n / 32; ++i)
      D::put(mine.d, i, d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
  }
}

}  // namespace

#define TL_MMA(name, m, k, D, A, B)                                    \
  void name(void* d, const void* a, const void* b, int line) {         \
    Lane lane{d, a, b};                                                \
    warp_together(~0u, &lane, multiply<m, k, D, A, B>, #name, line);   \
  }
#include <emulator/mma_rows.h>

}  // namespace tl::emulator
