#include "runtime/data/convert.h"

namespace tfjob::data {

void ScaleRow(const uint8_t* __restrict from, int64_t count, float scale, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<float>(from[i]) * scale;
}

void ScaleRow(const float* __restrict from, int64_t count, float scale, float* __restrict to) {
  for (int64_t i = 0; i < count; ++i) to[i] = from[i] * scale;
}

}  // namespace tfjob::data
