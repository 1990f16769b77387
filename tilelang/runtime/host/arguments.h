/* Does a call of an exported kernel fit, and if not, which argument is wrong and how?
 *
 * The first part of every generated host file. Checks stay silent and cheap while arguments fit;
 * what is wrong becomes text only then. A `tl_error` of NULL is for asking without being told.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

/* What was made where glibc is new has to load where it is old: these moved between its libraries
 * in 2.34, and the names they had before still work. */
#if defined(__GLIBC__) && defined(__x86_64__)
#define TL_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5");
#elif defined(__GLIBC__) && defined(__aarch64__)
#define TL_OLD(name) __asm__(".symver " #name "," #name "@GLIBC_2.17");
#else
#define TL_OLD(name)
#endif

#define TL_UNUSED __attribute__((unused))
#define TL_COLD __attribute__((cold, noinline, unused))
#define TL_RARE(x) __builtin_expect(!!(x), 0)

/* --- errors --------------------------------------------------------------------------------- */

typedef struct {
  const char *kind; /* the Python exception */
  char text[1536];
} tl_error;

TL_COLD static int tl_fail(tl_error *e, const char *kind, const char *form, ...) {
  if (e != NULL) {
    va_list rest;
    va_start(rest, form);
    e->kind = kind;
    vsnprintf(e->text, sizeof e->text, form, rest);
    va_end(rest);
  }
  return -1;
}

TL_COLD static int tl_raise(const tl_error *e) {
  TVMFFIErrorSetRaisedFromCStr(e->kind, e->text);
  return -1;
}

/* --- integers, as Python computes them ------------------------------------------------------ */

/* A division by zero gives 0 here: a size that makes no sense is refused by the check it is for. */
TL_UNUSED static int64_t tl_floordiv(int64_t a, int64_t b) {
  if (b == 0) return 0;
  int64_t q = a / b;
  return q - (a % b != 0 && (a < 0) != (b < 0));
}

TL_UNUSED static int64_t tl_floormod(int64_t a, int64_t b) { return a - b * tl_floordiv(a, b); }
TL_UNUSED static int64_t tl_truncdiv(int64_t a, int64_t b) { return b == 0 ? 0 : a / b; }
TL_UNUSED static int64_t tl_truncmod(int64_t a, int64_t b) { return b == 0 ? 0 : a % b; }
TL_UNUSED static int64_t tl_min(int64_t a, int64_t b) { return a < b ? a : b; }
TL_UNUSED static int64_t tl_max(int64_t a, int64_t b) { return a > b ? a : b; }

/* The x for which a dimension that is f0 at 0 and f1 at 1, and affine between, has `size`. */
TL_UNUSED static int64_t tl_solve(int64_t size, int64_t f0, int64_t f1) {
  return f1 == f0 ? 0 : tl_floordiv(size - f0, f1 - f0);
}

/* --- tensors -------------------------------------------------------------------------------- */

enum { TL_CPU, TL_CUDA };

/* One tensor parameter, as it was declared. */
typedef struct {
  const char *name, *dtype, *shape, *strides;
  int ndim, per_item, nullable, place, count;
  DLDataType stored[3]; /* the first `count` are accepted */
} tl_tensor;

static const char *const tl_places[] = {"cpu", "cuda"};

static int tl_is_on(int place, int device_type) {
  return place == TL_CUDA ? device_type == kDLCUDA || device_type == kDLCUDAManaged
                          : device_type == kDLCPU || device_type == kDLCUDAHost;
}

TL_COLD static const char *tl_device_text(char *out, size_t size, DLDevice device) {
  switch ((int)device.device_type) {
    case kDLCPU: snprintf(out, size, "cpu"); break;
    case kDLCUDA: case kDLCUDAManaged: snprintf(out, size, "cuda:%d", device.device_id); break;
    case kDLCUDAHost: snprintf(out, size, "pinned host memory"); break;
    case kDLROCM: snprintf(out, size, "rocm:%d", device.device_id); break;
    case kDLMetal: snprintf(out, size, "metal:%d", device.device_id); break;
    default: snprintf(out, size, "device type %d", (int)device.device_type);
  }
  return out;
}

