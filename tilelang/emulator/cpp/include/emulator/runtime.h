// What the code of a kernel may ask of the process that runs it. Everything here is defined in
// ../runtime, which is compiled once per machine; a kernel is a shared library loaded into it.
//
// `line` is the line of the generated source that asks. Where it is a default argument the compiler
// fills in the line of the call.
#pragma once
#include <stddef.h>
#include <stdint.h>

#define TL_HERE int line = __builtin_LINE()

namespace tl::emulator {

// A line that no number is taken for.
struct Place {
  int line;
  static Place here(TL_HERE) { return {line}; }
};

struct Index {
  unsigned x, y, z;
};

// What one GPU thread knows of itself.
struct Context {
  Index thread, block, block_size, grid;
  unsigned char* arena;
};
extern Context* current;

// --- barriers (PTX ISA, bar) ---

// Waits for `count` threads at barrier `id`; 0 stands for all threads of the block.
void barrier(int id, int count, int line);
void barrier_arrive(int id, int count, int line);
// bar.red: in how many threads of the block `predicate` holds.
int barrier_count(bool predicate, int line);
void grid_barrier(int line);
// Lets other threads run: whoever polls memory would otherwise wait for ever.
void yield(int line);
// __threadfence: what this thread did, and knows of, may be seen through what it does next.
void memory_fence(int line);

// --- warps (PTX ISA, bar.warp, shfl, vote, match, redux) ---

// The value of lane `place`, the lane's own where that one takes no part.
uint32_t shuffle(uint64_t mask, uint32_t value, int place, const char* what, int line);
// One bit for each lane whose predicate holds, or whose value is the same.
uint64_t ballot(uint64_t mask, bool predicate, int line);
uint64_t match(uint64_t mask, uint64_t value, int line);
void sync_warp(uint64_t mask, int line);
uint64_t active_mask();

// --- matrices (PTX ISA, ldmatrix, stmatrix; mma is in mma_rows.h) ---

// `row` is the address in shared memory of the row that this lane names.
void load_matrices(int count, bool transposed, uint32_t* registers, uint32_t row, int line);
void store_matrices(int count, bool transposed, uint32_t row, const uint32_t* registers, int line);

// --- 8x8 matrices of a simdgroup (Metal Shading Language, simdgroup_matrix) ---

// Each lane holds two elements; which, nobody is told. `type` is how they lie in memory.
enum class MatrixType { f32, f16, bf16 };
void simdgroup_load(float* held, MatrixType type, const void* from, long row, bool transposed,
                    int line);
void simdgroup_store(const float* held, MatrixType type, void* to, long row, bool transposed,
                     int line);
// d = a * b + c, the result rounded to `type`.
void simdgroup_multiply(float* d, const float* a, const float* b, const float* c, MatrixType type,
                        int line);

// --- asynchronous copies (PTX ISA, cp.async) ---

// `size` of `bytes` bytes are read; zeros follow.
void copy_async(uint32_t to, const void* from, int bytes, int size, int line);
void copy_async_commit();
void copy_async_wait(int groups, int line);

// --- mbarriers (PTX ISA, mbarrier) ---

void mbarrier_init(void* barrier, int count, int line);
void mbarrier_inval(void* barrier, int line);
// What the thread did may be read by the engines of bulk copies and of wgmma.
void fence_proxy_async(int line);
// Announces `bytes` of asynchronous copies, then arrives `arrivals` times.
void mbarrier_arrive(void* barrier, int arrivals, long bytes, int line);
void mbarrier_wait(void* barrier, int parity, int line);
// Arrives once all cp.async of this thread so far are done.
void copy_async_arrive(void* barrier, int line);

// --- bulk copies (PTX ISA, cp.async.bulk) ---

// What a tensor map says; innermost dimension first, strides in bytes without the first.
struct TensorMap {
  unsigned char* base;
  uint64_t shape[5], strides[4];
  uint32_t box[5];
  uint16_t rank, swizzle, item,
      number;  // `number`: 0 integers, 1 float, 2 half, 3 bfloat16, 4 double
};
void bulk_load(void* to, const TensorMap& map, void* barrier, const int* at, int line);
void bulk_store(const void* from, const TensorMap& map, bool adds, const int* at, int line);
void bulk_copy(void* to, const void* from, int bytes, void* barrier, int line);
void bulk_commit();
void bulk_wait(int groups);

// --- matrix instructions of four warps (PTX ISA, wgmma.mma_async) ---

// How an operand lies in shared memory, as its matrix descriptor says; a register operand has none.
struct MatrixLayout {
  int swizzle, leading, stride, major;
};
struct Wgmma {
  void* d;
  const void *a, *b;
  MatrixLayout a_layout, b_layout;
  int n, scale_d;
  bool a_in_registers;
};
void wgmma_fence(int line);
void wgmma_commit(int line);
void wgmma_wait(int groups, int line);

// --- the rest ---

// An array of this thread begins to be, in checked mode, and holds nothing.
void declare_local(const void* place, size_t bytes, const char* name);
// An atomic access of one element.
void touch_atomic(const void* place, int bytes, int line);
// The same, where it changes only the bits that `different` has.
void touch_exchange(const void* place, int bytes, const void* different, int line);
[[noreturn]] void trap(int line);
// Something that only turns out to be beyond the emulator when it happens.
[[noreturn]] void refuse(const char* what, int line);

// Addresses of shared memory as PTX has them: 32 bits, and back.
uint32_t shared_address(const void* place);
void* shared_pointer(uint32_t address);

}  // namespace tl::emulator

// What `assert` calls on a device.
extern "C" void __assertfail(const char* message, const char* file, unsigned line,
                             const char* function, size_t char_size);
