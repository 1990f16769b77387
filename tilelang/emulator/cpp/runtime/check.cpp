#include "check.h"

#include <string.h>

#include <unordered_map>

#include "between.h"
#include "block.h"
#include "fiber.h"
#include "memory.h"
#include "traffic.h"

namespace tl::emulator {

namespace {

struct Cell {
  Mark write, reads[2];
  Site flight;  // of an asynchronous copy under way to here
  uint16_t flyer = 0;
  bool atomic = false;  // the last write was one
};
// Which engines read a byte of shared memory: the last two that are not known to be done.
struct EngineCell {
  Mark reads[2];
};

std::vector<Cell> cells;
std::vector<EngineCell> engine_cells;  // empty in a block where no engine read anything

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

// A write over a write that nothing orders, before it happens.
struct Suspect {
  const unsigned char* place = nullptr;
  size_t bytes = 0;
  unsigned char before[32];
  Spot spot{};
  const Fiber* fiber = nullptr;
  Site site;
  Mark other;
} suspect;

void check_flight(const Fiber& fiber, const Cell& cell, Spot spot, Access access, Site site) {
  if (cell.flight.value == 0) return;
  Report report("inflight", site, &fiber);
  report.site("other_", cell.flight).thread("other_", cell.flyer);
  report.text("access", word(access));
  tell(report, spot);
  report.send();
}

const char* word_of_write(const Cell& cell) {
  return is_engine(cell.write) ? "copy" : cell.atomic ? "atomic update" : "write";
}

// The first read since the last write stays, the last one changes: threads come in order, and the
// ends of a row of them are in different warps.
void remember_read(Cell& cell, const Mark& mark, int thread) {
  cell.reads[is_before(cell.reads[0], thread) ? 0 : 1] = mark;
}

void check_read(const Fiber& fiber, Cell& cell, Spot spot, Site site) {
  const int me = fiber.number;
  if (cell.write.epoch < first_epoch() && cell.flight.value == 0) {
    if (spot.region == nullptr) {
      Report report("uninitialised", site, &fiber);
      tell(report, spot);
      report.send();
    }
  } else if (!is_before(cell.write, me) && cell.flight.value == 0) {
    report_race(fiber, site, "read", cell.write, word_of_write(cell), spot);
  }
}

void check_write(const Fiber& fiber, Cell& cell, const unsigned char* place, size_t bytes,
                 Spot spot, Access access, Site site) {
  const int me = fiber.number;
  const bool is_atomic = is_update(access);
  if (!is_before(cell.write, me) && !(is_atomic && cell.atomic) && cell.flight.value == 0) {
    if (is_atomic || cell.atomic || is_engine(cell.write) || bytes > sizeof(suspect.before)) {
      report_race(fiber, site, word(access), cell.write, word_of_write(cell), spot);
    } else if (suspect.place == nullptr) {
      suspect.place = place;
      suspect.bytes = bytes;
      memcpy(suspect.before, place, bytes);
      suspect.spot = spot;
      suspect.fiber = &fiber;
      suspect.site = site;
      suspect.other = cell.write;
    }
  }
  for (const Mark& read : cell.reads)
    if (!is_before(read, me)) report_race(fiber, site, word(access), read, "read", spot);
  cell.write = mark_of(fiber, site);
  cell.atomic = is_atomic;
}

void check_cell(const Fiber& fiber, Cell& cell, const unsigned char* place, size_t bytes, Spot spot,
                Access access, Site site) {
  if (is_write(access)) return check_write(fiber, cell, place, bytes, spot, access, site);
  if (access == Access::atomic_read && cell.atomic) return;
  check_read(fiber, cell, spot, site);
  if (access == Access::read) remember_read(cell, mark_of(fiber, site), fiber.number);
}

// Whoever overwrites what an engine reads has to know that it is done.
void check_engines(const Fiber& fiber, Spot spot, Access access, Site site) {
  for (const Mark& read : engine_cells[size_t(spot.offset)].reads) {
    if (is_before(read, fiber.number)) continue;
    if (is_done(read)) {
      report_race(fiber, site, word(access), read, "read", spot);
      continue;
    }
    Report report("busy", site, &fiber);
    report.site("other_", read.site).thread("other_", thread_of(read));
    report.text("access", word(access));
    tell(report, spot);
    report.send();
  }
}

void touch_cells(const Fiber& fiber, const void* place, size_t bytes, long offset, Access access,
                 Site site) {
  const auto* at = static_cast<const unsigned char*>(place);
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = cells[size_t(offset) + i];
    const Spot spot{offset + long(i), nullptr};
    check_flight(fiber, cell, spot, access, site);
    check_cell(fiber, cell, at, bytes, spot, access, site);
    if (is_write(access) && !engine_cells.empty()) check_engines(fiber, spot, access, site);
  }
}

void touch_tensor(const Fiber& fiber, const void* place, size_t bytes, const Region& region,
                  Access access, Site site) {
  const auto* at = static_cast<const unsigned char*>(place);
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = global_cell(at + i);
    const Spot spot{long(at + i - region.start), &region};
    check_cell(fiber, cell, at, bytes, spot, access, site);
  }
}

