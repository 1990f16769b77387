// One call of a kernel, as whoever asks for it writes it to a file: a word a line, and what
// follows it.
//
//   library PATH        the kernel
//   reports PATH        where reports go
//   memory PATH         the file that holds all tensors
//   seed N              0: first come, first served
//   check 0|1
//   workers N           how many blocks run side by side
//   warp N              the lanes of a warp, 32 or 64
//   region OFFSET BYTES WRITTEN FRESH NAME
//   launch SYMBOL GX GY GZ BX BY BZ ARENA COOPERATIVE
//   pointer REGION      arguments of the launch before it: the n-th region …
//   value HEX           … or the bytes of a number, or a tensor map:
//   map REGION OFFSET NUMBER ITEM SWIZZLE RANK SHAPE… STRIDES… BOX…
#pragma once
#include <string>
#include <vector>

#include "block.h"

namespace tl::emulator {

struct Call {
  std::string library, reports, memory;
  uint64_t seed = 0;
  bool check = false;
  unsigned workers = 1;
  int warp = 32;
  struct Range {
    size_t offset, bytes;
    bool is_written, is_fresh;
    std::string name;
  };
  std::vector<Range> ranges;
  struct Argument {
    int region = -1;
    uint64_t value = 0;
    bool is_map = false;  // of `region`, from byte `value` on
    TensorMap map{};
  };
  std::vector<Launch> launches;
  std::vector<std::vector<Argument>> arguments;
};

Call read_call(const char* path);

}  // namespace tl::emulator
