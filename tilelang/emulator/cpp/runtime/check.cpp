#include "check.h"

#include <string.h>

#include <unordered_map>

#include "block.h"
#include "fiber.h"
#include "memory.h"

namespace tl::emulator {

namespace {

struct Mark {
  uint32_t epoch = 0, clock = 0;
  Site site;
  uint16_t thread = 0;
};

struct Cell {
  Mark write, reads[2];
  Site flight;  // of a cp.async under way to here
  uint16_t flyer = 0;
  bool atomic = false;  // the last write was one
};

bool enabled;
std::vector<Cell> cells;
// Epochs go on through all blocks of a process, so that a new block has nothing to clear.
uint32_t epoch = 1, block_epoch = 1;
int threads;
// clocks[t][u]: up to which clock of thread u thread t knows everything, within this epoch.
std::vector<uint32_t> clocks, row_epoch, own_clock;

uint32_t* row(int thread) {
  uint32_t* found = &clocks[size_t(thread) * size_t(threads)];
  if (row_epoch[size_t(thread)] != epoch) {
    memset(found, 0, sizeof(uint32_t) * size_t(threads));
    row_epoch[size_t(thread)] = epoch;
  }
  return found;
}

// Whether what `mark` stands for lies before what `thread` does now.
bool is_before(const Mark& mark, int thread) {
  if (mark.epoch < epoch || mark.thread == thread) return true;
  return row(thread)[mark.thread] >= mark.clock;
}

Mark mark_of(const Fiber& fiber, Site site) {
  return {epoch, own_clock[size_t(fiber.number)], site, uint16_t(fiber.number)};
}

const char* word(Access access) {
  return access == Access::read ? "read" : access == Access::write ? "write" : "atomic update";
}

// Cells of tensors that kernels write, a page at a time; each block begins without any.
constexpr size_t page_cells = 4096;
struct Page {
  Cell cells[page_cells];
};
std::unordered_map<uintptr_t, Page*> pages;
std::vector<Page*> spare_pages;
Page* last_page;
uintptr_t last_number;

Cell& global_cell(const unsigned char* place) {
  const uintptr_t address = reinterpret_cast<uintptr_t>(place);
  const uintptr_t number = address / page_cells;
  if (last_page == nullptr || last_number != number) {
    Page*& page = pages[number];
    if (page == nullptr) {
      if (spare_pages.empty()) spare_pages.push_back(new Page);
      page = spare_pages.back();
      spare_pages.pop_back();
      *page = Page();
    }
    last_page = page;
    last_number = number;
  }
  return last_page->cells[address % page_cells];
}

// What a report says of a place: a byte of shared memory, or of a tensor.
struct Spot {
  long offset;
  const Region* region;  // null: shared memory
};

void tell(Report& report, Spot spot) {
  report.number("offset", spot.offset);
  if (spot.region != nullptr) report.text("buffer", spot.region->name);
}

// A write over a write that nothing orders, before it happens.
struct Suspect {
  const unsigned char* place = nullptr;
  size_t bytes = 0;
  unsigned char before[32];
  Spot spot{};
  const Fiber* fiber = nullptr;
  Site site, other;
  int other_thread = 0;
} suspect;

void report_race(const Fiber& fiber, Site site, const char* access, Site other_site,
                 int other_thread, const char* other_access, Spot spot) {
  Report report("race", site, &fiber);
  report.site("other_", other_site).thread("other_", other_thread);
  report.text("access", access).text("other_access", other_access);
  tell(report, spot);
  report.send();
}

void check_flight(const Fiber& fiber, const Cell& cell, long offset, Access access, Site site) {
  if (cell.flight.value == 0) return;
  Report report("inflight", site, &fiber);
  report.site("other_", cell.flight).thread("other_", cell.flyer);
  report.text("access", word(access)).number("offset", offset).send();
}

void remember_read(Cell& cell, const Mark& mark) {
  for (Mark& slot : cell.reads)
    if (is_before(slot, mark.thread)) {
      slot = mark;
      return;
    }
}

void check_read(const Fiber& fiber, Cell& cell, Spot spot, Site site) {
  const int me = fiber.number;
  if (cell.write.epoch < block_epoch && cell.flight.value == 0) {
    if (spot.region == nullptr)
      Report("uninitialised", site, &fiber).number("offset", spot.offset).send();
  } else if (!is_before(cell.write, me)) {
    report_race(fiber, site, "read", cell.write.site, cell.write.thread,
                cell.atomic ? "atomic update" : "write", spot);
  }
  remember_read(cell, mark_of(fiber, site));
}

void check_write(const Fiber& fiber, Cell& cell, const unsigned char* place, size_t bytes,
                 Spot spot, Access access, Site site) {
  const int me = fiber.number;
  const bool is_atomic = access == Access::atomic;
  const bool is_ordered = cell.write.epoch < block_epoch || is_before(cell.write, me);
  if (!is_ordered && !(is_atomic && cell.atomic)) {
    if (is_atomic || cell.atomic || bytes > sizeof(suspect.before)) {
      report_race(fiber, site, word(access), cell.write.site, cell.write.thread,
                  cell.atomic ? "atomic update" : "write", spot);
    } else if (suspect.place == nullptr) {
      suspect.place = place;
      suspect.bytes = bytes;
      memcpy(suspect.before, place, bytes);
      suspect.spot = spot;
      suspect.fiber = &fiber;
      suspect.site = site;
      suspect.other = cell.write.site;
      suspect.other_thread = cell.write.thread;
    }
  }
  for (const Mark& read : cell.reads)
    if (read.epoch >= block_epoch && !is_before(read, me))
      report_race(fiber, site, word(access), read.site, read.thread, "read", spot);
  cell.write = mark_of(fiber, site);
  cell.atomic = is_atomic;
}

void touch_cells(const Fiber& fiber, const void* place, size_t bytes, long offset, Access access,
                 Site site) {
  const auto* at = static_cast<const unsigned char*>(place);
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = cells[size_t(offset) + i];
    const Spot spot{offset + long(i), nullptr};
    check_flight(fiber, cell, offset + long(i), access, site);
    if (access == Access::read) check_read(fiber, cell, spot, site);
    else check_write(fiber, cell, at, bytes, spot, access, site);
  }
}

void touch_tensor(const Fiber& fiber, const void* place, size_t bytes, const Region& region,
                  Access access, Site site) {
  const auto* at = static_cast<const unsigned char*>(place);
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = global_cell(at + i);
    const Spot spot{long(at + i - region.start), &region};
    if (access == Access::read) check_read(fiber, cell, spot, site);
    else check_write(fiber, cell, at, bytes, spot, access, site);
  }
}

