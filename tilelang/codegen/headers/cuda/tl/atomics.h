// Updates that no other thread can interrupt (PTX ISA, atom). Each gives the old value; where it is
// not used the compiler drops it. Stronger orders than relaxed are fences around the update.
#pragma once
#include <tl/common.h>

namespace tl {

TL_CONSTEXPR bool releases(memory_order order) {
  return order == memory_order::release || order == memory_order::acq_rel ||
         order == memory_order::seq_cst;
}
TL_CONSTEXPR bool acquires(memory_order order) {
  return order != memory_order::relaxed && order != memory_order::release;
}

// The integer with as many bits as an element.
template <int bytes> struct bits_of : chunk<bytes> {};
template <> struct bits_of<8> { using type = uint64; };

// The generic form: compare and swap the word that holds the element until nothing came between.
template <class T, class F> TL_DEVICE T atomic_update(T* place, F change) {
  if constexpr (sizeof(T) == 1) {
    const auto address = reinterpret_cast<uint64>(place);
    auto* word = reinterpret_cast<uint32*>(address & ~3ull);
    const int shift = int(address & 3) * 8;
    uint32 seen = *reinterpret_cast<volatile uint32*>(word), assumed;
    do {
      assumed = seen;
      const T old = bit_cast<T>(uint8(assumed >> shift));
      const uint32 made = uint32(bit_cast<uint8>(T(change(old)))) << shift;
      seen = ::atomicCAS(word, assumed, (assumed & ~(0xffu << shift)) | made);
    } while (seen != assumed);
    return bit_cast<T>(uint8(seen >> shift));
  } else {
    using word = typename bits_of<sizeof(T)>::type;
    auto* raw = reinterpret_cast<word*>(place);
    word seen = *reinterpret_cast<volatile word*>(raw), assumed;
    do {
      assumed = seen;
      seen = ::atomicCAS(raw, assumed, bit_cast<word>(T(change(bit_cast<T>(assumed)))));
    } while (seen != assumed);
    return bit_cast<T>(seen);
  }
}

template <class T> struct is_word {
  static constexpr bool value = is_same<T, int>::value || is_same<T, uint32>::value;
};
template <class T> struct is_long {
  static constexpr bool value = is_same<T, int64>::value || is_same<T, uint64>::value;
};
// 16-bit floats: CUDA adds them atomically itself.
template <class T> struct is_half {
  static constexpr bool value = small_float<T>::value && sizeof(T) == 2;
};

template <class T> TL_DEVICE T relaxed_add(T* place, T value) {
  if constexpr (is_long<T>::value) {
    return T(::atomicAdd(reinterpret_cast<uint64*>(place), uint64(value)));
  } else if constexpr (is_word<T>::value || is_half<T>::value || is_same<T, float>::value ||
                       is_same<T, double>::value) {
    return ::atomicAdd(place, value);
  } else {
    return atomic_update(place, [=](T old) { return T(old + value); });
  }
}
template <class T> TL_DEVICE T relaxed_max(T* place, T value) {
  if constexpr (is_word<T>::value || is_long<T>::value) return ::atomicMax(place, value);
  else return atomic_update(place, [=](T old) { return max(old, value); });
}
template <class T> TL_DEVICE T relaxed_min(T* place, T value) {
  if constexpr (is_word<T>::value || is_long<T>::value) return ::atomicMin(place, value);
  else return atomic_update(place, [=](T old) { return min(old, value); });
}
#define TL_BITWISE(name, function, op)                                                    \
  template <class T> TL_DEVICE T relaxed_##name(T* place, T value) {                      \
    if constexpr (is_word<T>::value) return ::function(place, value);                     \
    else if constexpr (is_long<T>::value)                                                 \
      return T(::function(reinterpret_cast<uint64*>(place), uint64(value)));              \
    else return atomic_update(place, [=](T old) { return T(old op value); });             \
  }
TL_BITWISE(and, atomicAnd, &)
TL_BITWISE(or, atomicOr, |)
TL_BITWISE(xor, atomicXor, ^)
#undef TL_BITWISE

template <class T> TL_DEVICE T relaxed_exch(T* place, T value) {
  if constexpr (sizeof(T) == 4)
    return bit_cast<T>(::atomicExch(reinterpret_cast<uint32*>(place), bit_cast<uint32>(value)));
  else if constexpr (sizeof(T) == 8)
    return bit_cast<T>(::atomicExch(reinterpret_cast<uint64*>(place), bit_cast<uint64>(value)));
  else return atomic_update(place, [=](T) { return value; });
}