TL_COLD static const char *tl_type_text(char *out, size_t size, DLDataType type) {
  static const char *const names[] = {
      "int", "uint", "float", "handle", "bfloat", "complex", "bool", "float8_e3m4", "float8_e4m3",
      "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
      "float8_e8m0fnu", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn"};
  const char *name = type.code < sizeof names / sizeof *names ? names[type.code] : "unknown";
  int used = type.code < 6 ? snprintf(out, size, "%s%d", name, type.bits)
                           : snprintf(out, size, "%s", name);
  if (type.lanes > 1 && used > 0 && (size_t)used < size)
    snprintf(out + used, size - (size_t)used, "x%d", type.lanes);
  return out;
}

TL_COLD static const char *tl_tuple_text(char *out, size_t size, const int64_t *row, int count) {
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < count && used < size; ++i)
    used += (size_t)snprintf(out + used, size - used, "%s%lld%s", i ? ", " : "(",
                             (long long)row[i], i + 1 < count ? "" : count == 1 ? ",)" : ")");
  return count ? out : "()";
}

TL_COLD static const char *tl_value_text(char *out, size_t size, const TVMFFIAny *value) {
  switch (value->type_index) {
    case kTVMFFINone: return "None";
    case kTVMFFIInt: snprintf(out, size, "the int %lld", (long long)value->v_int64); return out;
    case kTVMFFIBool: return value->v_int64 ? "the bool True" : "the bool False";
    case kTVMFFIFloat: snprintf(out, size, "the float %g", value->v_float64); return out;
    case kTVMFFIRawStr: case kTVMFFISmallStr: case kTVMFFIStr: return "a string";
    case kTVMFFIDLTensorPtr: case kTVMFFITensor: return "a tensor";
    case kTVMFFIArray: case kTVMFFIList: return "a list";
    case kTVMFFIBigInt: return "an int of more than 64 bits";
    default: return "an object of another kind";
  }
}

TL_UNUSED static int64_t tl_extent(const tl_tensor *p, const DLTensor *t, int axis) {
  return axis == p->ndim - 1 ? t->shape[axis] * p->per_item : t->shape[axis];
}

TL_UNUSED static int64_t tl_stride(const DLTensor *t, int axis) {
  if (t->strides != NULL) return t->strides[axis];
  int64_t stride = 1;
  for (int i = t->ndim - 1; i > axis; --i) stride *= t->shape[i];
  return stride;
}

static int tl_is_contiguous(const DLTensor *t) {
  if (t->strides == NULL) return 1;
  int64_t wanted = 1;
  int fits = 1;
  for (int i = t->ndim - 1; i >= 0; --i) {
    if (t->shape[i] == 0) return 1;
    if (t->shape[i] != 1) {
      fits &= t->strides[i] == wanted;
      wanted *= t->shape[i];
    }
  }
  return fits;
}

static inline void *tl_address(const DLTensor *t) {
  return t == NULL ? NULL : (char *)t->data + t->byte_offset;
}

TL_COLD static int tl_no_tensor(tl_error *e, const char *f, const tl_tensor *p,
                                const TVMFFIAny *value) {
  char got[64];
  if (value->type_index == kTVMFFINone)
    return tl_fail(e, "TypeError", "[TL717] argument `%s` of `%s` is None, expected a tensor: the "
                   "kernel always uses it", p->name, f);
  return tl_fail(e, "TypeError", "[TL709] argument `%s` of `%s` is %s, expected a tensor %s %s",
                 p->name, f, tl_value_text(got, sizeof got, value), p->shape, p->dtype);
}

TL_COLD static int tl_wrong_device(tl_error *e, const char *f, const tl_tensor *p,
                                   const DLTensor *t, const char *leader, int device) {
  char got[64];
  tl_device_text(got, sizeof got, t->device);
  if (!tl_is_on(p->place, t->device.device_type))
    return tl_fail(e, "ValueError", "[TL707] argument `%s` of `%s` is on %s, expected %s", p->name,
                   f, got, tl_places[p->place]);
  return tl_fail(e, "ValueError", "[TL707] argument `%s` of `%s` is on %s, but `%s` is on %s:%d",
                 p->name, f, got, leader, tl_places[p->place], device);
}

TL_COLD static int tl_wrong_dtype(tl_error *e, const char *f, const tl_tensor *p,
                                  const DLTensor *t) {
  char got[64], stored[64], how[96] = "";
  tl_type_text(got, sizeof got, t->dtype);
  tl_type_text(stored, sizeof stored, p->stored[0]);
  if (strcmp(stored, p->dtype) != 0) snprintf(how, sizeof how, " (stored as %s)", stored);
  return tl_fail(e, "TypeError", "[TL702] argument `%s` of `%s` has dtype %s, expected %s%s",
                 p->name, f, got, p->dtype, how);
}

TL_COLD static int tl_wrong_rank(tl_error *e, const char *f, const tl_tensor *p,
                                 const DLTensor *t) {
  char got[256];
  tl_tuple_text(got, sizeof got, t->shape, t->ndim);
  return tl_fail(e, "ValueError", "[TL703] argument `%s` of `%s` has %d dimension%s %s, expected "
                 "%d: %s", p->name, f, t->ndim, t->ndim == 1 ? "" : "s", got, p->ndim, p->shape);
}

