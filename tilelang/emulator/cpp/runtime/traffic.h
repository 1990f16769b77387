// Checked mode: what accesses of memory cost, counted. Lanes run one after the other here, so the
// k-th time that lanes of a warp come to an instruction between two places where the whole warp
// meets counts as one request.
//
// Shared memory serves a word of 4 bytes a bank at a time, and a request of 8 or 16 bytes a lane in
// two or four parts: a part takes as many passes as some bank has different words to serve. Tensors
// are moved in sectors of 32 bytes.
#pragma once
#include <stddef.h>

#include "check.h"

namespace tl::emulator {

void begin_traffic(int threads);
void count_access(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site);
// All lanes of a warp that have not ended met.
void converge(int warp);
// At the end of a block.
void converge_all();
// Sends what this process counted.
void report_traffic();

}  // namespace tl::emulator
