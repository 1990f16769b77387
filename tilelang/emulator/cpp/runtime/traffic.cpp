#include "traffic.h"

#include <string.h>

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

#include "block.h"
#include "memory.h"

namespace tl::emulator {

namespace {

constexpr unsigned banks = 32, bank_bytes = 4, sector_bytes = 32, most_lanes = 64;
constexpr size_t most_groups = 1 << 12;  // that wait for lanes which may never come

// An instruction: where, and what it does.
struct Kind {
  Site site;
  bool is_shared;
  Access access;
  unsigned bytes;
};
struct Total {
  Kind kind;
  uint64_t requests = 0, transactions = 0, minimum = 0;
  unsigned worst = 0;  // passes of one part, or sectors of one request
};
std::vector<Total> totals;
std::unordered_map<uint64_t, unsigned> numbers;

// One request: where its lanes reach, 0 for those that did not come.
struct Group {
  unsigned came = 0;
  uintptr_t at[most_lanes] = {};
};
// The requests of one instruction by one warp that are not complete.
struct Stream {
  std::deque<Group> groups;
  uint32_t first = 0;  // number of the first of them
  uint32_t next[most_lanes] = {};
  bool is_listed = false;
};
struct Warp {
  std::vector<Stream> streams;
  std::vector<unsigned> listed;
  unsigned lanes = 0;
};
std::vector<Warp> warps;

unsigned number_of(const Kind& kind) {
  const uint64_t key = uint64_t(kind.site.value) << 16 | uint64_t(kind.is_shared) << 15 |
                       uint64_t(kind.access) << 8 | kind.bytes;
  static uint64_t last_keys[256];
  static unsigned last_numbers[256];
  const size_t slot = (key >> 16 ^ key >> 8) & 255;
  if (last_keys[slot] == key) return last_numbers[slot];
  const auto [found, is_new] = numbers.emplace(key, unsigned(totals.size()));
  if (is_new) {
    totals.emplace_back();
    totals.back().kind = kind;
  }
  last_keys[slot] = key;
  return last_numbers[slot] = found->second;
}

// Passes over the banks for the lanes of one part.
unsigned passes(const uintptr_t* at, unsigned lanes, unsigned bytes) {
  static uint32_t words[banks][most_lanes * 4];
  unsigned counts[banks] = {}, most = 0;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    if (at[lane] == 0) continue;
    for (uintptr_t word = at[lane] / bank_bytes; word <= (at[lane] + bytes - 1) / bank_bytes;
         ++word) {
      uint32_t* queue = words[word % banks];
      unsigned& count = counts[word % banks];
      if (std::find(queue, queue + count, uint32_t(word)) != queue + count) continue;
      queue[count++] = uint32_t(word);
      most = std::max(most, count);
    }
  }
  return most;
}

void serve_shared(Total& total, const Group& group) {
  const unsigned bytes = total.kind.bytes;
  const unsigned part = std::max(1u, banks * bank_bytes / std::max(bytes, bank_bytes));
  for (unsigned lane = 0; lane < most_lanes; lane += part) {
    const unsigned needed = passes(group.at + lane, part, bytes);
    if (needed == 0) continue;
    total.transactions += needed;
    total.minimum += 1;
    total.worst = std::max(total.worst, needed);
  }
}

void serve_tensor(Total& total, const Group& group) {
  uintptr_t sorted[most_lanes];
  unsigned count = 0;
  for (const uintptr_t at : group.at)
    if (at != 0) sorted[count++] = at;
  std::sort(sorted, sorted + count);
  uintptr_t end = 0, last_sector = 0;
  unsigned sectors = 0;
  uint64_t bytes = 0;
  for (unsigned i = 0; i < count; ++i) {
    const uintptr_t stop = sorted[i] + total.kind.bytes;
    bytes += stop > end ? stop - std::max(end, sorted[i]) : 0;
    end = std::max(end, stop);
    for (uintptr_t sector = sorted[i] / sector_bytes; sector <= (stop - 1) / sector_bytes; ++sector)
      if (sectors == 0 || sector > last_sector) {
        ++sectors;
        last_sector = sector;
      }
  }
  total.transactions += sectors;
  total.minimum += (bytes + sector_bytes - 1) / sector_bytes;
  total.worst = std::max(total.worst, sectors);
}

void serve(unsigned number, const Group& group) {
  if (group.came == 0) return;
  Total& total = totals[number];
  ++total.requests;
  if (total.kind.is_shared) serve_shared(total, group);
  else serve_tensor(total, group);
}

void serve_first(Stream& stream, unsigned number) {
  serve(number, stream.groups.front());
  stream.groups.pop_front();
  ++stream.first;
}

}  // namespace

void begin_traffic(int threads) {
  if (!checking()) return;
  warps.clear();
  warps.resize(size_t(block.fibers[size_t(threads - 1)]->warp) + 1);
  for (const Fiber* fiber : block.fibers) ++warps[size_t(fiber->warp)].lanes;
}

void count_access(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site) {
  if (!checking() || bytes == 0 || bytes > 16 || (bytes & (bytes - 1)) != 0) return;
  const long offset = shared_offset(place, bytes);
  if (offset < 0 && region_of(place, bytes) == nullptr) return;
  const unsigned number = number_of({site, offset >= 0, access, unsigned(bytes)});
  Warp& warp = warps[size_t(fiber.warp)];
  if (warp.streams.size() <= number) warp.streams.resize(size_t(number) + 1);
  Stream& stream = warp.streams[number];
  if (!stream.is_listed) {
    stream.is_listed = true;
    warp.listed.push_back(number);
  }
  const size_t lane = size_t(fiber.lane);
  const uint32_t turn = stream.next[lane]++;
  if (turn < stream.first) return;
  const size_t index = turn - stream.first;
  while (stream.groups.size() <= index) stream.groups.emplace_back();
  Group& group = stream.groups[index];
  // Banks are those of the offset in shared memory; 1 << 32 keeps a place from being 0.
  group.at[lane] =
      offset >= 0 ? uintptr_t(offset) + (uintptr_t(1) << 32) : reinterpret_cast<uintptr_t>(place);
  if (++group.came == warp.lanes)
    while (!stream.groups.empty() && stream.groups.front().came == warp.lanes)
      serve_first(stream, number);
  while (stream.groups.size() > most_groups) serve_first(stream, number);
}

void converge(int number) {
  if (!checking()) return;
  Warp& warp = warps[size_t(number)];
  for (const unsigned listed : warp.listed) {
    Stream& stream = warp.streams[listed];
    while (!stream.groups.empty()) serve_first(stream, listed);
    stream.first = 0;
    memset(stream.next, 0, sizeof(stream.next));
    stream.is_listed = false;
  }
  warp.listed.clear();
}

void converge_all() {
  for (size_t i = 0; i < warps.size() && checking(); ++i) converge(int(i));
}

void report_traffic() {
  if (!checking()) return;
  for (const Total& total : totals) {
    Report report("traffic", total.kind.site, nullptr);
    report.text("space", total.kind.is_shared ? "shared" : "global");
    report.text("access", word(total.kind.access)).number("bytes", long(total.kind.bytes));
    report.number("requests", long(total.requests));
    report.number("transactions", long(total.transactions));
    report.number("minimum", long(total.minimum)).number("worst", long(total.worst));
    report.send_always();
  }
}

}  // namespace tl::emulator
