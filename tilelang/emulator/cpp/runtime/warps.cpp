// What the lanes of a warp do together: each brings something, and the last to come combines it.
#include "block.h"
#include "check.h"
#include "report.h"
#include "traffic.h"

namespace tl::emulator {

int warp_lanes = 32;

namespace {

uint64_t bit(int lane) { return uint64_t(1) << lane; }

struct Meeting {
  uint64_t mask = 0, came = 0;
  void* lanes[64] = {};
  Combine combine = nullptr;
  const char* what = nullptr;
  int line = 0;
  bool orders = false;
};

struct Warp {
  uint64_t live = 0;
  // One for each mask that lanes have come with: most often just one.
  std::vector<Meeting> meetings;
};
std::vector<Warp> warps;

// What a lane brings to an exchange of values, and takes from it.
struct Parcel {
  uint64_t value;
  int place;
  uint64_t result;
};

Parcel& parcel(void* const* lanes, int lane) { return *static_cast<Parcel*>(lanes[lane]); }

void combine_shuffle(void* const* lanes) {
  for (int i = 0; i < warp_lanes; ++i) {
    if (lanes[i] == nullptr) continue;
    Parcel& mine = parcel(lanes, i);
    mine.result =
        uint32_t(lanes[mine.place] == nullptr ? mine.value : parcel(lanes, mine.place).value);
  }
}

void combine_ballot(void* const* lanes) {
  uint64_t bits = 0;
  for (int i = 0; i < warp_lanes; ++i)
    if (lanes[i] != nullptr && parcel(lanes, i).value != 0) bits |= bit(i);
  for (int i = 0; i < warp_lanes; ++i)
    if (lanes[i] != nullptr) parcel(lanes, i).result = bits;
}

void combine_match(void* const* lanes) {
  for (int i = 0; i < warp_lanes; ++i) {
    if (lanes[i] == nullptr) continue;
    Parcel& mine = parcel(lanes, i);
    mine.result = 0;
    for (int j = 0; j < warp_lanes; ++j)
      if (lanes[j] != nullptr && parcel(lanes, j).value == mine.value) mine.result |= bit(j);
  }
}

Fiber* lane_of(int warp, int lane) { return block.fibers[size_t(warp * warp_lanes + lane)]; }

// What a shuffle takes from a lane that brought nothing is undefined (PTX ISA, shfl.sync).
void check_sources(int warp, const Meeting& meeting) {
  for (int i = 0; i < warp_lanes; ++i) {
    if (!(meeting.came >> i & 1)) continue;
    const int place = parcel(meeting.lanes, i).place;
    if (meeting.lanes[place] != nullptr) continue;
    const bool exists = size_t(warp * warp_lanes + place) < block.fibers.size();
    Report report("absent", Site::at_line(meeting.line), lane_of(warp, i));
    report.number("lane", i).number("source", place).text("text", meeting.what);
    report.text("why", !exists                       ? "block"
                       : meeting.mask >> place & 1 ? "path"
                                                   : "mask");
    report.send();
    return;
  }
}

void complete(int warp, size_t index, const Fiber* except) {
  const Meeting meeting = warps[size_t(warp)].meetings[index];
  if (checking() && meeting.combine == combine_shuffle) check_sources(warp, meeting);
  auto& all = warps[size_t(warp)].meetings;
  all.erase(all.begin() + long(index));
  if (meeting.combine != nullptr) meeting.combine(meeting.lanes);
  if (meeting.orders) {
    std::vector<Fiber*> members;
    for (int i = 0; i < warp_lanes; ++i)
      if (meeting.came >> i & 1) members.push_back(lane_of(warp, i));
    order_some(members, members);
  }
  if ((meeting.came & warps[size_t(warp)].live) == warps[size_t(warp)].live) converge(warp);
  for (int i = 0; i < warp_lanes; ++i)
    if ((meeting.came >> i & 1) && lane_of(warp, i) != except) make_ready(lane_of(warp, i));
}

Meeting& meeting_of(Warp& warp, uint64_t mask, size_t& index) {
  for (index = 0; index < warp.meetings.size(); ++index)
    if (warp.meetings[index].mask == mask) return warp.meetings[index];
  warp.meetings.emplace_back();
  warp.meetings.back().mask = mask;
  return warp.meetings.back();
}

void reject(const Meeting& meeting, const char* what, int line) {
  Report report("divergence", Site::at_line(line), block.running);
  report.text("text", std::string(what) + " with lanes that are at " + meeting.what);
  report.site("other_", Site::at_line(meeting.line)).send();
  abandon_block();
}

void together(uint64_t mask, void* brought, Combine combine, const char* what, int line,
              bool orders) {
  settle_suspect();
  Fiber* me = block.running;
  Warp& warp = warps[size_t(me->warp)];
  const uint64_t mine = bit(me->lane);
  if (!(mask & mine)) {
    Report report("divergence", Site::at_line(line), me);
    report.text("text", std::string(what) + " in a lane that its own mask leaves out").send();
    abandon_block();
  }
  size_t index;
  Meeting& meeting = meeting_of(warp, mask, index);
  if (meeting.came == 0) {
    meeting.combine = combine;
    meeting.what = what;
    meeting.line = line;
    meeting.orders = orders;
  } else if (meeting.combine != combine || meeting.what != what) {
    reject(meeting, what, line);
  }
  meeting.came |= mine;
  meeting.lanes[me->lane] = brought;
  if ((meeting.came & warp.live) == (mask & warp.live)) complete(me->warp, index, me);
  else suspend(what, line);
}

}  // namespace

void warp_together(uint64_t mask, void* brought, Combine combine, const char* what, int line) {
  together(mask, brought, combine, what, line, false);
}
void sync_warp(uint64_t mask, int line) {
  together(mask, nullptr, nullptr, "bar.warp.sync", line, true);
}

namespace {

uint64_t exchange(uint64_t mask, uint64_t value, int place, Combine combine, const char* what,
                  int line) {
  Parcel mine{value, place, 0};
  warp_together(mask, &mine, combine, what, line);
  return mine.result;
}

}  // namespace

uint32_t shuffle(uint64_t mask, uint32_t value, int place, const char* what, int line) {
  return uint32_t(exchange(mask, value, place, combine_shuffle, what, line));
}
uint64_t ballot(uint64_t mask, bool predicate, int line) {
  return exchange(mask, predicate, 0, combine_ballot, "vote.sync", line);
}
uint64_t match(uint64_t mask, uint64_t value, int line) {
  return exchange(mask, value, 0, combine_match, "match.sync", line);
}

// Lanes run one after the other here, so all that live count as together.
uint64_t active_mask() { return warps[size_t(block.running->warp)].live; }

void reset_warps(int count) {
  warps.assign(size_t(count), Warp());
  for (size_t i = 0; i < block.fibers.size(); ++i) warps[i / size_t(warp_lanes)].live |= bit(int(i) % warp_lanes);
}

void warps_lost(const Fiber& fiber) {
  Warp& warp = warps[size_t(fiber.warp)];
  warp.live &= ~bit(fiber.lane);
  for (size_t i = warp.meetings.size(); i-- > 0;)
    if ((warp.meetings[i].came & warp.live) == (warp.meetings[i].mask & warp.live))
      complete(fiber.warp, i, nullptr);
}

}  // namespace tl::emulator
