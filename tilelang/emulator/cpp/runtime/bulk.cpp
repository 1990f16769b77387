// Bulk copies by tensor maps (PTX ISA, cp.async.bulk.tensor). Loads are under way until nothing
// else can be done, and tell an mbarrier; stores take their source when they are waited for.
#include <emulator/bits16.h>
#include <string.h>

#include <deque>

#include "block.h"
#include "check.h"
#include "mbarrier.h"
#include "memory.h"
#include "report.h"

namespace tl::emulator {

namespace {

struct Load {
  const Fiber* fiber;
  unsigned char* to;
  TensorMap map;
  int at[5];
  const unsigned char* plain;  // not null: a copy of bytes without a map
  long bytes;
  void* barrier;
  Knowledge knowledge;
  Mark work;
  int line;
};
std::deque<Load> under_way;

// The 16-byte pieces of a row change places, by the row's number, both read off the address (PTX
// ISA, tensor swizzling modes): bits 4… are flipped by bits 7….
uintptr_t swizzled(uintptr_t address, int swizzle) {
  const uintptr_t mask = swizzle == 128 ? 7 : swizzle == 64 ? 3 : swizzle == 32 ? 1 : 0;
  return address ^ ((address >> 7 & mask) << 4);
}

long box_elements(const TensorMap& map) {
  long count = 1;
  for (int i = 0; i < map.rank; ++i) count *= map.box[i];
  return count;
}

// Calls `visit(place in shared memory, place in the tensor or null outside of it)` for each
// element.
template <class F>
void for_each(const TensorMap& map, const int* at, unsigned char* tile, F visit) {
  const long count = box_elements(map);
  for (long n = 0; n < count; ++n) {
    long rest = n, offset = 0;
    bool inside = true;
    for (int i = 0; i < map.rank; ++i) {
      const long index = at[i] + rest % map.box[i];
      rest /= map.box[i];
      inside = inside && index >= 0 && uint64_t(index) < map.shape[i];
      offset += index * long(i == 0 ? map.item : map.strides[i - 1]);
    }
    auto* place = reinterpret_cast<unsigned char*>(
        swizzled(reinterpret_cast<uintptr_t>(tile) + uintptr_t(n) * map.item, map.swizzle));
    visit(place, inside ? map.base + offset : nullptr);
  }
}

// The same, for pieces of up to 16 bytes that lie together on both sides.
template <class F>
void for_each_row(const TensorMap& map, const int* at, unsigned char* tile, F visit) {
  unsigned char *place = nullptr, *there = nullptr;
  size_t bytes = 0;
  for_each(map, at, tile, [&](unsigned char* next, unsigned char* in_tensor) {
    const bool goes_on = bytes > 0 && bytes + map.item <= 16 && next == place + bytes &&
                         (there == nullptr ? in_tensor == nullptr : in_tensor == there + bytes);
    if (!goes_on) {
      if (bytes > 0) visit(place, there, bytes);
      place = next;
      there = in_tensor;
      bytes = 0;
    }
    bytes += map.item;
  });
  if (bytes > 0) visit(place, there, bytes);
}

template <class T>
void add_number(unsigned char* to, const unsigned char* from) {
  T a, b;
  memcpy(&a, to, sizeof(T));
  memcpy(&b, from, sizeof(T));
  a = T(a + b);
  memcpy(to, &a, sizeof(T));
}

void add_element(const TensorMap& map, unsigned char* to, const unsigned char* from) {
  uint16_t a, b;
  switch (map.number) {
    case 1:
      return add_number<float>(to, from);
    case 4:
      return add_number<double>(to, from);
    case 2:
    case 3:
      memcpy(&a, to, 2);
      memcpy(&b, from, 2);
      a = map.number == 2 ? tl_float_to_half(tl_half_to_float(a) + tl_half_to_float(b))
                          : tl_float_to_bfloat(tl_bfloat_to_float(a) + tl_bfloat_to_float(b));
      memcpy(to, &a, 2);
      return;
    default:
      return map.item == 8 ? add_number<uint64_t>(to, from) : add_number<uint32_t>(to, from);
  }
}

void store(const Fiber& fiber, const PendingStore& what) {
  const Access access = what.adds ? Access::atomic : Access::write;
  for_each_row(what.map, what.at, const_cast<unsigned char*>(what.from),
               [&](unsigned char* from, unsigned char* to, size_t bytes) {
                 if (to == nullptr) return;
                 touch(fiber, to, bytes, access, Site::at_line(what.line));
                 for (size_t i = 0; i < bytes && what.adds; i += what.map.item)
                   add_element(what.map, to + i, from + i);
                 if (!what.adds) memcpy(to, from, bytes);
                 settle_suspect();
               });
  if (checking()) finish_work(what.work.actor, what.work.clock, fiber);
}

void start(Load load) {
  const Fiber& me = *block.running;
  const Site site = Site::at_line(load.line);
  if (reinterpret_cast<uintptr_t>(load.to) % 16 != 0)
    report_misaligned(me, load.to, size_t(load.bytes), Access::write, site, 16);
  const View view = checking() ? view_of(me) : View();
  load.work = begin_load(load.barrier, view, load.line);
  const auto read = [&](unsigned char*, const unsigned char* from, size_t bytes) {
    if (from != nullptr) engine_reads(me, view, from, bytes, site);
  };
  if (load.plain != nullptr) read(nullptr, load.plain, size_t(load.bytes));
  else if (checking()) for_each_row(load.map, load.at, load.to, read);
  begin_flight(me, load.to, size_t(load.bytes), site);
  memset(load.to, 0xff, size_t(load.bytes));
  publish(load.knowledge, me);
  under_way.push_back(load);
}

// An H200 stops with an illegal instruction where the innermost coordinate is no multiple of 16
// bytes, and where a store starts before the tensor (measured: tests/device/golden_hopper.py).
void check_start(const TensorMap& map, const int* at, bool is_store, int line) {
  const char* wrong = at[0] * int(map.item) % 16 != 0 ? "starts within 16 bytes" : nullptr;
  for (int i = 0; is_store && i < map.rank; ++i)
    if (at[i] < 0) wrong = "starts before the tensor";
  if (wrong == nullptr) return;
  Report report("illegal", Site::at_line(line), block.running);
  report.text("text", std::string(is_store ? "a bulk store that " : "a bulk load that ") + wrong);
  report.send();
  abandon_block();
}

}  // namespace

void bulk_load(void* to, const TensorMap& map, void* barrier, const int* at, int line) {
  Load load{block.running, static_cast<unsigned char*>(to), map,     {},
            nullptr,       box_elements(map) * map.item,    barrier, {},      {},
            line};
  check_start(map, at, false, line);
  memcpy(load.at, at, sizeof(load.at));
  start(load);
}

void bulk_copy(void* to, const void* from, int bytes, void* barrier, int line) {
  start({block.running,
         static_cast<unsigned char*>(to),
         {},
         {},
         static_cast<const unsigned char*>(from),
         bytes,
         barrier,
         {},
         {},
         line});
}

bool advance_bulk() {
  if (under_way.empty()) return false;
  const Load load = under_way.front();
  under_way.pop_front();
  if (load.plain != nullptr) {
    memcpy(load.to, load.plain, size_t(load.bytes));
  } else {
    for_each(load.map, load.at, load.to, [&](unsigned char* place, const unsigned char* from) {
      if (from == nullptr) memset(place, 0, load.map.item);
      else memcpy(place, from, load.map.item);
    });
  }
  Mark landed = load.work;
  Knowledge knowledge = load.knowledge;
  if (checking()) {
    landed.epoch = this_epoch();
    finish_work(landed.actor, landed.clock, knowledge);
  }
  end_flight(*load.fiber, load.to, size_t(load.bytes), Site::at_line(load.line), landed);
  complete_bytes(load.barrier, load.bytes, knowledge);
  return true;
}

void bulk_store(const void* from, const TensorMap& map, bool adds, const int* at, int line) {
  check_start(map, at, true, line);
  Fiber& me = *block.running;
  PendingStore store{static_cast<const unsigned char*>(from), map, adds, {}, line, {}};
  memcpy(store.at, at, sizeof(store.at));
  if (checking()) {
    if (me.store_engine < 0) me.store_engine = new_engine(me.number);
    store.work = begin_work(me.store_engine, Site::at_line(line));
    engine_reads_shared(me, view_of(me), from, size_t(box_elements(map) * map.item), store.work);
  }
  me.open_stores.push_back(store);
}

void bulk_commit() {
  Fiber& me = *block.running;
  me.stores.push_back(std::move(me.open_stores));
  me.open_stores.clear();
}

void bulk_wait(int groups) {
  Fiber& me = *block.running;
  while (me.stores.size() > size_t(groups)) {
    for (const PendingStore& what : me.stores.front()) store(me, what);
    me.stores.erase(me.stores.begin());
  }
}

void reset_bulk() { under_way.clear(); }

void finish_bulk() {
  for (Fiber* fiber : block.fibers) {
    fiber->stores.push_back(fiber->open_stores);
    for (const auto& group : fiber->stores)
      for (const PendingStore& what : group) {
        if (checking()) {
          Report report("unwaited", Site::at_line(what.line), fiber);
          report.text("text", "a bulk store").send();
        }
        store(*fiber, what);
      }
  }
}

}  // namespace tl::emulator
