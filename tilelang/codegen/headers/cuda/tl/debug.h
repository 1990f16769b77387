// Printing and assertions.
#pragma once
#include <tl/common.h>

#ifndef __CUDACC_RTC__  // NVRTC knows it
extern "C" __device__ void __assertfail(const char* message, const char* file, unsigned int line,
                                        const char* function, size_t char_size);
#endif

namespace tl {

template <class T> TL_DEVICE void print_number(T x) {
  if constexpr (small_float<T>::value) printf("%g", double(small_float<T>::widen(x)));
  else if constexpr (is_same<T, float>::value || is_same<T, double>::value) printf("%g", double(x));
  else if constexpr (T(-1) < T(0)) printf("%lld", int64(x));
  else printf("%llu", uint64(x));
}

TL_DEVICE void print(const char* message) { printf("%s\n", message); }

// One call to printf, so that the lines of different threads do not mix.
template <class T> TL_DEVICE void print(const char* message, T x) {
  const char* space = message[0] == 0 ? "" : " ";
  if constexpr (small_float<T>::value)
    printf("%s%s%g\n", message, space, double(small_float<T>::widen(x)));
  else if constexpr (is_same<T, float>::value || is_same<T, double>::value)
    printf("%s%s%g\n", message, space, double(x));
  else if constexpr (T(-1) < T(0)) printf("%s%s%lld\n", message, space, int64(x));
  else printf("%s%s%llu\n", message, space, uint64(x));
}

template <class T>
TL_DEVICE void print_buffer(const char* message, const char* name, const T* first, int count) {
  if (thread_number() != 0) return;
  for (int i = 0; i < count; ++i) {
    printf("%s%s%s[%d] = ", message, message[0] == 0 ? "" : " ", name, i);
    print_number(first[i]);
    printf("\n");
  }
}

// What `assert` calls: the driver prints place, thread and text, and gives the launch an error of its
// own, which a trap would not.
TL_DEVICE void device_assert(bool condition, const char* message, const char* file, int line) {
  if (!condition) __assertfail(message, file, unsigned(line), "T.device_assert", 1);
}

}  // namespace tl
