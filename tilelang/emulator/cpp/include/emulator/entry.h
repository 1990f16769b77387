// Included behind a kernel: how the runtime calls it.
#pragma once

extern "C" {
// The linker knows where a section begins and ends; there is none where nothing is static.
extern unsigned char __start_tl_shared[] __attribute__((weak, visibility("hidden")));
extern unsigned char __stop_tl_shared[] __attribute__((weak, visibility("hidden")));
void tl_static_shared(unsigned char** start, unsigned char** end) {
  *start = __start_tl_shared;
  *end = __stop_tl_shared;
}
}

namespace tl::emulator {

template <int... numbers>
struct Numbers {};
template <int count, int... numbers>
struct Counted : Counted<count - 1, count - 1, numbers...> {};
template <int... numbers>
struct Counted<0, numbers...> {
  using type = Numbers<numbers...>;
};
template <class T>
struct Value {
  using type = T;
};
template <class T>
struct Value<const T> {
  using type = T;
};

template <class... P, int... i>
__attribute__((no_sanitize("thread"))) static inline void enter(void (*kernel)(P...),
                                                                void* const* arguments,
                                                                Numbers<i...>) {
  kernel(*static_cast<typename Value<P>::type*>(arguments[i])...);
}
template <class... P>
__attribute__((no_sanitize("thread"))) static inline void enter(void (*kernel)(P...),
                                                                void* const* arguments) {
  enter(kernel, arguments, typename Counted<sizeof...(P)>::type());
}

}  // namespace tl::emulator

#define TL_ENTER(symbol)                                                    \
  extern "C" __attribute__((no_sanitize("thread"))) void tl_enter_##symbol( \
      void* const* arguments) {                                             \
    tl::emulator::enter(symbol, arguments);                                 \
  }
