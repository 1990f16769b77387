// Types, vectors and conversions that every generated kernel uses.
#pragma once
#include <metal_stdlib>

#define TL_INLINE inline __attribute__((always_inline))
#define TL_UNROLL _Pragma("clang loop unroll(full)")
// Once for each kind of memory a pointer may lead to. Where a kernel runs without a GPU there is
// only one.
#ifdef TL_ONE_ADDRESS_SPACE
#define TL_SPACES(make) make(thread)
#define TL_MEMORIES(make) make(device)
#else
#define TL_SPACES(make) make(device) make(threadgroup) make(thread)
#define TL_MEMORIES(make) make(device) make(threadgroup)
#endif

namespace tl {

template <class A, class B> struct is_same { enum { value = 0 }; };
template <class A> struct is_same<A, A> { enum { value = 1 }; };
template <bool condition, class T = int> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };
template <class T> struct is_float { enum { value = 0 }; };
template <> struct is_float<float> { enum { value = 1 }; };
template <> struct is_float<half> { enum { value = 1 }; };
template <> struct is_float<bfloat> { enum { value = 1 }; };
// What a value is read and written as where several go together.
template <class T> struct stored { using type = T; };
template <> struct stored<bool> { using type = uchar; };

// --- numbers ---

template <class T> TL_INLINE T infinity() { return T(INFINITY); }
template <class T> TL_INLINE T nan() { return T(NAN); }

// Python's division and remainder: rounded toward negative infinity. The lowest number divided by -1
// is itself, which C++ leaves open.
template <class T> TL_INLINE T floordiv(T a, T b) {
  if (T(-1) < T(0) && b == T(-1)) return T(ulong(0) - ulong(a));
  const T quotient = a / b;
  return quotient - T((a % b != 0) && ((a < 0) != (b < 0)));
}
template <class T> TL_INLINE T floormod(T a, T b) {
  if (T(-1) < T(0) && b == T(-1)) return T(0);
  const T remainder = a % b;
  return (remainder != 0 && ((remainder < 0) != (b < 0))) ? remainder + b : remainder;
}

template <class T> TL_INLINE T min(T a, T b) { return b < a ? b : a; }
template <class T> TL_INLINE T max(T a, T b) { return a < b ? b : a; }
TL_INLINE float min(float a, float b) { return metal::fmin(a, b); }
TL_INLINE float max(float a, float b) { return metal::fmax(a, b); }
TL_INLINE half min(half a, half b) { return metal::fmin(a, b); }
TL_INLINE half max(half a, half b) { return metal::fmax(a, b); }
TL_INLINE bfloat min(bfloat a, bfloat b) { return bfloat(metal::fmin(float(a), float(b))); }
TL_INLINE bfloat max(bfloat a, bfloat b) { return bfloat(metal::fmax(float(a), float(b))); }

template <class To, class From> TL_INLINE To bit_cast(From x) { return as_type<To>(x); }

// --- conversions ---

// Toward zero. What is out of range becomes the nearest value there is, and NaN becomes 0, where C++
// leaves both open.
template <class To> TL_INLINE To to_integer(float x) {
  const bool has_sign = To(-1) < To(0);
  const int bits = 8 * int(sizeof(To)) - int(has_sign);
  const float limit = 2.0f * float(ulong(1) << (bits - 1));
  const To most = To(~ulong(0) >> (64 - bits)), least = has_sign ? To(-most - 1) : To(0);
  if (x != x) return To(0);
  return x >= limit ? most : x <= (has_sign ? -limit : 0.0f) ? least : To(x);
}

template <int kind, class To, class From> struct convert {
  static TL_INLINE To make(From x) { return To(x); }
};
template <class To, class From> struct convert<1, To, From> {
  static TL_INLINE To make(From x) { return x != From(0); }
};
template <class To, class From> struct convert<2, To, From> {
  static TL_INLINE To make(From x) { return to_integer<To>(float(x)); }
};
template <class To, class From> struct convert<3, To, From> {
  static TL_INLINE To make(From x) { return To(float(x)); }
};
template <class To, class From> struct kind_of_conversion {
  enum {
    value = is_same<To, From>::value ? 0
            : is_same<To, bool>::value ? 1
            : is_float<From>::value && !is_float<To>::value ? 2
            : is_same<To, bfloat>::value || is_same<From, bfloat>::value ? 3 : 0
  };
};
template <class To, class From> TL_INLINE To cast(From x) {
  return convert<kind_of_conversion<To, From>::value, To, From>::make(x);
}