bool is_on_stack(const Fiber& fiber, const void* place) {
  return size_t(static_cast<const char*>(place) - fiber.stack) < stack_bytes;
}

void check_engine_read(const Fiber& fiber, const View& view, Cell& cell, Spot spot, Site site) {
  check_flight(fiber, cell, spot, Access::read, site);
  if (cell.flight.value != 0) return;
  if (cell.write.epoch < first_epoch()) {
    if (spot.region != nullptr) return;
    Report report("uninitialised", site, &fiber);
    tell(report, spot);
    report.send();
  } else if (!is_before(cell.write, view)) {
    report_race(fiber, site, "read", cell.write, word_of_write(cell), spot);
  } else if (!is_fenced(cell.write, view)) {
    Report report("unfenced", site, &fiber);
    report.site("other_", cell.write.site).thread("other_", thread_of(cell.write));
    tell(report, spot);
    report.send();
  }
}

}  // namespace

const char* word(Access access) {
  return access == Access::write ? "write" : is_update(access) ? "atomic update" : "read";
}

void tell(Report& report, Spot spot) {
  report.number("offset", spot.offset);
  if (spot.region != nullptr) report.text("buffer", spot.region->name);
}

void report_race(const Fiber& fiber, Site site, const char* access, const Mark& other,
                 const char* other_access, Spot spot) {
  Report report("race", site, &fiber);
  report.site("other_", other.site).thread("other_", thread_of(other));
  report.text("access", access).text("other_access", other_access);
  tell(report, spot);
  report.send();
}

void begin_block_check(int count) {
  if (!checking()) return;
  begin_order(count);
  if (cells.size() < shared_bytes()) cells.resize(shared_bytes());
  for (Cell& cell : cells) cell.flight = Site();
  engine_cells.clear();
  for (const auto& [number, page] : pages) spare_pages.push_back(page);
  pages.clear();
  last_page = nullptr;
  suspect.place = nullptr;
}

void touch(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site) {
  if (!checking()) return;
  settle_suspect();
  const long offset = shared_offset(place, bytes);
  if (offset >= 0) return touch_cells(fiber, place, bytes, offset, access, site);
  if (is_on_stack(fiber, place)) return;
  if (const Region* region = region_of(place, bytes)) {
    // What no kernel writes nobody can race for.
    if (region->is_written) touch_tensor(fiber, place, bytes, *region, access, site);
    if (region->is_written || region->is_fresh)
      touch_between(fiber, place, bytes, *region, access, site);
    return;
  }
  report_outside(fiber, place, bytes, access, site);
}

void touch_shared(const Fiber& fiber, const void* place, size_t bytes, Access access, Site site) {
  settle_suspect();
  const long offset = shared_offset(place, bytes);
  if (offset < 0) report_not_shared(fiber, place, bytes, access, site);
  if (checking()) touch_cells(fiber, place, bytes, offset, access, site);
}

