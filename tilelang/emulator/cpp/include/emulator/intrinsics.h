// CUDA's scalar intrinsics: bits, stated rounding, fast maths.
#pragma once
#include <fenv.h>

template <class To, class From>
static inline To tl_same_bits(From from) {
  static_assert(sizeof(To) == sizeof(From), "the sizes are equal");
  To to;
  memcpy(&to, &from, sizeof(To));
  return to;
}
static inline float __int_as_float(int x) { return tl_same_bits<float>(x); }
static inline float __uint_as_float(unsigned x) { return tl_same_bits<float>(x); }
static inline int __float_as_int(float x) { return tl_same_bits<int>(x); }
static inline unsigned __float_as_uint(float x) { return tl_same_bits<unsigned>(x); }
static inline double __longlong_as_double(long long x) { return tl_same_bits<double>(x); }
static inline long long __double_as_longlong(double x) { return tl_same_bits<long long>(x); }

static inline double __hiloint2double(int high, int low) {
  return __longlong_as_double(
      (long long)((unsigned long long)unsigned(high) << 32 | unsigned(low)));
}
static inline int __double2hiint(double x) { return int(__double_as_longlong(x) >> 32); }
static inline int __double2loint(double x) { return int(__double_as_longlong(x)); }
static inline unsigned __umulhi(unsigned a, unsigned b) {
  return unsigned((unsigned long long)a * b >> 32);
}
static inline int __mulhi(int a, int b) { return int((long long)a * b >> 32); }
template <class T>
static inline T __ldg(const T* place) {
  return *place;
}

static inline int __popc(unsigned x) { return __builtin_popcount(x); }
static inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
static inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(unsigned(x)); }
static inline int __clzll(long long x) { return x == 0 ? 64 : __builtin_clzll(x); }
static inline int __ffs(int x) { return __builtin_ffs(x); }
static inline unsigned __brev(unsigned x) {
  unsigned out = 0;
  for (int i = 0; i < 32; ++i) out |= ((x >> i) & 1) << (31 - i);
  return out;
}
static inline unsigned __float2uint_rn(float x) {
  return !(x > 0) ? 0 : x >= 4294967296.0f ? ~0u : unsigned(::nearbyintf(x));
}

// --- toward zero; out of range gives the nearest value there is, and NaN 0 (PTX ISA, cvt) ---

#define TL_TO_INTEGER(name, From, To, low, high, least, most)                             \
  static inline To name(From x) {                                                         \
    return x != x ? 0 : x <= (low) ? (least) : x >= (high) ? (most) : static_cast<To>(x); \
  }