TL_COLD static int tl_not_contiguous(tl_error *e, const char *f, const tl_tensor *p,
                                     const DLTensor *t) {
  char strides[256], shape[256];
  return tl_fail(e, "ValueError", "[TL708] argument `%s` of `%s` has strides %s, expected a "
                 "contiguous tensor of shape %s; pass %s.contiguous()", p->name, f,
                 tl_tuple_text(strides, sizeof strides, t->strides, t->ndim),
                 tl_tuple_text(shape, sizeof shape, t->shape, t->ndim), p->name);
}

/* `giver` says which other argument gave the dimension its value; NULL for a fixed size. */
TL_COLD static int tl_wrong_extent(tl_error *e, const char *f, const tl_tensor *p,
                                   const DLTensor *t, int axis, int64_t wanted, const char *dim,
                                   const char *giver) {
  char got[256];
  long long size = (long long)tl_extent(p, t, axis);
  if (giver != NULL)
    return tl_fail(e, "ValueError", "[TL711] dimension %d of argument `%s` of `%s` is %lld, but "
                   "%s is %lld by argument `%s`", axis, p->name, f, size, dim, (long long)wanted,
                   giver);
  return tl_fail(e, "ValueError", "[TL704] argument `%s` of `%s` has shape %s, expected %s: "
                 "dimension %d is %lld, not %lld", p->name, f,
                 tl_tuple_text(got, sizeof got, t->shape, t->ndim), p->shape, axis, size,
                 (long long)wanted);
}

TL_COLD static int tl_wrong_stride(tl_error *e, const char *f, const tl_tensor *p,
                                   const DLTensor *t, int axis, int64_t wanted) {
  char got[256];
  int64_t row[64];
  int count = t->ndim < 64 ? t->ndim : 64;
  for (int i = 0; i < count; ++i) row[i] = tl_stride(t, i);
  return tl_fail(e, "ValueError", "[TL705] argument `%s` of `%s` has strides %s, expected %s: "
                 "stride %d is %lld, not %lld", p->name, f,
                 tl_tuple_text(got, sizeof got, row, count), p->strides, axis,
                 (long long)row[axis], (long long)wanted);
}

TL_COLD static int tl_misaligned(tl_error *e, const char *f, const char *name, const void *at,
                                 int wanted) {
  return tl_fail(e, "ValueError", "[TL706] argument `%s` of `%s` starts at address %p, expected a "
                 "multiple of %d bytes, which its code relies on; pass %s.clone(), which is "
                 "aligned", name, f, at, wanted, name);
}

static inline int tl_same_type(DLDataType a, DLDataType b) {
  return a.code == b.code && a.bits == b.bits && a.lanes == b.lanes;
}

/* The tensor of one argument: its kind, device, dtype and rank are checked here, its sizes by the
 * caller. `*device` is that of the first tensor, called `*leader`; -1 before there is one. */
static inline int tl_take(tl_error *e, const char *f, const tl_tensor *p, const TVMFFIAny *value,
                          const DLTensor **out, int *device, const char **leader) {
  const DLTensor *t;
  if (value->type_index == kTVMFFIDLTensorPtr) {
    t = (const DLTensor *)value->v_ptr;
  } else if (value->type_index == kTVMFFITensor) {
    t = (const DLTensor *)((const char *)value->v_obj + sizeof(TVMFFIObject));
  } else if (value->type_index == kTVMFFINone && p->nullable) {
    *out = NULL;
    return 0;
  } else {
    return tl_no_tensor(e, f, p, value);
  }
  *out = t;
  if (TL_RARE(!tl_is_on(p->place, t->device.device_type)))
    return tl_wrong_device(e, f, p, t, NULL, 0);
  if (*device < 0) {
    *device = t->device.device_id;
    *leader = p->name;
  } else if (TL_RARE(p->place != TL_CPU && t->device.device_id != *device)) {
    return tl_wrong_device(e, f, p, t, *leader, *device);
  }
  int known = 0;
  for (int i = 0; i < p->count; ++i) known |= tl_same_type(t->dtype, p->stored[i]);
  if (TL_RARE(!known)) return tl_wrong_dtype(e, f, p, t);
  if (TL_RARE(t->ndim != p->ndim)) return tl_wrong_rank(e, f, p, t);
  return 0;
}

/* --- scalars -------------------------------------------------------------------------------- */

TL_COLD static int tl_no_scalar(tl_error *e, const char *f, const char *name, const char *dtype,
                                const TVMFFIAny *value) {
  char got[64];
  return tl_fail(e, "TypeError", "[TL718] argument `%s` of `%s` is %s, expected a number of dtype "
                 "%s", name, f, tl_value_text(got, sizeof got, value), dtype);
}

