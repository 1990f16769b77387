// Stacks, and switching between them.
#pragma once
#include <stddef.h>

namespace tl::emulator {

// A thread of a GPU has at most 512 KB of its own; what the emulator needs comes on top.
constexpr size_t stack_bytes = 1 << 20;
constexpr size_t stack_guard = 1 << 20;

// A stack, with memory under it that nobody may touch.
char* make_stack(int number);
// A stack that begins in `entry` when it is first switched to.
void* prepare_stack(char* stack, void (*entry)());
// Goes on where `to` left off, and leaves the way back in `save`.
void switch_stack(void** save, void* to);

}  // namespace tl::emulator
