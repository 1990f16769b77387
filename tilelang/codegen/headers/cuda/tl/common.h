// Types, vectors and conversions that every generated kernel uses.
#pragma once

// A variable that a kernel's author leaves unused is none of the compiler's business.
#pragma nv_diag_suppress 177, 550

#define TL_DEVICE __device__ __forceinline__
#define TL_CONSTEXPR __host__ __device__ constexpr

namespace tl {

using int8 = signed char;
using uint8 = unsigned char;
using int16 = short;
using uint16 = unsigned short;
using uint32 = unsigned int;
using int64 = long long;
using uint64 = unsigned long long;

enum class memory_order { relaxed, consume, acquire, release, acq_rel, seq_cst };
enum class cache { automatic, ca, cg };
enum class eviction { normal, first, last };

template <class A, class B> struct is_same { static constexpr bool value = false; };
template <class A> struct is_same<A, A> { static constexpr bool value = true; };
template <bool condition, class T = int> struct enable_if {};
template <class T> struct enable_if<true, T> { using type = T; };

// --- numbers ---

template <class T> TL_DEVICE T infinity();
template <> TL_DEVICE float infinity<float>() { return __int_as_float(0x7f800000); }
template <> TL_DEVICE double infinity<double>() { return __longlong_as_double(0x7ff0000000000000ll); }
template <class T> TL_DEVICE T nan();
template <> TL_DEVICE float nan<float>() { return __int_as_float(0x7fffffff); }
template <> TL_DEVICE double nan<double>() { return __longlong_as_double(0x7fffffffffffffffll); }

// Python's division and remainder: rounded toward negative infinity. The lowest number divided by -1
// is itself, which C++ leaves open.
template <class T> TL_DEVICE T floordiv(T a, T b) {
  if constexpr (T(-1) < T(0)) {
    if (b == T(-1)) return T(uint64(0) - uint64(a));
  }
  T quotient = a / b;
  return quotient - T((a % b != 0) && ((a < 0) != (b < 0)));
}
template <class T> TL_DEVICE T floormod(T a, T b) {
  if constexpr (T(-1) < T(0)) {
    if (b == T(-1)) return T(0);
  }
  T remainder = a % b;
  return (remainder != 0 && ((remainder < 0) != (b < 0))) ? remainder + b : remainder;
}

template <class T> TL_DEVICE T min(T a, T b) { return b < a ? b : a; }
template <class T> TL_DEVICE T max(T a, T b) { return a < b ? b : a; }
TL_DEVICE float min(float a, float b) { return ::fminf(a, b); }
TL_DEVICE float max(float a, float b) { return ::fmaxf(a, b); }
TL_DEVICE double min(double a, double b) { return ::fmin(a, b); }
TL_DEVICE double max(double a, double b) { return ::fmax(a, b); }

// An integer of `bits` bits in a wider register.
template <int bits> TL_DEVICE int8 wrap(int8 x) {
  return int8(int(unsigned(x) << (32 - bits)) >> (32 - bits));
}
template <int bits> TL_DEVICE uint8 wrap(uint8 x) { return uint8(x & ((1 << bits) - 1)); }

template <class To, class From> TL_DEVICE To bit_cast(From x) {
  static_assert(sizeof(To) == sizeof(From), "a bit cast keeps the size");
  To out;
  memcpy(&out, &x, sizeof(To));
  return out;
}

// --- vectors ---

TL_CONSTEXPR int vector_alignment(int bytes) {
  int power = 1;
  while (power < 16 && bytes % (2 * power) == 0) power *= 2;
  return power;
}

template <class T, int N> struct __align__(vector_alignment(sizeof(T) * N)) vec {
  T lanes[N];
  TL_DEVICE T& operator[](int i) { return lanes[i]; }
  TL_DEVICE const T& operator[](int i) const { return lanes[i]; }
};

template <int bytes> struct chunk;
template <> struct chunk<1> { using type = unsigned char; };
template <> struct chunk<2> { using type = unsigned short; };
template <> struct chunk<4> { using type = unsigned int; };
template <> struct chunk<8> { using type = uint2; };
template <> struct chunk<16> { using type = uint4; };

// N neighbours at once, by accesses of up to 16 bytes; the address is a multiple of that. They are
// copied as vectors of T: an access by an integer type would be one of another object to a compiler,
// which may then move it across stores of single elements.
template <int N, class T> TL_DEVICE vec<T, N> load(const T* place) {
  constexpr int bytes = sizeof(T) * N, width = bytes < 16 ? bytes : 16, step = width / sizeof(T);
  static_assert(bytes % width == 0, "a whole number of accesses");
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; i += step)
    *reinterpret_cast<vec<T, step>*>(&out.lanes[i]) =
        *reinterpret_cast<const vec<T, step>*>(place + i);
  return out;
}

