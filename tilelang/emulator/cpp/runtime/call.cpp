#include "call.h"

#include <stdio.h>
#include <stdlib.h>

#include <fstream>
#include <sstream>

namespace tl::emulator {

Call read_call(const char* path) {
  Call call;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word, rest;
    words >> word;
    if (line.size() > word.size()) rest = line.substr(word.size() + 1);
    if (word == "library") call.library = rest;
    else if (word == "reports") call.reports = rest;
    else if (word == "memory") call.memory = rest;
    else if (word == "seed") words >> call.seed;
    else if (word == "check") words >> call.check;
    else if (word == "workers") words >> call.workers;
    else if (word == "warp") words >> call.warp;
    else if (word == "region") {
      Call::Range range;
      words >> range.offset >> range.bytes >> range.is_written >> range.is_fresh >> range.name;
      call.ranges.push_back(range);
    } else if (word == "launch") {
      Launch launch;
      words >> launch.symbol >> launch.grid.x >> launch.grid.y >> launch.grid.z >> launch.block.x >>
          launch.block.y >> launch.block.z >> launch.arena_bytes >> launch.cooperative;
      call.launches.push_back(launch);
      call.arguments.emplace_back();
    } else if (word == "pointer") {
      Call::Argument argument;
      words >> argument.region;
      call.arguments.back().push_back(argument);
    } else if (word == "value") {
      Call::Argument argument;
      words >> std::hex >> argument.value;
      call.arguments.back().push_back(argument);
    } else if (word == "map") {
      Call::Argument argument;
      TensorMap& map = argument.map;
      argument.is_map = true;
      words >> argument.region >> argument.value >> map.number >> map.item >> map.swizzle >>
          map.rank;
      for (int i = 0; i < map.rank; ++i) words >> map.shape[i];
      for (int i = 0; i + 1 < map.rank; ++i) words >> map.strides[i];
      for (int i = 0; i < map.rank; ++i) words >> map.box[i];
      call.arguments.back().push_back(argument);
    } else {
      fprintf(stderr, "%s: %s is no part of a call\n", path, word.c_str());
      exit(4);
    }
  }
  return call;
}

}  // namespace tl::emulator
