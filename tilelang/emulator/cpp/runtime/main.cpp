// The process that runs one call of a kernel: loads its library, and spreads the blocks of each
// launch over processes of their own, so that static shared memory is a block's own and a crash
// ends no one else.
//
// Exit status: 0 when all blocks ended, 1 when something was reported that ended one, 4 for a call
// that cannot be made.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "between.h"
#include "block.h"
#include "call.h"
#include "check.h"
#include "grid.h"
#include "memory.h"
#include "report.h"
#include "traffic.h"

namespace {

using namespace tl::emulator;

[[noreturn]] void give_up(const std::string& why) {
  fprintf(stderr, "%s\n", why.c_str());
  exit(4);
}

// Each tensor is mapped by itself, so that its end lies before a page that nobody may touch.
void map_memory(const Call& call) {
  const int file = open(call.memory.c_str(), O_RDWR);
  if (file < 0) give_up("cannot open " + call.memory);
  const size_t page = size_t(sysconf(_SC_PAGESIZE));
  for (const Call::Range& range : call.ranges) {
    const size_t start = range.offset / page * page, bytes = range.offset - start + range.bytes;
    const size_t mapped = std::max(page, (bytes + page - 1) / page * page), guard = 1 << 20;
    auto* place =
        static_cast<unsigned char*>(mmap(nullptr, mapped + 2 * guard, PROT_NONE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (place == MAP_FAILED || mmap(place + guard, mapped, PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_FIXED, file, off_t(start)) == MAP_FAILED)
      give_up("no memory for " + range.name);
    regions.push_back(
        {range.name, place + guard + (range.offset - start), range.bytes, range.is_written,
                       range.is_fresh});
  }
  close(file);
}

// What a process says that has run all its blocks; one that a kernel ended with `exit` says 0.
constexpr int all_done = 3;

// However the parent ends, nothing goes on without it.
void end_with_parent() { prctl(PR_SET_PDEATHSIG, SIGKILL); }

void* find(void* library, const std::string& name) {
  void* found = dlsym(library, name.c_str());
  if (found == nullptr) give_up("the library has no " + name);
  return found;
}

int note_extent(dl_phdr_info* info, size_t, void* inside) {
  uintptr_t end = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD)
      end = std::max<uintptr_t>(end, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
  const uintptr_t address = reinterpret_cast<uintptr_t>(inside), start = info->dlpi_addr;
  if (address < start || address >= start + end) return 0;
  set_library(start, start + end);
  return 1;
}

void load(Call& call) {
  void* library = dlopen(call.library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) give_up(dlerror());
  for (Launch& launch : call.launches)
    launch.entry = reinterpret_cast<Entry>(find(library, "tl_enter_" + launch.symbol));
  void* probe = find(library, "tl_static_shared");
  unsigned char *start = nullptr, *end = nullptr;
  reinterpret_cast<void (*)(unsigned char**, unsigned char**)>(probe)(&start, &end);
  set_static_shared(start, size_t(end - start));
  dl_iterate_phdr(note_extent, probe);
}

// The values of arguments, where the kernel finds them.
void fill_arguments(Call& call) {
  for (size_t i = 0; i < call.launches.size(); ++i)
    for (const Call::Argument& argument : call.arguments[i]) {
      if (argument.is_map) {
        auto* map = new (aligned_alloc(64, 128)) TensorMap(argument.map);
        map->base = regions[size_t(argument.region)].start + argument.value;
        call.launches[i].arguments.push_back(map);
        continue;
      }
      auto* slot = new uint64_t(argument.value);
      if (argument.region >= 0)
        *slot = reinterpret_cast<uint64_t>(regions[size_t(argument.region)].start);
      call.launches[i].arguments.push_back(slot);
    }
}

Index block_index(const Launch& launch, uint64_t number) {
  const Index grid = launch.grid;
  return {unsigned(number % grid.x), unsigned(number / grid.x % grid.y),
          unsigned(number / grid.x / grid.y)};
}

void work(const Launch& launch) {
  catch_faults();
  for (uint64_t number; !is_stopped() && (number = take_block()) < launch.blocks();) {
    const bool well = run_block(launch, block_index(launch, number));
    if (!well) stop_all();
    block_ended();
    if (launch.cooperative) break;
  }
  report_traffic();
  fflush(stdout);
}

void run(const Launch& launch, unsigned workers) {
  if (launch.blocks() == 0) return;
  make_arena(launch.arena_bytes);
  reset_shared(uint32_t(launch.blocks()));
  if (checking()) begin_launch(launch.blocks());
  // The barrier of a grid needs all blocks at once.
  const uint64_t wanted =
      launch.cooperative ? launch.blocks() : std::min<uint64_t>(workers, launch.blocks());
  fflush(stdout);
  for (uint64_t i = 0; i < wanted; ++i) {
    const pid_t child = fork();
    if (child < 0) give_up("cannot start a process for a block");
    if (child == 0) {
      end_with_parent();
      work(launch);
      _exit(all_done);
    }
  }
  for (int status; wait(&status) > 0;)
    if (!WIFEXITED(status) || WEXITSTATUS(status) != all_done) stop_all();
}

}  // namespace

int main(int count, char** words) {
  if (count != 2) give_up("usage: emulator CALL");
  end_with_parent();
  Call call = read_call(words[1]);
  open_reports(call.reports);
  map_memory(call);
  make_shared();
  load(call);
  fill_arguments(call);
  set_schedule(call.seed);
  warp_lanes = call.warp;
  if (call.check) {
    enable_check();
    make_between();
  }
  for (const Launch& launch : call.launches) {
    run(launch, call.workers);
    if (is_stopped()) return 1;
  }
  return 0;
}
