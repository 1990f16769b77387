// Barriers in shared memory (PTX ISA, mbarrier): a phase is over when all arrivals and all
// announced bytes have come; then the next one begins.
#pragma once
#include "check.h"

namespace tl::emulator {

// A load that will tell a barrier begins: the engine that does its loads. The barrier has to be one
// that the engine may know of.
Mark begin_load(void* barrier, const View& view, int line);
// A copy of `bytes` that was announced has arrived, and with it what its issuer knew.
void complete_bytes(void* barrier, long bytes, const Knowledge& of);

}  // namespace tl::emulator