bool is_on_stack(const Fiber& fiber, const void* place) {
  return size_t(static_cast<const char*>(place) - fiber.stack) < stack_bytes;
}

}  // namespace

void enable_check() { enabled = true; }
bool checking() { return enabled; }

void begin_block_check(int count) {
  if (!enabled) return;
  block_epoch = ++epoch;
  threads = count;
  if (cells.size() < shared_bytes()) cells.resize(shared_bytes());
  for (Cell& cell : cells) cell.flight = Site();
  for (const auto& [number, page] : pages) spare_pages.push_back(page);
  pages.clear();
  last_page = nullptr;
  clocks.resize(size_t(count) * size_t(count));
  row_epoch.assign(size_t(count), 0);
  own_clock.assign(size_t(count), 1);
  suspect.place = nullptr;
}

void order_block() {
  if (enabled) ++epoch;
}

void order_some(const std::vector<Fiber*>& came, const std::vector<Fiber*>& waited) {
  if (!enabled) return;
  std::vector<uint32_t> joined(size_t(threads), 0);
  for (const Fiber* fiber : came) {
    const uint32_t* known = row(fiber->number);
    for (int i = 0; i < threads; ++i)
      if (known[i] > joined[size_t(i)]) joined[size_t(i)] = known[i];
    uint32_t& own = own_clock[size_t(fiber->number)];
    if (own > joined[size_t(fiber->number)]) joined[size_t(fiber->number)] = own;
    ++own;
  }
  for (const Fiber* fiber : waited) {
    uint32_t* known = row(fiber->number);
    for (int i = 0; i < threads; ++i)
      if (joined[size_t(i)] > known[i]) known[i] = joined[size_t(i)];
  }
}

