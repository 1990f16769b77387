// How a tensor core adds up products, bit for bit as an H200 does (measured: tests/device/golden.py).
//
// The exact products of a step and the accumulator are cut to so many bits below the largest
// exponent among them, toward zero, and added as integers; the sum is then rounded once. A product
// has the sum of its factors' exponents, whatever its own. `mma.sync` of 8-bit floats is made of two
// steps of 16-bit ones, elements 0 and 1 of each four before 2 and 3, from zero on, and the
// accumulator is added at the end. Doubles are multiplied and added one by one, k ascending.
#pragma once
#include <emulator/bits16.h>
#include <math.h>
#include <string.h>

#include "elements.h"

namespace tl::emulator {

constexpr int lanes_at_once = 8, nothing = -4000;

// The exponent below which numbers of a type only lose bits.
template <class T>
constexpr int least_exponent = -126;
template <>
inline constexpr int least_exponent<f16> = -14;
template <>
inline constexpr int least_exponent<e5m2> = -14;
template <>
inline constexpr int least_exponent<e4m3> = -6;

template <class T>
constexpr bool is_float8 = false;
template <>
inline constexpr bool is_float8<e5m2> = true;
template <>
inline constexpr bool is_float8<e4m3> = true;

// x = significand * 2^exponent, with 1 <= |significand| < 2 but for what is below `least`.
inline void split(float x, int least, float& significand, int& exponent) {
  const uint32_t bits = tl_bits_of_float(x);
  const int own = int(bits >> 23 & 255) - 127;
  const float scaled = x * tl_float_of_bits(uint32_t(127 - least) << 23);
  const float normal = tl_float_of_bits((bits & 0x807fffffu) | 127u << 23);
  significand = own < least ? scaled : normal;
  exponent = x == 0 ? nothing : own < least ? least : own;
}

inline float toward_zero(double x) {
  const float near = float(x);
  const uint32_t bits = tl_bits_of_float(near);
  const bool is_past = fabs(double(near)) > fabs(x) && (bits & 0x7fffffffu) != 0x7f800000u;
  return tl_float_of_bits(bits - is_past);
}

enum class Rounding { single, half, bits13 };

template <Rounding how>
inline float rounded(double x) {
  if constexpr (how == Rounding::single) return toward_zero(x);
  if constexpr (how == Rounding::bits13) {
    uint64_t bits;
    memcpy(&bits, &x, 8);
    bits &= ~((uint64_t(1) << 39) - 1);
    memcpy(&x, &bits, 8);
    return toward_zero(x);
  }
  // Rounding to odd first keeps the second rounding from going wrong.
  const float cut = toward_zero(x);
  const uint32_t sticky = double(cut) != x;
  return tl_half_to_float(tl_float_to_half(tl_float_of_bits(tl_bits_of_float(cut) | sticky)));
}

// Factors of a step, split; `columns` of B lie side by side.
template <int m, int k, int columns>
struct Factors {
  float a[m][k], b[k][columns];
  int a_exponent[m][k], b_exponent[k][columns];
  bool is_row_odd[m], is_column_odd[columns];
};

// d[i] = sum of a[step] * b[step][i] over `steps`, and d[i], for eight neighbours.
template <int steps, int fraction, Rounding how>
inline void sum_of_step(const float* a, const int* a_exponent, const float* b,
                        const int* b_exponent, int columns, int least, float* d) {
  int highest[lanes_at_once], low[lanes_at_once] = {}, high[lanes_at_once] = {};
  float own[lanes_at_once];
  int own_exponent[lanes_at_once];
  for (int i = 0; i < lanes_at_once; ++i) split(d[i], least, own[i], own_exponent[i]);
  for (int i = 0; i < lanes_at_once; ++i) highest[i] = own_exponent[i];
  for (int step = 0; step < steps; ++step)
    for (int i = 0; i < lanes_at_once; ++i) {
      const int exponent = a_exponent[step] + b_exponent[step * columns + i];
      highest[i] = highest[i] < exponent ? exponent : highest[i];
    }
  const auto cut = [&](float x, int exponent, int i) {
    const int down = highest[i] - exponent;
    return int(x * tl_float_of_bits(uint32_t(127 + fraction - (down < 63 ? down : 63)) << 23));
  };
  // In two halves, each of which an int can hold.
  for (int step = 0; step < steps; ++step) {
    int* sum = step < steps / 2 ? low : high;
    for (int i = 0; i < lanes_at_once; ++i)
      sum[i] += cut(a[step] * b[step * columns + i],
                    a_exponent[step] + b_exponent[step * columns + i], i);
  }
  for (int i = 0; i < lanes_at_once; ++i) {
    const double sum = double(low[i]) + double(high[i]) + double(cut(own[i], own_exponent[i], i));
    const int exponent = highest[i] < -900 ? -900 : highest[i];
    const uint64_t bits = uint64_t(1023 + exponent - fraction) << 52;
    double unit;
    memcpy(&unit, &bits, 8);
    d[i] = rounded<how>(sum * unit);
  }
}

// What NaN and infinities come to, which no order changes.
template <int k, int columns>
float odd_sum(float d, const float* a, const float (*b)[columns], int column) {
  for (int step = 0; step < k; ++step) d += a[step] * b[step][column];
  return d;
}

// The order in which `mma.sync` takes k of 8-bit floats.
template <int k>
constexpr int place_of_float8(int step) {
  return step % 4 / 2 * (k / 2) + step / 4 * 2 + step % 2;
}

// Not a matter of types, so that many share one: they differ in their least exponents.
template <bool by_halves, int fraction, Rounding how, int m, int k, int columns>
__attribute__((noinline)) void add_floats(const float (&a)[m][k], const float (&b)[k][columns],
                                          float (&d)[m][columns], int n, int least_a, int least_b,
                                          int least_d) {
  static Factors<m, k, columns> f;
  memset(f.is_row_odd, 0, sizeof(f.is_row_odd));
  memset(f.is_column_odd, 0, sizeof(f.is_column_odd));
  for (int row = 0; row < m; ++row)
    for (int step = 0; step < k; ++step) {
      const int place = by_halves ? place_of_float8<k>(step) : step;
      split(a[row][step], least_a, f.a[row][place], f.a_exponent[row][place]);
      f.is_row_odd[row] |= f.a_exponent[row][place] == 128;
    }
  for (int step = 0; step < k; ++step)
    for (int column = 0; column < n; ++column) {
      const int place = by_halves ? place_of_float8<k>(step) : step;
      split(b[step][column], least_b, f.b[place][column], f.b_exponent[place][column]);
      f.is_column_odd[column] |= f.b_exponent[place][column] == 128;
    }
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; column += lanes_at_once) {
      constexpr int steps = by_halves ? k / 2 : k;
      float sums[lanes_at_once] = {}, *own = &d[row][column];
      if constexpr (!by_halves) memcpy(sums, own, sizeof(sums));
      for (int first = 0; first < k; first += steps)
        sum_of_step<steps, fraction, how>(f.a[row] + first, f.a_exponent[row] + first,
                                          &f.b[first][column], &f.b_exponent[first][column],
                                          columns, least_d, sums);
      for (int i = 0; i < lanes_at_once; ++i) {
        const bool is_odd = f.is_row_odd[row] || f.is_column_odd[column + i] || !isfinite(own[i]);
        if (is_odd) own[i] = odd_sum<k, columns>(own[i], a[row], b, column + i);
        else own[i] = by_halves ? own[i] + sums[i] : sums[i];
      }
    }
}

