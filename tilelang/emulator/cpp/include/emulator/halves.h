// How 16-bit floats become floats and back, and what a type of them can do.
#pragma once
#include <emulator/bits16.h>

// A wider number as a float that rounds to 16 bits as the number itself would: rounded to odd.
static inline float tl_odd_float(double x) {
  const float near = float(x);
  if (double(near) == x || x != x || near - near != 0) return near;
  unsigned bits = tl_same_bits<unsigned>(near);
  if ((double(near) > x) == (x > 0)) bits -= 1;  // toward zero
  return tl_same_bits<float>(bits | 1);
}
template <class T>
static inline double tl_odd_double(T x) {
  const double near = double(x);
  if (__int128(near) == __int128(x)) return near;
  unsigned long long bits = tl_same_bits<unsigned long long>(near);
  if ((__int128(near) > __int128(x)) == (x > 0)) bits -= 1;
  return tl_same_bits<double>(bits | 1);
}

#define TL_SMALL_OPERATOR(T, op)                                            \
  static inline T operator op(T a, T b) { return T(float(a) op float(b)); } \
  static inline T& operator op## = (T & a, T b) { return a = a op b; }
#define TL_SMALL_COMPARISON(T, op) \
  static inline bool operator op(T a, T b) { return float(a) op float(b); }

#define TL_SMALL_FLOAT(T, to_float, from_float)                                          \
  struct T {                                                                             \
    unsigned short bits;                                                                 \
    T() = default;                                                                       \
    explicit constexpr T(unsigned short raw, int) : bits(raw) {}                         \
    T(float x) : bits(from_float(x)) {}                                                  \
    T(double x) : bits(from_float(float(x))) {}                                          \
    T(int x) : bits(from_float(float(x))) {}                                             \
    operator float() const { return to_float(bits); }                                    \
    explicit operator bool() const { return (bits & 0x7fff) != 0; }                      \
  };                                                                                     \
  TL_SMALL_OPERATOR(T, +)                                                                \
  TL_SMALL_OPERATOR(T, -)                                                                \
  TL_SMALL_OPERATOR(T, *)                                                                \
  TL_SMALL_OPERATOR(T, /)                                                                \
  TL_SMALL_COMPARISON(T, ==)                                                             \
  TL_SMALL_COMPARISON(T, !=)                                                             \
  TL_SMALL_COMPARISON(T, <)                                                              \
  TL_SMALL_COMPARISON(T, <=)                                                             \
  TL_SMALL_COMPARISON(T, >)                                                              \
  TL_SMALL_COMPARISON(T, >=)                                                             \
  static inline T operator-(T x) { return T((unsigned short)(x.bits ^ 0x8000), 0); }     \
  static inline T operator+(T x) { return x; }                                           \
  static inline T __hmin(T a, T b) { return a != a ? b : b != b ? a : (b < a ? b : a); } \
  static inline T __hmax(T a, T b) { return a != a ? b : b != b ? a : (a < b ? b : a); }

#define TL_SMALL_PAIRS(T, pair)                                                         \
  static inline pair __hadd2(pair a, pair b) { return {a.x + b.x, a.y + b.y}; }         \
  static inline pair __hsub2(pair a, pair b) { return {a.x - b.x, a.y - b.y}; }         \
  static inline pair __hmul2(pair a, pair b) { return {a.x * b.x, a.y * b.y}; }         \
  static inline pair atomicAdd(pair* place, pair value, TL_HERE) {                      \
    return tl_atomic<pair, unsigned>(                                                   \
        place, line, [=](pair old) { return pair{old.x + value.x, old.y + value.y}; }); \
  }