void publish(Knowledge& to, const Fiber& fiber) {
  if (!enabled) return;
  Knowledge mine{epoch, std::vector<uint32_t>(row(fiber.number), row(fiber.number) + threads)};
  uint32_t& own = own_clock[size_t(fiber.number)];
  mine.clocks[size_t(fiber.number)] = own++;
  add(to, mine);
}

void add(Knowledge& to, const Knowledge& what) {
  if (!enabled || what.epoch < epoch) return;  // a barrier of the block said more since
  if (to.epoch < epoch) to = {epoch, std::vector<uint32_t>(size_t(threads), 0)};
  for (size_t i = 0; i < to.clocks.size(); ++i)
    if (what.clocks[i] > to.clocks[i]) to.clocks[i] = what.clocks[i];
}

void learn(const Fiber& fiber, const Knowledge& what) {
  if (!enabled || what.epoch < epoch) return;
  uint32_t* known = row(fiber.number);
  for (size_t i = 0; i < what.clocks.size(); ++i)
    if (what.clocks[i] > known[i]) known[i] = what.clocks[i];
}

void touch(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site) {
  if (!enabled) return;
  settle_suspect();
  const long offset = shared_offset(place, bytes);
  if (offset >= 0) return touch_cells(fiber, place, bytes, offset, access, site);
  if (is_on_stack(fiber, place)) return;
  if (const Region* region = region_of(place, bytes)) {
    // What no kernel writes nobody can race for.
    if (region->is_written) touch_tensor(fiber, place, bytes, *region, access, site);
    return;
  }
  if (access == Access::read && in_library(reinterpret_cast<uintptr_t>(place))) return;
  report_outside(fiber, place, bytes, access, site);
}

void touch_shared(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site) {
  settle_suspect();
  const long offset = shared_offset(place, bytes);
  if (offset < 0) report_not_shared(fiber, place, bytes, access, site);
  if (enabled) touch_cells(fiber, place, bytes, offset, access, site);
}

void begin_flight(const Fiber& fiber, const void* place, size_t bytes, Site site) {
  touch_shared(fiber, place, bytes, Access::write, site);
  suspect.place = nullptr;
  if (!enabled) return;
  Cell* first = &cells[size_t(shared_offset(place, bytes))];
  for (size_t i = 0; i < bytes; ++i) {
    first[i].flight = site;
    first[i].flyer = uint16_t(fiber.number);
  }
}

void end_flight(const Fiber& fiber, const void* place, size_t bytes, Site site) {
  if (!enabled) return;
  const long offset = shared_offset(place, bytes);
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = cells[size_t(offset) + i];
    // A later copy of its own thread to the same place has a flight of its own.
    if (cell.flight == site && cell.flyer == fiber.number) cell.flight = Site();
    cell.write = mark_of(fiber, site);
    cell.atomic = false;
  }
}

void settle_suspect() {
  if (suspect.place == nullptr) return;
  const Suspect seen = suspect;
  suspect.place = nullptr;
  if (memcmp(seen.place, seen.before, seen.bytes) == 0) return;
  report_race(*seen.fiber, seen.site, "write", seen.other, seen.other_thread, "write", seen.spot);
}

// Of an instruction that can only mean shared memory.
void report_not_shared(const Fiber& fiber, const void* place, size_t bytes, Access access,
                       Site site) {
  Report report("outside", site, &fiber);
  report.text("access", word(access)).number("bytes", long(bytes)).address(place, true).send();
  abandon_block();
}

void report_outside(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site) {
  Report report("outside", site, &fiber);
  report.text("access", word(access)).number("bytes", long(bytes)).address(place, false).send();
  abandon_block();
}

void report_misaligned(const Fiber& fiber, const void* place, size_t bytes, Access access,
                       Site site, size_t alignment) {
  Report report("misaligned", site, &fiber);
  report.text("access", word(access)).number("alignment", long(alignment));
  report.number("bytes", long(bytes)).address(place, false).send();
  abandon_block();
}

void touch_atomic(const void* place, int bytes, int line) {
  if (!enabled) return;
  touch(*block.running, place, size_t(bytes), Access::atomic, Site::at_line(line));
}

}  // namespace tl::emulator
