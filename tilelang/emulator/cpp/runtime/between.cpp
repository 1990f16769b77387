#include "between.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "block.h"
#include "grid.h"

namespace tl::emulator {

namespace {

// More than this of written tensors is not looked at between blocks: a word takes 64 bytes.
constexpr size_t most_bytes = 64u << 20;
constexpr uint32_t slots = 4096, most_notes = 1u << 18;

struct Visit {
  uint32_t block = 0;  // its number, and 1
  uint32_t step = 0, generation = 0;
  Site site;
  uint16_t thread = 0;
  uint8_t mask = 0;  // which bytes of the word
  uint8_t is_atomic : 1, has_changed : 1;
};
struct Word {
  uint32_t lock;
  Visit write, reads[2];
};
static_assert(sizeof(Word) == 64, "a word takes a line of the cache");

// What a thread had fenced: its own work up to `own`, and that of its block before step `heard`.
struct Note {
  uint32_t block, thread, own, heard, next;
};
// What those who see a synchronising variable may know; `head` is the number of a note, and 1.
struct Variable {
  const void* place;
  uint32_t head, version;
};
struct Board {
  uint32_t lock, notes, is_full;
  Variable variables[slots];
  Note all[most_notes];
};
Board* board;

struct Shadow {
  Word* words = nullptr;
  uint8_t* is_written = nullptr;  // of regions that begin empty, per byte
};
std::vector<Shadow> shadows;

// Of the block that runs here.
uint32_t me;
uint32_t launch_number;
bool is_alone;
struct Known {
  uint32_t thread, own, heard;
};
std::unordered_map<uint32_t, std::vector<Known>> known;
std::unordered_map<const void*, uint32_t> seen_version;
struct Fence {
  uint32_t own = 0, heard = 0;
};
std::vector<Fence> fence_of;
const void* to_acquire;

// Writes whose value shows when they have happened.
struct Pending {
  const unsigned char* place = nullptr;
  size_t bytes = 0;
  unsigned char before[32];
  const Region* region = nullptr;
  const Fiber* fiber = nullptr;
  Site site;
  Visit other;  // that it must not change the value for
  const char* other_access = nullptr;
} pending;

struct Locked {
  explicit Locked(uint32_t& word) : lock(word) {
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE) != 0) {
    }
  }
  ~Locked() { __atomic_store_n(&lock, 0, __ATOMIC_RELEASE); }
  uint32_t& lock;
};

void* share(size_t bytes) {
  void* made = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (made == MAP_FAILED) {
    perror("no memory to look after tensors");
    exit(4);
  }
  return made;
}

// A barrier of the grid, or another launch, begins a generation.
uint32_t generation() {
  return launch_number << 20 | __atomic_load_n(&shared->generation, __ATOMIC_ACQUIRE);
}

bool knows(const Visit& visit) {
  const auto found = known.find(visit.block);
  if (found == known.end()) return false;
  for (const Known& k : found->second)
    if (visit.step < k.heard || (visit.thread == k.thread && visit.step <= k.own)) return true;
  return false;
}

// Whether another block did this, and nothing orders it before what happens now.
bool conflicts(const Visit& visit, uint8_t mask, uint32_t now) {
  return visit.block != 0 && visit.block != me && visit.generation == now &&
         (visit.mask & mask) != 0 && !knows(visit);
}

Index index_of(uint32_t block, Index grid) {
  const unsigned n = block - 1;
  return {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y};
}

void report(const Fiber& fiber, Site site, const char* access, const Visit& other,
            const char* other_access, const Region& region, const void* place) {
  if (board->is_full) return;
  Report report("between", site, &fiber);
  report.site("other_", other.site).thread("other_", other.thread);
  report.index("other_block", index_of(other.block, fiber.context.grid));
  report.text("access", access).text("other_access", other_access);
  tell(report, {static_cast<const unsigned char*>(place) - region.start, &region});
  report.send();
}

// Adds to a list of notes what a thread had fenced.
void note(Variable& variable, uint32_t block, Known what) {
  for (uint32_t n = variable.head; n != 0; n = board->all[n - 1].next) {
    Note& found = board->all[n - 1];
    if (found.block != block || found.thread != what.thread) continue;
    if (what.own <= found.own && what.heard <= found.heard) return;
    found.own = std::max(found.own, what.own);
    found.heard = std::max(found.heard, what.heard);
    ++variable.version;
    return;
  }
  if (board->notes == most_notes) {
    board->is_full = 1;  // from here on nobody is accused of anything
    return;
  }
  board->all[board->notes] = {block, what.thread, what.own, what.heard, variable.head};
  variable.head = ++board->notes;
  ++variable.version;
}

