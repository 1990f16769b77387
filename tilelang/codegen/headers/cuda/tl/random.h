// Random numbers: Philox4x32-10 (Salmon et al., 2011), counted as cuRAND counts it, so that a seed
// gives the numbers that curand_init, curand, curand_uniform and curand_normal give.
//
// The state of a thread is an array of 16 words: counter, key, the four words of this counter, how
// many of them are used, and the second value of a pair of normal ones.
#pragma once
#include <tl/common.h>

namespace tl {

constexpr int rng_key = 4, rng_words = 6, rng_used = 10, rng_float = 11, rng_double = 13;

TL_DEVICE void rng_fill(uint32* s) {
  uint32 a = s[0], b = s[1], c = s[2], d = s[3], k = s[rng_key], l = s[rng_key + 1];
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint32 high0 = __umulhi(0xD2511F53u, a), low0 = 0xD2511F53u * a;
    const uint32 high1 = __umulhi(0xCD9E8D57u, c), low1 = 0xCD9E8D57u * c;
    a = high1 ^ b ^ k;
    b = low1;
    c = high0 ^ d ^ l;
    d = low0;
    k += 0x9E3779B9u;
    l += 0xBB67AE85u;
  }
  s[rng_words] = a;
  s[rng_words + 1] = b;
  s[rng_words + 2] = c;
  s[rng_words + 3] = d;
}

// Adds to the word `first` of the counter and to those above.
TL_DEVICE void rng_count(uint32* s, int first, uint64 n) {
  uint64 carry = n;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (i < first) continue;
    const uint64 sum = uint64(s[i]) + uint32(carry);
    s[i] = uint32(sum);
    carry = (carry >> 32) + (sum >> 32);
  }
}

TL_DEVICE void rng_init(uint32* s, uint64 seed, uint64 off, uint64 seq) {
#pragma unroll
  for (int i = 0; i < 16; ++i) s[i] = 0;
  s[rng_key] = uint32(seed);
  s[rng_key + 1] = uint32(seed >> 32);
  rng_count(s, 2, seq);
  rng_count(s, 0, off / 4);
  s[rng_used] = uint32(off % 4);
  rng_fill(s);
}
TL_DEVICE void rng_init(uint32* s, uint64 seed, uint64 off) {
  const uint64 block = blockIdx.x + uint64(gridDim.x) * (blockIdx.y + uint64(gridDim.y) * blockIdx.z);
  rng_init(s, seed, off, block * (blockDim.x * blockDim.y * blockDim.z) + thread_number());
}

TL_DEVICE uint32 rng_rand(uint32* s) {
  const uint32 used = s[rng_used];
  const uint32 low = used & 1 ? s[rng_words + 1] : s[rng_words];
  const uint32 high = used & 1 ? s[rng_words + 3] : s[rng_words + 2];
  s[rng_used] = used + 1;
  if (used == 3) {
    rng_count(s, 0, 1);
    rng_fill(s);
    s[rng_used] = 0;
  }
  return used & 2 ? high : low;
}

TL_DEVICE float rng_uniform_float32(uint32* s) {
  constexpr float unit = 2.3283064e-10f;  // 2^-32
  return rng_rand(s) * unit + unit / 2.0f;
}

// 53 bits of two words.
TL_DEVICE double rng_wide(uint32* s) {
  const uint64 low = rng_rand(s), high = rng_rand(s);
  return double(low ^ (high << 21));
}
TL_DEVICE double rng_uniform_float64(uint32* s) {
  constexpr double unit = 1.1102230246251565e-16;  // 2^-53
  return rng_wide(s) * unit + unit / 2.0;
}

// Box and Muller (1958): two values of a pair, the second kept for the next call.
TL_DEVICE float rng_normal_float32(uint32* s) {
  if (s[rng_float]) {
    s[rng_float] = 0;
    return __uint_as_float(s[rng_float + 1]);
  }
  constexpr float unit = 2.3283064e-10f, turn = 2.3283064e-10f * 6.2831855f;
  const float u = rng_rand(s) * unit + unit / 2.0f;
  const float v = rng_rand(s) * turn + turn / 2.0f;
  const float radius = ::sqrtf(-2.0f * ::logf(u));
  float sine, cosine;
  ::__sincosf(v, &sine, &cosine);
  s[rng_float] = 1;
  s[rng_float + 1] = __float_as_uint(cosine * radius);
  return sine * radius;
}
TL_DEVICE double rng_normal_float64(uint32* s) {
  if (s[rng_double]) {
    s[rng_double] = 0;
    return __hiloint2double(int(s[rng_double + 2]), int(s[rng_double + 1]));
  }
  constexpr double unit = 1.1102230246251565e-16;
  const double u = rng_wide(s) * unit + unit / 2.0;
  const double v = rng_wide(s) * (unit * 2.0) + unit;
  const double radius = ::sqrt(-2.0 * ::log(u));
  double sine, cosine;
  ::sincospi(v, &sine, &cosine);
  s[rng_double] = 1;
  s[rng_double + 1] = uint32(__double2loint(cosine * radius));
  s[rng_double + 2] = uint32(__double2hiint(cosine * radius));
  return sine * radius;
}

}  // namespace tl
