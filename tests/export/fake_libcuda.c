/* A libcuda that remembers what it was asked, for a process without a GPU.
 *
 * A test loads it first: its name makes it the one that `dlopen("libcuda.so.1")` finds. What
 * happened is one line of text per event, fetched by `fake_log`.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static struct { int major, minor, shared; } devices[16];
static int device_count, stack[64], depth, version = 13000;
static char formats[64], events[1 << 16], failing[64];
static size_t used;
static int failure;

static void say(const char *form, ...) {
  va_list rest;
  va_start(rest, form);
  used += (size_t)vsnprintf(events + used, sizeof events - used, form, rest);
  va_end(rest);
}

void fake_device(int major, int minor, int shared) {
  devices[device_count].major = major;
  devices[device_count].minor = minor;
  devices[device_count++].shared = shared;
}
void fake_formats(const char *text) { snprintf(formats, sizeof formats, "%s", text); }
void fake_version(int number) { version = number; }
void fake_current(int device) { depth = device < 0 ? 0 : 1; stack[0] = device; }
int fake_depth(void) { return depth; }
/* The next call of `name` gives `result`. */
void fake_fail(const char *name, int result) { snprintf(failing, sizeof failing, "%s", name); failure = result; }
const char *fake_log(void) { return events; }
void fake_clear(void) { used = 0; events[0] = '\0'; }

static int fails(const char *name) {
  if (failure == 0 || strcmp(name, failing) != 0) return 0;
  int result = failure;
  failure = 0;
  return result;
}
#define MAY_FAIL                                                                                   \
  do {                                                                                             \
    int result = fails(__func__);                                                                  \
    if (result != 0) return result;                                                                \
  } while (0)

int cuInit(unsigned flags) { (void)flags; MAY_FAIL; return 0; }
int cuDriverGetVersion(int *out) { *out = version; return 0; }
int cuDeviceGetCount(int *out) { MAY_FAIL; *out = device_count; return 0; }
int cuDeviceGetName(char *out, int size, int index) { snprintf(out, (size_t)size, "Test GPU %d", index); return 0; }
int cuDeviceGetAttribute(int *out, int which, int index) {
  *out = which == 75 ? devices[index].major : which == 76 ? devices[index].minor
         : which == 97 ? devices[index].shared : 0;
  return 0;
}
int cuGetErrorName(int result, const char **out) {
  *out = result == 1 ? "CUDA_ERROR_INVALID_VALUE" : result == 200 ? "CUDA_ERROR_INVALID_IMAGE"
         : result == 700 ? "CUDA_ERROR_ILLEGAL_ADDRESS" : result == 720 ? "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"
         : result == 710 ? "CUDA_ERROR_ASSERT" : NULL;
  return 0;
}
int cuGetErrorString(int result, const char **out) { (void)result; *out = "what it means"; return 0; }
int cuDevicePrimaryCtxRetain(void **out, int index) { MAY_FAIL; *out = (void *)(intptr_t)(0x90 + index); return 0; }
int cuCtxPushCurrent_v2(void *context) { stack[depth++] = (int)(intptr_t)context - 0x90; return 0; }
int cuCtxPopCurrent_v2(void **out) { *out = (void *)(intptr_t)(stack[--depth] + 0x90); return 0; }
int cuCtxGetDevice(int *out) { if (depth == 0) return 201; *out = stack[depth - 1]; return 0; }
int cuThreadExchangeStreamCaptureMode(int *mode) { static int held; int old = held; held = *mode; *mode = old; return 0; }