Variable* variable_at(const void* place, bool make) {
  const auto hash = uint32_t(reinterpret_cast<uintptr_t>(place) >> 2) * 2654435761u;
  for (uint32_t i = 0; i < slots; ++i) {
    Variable& found = board->variables[(hash + i) % slots];
    if (found.place == place) return &found;
    if (found.place != nullptr) continue;
    if (!make) return nullptr;
    found.place = place;
    return &found;
  }
  board->is_full = 1;
  return nullptr;
}

// Before an atomic access: whoever sees it knows what this thread had fenced.
void release(const Fiber& fiber, const void* place) {
  const Fence fence = fence_of[size_t(fiber.number)];
  if (fence.own == 0) return;
  const Locked locked(board->lock);
  Variable* variable = variable_at(place, true);
  if (variable == nullptr) return;
  note(*variable, me, {uint32_t(fiber.number), fence.own, fence.heard});
  for (const auto& [block, list] : known)
    for (const Known& k : list) note(*variable, block, k);
}

// After it: what was known by those before.
void acquire() {
  const void* place = to_acquire;
  to_acquire = nullptr;
  if (place == nullptr || __atomic_load_n(&board->notes, __ATOMIC_ACQUIRE) == 0) return;
  const Locked locked(board->lock);
  const Variable* variable = variable_at(place, false);
  if (variable == nullptr || seen_version[place] == variable->version) return;
  seen_version[place] = variable->version;
  for (uint32_t n = variable->head; n != 0; n = board->all[n - 1].next) {
    const Note& found = board->all[n - 1];
    if (found.block == me) continue;
    auto& list = known[found.block];
    const auto same = std::find_if(list.begin(), list.end(), [&](const Known& k) {
      return k.thread == found.thread;
    });
    if (same == list.end()) list.push_back({found.thread, found.own, found.heard});
    else *same = {found.thread, std::max(same->own, found.own),
                  std::max(same->heard, found.heard)};
  }
}

void remember_read(Word& word, const Visit& visit, uint32_t now) {
  for (Visit& slot : word.reads)
    if (slot.block == me || slot.generation != now || slot.block == 0 || knows(slot)) {
      slot = visit;
      return;
    }
  word.reads[1] = visit;
}

void remember_write(Word& word, const Visit& visit, uint32_t now) {
  Visit& old = word.write;
  const bool is_mine = old.block == me && old.generation == now;
  const bool is_whole = !is_mine || (old.mask & ~visit.mask) == 0;
  if (is_whole) {
    const bool had_changed = is_mine && old.has_changed;
    old = visit;
    old.has_changed |= had_changed;
    return;
  }
  // Other bytes of the word stay as old as they were.
  old.mask |= visit.mask;
  old.is_atomic &= visit.is_atomic;
  old.has_changed |= visit.has_changed;
}

const char* word_of(const Visit& visit) { return visit.is_atomic ? "atomic update" : "write"; }

// One word of an access. Sets `pending` where it depends on the value.
void visit_word(const Fiber& fiber, Word& word, Visit visit, Access access, const Region& region,
                const void* place) {
  const Locked locked(word.lock);
  const Visit& write = word.write;
  if (conflicts(write, visit.mask, visit.generation) && !(visit.is_atomic && write.is_atomic)) {
    if (access == Access::write && pending.bytes <= sizeof(pending.before)) {
      pending.other = write;
      pending.other_access = word_of(write);
    } else if (write.has_changed) {
      report(fiber, visit.site, emulator::word(access), write, word_of(write), region, place);
    }
  }
  if (access == Access::read) remember_read(word, visit, visit.generation);
  if (!is_write(access)) return;
  for (const Visit& read : word.reads) {
    if (!conflicts(read, visit.mask, visit.generation)) continue;
    if (visit.is_atomic) {
      report(fiber, visit.site, emulator::word(access), read, "read", region, place);
    } else {
      pending.other = read;
      pending.other_access = "read";
    }
  }
  remember_write(word, visit, visit.generation);
}