template <class T, int N> TL_DEVICE void store(T* place, const vec<T, N>& value) {
  constexpr int bytes = sizeof(T) * N, width = bytes < 16 ? bytes : 16, step = width / sizeof(T);
  static_assert(bytes % width == 0, "a whole number of accesses");
#pragma unroll
  for (int i = 0; i < N; i += step)
    *reinterpret_cast<vec<T, step>*>(place + i) =
        *reinterpret_cast<const vec<T, step>*>(&value.lanes[i]);
}

// The same one by one, for addresses of any alignment.
template <int N, class T> TL_DEVICE vec<T, N> load_elements(const T* place) {
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = place[i];
  return out;
}
template <class T, int N> TL_DEVICE void store_elements(T* place, const vec<T, N>& value) {
#pragma unroll
  for (int i = 0; i < N; ++i) place[i] = value[i];
}

template <int N, class T> TL_DEVICE vec<T, N> broadcast(T x) {
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = x;
  return out;
}
template <int N, class T> TL_DEVICE vec<T, N> ramp(T base, T stride) {
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = base + T(i) * stride;
  return out;
}
template <class T, int N>
TL_DEVICE vec<T, N> select(const vec<bool, N>& which, const vec<T, N>& a, const vec<T, N>& b) {
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = which[i] ? a[i] : b[i];
  return out;
}

// Arithmetic on two lanes at once, where a type has it.
template <class T> struct pairs { static constexpr bool exist = false; };

#define TL_VECTOR_ARITHMETIC(op, name)                                                     \
  template <class T, int N>                                                                \
  TL_DEVICE vec<T, N> operator op(const vec<T, N>& a, const vec<T, N>& b) {                \
    vec<T, N> out;                                                                         \
    if constexpr (pairs<T>::exist && N % 2 == 0) {                                         \
      using two = typename pairs<T>::type;                                                 \
      _Pragma("unroll") for (int i = 0; i < N / 2; ++i)                                    \
          reinterpret_cast<two*>(&out)[i] = pairs<T>::name(                                \
              reinterpret_cast<const two*>(&a)[i], reinterpret_cast<const two*>(&b)[i]);   \
    } else {                                                                               \
      _Pragma("unroll") for (int i = 0; i < N; ++i) out[i] = a[i] op b[i];                 \
    }                                                                                      \
    return out;                                                                            \
  }
TL_VECTOR_ARITHMETIC(+, add)
TL_VECTOR_ARITHMETIC(-, sub)
TL_VECTOR_ARITHMETIC(*, mul)
#undef TL_VECTOR_ARITHMETIC

#define TL_VECTOR_OPERATOR(op, result)                                      \
  template <class T, int N>                                                 \
  TL_DEVICE vec<result, N> operator op(const vec<T, N>& a, const vec<T, N>& b) { \
    vec<result, N> out;                                                     \
    _Pragma("unroll") for (int i = 0; i < N; ++i) out[i] = result(a[i] op b[i]); \
    return out;                                                             \
  }
TL_VECTOR_OPERATOR(/, T)
TL_VECTOR_OPERATOR(%, T)
TL_VECTOR_OPERATOR(&, T)
TL_VECTOR_OPERATOR(|, T)
TL_VECTOR_OPERATOR(^, T)
TL_VECTOR_OPERATOR(<<, T)
TL_VECTOR_OPERATOR(>>, T)
TL_VECTOR_OPERATOR(==, bool)
TL_VECTOR_OPERATOR(!=, bool)
TL_VECTOR_OPERATOR(<, bool)
TL_VECTOR_OPERATOR(<=, bool)
TL_VECTOR_OPERATOR(>, bool)
TL_VECTOR_OPERATOR(>=, bool)
#undef TL_VECTOR_OPERATOR

template <class T, int N> TL_DEVICE vec<T, N> operator-(const vec<T, N>& a) {
  vec<T, N> out;
#pragma unroll
  for (int i = 0; i < N; ++i) out[i] = -a[i];
  return out;
}
#define TL_VECTOR_FUNCTION(name)                                                    \
  template <class T, int N> TL_DEVICE vec<T, N> name(const vec<T, N>& a, const vec<T, N>& b) { \
    vec<T, N> out;                                                                  \
    _Pragma("unroll") for (int i = 0; i < N; ++i) out[i] = name(a[i], b[i]);        \
    return out;                                                                     \
  }
TL_VECTOR_FUNCTION(min)
TL_VECTOR_FUNCTION(max)
TL_VECTOR_FUNCTION(floordiv)
TL_VECTOR_FUNCTION(floormod)
#undef TL_VECTOR_FUNCTION

// --- conversions ---