int cuLibraryLoadData(void **out, const void *code, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  MAY_FAIL;
  const unsigned char *elf = code;
  uint64_t segments, sections, end;
  uint16_t counts[4]; /* size and number of segments, of sections */
  memcpy(&segments, elf + 0x20, 8);
  memcpy(&sections, elf + 0x28, 8);
  memcpy(counts, elf + 0x36, 8);
  end = sections + (uint64_t)counts[2] * counts[3];
  segments += (uint64_t)counts[0] * counts[1];
  say("load %llu\n", (unsigned long long)(segments > end ? segments : end));
  *out = (void *)code;
  return 0;
}
static char symbols[64][64];
static int symbol_count;
int cuLibraryGetKernel(void **out, void *library, const char *symbol) {
  (void)library;
  MAY_FAIL;
  snprintf(symbols[symbol_count], 64, "%s", symbol);
  *out = symbols[symbol_count++];
  return 0;
}
int cuKernelGetFunction(void **out, void *kernel) { *out = kernel; return 0; }
int cuFuncSetAttribute(void *function, int which, int value) {
  MAY_FAIL;
  say("attribute %s %d %d\n", (const char *)function, which, value);
  return 0;
}
int cuTensorMapEncodeTiled(void *out, int kind, unsigned rank, void *address, const uint64_t *shape,
                           const uint64_t *strides, const unsigned *box, const unsigned *steps,
                           int interleave, int swizzle, int promotion, int fill) {
  (void)steps;
  MAY_FAIL;
  if ((uintptr_t)out % 64 != 0) return 1;
  for (unsigned i = 0; i < rank; ++i)
    if (shape[i] == 0) return 1; /* as a driver on an H200 says */
  say("map type=%d address=%llu shape=", kind, (unsigned long long)(uintptr_t)address);
  for (unsigned i = 0; i < rank; ++i) say("%llu,", (unsigned long long)shape[i]);
  say(" strides=");
  for (unsigned i = 0; i + 1 < rank; ++i) say("%llu,", (unsigned long long)strides[i]);
  say(" box=");
  for (unsigned i = 0; i < rank; ++i) say("%u,", box[i]);
  say(" interleave=%d swizzle=%d promotion=%d fill=%d\n", interleave, swizzle, promotion, fill);
  memset(out, 0x5a, 128);
  return 0;
}

typedef struct { int id, pad; union { int flag; unsigned dim[3]; char bytes[64]; } value; } attribute;
typedef struct { unsigned grid[3], block[3], shared; void *stream; attribute *attributes; unsigned count; } config;

/* Of each parameter what its letter of `formats` says: p pointer, i int32, q int64, h 16 bits,
 * b byte, f float, d double, m the first byte of a tensor map. */
int cuLaunchKernelEx(const config *c, void *function, void **params, void **extra) {
  (void)extra;
  MAY_FAIL;
  say("launch %s grid=%u,%u,%u block=%u,%u,%u shared=%u stream=%llu context=%d", (char *)function,
      c->grid[0], c->grid[1], c->grid[2], c->block[0], c->block[1], c->block[2], c->shared,
      (unsigned long long)(uintptr_t)c->stream, depth ? stack[depth - 1] : -1);
  for (unsigned i = 0; i < c->count; ++i)
    say(" attribute=%d,%u,%u,%u", c->attributes[i].id, c->attributes[i].value.dim[0],
        c->attributes[i].value.dim[1], c->attributes[i].value.dim[2]);
  say(" params=");
  for (size_t i = 0; formats[i] != '\0'; ++i) {
    switch (formats[i]) {
      case 'p': say("%llu;", (unsigned long long)(uintptr_t)*(void **)params[i]); break;
      case 'i': say("%d;", *(int32_t *)params[i]); break;
      case 'q': say("%lld;", (long long)*(int64_t *)params[i]); break;
      case 'h': say("%u;", *(uint16_t *)params[i]); break;
      case 'b': say("%u;", *(uint8_t *)params[i]); break;
      case 'f': say("%g;", *(float *)params[i]); break;
      case 'd': say("%.17g;", *(double *)params[i]); break;
      default: say("%u;", *(unsigned char *)params[i]);
    }
  }
  say("\n");
  return 0;
}