TL_UNUSED static int tl_take_int(tl_error *e, const char *f, const char *name, const char *dtype,
                                 const TVMFFIAny *value, int64_t low, int64_t high, int64_t *out) {
  if (value->type_index != kTVMFFIInt && value->type_index != kTVMFFIBool)
    return tl_no_scalar(e, f, name, dtype, value);
  *out = value->v_int64;
  if (*out < low || *out > high)
    return tl_fail(e, "TypeError", "[TL718] argument `%s` of `%s` is %lld, outside the range of %s "
                   "(%lld to %lld)", name, f, (long long)*out, dtype, (long long)low,
                   (long long)high);
  return 0;
}

TL_UNUSED static int tl_take_float(tl_error *e, const char *f, const char *name, const char *dtype,
                                   const TVMFFIAny *value, double *out) {
  if (value->type_index == kTVMFFIFloat)
    *out = value->v_float64;
  else if (value->type_index == kTVMFFIInt || value->type_index == kTVMFFIBool)
    *out = (double)value->v_int64;
  else
    return tl_no_scalar(e, f, name, dtype, value);
  return 0;
}

/* An address: an int, a pointer, None, or the memory of a tensor. */
TL_UNUSED static int tl_take_pointer(tl_error *e, const char *f, const char *name,
                                     const char *dtype, const TVMFFIAny *value, int64_t *out) {
  switch (value->type_index) {
    case kTVMFFINone: *out = 0; return 0;
    case kTVMFFIInt: *out = value->v_int64; return 0;
    case kTVMFFIOpaquePtr: *out = (int64_t)(intptr_t)value->v_ptr; return 0;
    case kTVMFFIDLTensorPtr: *out = (int64_t)(intptr_t)tl_address(value->v_ptr); return 0;
    case kTVMFFITensor:
      *out = (int64_t)(intptr_t)tl_address(
          (const DLTensor *)((const char *)value->v_obj + sizeof(TVMFFIObject)));
      return 0;
    default: return tl_no_scalar(e, f, name, dtype, value);
  }
}

/* A runtime dimension goes to the kernel in `bits` bits. */
TL_UNUSED static int tl_fits(tl_error *e, const char *f, const char *name, int64_t value,
                             int bits) {
  if (TL_RARE(bits < 64 && (value < -((int64_t)1 << (bits - 1)) ||
                            value >= (int64_t)1 << (bits - 1))))
    return tl_fail(e, "TypeError", "[TL718] %s of `%s` is %lld, which does not fit int%d", name, f,
                   (long long)value, bits);
  return 0;
}

TL_UNUSED static uint16_t tl_to_bfloat16(double number) {
  float value = (float)number;
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  if (value != value) return 0x7fc0;
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/* To nearest, ties to even, from double at once: rounding twice would be off by one. */
TL_UNUSED static uint16_t tl_to_float16(double number) {
  uint64_t bits;
  memcpy(&bits, &number, sizeof bits);
  uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  uint64_t mantissa = bits & 0xfffffffffffffull;
  if (number != number) return (uint16_t)(sign | 0x7e00);
  if (exponent > 15) return (uint16_t)(sign | 0x7c00);
  if (exponent < -25) return sign;
  mantissa |= 1ull << 52;
  int drop = exponent < -14 ? 42 + (-14 - exponent) : 42; /* subnormal: more bits go */
  uint64_t kept = mantissa >> drop, rest = mantissa & ((1ull << drop) - 1), half = 1ull << (drop - 1);
  kept += rest > half || (rest == half && (kept & 1));
  uint64_t base = exponent < -14 ? 0 : (uint64_t)(exponent + 14) << 10;
  return (uint16_t)(sign | (base + kept)); /* a carry moves into the exponent, up to infinity */
}

/* --- the end of a call ---------------------------------------------------------------------- */

TL_COLD static int tl_wrong_count(const char *f, int wanted, int got, const char *listed) {
  tl_error e;
  tl_fail(&e, "TypeError", "[TL701] `%s` takes %d argument%s, got %d; call it as %s", f, wanted,
          wanted == 1 ? "" : "s", got, listed);
  return tl_raise(&e);
}

TL_UNUSED static int tl_none(TVMFFIAny *result) {
  result->type_index = kTVMFFINone;
  result->zero_padding = 0;
  result->v_int64 = 0;
  return 0;
}

TL_UNUSED static int tl_string(TVMFFIAny *result, const char *text) {
  TVMFFIByteArray view = {text, strlen(text)};
  return TVMFFIStringFromByteArray(&view, result);
}
