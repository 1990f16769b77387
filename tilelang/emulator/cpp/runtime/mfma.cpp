// v_mfma (AMD Instinct MI300 ISA, Matrix Arithmetic Instructions). With G = 64 / m groups of m lanes,
// and E = k / G elements of A and of B in a lane, lane l = i + m g of the instruction holds
//   A: element e is row i, column E g + e
//   B: element e is column i, row E g + e
//   D: element e is column i, row e mod 4 + 4 g + 4 G (e div 4)
// The device functions exchange A and B, so that what is written here is D': a row of the sums.
// Products are summed in float (int of integers), k ascending; the hardware sums in another order.
#include "block.h"
#include "elements.h"
#include "locals.h"

namespace tl::emulator {

namespace {

constexpr int wave = 64;

struct Lane {
  void* d;
  const void *a, *b;
};

template <int m, int k, class D, class T>
void multiply(void* const* lanes) {
  using number = typename D::number;
  constexpr int groups = wave / m, held = k / groups, sums = m * m / wave;
  static number a[m][k], b[m][k], d[m][m];
  const auto column = [](int lane, int e) { return e % 4 + 4 * (lane / m) + 4 * groups * (e / 4); };
  for (int lane = 0; lane < wave; ++lane) {
    if (lanes[lane] == nullptr) continue;
    const Lane& mine = *static_cast<const Lane*>(lanes[lane]);
    for (int e = 0; e < held; ++e) {
      a[lane % m][held * (lane / m) + e] = number(T::get(mine.a, e));
      b[lane % m][held * (lane / m) + e] = number(T::get(mine.b, e));
    }
    for (int e = 0; e < sums; ++e) d[lane % m][column(lane, e)] = number(D::get(mine.d, e));
  }
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < m; ++j)
      for (int step = 0; step < k; ++step) d[i][j] += a[i][step] * b[j][step];
  for (int lane = 0; lane < wave; ++lane) {
    if (lanes[lane] == nullptr) continue;
    const Lane& mine = *static_cast<const Lane*>(lanes[lane]);
    for (int e = 0; e < sums; ++e) D::put(mine.d, e, d[lane % m][column(lane, e)]);
  }
}

template <int m, int k, class D, class T>
void issue(void* d, const void* a, const void* b, const char* name, int line) {
  constexpr size_t held = m * k / wave * T::bits / 8, sums = m * m / wave * D::bits / 8;
  const Fiber& me = *block.running;
  take_local(me, a, held, Site::at_line(line));
  take_local(me, b, held, Site::at_line(line));
  take_local(me, d, sums, Site::at_line(line));
  Lane lane{d, a, b};
  warp_together(~uint64_t(0), &lane, multiply<m, k, D, T>, name, line);
  give_local(me, d, sums);
}

}  // namespace

#define TL_MFMA(name, m, k, D, T)                                 \
  void name(void* d, const void* a, const void* b, int line) {    \
    issue<m, k, D, T>(d, a, b, #name, line);                      \
  }
#include <emulator/mfma_rows.h>

}  // namespace tl::emulator