uint8_t bytes_in_word(size_t at, size_t end, size_t word) {
  const size_t from = std::max(at, 4 * word) - 4 * word;
  const size_t to = std::min(end, 4 * word + 4) - 4 * word;
  return uint8_t((1u << to) - (1u << from));
}

void check_fresh(const Fiber& fiber, uint8_t* is_written, size_t at, size_t bytes,
                 const Region& region, Access access, Site site) {
  const bool needs_value = access == Access::read || access == Access::atomic;
  if (needs_value && memchr(is_written + at, 0, bytes) != nullptr) {
    Report report("uninitialised", site, &fiber);
    tell(report, {long(at), &region});
    report.text("access", word(access)).send();
  }
  if (is_write(access)) memset(is_written + at, 1, bytes);
}

}  // namespace

void make_between() {
  board = static_cast<Board*>(share(sizeof(Board)));
  shadows.resize(regions.size());
  size_t written = 0;
  for (const Region& region : regions)
    if (region.is_written) written += region.bytes;
  for (size_t i = 0; i < regions.size(); ++i) {
    const Region& region = regions[i];
    if (region.bytes == 0) continue;
    if (region.is_fresh) shadows[i].is_written = static_cast<uint8_t*>(share(region.bytes));
    if (region.is_written && written <= most_bytes)
      shadows[i].words = static_cast<Word*>(share((region.bytes / 4 + 1) * sizeof(Word)));
  }
}

void begin_launch(uint64_t blocks) {
  ++launch_number;
  is_alone = blocks <= 1;
  board->notes = 0;
  board->is_full = 0;
  memset(board->variables, 0, sizeof(board->variables));
}

void begin_block_between(uint64_t number) {
  if (!checking()) return;
  me = uint32_t(number) + 1;
  known.clear();
  seen_version.clear();
  fence_of.assign(block.fibers.size(), Fence());
  to_acquire = nullptr;
  pending = Pending();
}

void touch_between(const Fiber& fiber, const void* place, size_t bytes, const Region& region,
                   Access access, Site site) {
  const Shadow& shadow = shadows[size_t(&region - regions.data())];
  const size_t at = size_t(static_cast<const unsigned char*>(place) - region.start);
  if (shadow.is_written != nullptr)
    check_fresh(fiber, shadow.is_written, at, bytes, region, access, site);
  if (is_alone || shadow.words == nullptr) return;
  const bool is_atomic = is_update(access) || access == Access::atomic_read;
  // Parts of a word are exchanged by exchanging the word.
  const auto* variable = reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(place) & ~3ul);
  if (is_update(access)) release(fiber, variable);
  if (is_atomic) to_acquire = variable;
  if (access == Access::write) {
    pending.place = static_cast<const unsigned char*>(place);
    pending.bytes = bytes;
    pending.region = &region;
    pending.fiber = &fiber;
    pending.site = site;
    if (bytes <= sizeof(pending.before)) memcpy(pending.before, place, bytes);
  }
  Visit visit{me, this_step(), generation(), site, uint16_t(fiber.number), 0, 0, 0};
  visit.is_atomic = is_atomic;
  visit.has_changed = is_update(access) || bytes > sizeof(pending.before);
  for (size_t word = at / 4; word <= (at + bytes - 1) / 4; ++word) {
    visit.mask = bytes_in_word(at, at + bytes, word);
    visit_word(fiber, shadow.words[word], visit, access, region, place);
  }
}

void settle_between() {
  if (to_acquire != nullptr) acquire();
  if (pending.place == nullptr) return;
  const Pending seen = pending;
  pending = Pending();
  if (seen.bytes > sizeof(seen.before) || memcmp(seen.before, seen.place, seen.bytes) == 0) return;
  const Shadow& shadow = shadows[size_t(seen.region - regions.data())];
  const size_t at = size_t(seen.place - seen.region->start);
  for (size_t word = at / 4; word <= (at + seen.bytes - 1) / 4; ++word) {
    const Locked locked(shadow.words[word].lock);
    if (shadow.words[word].write.block == me) shadow.words[word].write.has_changed = 1;
  }
  if (seen.other.block != 0)
    report(*seen.fiber, seen.site, "write", seen.other, seen.other_access, *seen.region,
           seen.place);
}

void fence_device(const Fiber& fiber) {
  if (!checking() || is_alone) return;
  settle_suspect();
  fence_of[size_t(fiber.number)] = {this_step(), heard_at(fiber.number)};
  next_step();
}

}  // namespace tl::emulator
