// Computes the random words of one op in one step (see "Randomness" in ops.md). Words can be
// computed independently of each other, on any device and by any number of threads.
#pragma once

#include <cstdint>

#include "runtime/base/philox.h"

namespace tfjob::kernels {

struct RandomStream {
  uint64_t seed = 0;
  uint32_t op_id = 0;
  uint16_t replica = 0;
  uint32_t step = 0;

  // Returns the four words of block `block`. `attempt` is 0 for the first draw, and is increased by
  // 1 each time a number is drawn again.
  PhiloxBlock Block(uint32_t block, uint16_t attempt = 0) const {
    return Philox(seed, {block, op_id, replica | static_cast<uint32_t>(attempt) << 16, step});
  }
};

}  // namespace tfjob::kernels
