// Philox-4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (SC 2011): a bijection of a 128-bit counter under a 64-bit key. No
// state: any word of any step can be computed alone, on any device and by any number of threads.
#pragma once

#include <array>
#include <cstdint>

namespace tfjob::kernels {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline PhiloxCounter Philox(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The stream of one op in one step (ops.md, "Randomness").
struct PhiloxStream {
  uint64_t seed = 0;
  uint32_t op_id = 0;
  uint16_t replica = 0;
  uint32_t step = 0;

  // `attempt` distinguishes redraws.
  PhiloxCounter Block(uint32_t block, uint16_t attempt = 0) const {
    const uint32_t third = replica | static_cast<uint32_t>(attempt) << 16;
    return Philox({block, op_id, third, step},
                  {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
  }
};

}  // namespace tfjob::kernels
