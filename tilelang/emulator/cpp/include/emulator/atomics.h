// CUDA's atomic functions. Blocks are processes that share memory, so they are atomic indeed.
#pragma once

#define TL_ATOMIC_ARGUMENTS(T) T *place, T value, TL_HERE
// Compare and swap until nothing came between, for whatever `change` makes of the old value.
template <class T, class Word, class F>
__attribute__((no_sanitize("thread"))) static inline T tl_update(T* place, F change) {
  Word* word = reinterpret_cast<Word*>(place);
  Word seen = __atomic_load_n(word, __ATOMIC_RELAXED), made;
  do {
    made = tl_same_bits<Word>(change(tl_same_bits<T>(seen)));
  } while (
      !__atomic_compare_exchange_n(word, &seen, made, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return tl_same_bits<T>(seen);
}
template <class T, class Word, class F>
static inline T tl_atomic(T* place, int line, F change) {
  tl::emulator::touch_atomic(place, sizeof(T), line);
  return tl_update<T, Word>(place, change);
}
#define TL_ATOMIC(name, T, Word, expression)                                                   \
  static inline T name(TL_ATOMIC_ARGUMENTS(T)) {                                               \
    return tl_atomic<T, Word>(place, line, [=](T old) { return static_cast<T>(expression); }); \
  }
// Those that leave the bits they are not about: all but what `changed` has.
#define TL_ATOMIC_BITS(name, T, Word, expression, changed)                              \
  static inline T name(TL_ATOMIC_ARGUMENTS(T)) {                                        \
    const Word bits = static_cast<Word>(changed);                                        \
    tl::emulator::touch_exchange(place, sizeof(T), &bits, line);                        \
    return tl_update<T, Word>(place, [=](T old) { return static_cast<T>(expression); }); \
  }
#define TL_ATOMICS_OF_INTEGER(T, Word)                     \
  TL_ATOMIC(atomicAdd, T, Word, old + value)               \
  TL_ATOMIC(atomicMax, T, Word, old > value ? old : value) \
  TL_ATOMIC(atomicMin, T, Word, old < value ? old : value) \
  TL_ATOMIC_BITS(atomicAnd, T, Word, old& value, ~value)   \
  TL_ATOMIC_BITS(atomicOr, T, Word, old | value, value)    \
  TL_ATOMIC_BITS(atomicXor, T, Word, old ^ value, value)   \
  TL_ATOMIC_BITS(atomicExch, T, Word, value, -1)
TL_ATOMICS_OF_INTEGER(int, unsigned)
TL_ATOMICS_OF_INTEGER(unsigned, unsigned)
TL_ATOMICS_OF_INTEGER(long long, unsigned long long)
TL_ATOMICS_OF_INTEGER(unsigned long long, unsigned long long)
TL_ATOMIC(atomicAdd, float, unsigned, old + value)
TL_ATOMIC(atomicAdd, double, unsigned long long, old + value)
TL_ATOMIC_BITS(atomicExch, float, unsigned, value, ~0u)
#undef TL_ATOMICS_OF_INTEGER

// A failed exchange lets others run: it may be a lock that one of them holds.
template <class T>
static inline T tl_atomic_cas(T* place, T compare, T value, int line) {
  const T different = compare ^ value;
  tl::emulator::touch_exchange(place, sizeof(T), &different, line);
  const T old = tl_update<T, T>(place, [=](T seen) { return seen == compare ? value : seen; });
  if (old != compare) tl::emulator::yield(line);
  return old;
}
static inline int atomicCAS(int* place, int compare, int value, TL_HERE) {
  return int(
      tl_atomic_cas(reinterpret_cast<unsigned*>(place), unsigned(compare), unsigned(value), line));
}
static inline unsigned atomicCAS(unsigned* place, unsigned compare, unsigned value, TL_HERE) {
  return tl_atomic_cas(place, compare, value, line);
}
static inline unsigned long long atomicCAS(unsigned long long* place, unsigned long long compare,
                                           unsigned long long value, TL_HERE) {
  return tl_atomic_cas(place, compare, value, line);
}
static inline unsigned short atomicCAS(unsigned short* place, unsigned short compare,
                                       unsigned short value, TL_HERE) {
  return tl_atomic_cas(place, compare, value, line);
}