#define TL_ORDERED(name)                                                                  \
  template <memory_order order = memory_order::relaxed, class T, class V>                 \
  TL_DEVICE T atomic_##name(T* place, V value) {                                          \
    if constexpr (releases(order)) __threadfence();                                       \
    const T old = relaxed_##name(place, cast<T>(value));                                  \
    if constexpr (acquires(order)) __threadfence();                                       \
    return old;                                                                           \
  }
TL_ORDERED(add)
TL_ORDERED(max)
TL_ORDERED(min)
TL_ORDERED(and)
TL_ORDERED(or)
TL_ORDERED(xor)
TL_ORDERED(exch)
#undef TL_ORDERED

// Compares bits: floats are equal when all of theirs are.
template <memory_order order = memory_order::relaxed, class T, class V>
TL_DEVICE T atomic_cas(T* place, V compare, V value) {
  if constexpr (releases(order)) __threadfence();
  T old;
  if constexpr (sizeof(T) == 4) {
    old = bit_cast<T>(::atomicCAS(reinterpret_cast<uint32*>(place),
                                  bit_cast<uint32>(cast<T>(compare)), bit_cast<uint32>(cast<T>(value))));
  } else if constexpr (sizeof(T) == 8) {
    old = bit_cast<T>(::atomicCAS(reinterpret_cast<uint64*>(place),
                                  bit_cast<uint64>(cast<T>(compare)), bit_cast<uint64>(cast<T>(value))));
  } else {
    using code = typename bits_of<sizeof(T)>::type;
    const code wanted = bit_cast<code>(cast<T>(compare));
    old = atomic_update(place, [=](T seen) {
      return bit_cast<code>(seen) == wanted ? cast<T>(value) : seen;
    });
  }
  if constexpr (acquires(order)) __threadfence();
  return old;
}

template <memory_order order = memory_order::seq_cst, class T>
TL_DEVICE T atomic_load(const T* place) {
  using code = typename bits_of<sizeof(T)>::type;
  if constexpr (order == memory_order::seq_cst) __threadfence();
  const T out = bit_cast<T>(code(*reinterpret_cast<const volatile code*>(place)));
  if constexpr (acquires(order)) __threadfence();
  return out;
}
template <memory_order order = memory_order::seq_cst, class T, class V>
TL_DEVICE void atomic_store(T* place, V value) {
  using code = typename bits_of<sizeof(T)>::type;
  if constexpr (releases(order)) __threadfence();
  *reinterpret_cast<volatile code*>(place) = bit_cast<code>(cast<T>(value));
  if constexpr (order == memory_order::seq_cst) __threadfence();
}

// Neighbours: each element is atomic by itself. Pairs of 16-bit floats take one instruction where
// their address allows it; so do float2 and float4 in global memory from sm_90 on.
template <class T> TL_DEVICE vec<T, 2> add_pair(T* place, vec<T, 2> value) {
  if constexpr (is_half<T>::value) {
    if (reinterpret_cast<uint64>(place) % 4 == 0) {
      using two = typename pairs<T>::type;
      return bit_cast<vec<T, 2>>(::atomicAdd(reinterpret_cast<two*>(place), bit_cast<two>(value)));
    }
  }
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (is_same<T, float>::value) {
    if (reinterpret_cast<uint64>(place) % 8 == 0 && __isGlobal(place))
      return bit_cast<vec<T, 2>>(
          ::atomicAdd(reinterpret_cast<float2*>(place), bit_cast<float2>(value)));
  }
#endif
  return {relaxed_add(place, value[0]), relaxed_add(place + 1, value[1])};
}
template <class T> TL_DEVICE vec<T, 2> atomic_addx2(T* place, vec<T, 2> value) {
  return add_pair(place, value);
}
template <class T> TL_DEVICE vec<T, 4> atomic_addx4(T* place, vec<T, 4> value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (is_same<T, float>::value) {
    if (reinterpret_cast<uint64>(place) % 16 == 0 && __isGlobal(place))
      return bit_cast<vec<T, 4>>(
          ::atomicAdd(reinterpret_cast<float4*>(place), bit_cast<float4>(value)));
  }
#endif
  const vec<T, 2> low = add_pair(place, vec<T, 2>{value[0], value[1]});
  const vec<T, 2> high = add_pair(place + 2, vec<T, 2>{value[2], value[3]});
  return {low[0], low[1], high[0], high[1]};
}

}  // namespace tl
