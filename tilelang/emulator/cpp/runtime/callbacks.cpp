// In checked mode kernels are compiled with -fsanitize=thread, which makes compilers call a
// function before each access of memory that might be shared. These are those functions: not a line
// of the sanitizer's own library is involved.
#include <string.h>

#include "block.h"
#include "check.h"
#include "fiber.h"
#include "locals.h"
#include "traffic.h"

namespace {

using namespace tl::emulator;

// `aligned`: the compiler relied on the alignment, so the instruction does too.
inline void seen(const void* place, size_t bytes, Access access, void* code, bool aligned) {
  const Fiber* fiber = block.running;
  if (fiber == nullptr) return;
  const auto* byte = static_cast<const char*>(place);
  const Site site = Site::at_code(reinterpret_cast<uintptr_t>(code));
  if (size_t(byte - fiber->stack) < stack_bytes)
    return touch_local(*fiber, place, bytes, is_write(access), site);
  // threadIdx and its like.
  if (place == &current || size_t(byte - reinterpret_cast<const char*>(fiber)) < sizeof(Fiber))
    return;
  if (aligned && (reinterpret_cast<uintptr_t>(place) & (bytes - 1)) != 0)
    report_misaligned(*fiber, place, bytes, access, site, bytes);
  touch(*fiber, place, bytes, access, site);
  count_access(*fiber, place, bytes, access, site);
}

}  // namespace

#define TL_CALLBACKS(n)                                             \
  extern "C" void __tsan_read##n(void* p) {                         \
    seen(p, n, Access::read, __builtin_return_address(0), true);    \
  }                                                                 \
  extern "C" void __tsan_write##n(void* p) {                        \
    seen(p, n, Access::write, __builtin_return_address(0), true);   \
  }                                                                 \
  extern "C" void __tsan_unaligned_read##n(void* p) {               \
    seen(p, n, Access::read, __builtin_return_address(0), false);   \
  }                                                                 \
  extern "C" void __tsan_unaligned_write##n(void* p) {              \
    seen(p, n, Access::write, __builtin_return_address(0), false);  \
  }                                                                 \
  extern "C" void __tsan_volatile_read##n(void* p) {                \
    seen(p, n, Access::atomic_read, __builtin_return_address(0), true);  \
  }                                                                 \
  extern "C" void __tsan_volatile_write##n(void* p) {               \
    seen(p, n, Access::atomic, __builtin_return_address(0), true);  \
  }                                                                 \
  extern "C" void __tsan_unaligned_volatile_read##n(void* p) {      \
    seen(p, n, Access::atomic_read, __builtin_return_address(0), false); \
  }                                                                 \
  extern "C" void __tsan_unaligned_volatile_write##n(void* p) {     \
    seen(p, n, Access::atomic, __builtin_return_address(0), false); \
  }
TL_CALLBACKS(1)
TL_CALLBACKS(2)
TL_CALLBACKS(4)
TL_CALLBACKS(8)
TL_CALLBACKS(16)

extern "C" void __tsan_read_range(void* p, size_t n) {
  seen(p, n, Access::read, __builtin_return_address(0), false);
}
extern "C" void __tsan_write_range(void* p, size_t n) {
  seen(p, n, Access::write, __builtin_return_address(0), false);
}
// clang asks for these in place of what they do.
extern "C" void* __tsan_memcpy(void* to, const void* from, size_t n) {
  seen(from, n, Access::read, __builtin_return_address(0), false);
  seen(to, n, Access::write, __builtin_return_address(0), false);
  return memcpy(to, from, n);
}
extern "C" void* __tsan_memmove(void* to, const void* from, size_t n) {
  seen(from, n, Access::read, __builtin_return_address(0), false);
  seen(to, n, Access::write, __builtin_return_address(0), false);
  return memmove(to, from, n);
}
extern "C" void* __tsan_memset(void* to, int value, size_t n) {
  seen(to, n, Access::write, __builtin_return_address(0), false);
  return memset(to, value, n);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void*) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_vptr_update(void**, void*) {}
extern "C" void __tsan_vptr_read(void**) {}
