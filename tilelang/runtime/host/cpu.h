/* How does an exported kernel run on a CPU? Its blocks are drawn from a counter by several threads.
 *
 * Helpers are started once and wait for work. While they are busy with another call, or after a
 * fork, which they do not survive, the caller does all the work itself.
 */
#include <time.h>
#include <unistd.h>
#ifdef __linux__
#include <sched.h>
#endif
#if defined(__x86_64__)
#include <cpuid.h>
#else
#include <sys/auxv.h>
#endif

TL_OLD(pthread_create)
TL_OLD(pthread_detach)
TL_OLD(pthread_mutex_trylock)

/* See `codegen/cpu_artifact.py` for what these do. */
typedef void (*tl_info)(const int64_t *slots, int64_t *out);
typedef void (*tl_blocks)(int64_t *next, int64_t total, int64_t chunk, const int64_t *slots,
                          void *scratch, int64_t *status);

typedef struct {
  tl_blocks function;
  int64_t scratch;
  int serial;
  double seconds; /* that one block was seen to take */
} tl_grid;

enum { TL_HELPERS = 255 };

typedef struct {
  const tl_grid *grid;
  int64_t next, total, chunk, status;
  const int64_t *slots;
  int failed; /* no memory */
} tl_job;

static struct {
  pthread_mutex_t lock, busy;
  pthread_cond_t work, done;
  tl_job *job;
  int started, wanted, running;
  pid_t owner;
} tl_pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .busy = PTHREAD_MUTEX_INITIALIZER,
             .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

static void tl_draw(tl_job *job) {
  void *memory = NULL;
  size_t size = ((size_t)job->grid->scratch + 63) / 64 * 64;
  if (size != 0 && posix_memalign(&memory, 64, size) != 0) {
    __atomic_store_n(&job->failed, 1, __ATOMIC_RELAXED);
    return;
  }
  job->grid->function(&job->next, job->total, job->chunk, job->slots, memory, &job->status);
  free(memory);
}

static void *tl_helper(void *unused) {
  (void)unused;
  pthread_mutex_lock(&tl_pool.lock);
  for (;;) {
    while (tl_pool.wanted == 0) pthread_cond_wait(&tl_pool.work, &tl_pool.lock);
    --tl_pool.wanted;
    tl_job *job = tl_pool.job;
    pthread_mutex_unlock(&tl_pool.lock);
    tl_draw(job);
    pthread_mutex_lock(&tl_pool.lock);
    if (--tl_pool.running == 0) pthread_cond_signal(&tl_pool.done);
  }
}

/* Make sure of `count` helpers; how many there are. Called with `busy` held. */
static int tl_start_helpers(int count) {
  if (count > TL_HELPERS) count = TL_HELPERS;
  while (tl_pool.started < count) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, tl_helper, NULL) != 0) break;
    pthread_detach(thread);
    ++tl_pool.started;
  }
  return tl_pool.started < count ? tl_pool.started : count;
}

static int tl_cores(void) {
#ifdef __linux__
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
#endif
  long count = sysconf(_SC_NPROCESSORS_ONLN);
  return count > 0 ? (int)count : 1;
}

static double tl_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* How many threads are worth waking: each should have 20 microseconds of work. */
static int tl_workers(const tl_grid *grid, int64_t blocks) {
  if (grid->serial) return 1;
  int64_t count = tl_cores();
  if (count > blocks) count = blocks;
  if (grid->seconds > 0) {
    double worth = grid->seconds * (double)blocks / 20e-6;
    if (worth < (double)count) count = (int64_t)worth;
  }
  return count > 1 ? (int)count : 1;
}

