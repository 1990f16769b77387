// ldmatrix and stmatrix: 8x8 matrices of 16-bit elements. Lane 8i + r names row r of matrix i; lane
// l holds, of each matrix, elements 2(l % 4) and 2(l % 4) + 1 of row l / 4 (PTX ISA, ldmatrix), or
// of the transposed matrix.
#include <string.h>

#include "block.h"
#include "check.h"
#include "locals.h"
#include "traffic.h"

namespace tl::emulator {

namespace {

struct Lane {
  const Fiber* fiber;
  unsigned char* row;
  uint32_t* registers;
  int count, line;
  bool transposed;
};

const Lane& lane_of(void* const* lanes, int i) { return *static_cast<const Lane*>(lanes[i]); }

// The rows that lanes named, checked; null where a lane is missing.
void find_rows(void* const* lanes, unsigned char** rows, Access access) {
  for (int i = 0; i < 32; ++i) {
    rows[i] = nullptr;
    if (lanes[i] == nullptr) continue;
    const Lane& lane = lane_of(lanes, i);
    if (i >= 8 * lane.count) continue;
    const Site site = Site::at_line(lane.line);
    if (reinterpret_cast<uintptr_t>(lane.row) % 16 != 0)
      report_misaligned(*lane.fiber, lane.row, 16, access, site, 16);
    touch_shared(*lane.fiber, lane.row, 16, access, site);
    count_access(*lane.fiber, lane.row, 16, access, site);
    rows[i] = lane.row;
  }
}

// Row and column of the lower element that `lane` holds.
void element(int lane, bool transposed, int half, int& row, int& column) {
  const int major = lane / 4, minor = lane % 4 * 2 + half;
  row = transposed ? minor : major;
  column = transposed ? major : minor;
}

void load(void* const* lanes) {
  unsigned char* rows[32];
  find_rows(lanes, rows, Access::read);
  for (int i = 0; i < 32; ++i) {
    if (lanes[i] == nullptr) continue;
    const Lane& lane = lane_of(lanes, i);
    for (int matrix = 0; matrix < lane.count; ++matrix) {
      uint16_t halves[2] = {};
      for (int half = 0; half < 2; ++half) {
        int row, column;
        element(i, lane.transposed, half, row, column);
        if (rows[8 * matrix + row] != nullptr)
          memcpy(&halves[half], rows[8 * matrix + row] + 2 * column, 2);
      }
      lane.registers[matrix] = halves[0] | uint32_t(halves[1]) << 16;
    }
  }
}

void store(void* const* lanes) {
  unsigned char* rows[32];
  find_rows(lanes, rows, Access::write);
  for (int i = 0; i < 32; ++i) {
    if (lanes[i] == nullptr) continue;
    const Lane& lane = lane_of(lanes, i);
    for (int matrix = 0; matrix < lane.count; ++matrix)
      for (int half = 0; half < 2; ++half) {
        int row, column;
        element(i, lane.transposed, half, row, column);
        const auto value = uint16_t(lane.registers[matrix] >> 16 * half);
        if (rows[8 * matrix + row] != nullptr)
          memcpy(rows[8 * matrix + row] + 2 * column, &value, 2);
      }
  }
}

}  // namespace

void load_matrices(int count, bool transposed, uint32_t* registers, uint32_t row, int line) {
  Lane lane{block.running, static_cast<unsigned char*>(shared_pointer(row)), registers, count, line,
            transposed};
  warp_together(~0u, &lane, load, "ldmatrix", line);
  give_local(*block.running, registers, 4 * size_t(count));
}

void store_matrices(int count, bool transposed, uint32_t row, const uint32_t* registers, int line) {
  take_local(*block.running, registers, 4 * size_t(count), Site::at_line(line));
  Lane lane{block.running,
            static_cast<unsigned char*>(shared_pointer(row)),
            const_cast<uint32_t*>(registers),
            count,
            line,
            transposed};
  warp_together(~0u, &lane, store, "stmatrix", line);
}

}  // namespace tl::emulator
