// The part of Metal's standard library that generated kernels use, for any clang: scalars, vectors
// and maths. Names and overloads are Metal's own (Metal Shading Language specification 3.2, sections
// 2 and 6); what Metal does not have is not here either.
#pragma once

using half = _Float16;
using bfloat = __bf16;
using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;

#define TL_VECTORS_OF(T)                                  \
  typedef T T##2 __attribute__((ext_vector_type(2)));     \
  typedef T T##3 __attribute__((ext_vector_type(3)));     \
  typedef T T##4 __attribute__((ext_vector_type(4)));
TL_VECTORS_OF(half)
TL_VECTORS_OF(float)
TL_VECTORS_OF(char)
TL_VECTORS_OF(uchar)
TL_VECTORS_OF(short)
TL_VECTORS_OF(ushort)
TL_VECTORS_OF(int)
TL_VECTORS_OF(uint)
TL_VECTORS_OF(long)
TL_VECTORS_OF(ulong)
#undef TL_VECTORS_OF

#undef INFINITY
#undef NAN
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

template <class To, class From>
static inline To as_type(From from) {
  static_assert(sizeof(To) == sizeof(From), "as_type keeps the size");
  return __builtin_bit_cast(To, from);
}

namespace metal {

template <class T, int n>
struct tl_vector {
  static_assert(n >= 2 && n <= 4, "vectors have two to four elements");
  typedef T type __attribute__((ext_vector_type(n)));
};
template <class T, int n>
using vec = typename tl_vector<T, n>::type;

// Of float only: no overload takes a double, or converts silently from an integer.
#define TL_REFUSES_OTHERS(name) \
  template <class T>            \
  T name(T) = delete;           \
  template <class T>            \
  T name(T, T) = delete;
#define TL_FLOAT1(name) \
  static inline float name(float x) { return __builtin_##name##f(x); }
#define TL_FLOAT2(name) \
  static inline float name(float x, float y) { return __builtin_##name##f(x, y); }
#define TL_OF_BOTH(make)                                                                      \
  make(exp) make(exp2) make(log) make(log2) make(log10) make(sqrt) make(sin) make(cos)        \
  make(tan) make(asin) make(acos) make(atan) make(sinh) make(cosh) make(tanh) make(asinh)     \
  make(acosh) make(atanh)
#define TL_MATHS                                                                              \
  TL_OF_BOTH(TL_REFUSES_OTHERS)                                                               \
  TL_OF_BOTH(TL_FLOAT1)                                                                       \
  TL_FLOAT2(pow)                                                                              \
  TL_FLOAT2(fmod)                                                                             \
  TL_FLOAT2(atan2)                                                                            \
  static inline float exp10(float x) { return __builtin_powf(10.0f, x); }                     \
  static inline float rsqrt(float x) { return 1.0f / __builtin_sqrtf(x); }
namespace precise {
TL_MATHS
}
namespace fast {
TL_MATHS
}
#undef TL_MATHS
#undef TL_OF_BOTH

TL_FLOAT1(floor)
TL_FLOAT1(ceil)
TL_FLOAT1(trunc)
TL_FLOAT1(rint)
TL_FLOAT1(round)
TL_FLOAT1(fabs)
TL_FLOAT2(copysign)
TL_FLOAT2(fmin)
TL_FLOAT2(fmax)
#undef TL_FLOAT1
#undef TL_FLOAT2
#undef TL_REFUSES_OTHERS
static inline half fmin(half x, half y) { return half(__builtin_fminf(x, y)); }
static inline half fmax(half x, half y) { return half(__builtin_fmaxf(x, y)); }
static inline float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline float ldexp(float x, int power) { return __builtin_ldexpf(x, power); }

template <class T>
static inline T popcount(T x) {
  return T(sizeof(T) == 8 ? __builtin_popcountl(x)
                          : __builtin_popcount(uint(x) & (~0u >> (32 - 8 * sizeof(T) % 64))));
}
template <class T>
static inline T clz(T x) {
  if (x == 0) return T(8 * sizeof(T));
  return T(sizeof(T) == 8 ? __builtin_clzl(x)
                          : __builtin_clz(uint(x) & (~0u >> (32 - 8 * sizeof(T) % 64))) -
                                (32 - 8 * int(sizeof(T))));
}

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2, mem_texture = 4 };
constexpr mem_flags operator|(mem_flags a, mem_flags b) { return mem_flags(int(a) | int(b)); }
enum memory_order { memory_order_relaxed };

}  // namespace metal
