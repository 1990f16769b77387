/* How is an exported kernel loaded on a GPU and launched?
 *
 * Through `libcuda`, found at run time: nothing of CUDA is needed to build this file or to load
 * what it becomes. Code is loaded at the first call on a device. Kernels go to the stream that
 * tvm-ffi, and so PyTorch, works on.
 */

TL_OLD(dlopen)
TL_OLD(dlsym)

enum {
  TL_DEVICES = 64,
  /* cuda.h, enum cudaError_enum */
  TL_INVALID_IMAGE = 200, TL_NO_BINARY = 209, TL_UNSUPPORTED_PTX = 222,
  TL_ASSERT = 710, TL_COOPERATIVE_TOO_LARGE = 720,
  /* enum CUdevice_attribute, CUfunction_attribute, CUlaunchAttributeID */
  TL_MAJOR = 75, TL_MINOR = 76, TL_SHARED_OPT_IN = 97,
  TL_MAX_DYNAMIC_SHARED = 8,
  TL_COOPERATIVE = 2, TL_CLUSTER = 4,
};

/* struct CUlaunchAttribute and CUlaunchConfig */
typedef struct {
  int id, pad;
  union { int flag; unsigned dim[3]; char bytes[64]; } value;
} tl_attribute;

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  const tl_attribute *attributes;
  unsigned count;
} tl_config;

/* One kernel of a binary. */
typedef struct {
  const char *symbol;
  int static_shared, dynamic_shared, threads;
} tl_kernel;

/* Machine code for one architecture, with what was loaded of it. */
typedef struct {
  const char *arch; /* sm_90a */
  int major, minor;
  char suffix;
  const unsigned char *code;
  int count;
  const tl_kernel *kernels;
  void *library;
  void *(*functions)[TL_DEVICES]; /* [kernel][device] */
} tl_binary;

/* All of one function. `chosen[d]` is 1 + the index of the binary for device d, once loaded. */
typedef struct {
  const char *name, *archs;
  int count;
  tl_binary *binaries;
  int chosen[TL_DEVICES];
} tl_program;

#define TL_DRIVER_FUNCTIONS(X)                                                                     \
  X(cuInit, (unsigned)) X(cuDriverGetVersion, (int *)) X(cuDeviceGetCount, (int *))                \
  X(cuDeviceGetAttribute, (int *, int, int)) X(cuDeviceGetName, (char *, int, int))                \
  X(cuGetErrorName, (int, const char **)) X(cuGetErrorString, (int, const char **))                \
  X(cuDevicePrimaryCtxRetain, (void **, int)) X(cuCtxGetDevice, (int *))                           \
  X(cuCtxPushCurrent_v2, (void *)) X(cuCtxPopCurrent_v2, (void **))                                \
  X(cuThreadExchangeStreamCaptureMode, (int *))                                                    \
  X(cuLibraryLoadData, (void **, const void *, void *, void *, unsigned, void *, void *, unsigned))\
  X(cuLibraryGetKernel, (void **, void *, const char *)) X(cuKernelGetFunction, (void **, void *)) \
  X(cuFuncSetAttribute, (void *, int, int))                                                        \
  X(cuLaunchKernelEx, (const tl_config *, void *, void **, void **))                               \
  X(cuTensorMapEncodeTiled, (void *, int, unsigned, void *, const uint64_t *, const uint64_t *,    \
                             const unsigned *, const unsigned *, int, int, int, int))

typedef struct {
  char name[128];
  int major, minor, shared;
  void *context;
} tl_device;

static struct {
#define TL_POINTER(name, args) int(*name) args;
  TL_DRIVER_FUNCTIONS(TL_POINTER)
#undef TL_POINTER
  int version, count, ready;
  tl_device devices[TL_DEVICES];
} tl_cuda;

static pthread_mutex_t tl_lock = PTHREAD_MUTEX_INITIALIZER;

TL_COLD static const char *tl_describe(char *out, size_t size, int result) {
  const char *name = NULL, *text = NULL;
  tl_cuda.cuGetErrorName(result, &name);
  tl_cuda.cuGetErrorString(result, &text);
  if (name == NULL)
    snprintf(out, size, "CUDA error %d", result);
  else
    snprintf(out, size, "%s: %s", name, text == NULL ? "" : text);
  return out;
}

TL_COLD static int tl_no_gpu(tl_error *e, const char *f, const char *why) {
  return tl_fail(e, "RuntimeError", "[TL805] `%s` needs an NVIDIA GPU, but %s", f, why);
}