#define TL_TO_INTEGERS(prefix, From)                                                        \
  TL_TO_INTEGER(__##prefix##2int_rz, From, int, From(-2147483648.0), From(2147483648.0),    \
                -2147483647 - 1, 2147483647)                                                \
  TL_TO_INTEGER(__##prefix##2uint_rz, From, unsigned, From(0), From(4294967296.0), 0u, ~0u) \
  TL_TO_INTEGER(__##prefix##2ll_rz, From, long long, From(-0x1p63), From(0x1p63),           \
                -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll)                            \
  TL_TO_INTEGER(__##prefix##2ull_rz, From, unsigned long long, From(0), From(0x1p64), 0ull, ~0ull)
TL_TO_INTEGERS(float, float)
TL_TO_INTEGERS(double, double)
#undef TL_TO_INTEGERS
#undef TL_TO_INTEGER
static inline float __double2float_rn(double x) { return float(x); }
static inline float __double2float_rz(double x) {
  const float near = float(x);
  const bool is_beyond = near > 0 ? double(near) > x : double(near) < x;
  return near == near && is_beyond ? tl_same_bits<float>(tl_same_bits<unsigned>(near) - 1) : near;
}

static inline int min(int a, int b) { return b < a ? b : a; }
static inline int max(int a, int b) { return a < b ? b : a; }
static inline unsigned min(unsigned a, unsigned b) { return b < a ? b : a; }
static inline unsigned max(unsigned a, unsigned b) { return a < b ? b : a; }

static inline int __dp4a(int a, int b, int c) {
  for (int i = 0; i < 32; i += 8) c += int((signed char)(a >> i)) * int((signed char)(b >> i));
  return c;
}

// --- stated rounding: the operation under another rounding mode of the processor ---

template <class T, class F>
__attribute__((noinline)) T tl_rounded(int mode, F operation) {
  fesetround(mode);
  volatile T out = operation();
  fesetround(FE_TONEAREST);
  return out;
}
static inline float tl_fma(float x, float y, float z) { return ::fmaf(x, y, z); }
static inline double tl_fma(double x, double y, double z) { return ::fma(x, y, z); }
#define TL_MODES(make) \
  make(rn, FE_TONEAREST) make(rz, FE_TOWARDZERO) make(ru, FE_UPWARD) make(rd, FE_DOWNWARD)
// Operands go through volatile variables, or the compiler computes beforehand, to nearest.
#define TL_BINARY_OF(prefix, T, name, op, mode, constant)   \
  static inline T prefix##name##_##mode(T x, T y) {         \
    volatile T a = x, b = y;                                \
    return tl_rounded<T>(constant, [&] { return a op b; }); \
  }
#define TL_ROUNDED_OF(prefix, T, fused, root, mode, constant)                     \
  TL_BINARY_OF(prefix, T, add, +, mode, constant)                                 \
  TL_BINARY_OF(prefix, T, sub, -, mode, constant)                                 \
  TL_BINARY_OF(prefix, T, mul, *, mode, constant)                                 \
  TL_BINARY_OF(prefix, T, div, /, mode, constant)                                 \
  static inline T prefix##rcp_##mode(T x) { return prefix##div_##mode(T(1), x); } \
  static inline T prefix##sqrt_##mode(T x) {                                      \
    volatile T a = x;                                                             \
    return tl_rounded<T>(constant, [&] { return root(a); });                      \
  }                                                                               \
  static inline T fused##_##mode(T x, T y, T z) {                                 \
    volatile T a = x, b = y, c = z;                                               \
    return tl_rounded<T>(constant, [&] { return ::tl_fma(T(a), T(b), T(c)); });   \
  }
#define TL_FLOATS(mode, constant) TL_ROUNDED_OF(__f, float, __fmaf, ::sqrtf, mode, constant)
#define TL_DOUBLES(mode, constant) TL_ROUNDED_OF(__d, double, __fma, ::sqrt, mode, constant)
TL_MODES(TL_FLOATS)
TL_MODES(TL_DOUBLES)
#undef TL_FLOATS
#undef TL_DOUBLES
#undef TL_ROUNDED_OF
#undef TL_BINARY_OF
#undef TL_MODES

// --- fast maths: here as exact as the C library, so only the device rounds coarsely ---

// The C library has these two names from glibc 2.42 on.
#define rsqrtf tl_rsqrtf
#define rsqrt tl_rsqrt
static inline float rsqrtf(float x) { return 1.0f / ::sqrtf(x); }
static inline double rsqrt(double x) { return 1.0 / ::sqrt(x); }
// With the argument in half turns, reduced before pi rounds it.
static inline void sincospi(double x, double* sine, double* cosine) {
  const double rest = ::remainder(x, 2.0) * 3.14159265358979323846;
  *sine = ::sin(rest);
  *cosine = ::cos(rest);
}
static inline void sincospif(float x, float* sine, float* cosine) {
  double s, c;
  sincospi(x, &s, &c);
  *sine = float(s);
  *cosine = float(c);
}
static inline float __fdividef(float x, float y) { return x / y; }

// The C library has functions of these names for itself.
#define TL_FAST_MATHS(make) \
  make(exp) make(exp10) make(log) make(log2) make(log10) make(sin) make(cos) make(tan)
#define TL_FAST_MATH(name) \
  static inline float tl_##name##f(float x) { return ::name##f(x); }
TL_FAST_MATHS(TL_FAST_MATH)
#undef TL_FAST_MATH
#undef TL_FAST_MATHS
static inline void tl_sincosf(float x, float* sine, float* cosine) {
  *sine = ::sinf(x);
  *cosine = ::cosf(x);
}
#define __sincosf tl_sincosf
#define __expf tl_expf
#define __exp10f tl_exp10f
#define __logf tl_logf
#define __log2f tl_log2f
#define __log10f tl_log10f
#define __sinf tl_sinf
#define __cosf tl_cosf
#define __tanf tl_tanf
