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

// --- warps (PTX ISA, bar.warp, shfl, vote, match, redux) ---

// The value of lane `place`, the lane's own where that one takes no part.
uint32_t shuffle(uint32_t mask, uint32_t value, int place, const char* what, int line);
// One bit for each lane whose predicate holds, or whose value is the same.
uint32_t ballot(uint32_t mask, bool predicate, int line);
uint32_t match(uint32_t mask, uint64_t value, int line);
void sync_warp(uint32_t mask, int line);
uint32_t active_mask();

// --- matrices (PTX ISA, ldmatrix, stmatrix; mma is in mma_rows.h) ---

// `row` is the address in shared memory of the row that this lane names.
void load_matrices(int count, bool transposed, uint32_t* registers, uint32_t row, int line);
void store_matrices(int count, bool transposed, uint32_t row, const uint32_t* registers, int line);

// --- asynchronous copies (PTX ISA, cp.async) ---

// `size` of `bytes` bytes are read; zeros follow.
void copy_async(uint32_t to, const void* from, int bytes, int size, int line);
void copy_async_commit();
void copy_async_wait(int groups, int line);

// --- the rest ---

// An atomic access of one element.
void touch_atomic(const void* place, int bytes, int line);
[[noreturn]] void trap(int line);

// Addresses of shared memory as PTX has them: 32 bits, and back.
uint32_t shared_address(const void* place);
void* shared_pointer(uint32_t address);

}  // namespace tl::emulator

// What `assert` calls on a device.
extern "C" void __assertfail(const char* message, const char* file, unsigned line,
                             const char* function, size_t char_size);