/* Find the driver and its devices; what is missing may be there at the next call. */
TL_COLD static int tl_find_driver(tl_error *e, const char *f) {
  char said[256], why[320];
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return tl_no_gpu(e, f, "the CUDA driver library libcuda.so.1 is not here");
#define TL_LOOK_UP(name, args)                                                                     \
  *(void **)&tl_cuda.name = dlsym(library, #name);                                                 \
  if (tl_cuda.name == NULL && strcmp(#name, "cuTensorMapEncodeTiled") != 0)                        \
    return tl_no_gpu(e, f, "its driver has no " #name ": kernels need one for CUDA 12.0 or later");
  TL_DRIVER_FUNCTIONS(TL_LOOK_UP)
#undef TL_LOOK_UP
  int result = tl_cuda.cuInit(0);
  if (result != 0) {
    snprintf(why, sizeof why, "the CUDA driver cannot start: %s",
             tl_describe(said, sizeof said, result));
    return tl_no_gpu(e, f, why);
  }
  tl_cuda.cuDriverGetVersion(&tl_cuda.version);
  if (tl_cuda.version < 12000) {
    snprintf(why, sizeof why, "the driver is for CUDA %d.%d, and kernels need 12.0 or later",
             tl_cuda.version / 1000, tl_cuda.version % 1000 / 10);
    return tl_no_gpu(e, f, why);
  }
  result = tl_cuda.cuDeviceGetCount(&tl_cuda.count);
  if (result != 0 || tl_cuda.count == 0)
    return tl_no_gpu(e, f, "the CUDA driver sees no device");
  if (tl_cuda.count > TL_DEVICES) tl_cuda.count = TL_DEVICES;
  for (int i = 0; i < tl_cuda.count; ++i) {
    tl_device *d = &tl_cuda.devices[i];
    tl_cuda.cuDeviceGetName(d->name, sizeof d->name, i);
    tl_cuda.cuDeviceGetAttribute(&d->major, TL_MAJOR, i);
    tl_cuda.cuDeviceGetAttribute(&d->minor, TL_MINOR, i);
    tl_cuda.cuDeviceGetAttribute(&d->shared, TL_SHARED_OPT_IN, i);
  }
  tl_cuda.ready = 1;
  return 0;
}

/* CUDA programming guide, binary compatibility: code for X.y runs on X.z with z >= y, that of the
 * `a` spelling on X.y alone, that of the `f` spelling within its family, so far the major number. */
static int tl_runs_on(const tl_binary *b, const tl_device *d) {
  if (b->suffix == 'a') return b->major == d->major && b->minor == d->minor;
  return b->major == d->major && b->minor <= d->minor;
}

static int tl_specificity(const tl_binary *b) {
  return b->minor * 4 + (b->suffix == 'a' ? 2 : b->suffix == 'f');
}

TL_COLD static int tl_wrong_arch(tl_error *e, const tl_program *p, int device) {
  const tl_device *d = &tl_cuda.devices[device];
  return tl_fail(e, "RuntimeError", "[TL416] `%s` was compiled for %s; cuda:%d, %s, is sm_%d%d: "
                 "compile it with target='cuda:sm_%d%d%s'", p->name, p->archs, device, d->name,
                 d->major, d->minor, d->major, d->minor, d->major >= 9 ? "a" : "");
}

TL_COLD static int tl_cannot_load(tl_error *e, const tl_program *p, const tl_binary *b, int device,
                                  int result) {
  char said[256];
  tl_describe(said, sizeof said, result);
  if (result == TL_INVALID_IMAGE || result == TL_NO_BINARY || result == TL_UNSUPPORTED_PTX)
    return tl_fail(e, "RuntimeError", "[TL416] the driver, which is for CUDA %d.%d, does not take "
                   "the binary of `%s` for %s (%s): update the driver, or compile with an NVRTC no "
                   "newer than the driver", tl_cuda.version / 1000, tl_cuda.version % 1000 / 10,
                   p->name, b->arch, said);
  return tl_fail(e, "RuntimeError", "[TL812] `%s` cannot be loaded on cuda:%d (%s): if an earlier "
                 "kernel failed in this process, start a new one", p->name, device, said);
}

static int tl_load(tl_error *e, tl_program *p, tl_binary *b, int device) {
  int relaxed = 2, result = 0; /* loading must not break a stream capture that is going on */
  tl_device *d = &tl_cuda.devices[device];
  for (int k = 0; k < b->count; ++k) {
    int total = b->kernels[k].static_shared + b->kernels[k].dynamic_shared;
    if (total > d->shared)
      return tl_fail(e, "ValueError", "[TL406] a block of `%s` needs %d bytes of shared memory; %s "
                     "(sm_%d%d) has %d", p->name, total, d->name, d->major, d->minor, d->shared);
  }
  if (d->context == NULL) result = tl_cuda.cuDevicePrimaryCtxRetain(&d->context, device);
  if (result == 0) result = tl_cuda.cuCtxPushCurrent_v2(d->context);
  if (result != 0) return tl_cannot_load(e, p, b, device, result);
  tl_cuda.cuThreadExchangeStreamCaptureMode(&relaxed);
  if (b->library == NULL)
    result = tl_cuda.cuLibraryLoadData(&b->library, b->code, NULL, NULL, 0, NULL, NULL, 0);
  for (int k = 0; k < b->count && result == 0; ++k) {
    void *kernel = NULL, *function = NULL;
    result = tl_cuda.cuLibraryGetKernel(&kernel, b->library, b->kernels[k].symbol);
    if (result == 0) result = tl_cuda.cuKernelGetFunction(&function, kernel);
    /* Up to 48 KiB need no asking, static memory included in whole KiB: CUDA programming guide,
       dynamic shared memory. */
    int whole = (b->kernels[k].static_shared + 1023) / 1024 * 1024;
    if (result == 0 && whole + b->kernels[k].dynamic_shared > 48 * 1024)
      result = tl_cuda.cuFuncSetAttribute(function, TL_MAX_DYNAMIC_SHARED,
                                          b->kernels[k].dynamic_shared);
    b->functions[k][device] = function;
  }
  tl_cuda.cuThreadExchangeStreamCaptureMode(&relaxed);
  void *popped;
  tl_cuda.cuCtxPopCurrent_v2(&popped);
  return result == 0 ? 0 : tl_cannot_load(e, p, b, device, result);
}

TL_COLD static int tl_prepare_locked(tl_error *e, tl_program *p, int device) {
  if (!tl_cuda.ready && tl_find_driver(e, p->name)) return -1;
  if (device < 0 || device >= tl_cuda.count)
    return tl_fail(e, "RuntimeError", "[TL805] `%s` is to run on cuda:%d, but the driver sees %d "
                   "device(s): look at CUDA_VISIBLE_DEVICES", p->name, device, tl_cuda.count);
  int best = -1;
  for (int i = 0; i < p->count; ++i)
    if (tl_runs_on(&p->binaries[i], &tl_cuda.devices[device]) &&
        (best < 0 || tl_specificity(&p->binaries[i]) > tl_specificity(&p->binaries[best])))
      best = i;
  if (best < 0) return tl_wrong_arch(e, p, device);
  if (p->chosen[device] == 0) {
    if (tl_load(e, p, &p->binaries[best], device)) return -1;
    __atomic_store_n(&p->chosen[device], best + 1, __ATOMIC_RELEASE);
  }
  return best;
}

/* Which binary runs on `device`, loaded; -1 if none does. */
static inline int tl_prepare(tl_error *e, tl_program *p, int device) {
  if ((unsigned)device < TL_DEVICES) {
    int chosen = __atomic_load_n(&p->chosen[device], __ATOMIC_ACQUIRE);
    if (chosen != 0) return chosen - 1;
  }
  pthread_mutex_lock(&tl_lock);
  int found = tl_prepare_locked(e, p, device);
  pthread_mutex_unlock(&tl_lock);
  return found;
}

/* Make the context of `device` current, that of PyTorch; whether it has to be taken back. */
static inline int tl_enter(int device) {
  int current = -1;
  if (tl_cuda.cuCtxGetDevice(&current) == 0 && current == device) return 0;
  return tl_cuda.cuCtxPushCurrent_v2(tl_cuda.devices[device].context) == 0;
}

static inline void tl_leave(int entered) {
  void *popped;
  if (entered) tl_cuda.cuCtxPopCurrent_v2(&popped);
}

TL_COLD static int tl_launch_failed(tl_error *e, const tl_program *p, const tl_kernel *k,
                                    int device, const int64_t *grid, int result) {
  char said[256];
  tl_describe(said, sizeof said, result);
  switch (result) {
    case 700: case 702: case 714: case 715: case 716: case 717: case 718: case 719:
      return tl_fail(e, "RuntimeError", "[TL812] a kernel failed while it ran, noticed at `%s`: "
                     "%s. The CUDA context is lost, start a new process; `compute-sanitizer python "
                     "FILE` finds the place", p->name, said);
    case TL_ASSERT:
      return tl_fail(e, "RuntimeError", "[TL722] an assertion failed on the device, noticed at `%s` "
                     "(%s). The CUDA context is lost: start a new process", p->name, said);
    case TL_COOPERATIVE_TOO_LARGE:
      return tl_fail(e, "RuntimeError", "[TL812] launching `%s` on cuda:%d failed: %lld blocks have "
                     "to run at once for T.sync_grid, and fewer fit (%s)", p->name, device,
                     (long long)(grid[0] * grid[1] * grid[2]), said);
    default:
      return tl_fail(e, "RuntimeError", "[TL812] launching `%s` on cuda:%d failed (grid (%lld, "
                     "%lld, %lld), %d threads, %d bytes of dynamic shared memory): %s", p->name,
                     device, (long long)grid[0], (long long)grid[1], (long long)grid[2],
                     k->threads, k->dynamic_shared, said);
  }
}

/* Queue one kernel. An empty grid launches nothing. */
static inline int tl_launch(tl_error *e, const tl_program *p, const tl_binary *b, int number,
                            int device, const int64_t *grid, tl_config *config, void **params) {
  static const int64_t limits[3] = {2147483647, 65535, 65535};
  for (int i = 0; i < 3; ++i) {
    if (grid[i] <= 0) return 0;
    if (TL_RARE(grid[i] > limits[i]))
      return tl_fail(e, "ValueError", "[TL414] %lld blocks along %c of `%s`; a GPU takes at most "
                     "%lld", (long long)grid[i], "xyz"[i], p->name, (long long)limits[i]);
    config->grid[i] = (unsigned)grid[i];
  }
  int result = tl_cuda.cuLaunchKernelEx(config, b->functions[number][device], params, NULL);
  if (TL_RARE(result != 0))
    return tl_launch_failed(e, p, &b->kernels[number], device, grid, result);
  return 0;
}

/* Memory on the device for one call, from the allocator of the framework that made the tensors. */
TL_UNUSED static int tl_workspace(tl_error *e, const char *f, int device, int64_t bytes,
                                  TVMFFIObjectHandle *owner, void **address) {
  int64_t shape[1] = {bytes > 0 ? bytes : 1}, strides[1] = {1};
  DLTensor wanted = {NULL, {kDLCUDA, device}, 1, {kDLUInt, 8, 1}, shape, strides, 0};
  if (TVMFFIEnvGetDLPackManagedTensorAllocator() == NULL)
    return tl_fail(e, "RuntimeError", "[TL808] `%s` needs %lld bytes of its own on the device: pass "
                   "PyTorch tensors, whose allocator gives them", f, (long long)bytes);
  if (TVMFFIEnvTensorAlloc(&wanted, owner) != 0) return -2; /* the error is raised already */
  *address = tl_address((const DLTensor *)((const char *)*owner + sizeof(TVMFFIObject)));
  return 0;
}

/* A TMA descriptor. Encoding one takes a microsecond or two. */
TL_UNUSED static int tl_encode(tl_error *e, const char *f, const char *name, void *map, int type,
                               int rank, void *address, const uint64_t *shape,
                               const uint64_t *strides, const unsigned *box, int swizzle,
                               int promotion) {
  static const unsigned steps[5] = {1, 1, 1, 1, 1};
  uint64_t known[5]; /* the driver knows no empty tensors; of one that is, nothing is read */
  for (int d = 0; d < rank; ++d) {
    known[d] = shape[d] == 0 ? 1 : shape[d];
    if (shape[d] == 0) address = NULL;
  }
  if (tl_cuda.cuTensorMapEncodeTiled == NULL)
    return tl_fail(e, "RuntimeError", "[TL805] `%s` reads `%s` by TMA, which this driver does not "
                   "know", f, name);
  int result = tl_cuda.cuTensorMapEncodeTiled(map, type, (unsigned)rank, address, known, strides,
                                              box, steps, 0, swizzle, promotion, 0);
  if (TL_RARE(result != 0))
    return tl_fail(e, "ValueError", "[TL706] argument `%s` of `%s` cannot be read by TMA: its "
                   "address and its row strides have to be multiples of 16 bytes; pass a contiguous "
                   "%s", name, f, name);
  return 0;
}
