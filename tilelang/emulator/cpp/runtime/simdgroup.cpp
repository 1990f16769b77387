// simdgroup_matrix: 8x8 matrices that the 32 lanes of a simdgroup hold together (Metal Shading
// Language, 6.7). Metal does not say which lane holds which elements, so each schedule has a way of
// its own: a kernel that depends on one is found out by another.
#include <emulator/bits16.h>

#include <string>

#include "block.h"
#include "check.h"
#include "report.h"

namespace tl::emulator {

namespace {

constexpr int size = 8, lanes_of_group = 32, held_by_lane = 2;

struct Lane {
  const Fiber* fiber;
  float* held;
  unsigned char* memory;
  const float *a, *b, *c;
  long row;
  MatrixType type;
  bool transposed;
  int line;
};

const Lane& lane_of(void* const* lanes, int i) { return *static_cast<const Lane*>(lanes[i]); }

// Row and column of element `n` of a lane: an odd factor permutes the 64 elements.
void element(int lane, int n, int& row, int& column) {
  const uint64_t seed = schedule(), factor = 2 * (seed * 0x9e3779b97f4a7c15ull >> 59) + 1;
  const int place = int((uint64_t(held_by_lane * lane + n) * factor + seed) % (size * size));
  row = place / size;
  column = place % size;
}

size_t bytes_of(MatrixType type) { return type == MatrixType::f32 ? 4 : 2; }

float rounded(float x, MatrixType type) {
  switch (type) {
    case MatrixType::f16: return tl_half_to_float(tl_float_to_half(x));
    case MatrixType::bf16: return tl_bfloat_to_float(tl_float_to_bfloat(x));
    case MatrixType::f32: break;
  }
  return x;
}

float read(const unsigned char* place, MatrixType type) {
  if (type == MatrixType::f32) {
    float x;
    memcpy(&x, place, 4);
    return x;
  }
  uint16_t code;
  memcpy(&code, place, 2);
  return type == MatrixType::f16 ? tl_half_to_float(code) : tl_bfloat_to_float(code);
}

void write(unsigned char* place, float x, MatrixType type) {
  if (type == MatrixType::f32) {
    memcpy(place, &x, 4);
    return;
  }
  const uint16_t code = type == MatrixType::f16 ? tl_float_to_half(x) : tl_float_to_bfloat(x);
  memcpy(place, &code, 2);
}

// All lanes have to name the same matrix.
void agree(void* const* lanes) {
  const Lane* first = nullptr;
  for (int i = 0; i < lanes_of_group; ++i) {
    if (lanes[i] == nullptr) continue;
    const Lane& lane = lane_of(lanes, i);
    if (first == nullptr) first = &lane;
    if (lane.memory == first->memory && lane.row == first->row) continue;
    Report report("divergence", Site::at_line(lane.line), lane.fiber);
    report.text("text", "a simdgroup_matrix whose lanes name different places").send();
    abandon_block();
  }
}

template <class F>
void for_each_element(void* const* lanes, F act) {
  for (int i = 0; i < lanes_of_group; ++i) {
    if (lanes[i] == nullptr) continue;
    const Lane& lane = lane_of(lanes, i);
    for (int n = 0; n < held_by_lane; ++n) {
      int row, column;
      element(i, n, row, column);
      act(lane, n, row, column);
    }
  }
}

template <bool stores>
void move(void* const* lanes) {
  agree(lanes);
  for_each_element(lanes, [](const Lane& lane, int n, int row, int column) {
    const size_t bytes = bytes_of(lane.type);
    const long place = lane.transposed ? column * lane.row + row : row * lane.row + column;
    unsigned char* at = lane.memory + place * long(bytes);
    const Site site = Site::at_line(lane.line);
    if (reinterpret_cast<uintptr_t>(at) % bytes != 0)
      report_misaligned(*lane.fiber, at, bytes, stores ? Access::write : Access::read, site, bytes);
    touch(*lane.fiber, at, bytes, stores ? Access::write : Access::read, site);
    if (stores) write(at, lane.held[n], lane.type);
    else lane.held[n] = read(at, lane.type);
  });
}

void multiply(void* const* lanes) {
  float a[size][size] = {}, b[size][size] = {}, sum[size][size] = {};
  for_each_element(lanes, [&](const Lane& lane, int n, int row, int column) {
    a[row][column] = lane.a[n];
    b[row][column] = lane.b[n];
    sum[row][column] = lane.c[n];
  });
  for (int row = 0; row < size; ++row)
    for (int step = 0; step < size; ++step)
      for (int column = 0; column < size; ++column)
        sum[row][column] += a[row][step] * b[step][column];
  for_each_element(lanes, [&](const Lane& lane, int n, int row, int column) {
    lane.held[n] = rounded(sum[row][column], lane.type);
  });
}

}  // namespace

void simdgroup_load(float* held, MatrixType type, const void* from, long row, bool transposed,
                    int line) {
  auto* memory = static_cast<unsigned char*>(const_cast<void*>(from));
  Lane lane{block.running, held, memory, nullptr, nullptr, nullptr, row, type, transposed, line};
  warp_together(~0u, &lane, move<false>, "simdgroup_load", line);
}

void simdgroup_store(const float* held, MatrixType type, void* to, long row, bool transposed,
                     int line) {
  Lane lane{block.running, const_cast<float*>(held), static_cast<unsigned char*>(to),
            nullptr,       nullptr,                  nullptr,
            row,           type,                     transposed,
            line};
  warp_together(~0u, &lane, move<true>, "simdgroup_store", line);
}

void simdgroup_multiply(float* d, const float* a, const float* b, const float* c, MatrixType type,
                        int line) {
  Lane lane{block.running, d, nullptr, a, b, c, 0, type, false, line};
  warp_together(~0u, &lane, multiply, "simdgroup_multiply_accumulate", line);
}

}  // namespace tl::emulator