template <class D, class A, class B, bool warp_group, int m, int k, int columns>
void add_products(const float (&a)[m][k], const float (&b)[k][columns], float (&d)[m][columns],
                  int n) {
  constexpr bool by_halves = is_float8<A> && !warp_group;
  constexpr int fraction = is_float8<A> && warp_group ? 13 : 25;
  constexpr Rounding how = D::bits == 16    ? Rounding::half
                           : fraction == 13 ? Rounding::bits13
                                            : Rounding::single;
  add_floats<by_halves, fraction, how>(a, b, d, n, by_halves ? -14 : least_exponent<A>,
                                       by_halves ? -14 : least_exponent<B>, least_exponent<D>);
}

template <class D, class A, class B, bool warp_group, int m, int k, int columns>
void add_products(const double (&a)[m][k], const double (&b)[k][columns], double (&d)[m][columns],
                  int n) {
  for (int row = 0; row < m; ++row)
    for (int step = 0; step < k; ++step)
      for (int column = 0; column < n; ++column)
        d[row][column] = fma(a[row][step], b[step][column], d[row][column]);
}

template <class D, class A, class B, bool warp_group, int m, int k, int columns>
void add_products(const int (&a)[m][k], const int (&b)[k][columns], int (&d)[m][columns], int n) {
  for (int row = 0; row < m; ++row)
    for (int step = 0; step < k; ++step)
      for (int column = 0; column < n; ++column) d[row][column] += a[row][step] * b[step][column];
}

}  // namespace tl::emulator