void engine_reads_shared(const Fiber& fiber, const View& view, const void* place, size_t bytes,
                         Mark work) {
  if (!checking()) return;
  settle_suspect();
  const long offset = shared_offset(place, bytes);
  if (offset < 0) report_not_shared(fiber, place, bytes, Access::read, work.site);
  if (engine_cells.size() < cells.size()) engine_cells.resize(cells.size());
  for (size_t i = size_t(offset); i < size_t(offset) + bytes; ++i) {
    check_engine_read(fiber, view, cells[i], {long(i), nullptr}, work.site);
    Mark* reads = engine_cells[i].reads;
    // Work of one engine is done in order: the last of it stands for all.
    const bool is_second = reads[0].actor != work.actor &&
                           (reads[1].actor == work.actor || !is_before(reads[0], view));
    reads[is_second ? 1 : 0] = work;
  }
}

void engine_reads(const Fiber& fiber, const View& view, const void* place, size_t bytes,
                  Site site) {
  touch(fiber, place, bytes, Access::read, site);
  const Region* region = checking() ? region_of(place, bytes) : nullptr;
  if (region == nullptr || !region->is_written) return;
  const auto* at = static_cast<const unsigned char*>(place);
  for (size_t i = 0; i < bytes; ++i)
    check_engine_read(fiber, view, global_cell(at + i), {long(at + i - region->start), region},
                      site);
}

void must_be_fenced(const Fiber& fiber, const View& view, Mark written, const char* what,
                    Site site) {
  if (!checking() || is_fenced(written, view)) return;
  Report report("unfenced", site, &fiber);
  report.site("other_", written.site).thread("other_", thread_of(written)).text("what", what);
  report.send();
}

void begin_flight(const Fiber& fiber, const void* place, size_t bytes, Site site) {
  touch_shared(fiber, place, bytes, Access::write, site);
  suspect.place = nullptr;
  if (!checking()) return;
  Cell* first = &cells[size_t(shared_offset(place, bytes))];
  for (size_t i = 0; i < bytes; ++i) {
    first[i].flight = site;
    first[i].flyer = uint16_t(fiber.number);
  }
}

void end_flight(const Fiber& fiber, const void* place, size_t bytes, Site issued, Mark landed) {
  if (!checking()) return;
  const long offset = shared_offset(place, bytes);
  for (size_t i = 0; i < bytes; ++i) {
    Cell& cell = cells[size_t(offset) + i];
    // A later copy of its own thread to the same place has a flight of its own.
    if (cell.flight == issued && cell.flyer == fiber.number) cell.flight = Site();
    cell.write = landed;
    cell.atomic = false;
  }
}

void settle_suspect() {
  settle_between();
  if (suspect.place == nullptr) return;
  const Suspect seen = suspect;
  suspect.place = nullptr;
  if (memcmp(seen.place, seen.before, seen.bytes) == 0) return;
  report_race(*seen.fiber, seen.site, "write", seen.other, "write", seen.spot);
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

// An element smaller than a word is exchanged with its neighbours, which stay what they are.
void touch_exchange(const void* place, int bytes, const void* different, int line) {
  const auto* at = static_cast<const unsigned char*>(place);
  const auto* bits = static_cast<const unsigned char*>(different);
  int first = 0, last = bytes - 1;
  while (first < bytes && bits[first] == 0) ++first;
  while (last > first && bits[last] == 0) --last;
  if (!checking()) return;
  const Access access = first < bytes ? Access::exchange : Access::atomic_read;
  const size_t count = first < bytes ? size_t(last - first + 1) : size_t(bytes);
  touch(*block.running, first < bytes ? at + first : at, count, access, Site::at_line(line));
}

void touch_atomic(const void* place, int bytes, int line) {
  if (!checking()) return;
  const Site site = Site::at_line(line);
  touch(*block.running, place, size_t(bytes), Access::atomic, site);
  count_access(*block.running, place, size_t(bytes), Access::atomic, site);
}

}  // namespace tl::emulator
