// Stacks, and switching between them.
#pragma once
#include <stddef.h>

namespace tl::emulator {

constexpr size_t stack_bytes = 256 << 10;

// `count` stacks, each with a page under it that nobody may touch.
char* make_stack(int number);
// A stack that begins in `entry` when it is first switched to.
void* prepare_stack(char* stack, void (*entry)());
// Goes on where `to` left off, and leaves the way back in `save`.
void switch_stack(void** save, void* to);

}  // namespace tl::emulator
