// Included behind a kernel: Metal's words are over, and the runtime's entries follow.
#pragma once
#undef kernel
#undef device
#undef constant
#undef threadgroup
#undef thread
#include <emulator/entry.h>
