// CUDA's vector types, with the alignment that makes an access one instruction.
#pragma once

#define TL_VECTORS(type, name)                                                                \
  struct alignas(2 * sizeof(type)) name##2 { type x, y; };                                    \
  struct name##3 { type x, y, z; };                                                           \
  struct alignas(4 * sizeof(type) < 16 ? 4 * sizeof(type) : 16) name##4 { type x, y, z, w; }; \
  static inline name##2 make_##name##2(type x, type y) { return {x, y}; }                     \
  static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
TL_VECTORS(int, int)
TL_VECTORS(unsigned, uint)
TL_VECTORS(float, float)
TL_VECTORS(short, short)
TL_VECTORS(unsigned short, ushort)
TL_VECTORS(signed char, char)
TL_VECTORS(unsigned char, uchar)
TL_VECTORS(long long, longlong)
TL_VECTORS(double, double)
#undef TL_VECTORS

using dim3 = tl::emulator::Index;
