// mma.sync (PTX ISA, Matrix Fragments for mma.m16n8k…). All shapes follow one rule. With g = lane /
// 4, t = lane % 4, and E elements in a 32-bit register (1 of f64):
//   A: register r holds row g + 8 (r mod m/8), columns (4 (r div m/8) + t) E … + E - 1
//   B: register r holds column g, rows (4 r + t) E … + E - 1
//   C: element i holds row g + 8 (i div 2), column 2t + i mod 2
// What the sums come to is in tensor_sum.h.
#include "block.h"
#include "elements.h"
#include "locals.h"
#include "tensor_sum.h"

namespace tl::emulator {

namespace {

struct Lane {
  void* d;
  const void *a, *b;
};

template <int m, int k, class D, class A, class B>
void multiply(void* const* lanes) {
  using number = typename D::number;
  constexpr int n = 8, row_blocks = m / 8, per_word = A::bits >= 32 ? 1 : 32 / A::bits;
  static_assert(A::bits == B::bits, "A and B have elements of one size");
  number a[m][k], b[k][n], d[m][n];
  for (int lane = 0; lane < 32; ++lane) {
    const int g = lane / 4, t = lane % 4;
    if (lanes[lane] == nullptr) continue;
    const Lane& mine = *static_cast<const Lane*>(lanes[lane]);
    for (int i = 0; i < m * k / 32; ++i) {
      const int word = i / per_word;
      const int column = (4 * (word / row_blocks) + t) * per_word + i % per_word;
      a[g + 8 * (word % row_blocks)][column] = number(A::get(mine.a, i));
    }
    for (int i = 0; i < k * n / 32; ++i)
      b[(4 * (i / per_word) + t) * per_word + i % per_word][g] = number(B::get(mine.b, i));
    for (int i = 0; i < m * n / 32; ++i)
      d[g + 8 * (i / 2)][2 * t + i % 2] = number(D::get(mine.d, i));
  }
  add_products<D, A, B, false>(a, b, d, n);
  for (int lane = 0; lane < 32; ++lane) {
    if (lanes[lane] == nullptr) continue;
    const Lane& mine = *static_cast<const Lane*>(lanes[lane]);
    for (int i = 0; i < m * n / 32; ++i)
      D::put(mine.d, i, d[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2]);
  }
}

template <int m, int k, class D, class A, class B>
void issue(void* d, const void* a, const void* b, const char* name, int line) {
  constexpr size_t d_bytes = m * 8 / 32 * D::bits / 8;
  const Site site = Site::at_line(line);
  const Fiber& me = *block.running;
  take_local(me, a, m * k / 32 * A::bits / 8, site);
  take_local(me, b, k * 8 / 32 * B::bits / 8, site);
  take_local(me, d, d_bytes, site);
  Lane lane{d, a, b};
  warp_together(~0u, &lane, multiply<m, k, D, A, B>, name, line);
  give_local(me, d, d_bytes);
}

}  // namespace

#define TL_MMA(name, m, k, D, A, B)                            \
  void name(void* d, const void* a, const void* b, int line) { \
    issue<m, k, D, A, B>(d, a, b, #name, line);                \
  }
#include <emulator/mma_rows.h>

}  // namespace tl::emulator