// A format without C arithmetic specialises this: `widen` to float and `narrow` from float, of one
// value and of two.
template <class T> struct small_float { static constexpr bool value = false; };
// A float that rounds as `x` does in any format of half its mantissa or less: cut off, and odd where
// that lost something.
TL_DEVICE float rounded_to_odd(double x) {
  const float cut = __double2float_rz(x);
  return x == x && double(cut) != x ? __uint_as_float(__float_as_uint(cut) | 1u) : cut;
}
// How it is made from a wider type without rounding twice; by default through float.
template <class To, class From> struct from_number {
  static TL_DEVICE To make(From x) { return small_float<To>::narrow(float(x)); }
};
template <class To> struct from_number<To, double> {
  static TL_DEVICE To make(double x) { return small_float<To>::narrow(rounded_to_odd(x)); }
};

// Toward zero. What is out of range becomes the nearest value there is, and NaN becomes 0, where C++
// leaves both open.
template <class To> TL_DEVICE To to_integer(float x) {
  constexpr bool has_sign = To(-1) < To(0);
  if constexpr (sizeof(To) == 8) {
    if (x != x) return To(0);
    return has_sign ? To(__float2ll_rz(x)) : To(__float2ull_rz(x));
  } else if constexpr (sizeof(To) == 4) {
    return has_sign ? To(__float2int_rz(x)) : To(__float2uint_rz(x));
  } else {
    constexpr int high = (1 << (8 * int(sizeof(To)) - int(has_sign))) - 1;
    constexpr int low = has_sign ? -high - 1 : 0;
    return To(::min(::max(__float2int_rz(x), low), high));
  }
}
template <class To> TL_DEVICE To to_integer(double x) {
  constexpr bool has_sign = To(-1) < To(0);
  if (x != x) return To(0);
  if constexpr (sizeof(To) == 8) {
    return has_sign ? To(__double2ll_rz(x)) : To(__double2ull_rz(x));
  } else if constexpr (sizeof(To) == 4) {
    return has_sign ? To(__double2int_rz(x)) : To(__double2uint_rz(x));
  } else {
    constexpr int high = (1 << (8 * int(sizeof(To)) - int(has_sign))) - 1;
    constexpr int low = has_sign ? -high - 1 : 0;
    return To(::min(::max(__double2int_rz(x), low), high));
  }
}
template <class T> struct is_real {
  static constexpr bool value = is_same<T, float>::value || is_same<T, double>::value;
};

template <class To, class From> TL_DEVICE To cast(From x) {
  if constexpr (is_same<To, From>::value) {
    return x;
  } else if constexpr (is_same<To, bool>::value) {
    return x != From(0);
  } else if constexpr (small_float<From>::value && small_float<To>::value) {
    return small_float<To>::narrow(small_float<From>::widen(x));
  } else if constexpr (small_float<From>::value) {
    return cast<To>(small_float<From>::widen(x));
  } else if constexpr (small_float<To>::value) {
    return from_number<To, From>::make(x);
  } else if constexpr (is_real<From>::value && !is_real<To>::value) {
    return to_integer<To>(x);
  } else {
    return static_cast<To>(x);
  }
}

template <class To, class From, int N> TL_DEVICE vec<To, N> cast(vec<From, N> x) {
  vec<To, N> out;
  if constexpr (N % 2 == 0 && small_float<To>::value && is_same<From, float>::value) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      vec<To, 2> two = small_float<To>::narrow(x[i], x[i + 1]);
      out[i] = two[0];
      out[i + 1] = two[1];
    }
  } else if constexpr (N % 2 == 0 && small_float<From>::value && is_same<To, float>::value) {
#pragma unroll
    for (int i = 0; i < N; i += 2) {
      vec<float, 2> two = small_float<From>::widen(vec<From, 2>{x[i], x[i + 1]});
      out[i] = two[0];
      out[i + 1] = two[1];
    }
  } else {
#pragma unroll
    for (int i = 0; i < N; ++i) out[i] = cast<To>(x[i]);
  }
  return out;
}

// Shared-memory addresses as PTX wants them.
TL_DEVICE uint32 shared_address(const void* place) {
  return static_cast<uint32>(__cvta_generic_to_shared(place));
}

// A place in shared memory; any pointer to it is one.
struct shared_place {
  uint32 address;
  TL_DEVICE shared_place(const void* place) : address(shared_address(place)) {}
  TL_DEVICE explicit shared_place(uint32 address) : address(address) {}
};

// Where an element of a tile lies. In 32 bits, compilers see what the addresses of an unrolled loop
// have in common: a register for all of them, and offsets in the instructions.
template <typename T, typename Index> TL_DEVICE shared_place at(const T* tile, Index element) {
  return shared_place(shared_address(tile) + static_cast<uint32>(element) * uint32(sizeof(T)));
}

// From here on, compilers do not know that `value` is what it was; it is.
TL_DEVICE void again(int& value) { asm volatile("" : "+r"(value)); }

// The number of this thread in its block.
TL_DEVICE int thread_number() {
  return int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

}  // namespace tl
