// Declares the parameters of the kernels. nvcc and the host's compiler both read it, so the structs
// contain only pointers and numbers of a fixed size. All pointers are to device memory, and strides
// are in elements.
#pragma once

#include <cstdint>

namespace tfjob::kernels::cuda {

// ApplyAdam and ApplySgd update many variables in one launch: a block updates kUpdateChunk elements
// of one variable. Variables beyond kUpdateTensors need a launch of their own.
inline constexpr int kUpdateTensors = 32;
inline constexpr int kUpdateThreads = 256;
inline constexpr int kUpdateChunk = kUpdateThreads * 4 * 4;

struct UpdateTensor {
  float* variable;
  const float* gradient;
  float* first;   // Adam's m, or SGD's momentum; null: none
  float* second;  // Adam's v; null: none
  int64_t count;  // elements; they are contiguous
};

struct UpdateTensors {
  UpdateTensor tensor[kUpdateTensors];
  int32_t first_block[kUpdateTensors + 1];  // of each tensor; then the number of blocks
  int32_t tensors;
};

// Keras 3's Adam (optimizer/optimizer.h). `step` is in device memory, so that a captured launch
// reads the value of its run.
struct AdamParameter {
  UpdateTensors update;
  const int64_t* step;  // the number of updates before this one
  float learning_rate, beta_1, beta_2, epsilon;
};

// Keras 3's SGD. With momentum, every tensor has a `first`.
struct SgdParameter {
  UpdateTensors update;
  float learning_rate, momentum;
  int32_t nesterov;
};

}  // namespace tfjob::kernels::cuda
