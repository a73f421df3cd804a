// Declares the inner loops that fill a batch. The file with these loops is compiled with -O3,
// because gcc then vectorises them.
#pragma once

#include <cstdint>

namespace tfjob::data {

// Computes to[i] = from[i] · scale.
void ScaleRow(const uint8_t* from, int64_t count, float scale, float* to);
void ScaleRow(const float* from, int64_t count, float scale, float* to);

}  // namespace tfjob::data
