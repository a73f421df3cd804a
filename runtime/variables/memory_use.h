// Checks that tensors fit into memory before they are allocated, and lists the largest ones for
// error messages.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/env.h"
#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::variables {

struct MemoryUse {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  size_t bytes = 0;
};

// Returns the five largest tensors, largest first: "dense/kernel float32[32,512] (65536 bytes), …".
std::string LargestTensors(std::vector<MemoryUse> tensors);

// Returns ResourceExhausted if `total` bytes are more than this process may use. The message names
// the total and the largest of the tensors. `total` may be less than the sum of their sizes,
// because some of them may share memory.
Status CheckMemory(size_t total, std::vector<MemoryUse> tensors,
                   int64_t available = AvailableMemory());

}  // namespace tfjob::variables
