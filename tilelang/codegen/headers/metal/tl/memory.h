// Questions about a run of elements.
#pragma once
#include <tl/common.h>

namespace tl {

#define TL_QUESTIONS(space)                                                        \
  template <class T> TL_INLINE bool any_of(const space T* first, int count) {      \
    for (int i = 0; i < count; ++i)                                                \
      if (cast<bool>(first[i])) return true;                                       \
    return false;                                                                  \
  }                                                                                \
  template <class T> TL_INLINE bool all_of(const space T* first, int count) {      \
    for (int i = 0; i < count; ++i)                                                \
      if (!cast<bool>(first[i])) return false;                                     \
    return true;                                                                   \
  }
TL_SPACES(TL_QUESTIONS)
#undef TL_QUESTIONS

}  // namespace tl
