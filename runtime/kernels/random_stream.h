// Computes the random words of one op in one step (ops.md, "Randomness"). Each word can be computed
// independently, on any device and by any number of threads.
#pragma once

#include <cstdint>

#include "runtime/base/philox.h"

namespace tfjob::kernels {

struct RandomStream {
  uint64_t seed = 0;
  uint32_t op_id = 0;
  uint16_t replica = 0;
  uint32_t step = 0;

  // Returns the four words of block `block`. `attempt` is 0 for the first draw, and increases by 1
  // for each draw that replaces an earlier one.
  PhiloxBlock Block(uint32_t block, uint16_t attempt = 0) const {
    return Philox(seed, {block, op_id, replica | static_cast<uint32_t>(attempt) << 16, step});
  }
};

}  // namespace tfjob::kernels