/* Run the blocks of one launch; 0, -1 without memory, or the status that an assertion left. */
static int64_t tl_run(tl_grid *grid, int64_t blocks, const int64_t *slots) {
  if (blocks <= 0) return 0;
  int workers = tl_workers(grid, blocks), helpers = 0;
  tl_job job = {.grid = grid, .total = blocks, .chunk = blocks, .slots = slots};
  double start = tl_now();
  int alone = workers == 1 || pthread_mutex_trylock(&tl_pool.busy) != 0;
  if (!alone && tl_pool.owner != getpid()) {
    if (tl_pool.owner == 0) tl_pool.owner = getpid();
    else { pthread_mutex_unlock(&tl_pool.busy); alone = 1; }
  }
  if (!alone) {
    helpers = tl_start_helpers(workers - 1);
    job.chunk = tl_max(1, blocks / ((helpers + 1) * 8));
    pthread_mutex_lock(&tl_pool.lock);
    tl_pool.job = &job;
    tl_pool.wanted = tl_pool.running = helpers;
    pthread_cond_broadcast(&tl_pool.work);
    pthread_mutex_unlock(&tl_pool.lock);
  }
  tl_draw(&job);
  if (!alone) {
    pthread_mutex_lock(&tl_pool.lock);
    /* Who has not woken up by now has nothing left to do. */
    tl_pool.running -= tl_pool.wanted;
    tl_pool.wanted = 0;
    while (tl_pool.running != 0) pthread_cond_wait(&tl_pool.done, &tl_pool.lock);
    pthread_mutex_unlock(&tl_pool.lock);
    pthread_mutex_unlock(&tl_pool.busy);
  }
  grid->seconds = (tl_now() - start) * (helpers + 1) / (double)blocks;
  return job.failed ? -1 : job.status;
}

typedef struct {
  const char *name;
  tl_info info;
  tl_grid *grids;
  int slots, launches, workspaces;
  const char *const *messages;
} tl_cpu_kernel;

TL_COLD static int tl_assertion(tl_error *e, const tl_cpu_kernel *k, int64_t status, int host) {
  if (status < 0)
    return tl_fail(e, "MemoryError", "[TL813] there is no memory for the tiles of `%s`", k->name);
  return tl_fail(e, host ? "ValueError" : "RuntimeError", host
                 ? "[TL721] the arguments break an assumption of `%s`: %s"
                 : "[TL722] an assertion failed in `%s`: %s", k->name, k->messages[status - 1]);
}

/* `slots` has room for the workspaces, `sizes` for what `info` says. */
static int tl_call(tl_error *e, const tl_cpu_kernel *k, int64_t *slots, int64_t *sizes) {
  int status = 0;
  k->info(slots, sizes);
  if (sizes[0] != 0) return tl_assertion(e, k, sizes[0], 1);
  int made = 0;
  for (; made < k->workspaces; ++made) {
    size_t size = ((size_t)tl_max(1, sizes[1 + k->launches + made]) + 63) / 64 * 64;
    void *memory = NULL;
    if (posix_memalign(&memory, 64, size) != 0) {
      status = tl_assertion(e, k, -1, 1);
      break;
    }
    slots[k->slots + made] = (int64_t)(intptr_t)memory;
  }
  for (int i = 0; i < k->launches && status == 0; ++i) {
    int64_t failed = tl_run(&k->grids[i], sizes[1 + i], slots);
    if (failed != 0) status = tl_assertion(e, k, failed, 0);
  }
  for (int i = 0; i < made; ++i) free((void *)(intptr_t)slots[k->slots + i]);
  return status;
}

TL_UNUSED static int64_t tl_bits(double value) {
  int64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

/* What code may need of a processor, and where that says it has it: see `export_cpu.py`. */
typedef struct {
  const char *name;
  unsigned leaf, subleaf, word, bit, saved;
} tl_feature;

TL_COLD static int tl_has(const tl_feature *f) {
#if defined(__x86_64__)
  unsigned r[4], low = 0, high = 0;
  if (!__get_cpuid_count(f->leaf, f->subleaf, &r[0], &r[1], &r[2], &r[3])) return 0;
  if (!(r[f->word] >> f->bit & 1)) return 0;
  if (f->saved == 0) return 1;
  /* OSXSAVE: whether the system saves registers can be asked at all. */
  if (!__get_cpuid_count(1, 0, &r[0], &r[1], &r[2], &r[3]) || !(r[2] >> 27 & 1)) return 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & f->saved) == f->saved;
#else
  return (int)(getauxval(f->leaf == 0 ? AT_HWCAP : AT_HWCAP2) >> f->bit & 1);
#endif
}

/* Asked once, which takes microseconds in a virtual machine. */
static int tl_other_cpu(tl_error *e, const char *f, const char *cpu, const tl_feature *needs,
                        int count, int *fits) {
  if (__atomic_load_n(fits, __ATOMIC_RELAXED)) return 0;
  for (int i = 0; i < count; ++i)
    if (!tl_has(&needs[i]))
      return tl_fail(e, "RuntimeError", "[TL416] `%s` was compiled for %s, which has %s; this "
                     "processor has not: compile it on a machine like this one", f, cpu,
                     needs[i].name);
  __atomic_store_n(fits, 1, __ATOMIC_RELAXED);
  return 0;
}