// --- vectors ---

template <class T, int N> struct vec {
  T lanes[N];
  TL_INLINE thread T& operator[](int i) { return lanes[i]; }
  TL_INLINE const thread T& operator[](int i) const { return lanes[i]; }
};

// N neighbours, by accesses of four or two; the address is a multiple of those.
#define TL_LOAD(space)                                                                    \
  template <int N, class T> TL_INLINE vec<T, N> load(const space T* place) {              \
    enum { step = N % 4 == 0 ? 4 : 2 };                                                   \
    using part = metal::vec<typename stored<T>::type, step>;                              \
    vec<T, N> out;                                                                        \
    TL_UNROLL for (int i = 0; i < N; i += step) {                                         \
      const part some = *reinterpret_cast<const space part*>(place + i);                  \
      TL_UNROLL for (int j = 0; j < step; ++j) out.lanes[i + j] = T(some[j]);             \
    }                                                                                     \
    return out;                                                                           \
  }                                                                                       \
  template <int N, class T> TL_INLINE vec<T, N> load_elements(const space T* place) {     \
    vec<T, N> out;                                                                        \
    TL_UNROLL for (int i = 0; i < N; ++i) out.lanes[i] = place[i];                        \
    return out;                                                                           \
  }
TL_SPACES(TL_LOAD)
#undef TL_LOAD

#define TL_STORE(space)                                                                   \
  template <class T, int N> TL_INLINE void store(space T* place, vec<T, N> value) {       \
    enum { step = N % 4 == 0 ? 4 : 2 };                                                   \
    using element = typename stored<T>::type;                                             \
    using part = metal::vec<element, step>;                                               \
    TL_UNROLL for (int i = 0; i < N; i += step) {                                         \
      part some;                                                                          \
      TL_UNROLL for (int j = 0; j < step; ++j) some[j] = element(value.lanes[i + j]);     \
      *reinterpret_cast<space part*>(place + i) = some;                                   \
    }                                                                                     \
  }                                                                                       \
  template <class T, int N> TL_INLINE void store_elements(space T* place, vec<T, N> value) { \
    TL_UNROLL for (int i = 0; i < N; ++i) place[i] = value.lanes[i];                      \
  }
TL_SPACES(TL_STORE)
#undef TL_STORE

template <int N, class T> TL_INLINE vec<T, N> broadcast(T x) {
  vec<T, N> out;
  TL_UNROLL for (int i = 0; i < N; ++i) out.lanes[i] = x;
  return out;
}
template <int N, class T> TL_INLINE vec<T, N> ramp(T base, T stride) {
  vec<T, N> out;
  TL_UNROLL for (int i = 0; i < N; ++i) out.lanes[i] = base + T(i) * stride;
  return out;
}
template <class To, class From, int N> TL_INLINE vec<To, N> cast(vec<From, N> x) {
  vec<To, N> out;
  TL_UNROLL for (int i = 0; i < N; ++i) out.lanes[i] = cast<To>(x.lanes[i]);
  return out;
}

#define TL_VECTOR_OPERATOR(op)                                                            \
  template <class T, int N> TL_INLINE vec<T, N> operator op(vec<T, N> a, vec<T, N> b) {   \
    vec<T, N> out;                                                                        \
    TL_UNROLL for (int i = 0; i < N; ++i) out.lanes[i] = T(a.lanes[i] op b.lanes[i]);     \
    return out;                                                                           \
  }
TL_VECTOR_OPERATOR(+)
TL_VECTOR_OPERATOR(-)
TL_VECTOR_OPERATOR(*)
TL_VECTOR_OPERATOR(/)
#undef TL_VECTOR_OPERATOR

}  // namespace tl
