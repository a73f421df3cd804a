// Draws the random words of an op. Only kernels include this header.
#pragma once

#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

struct Words {
  uint32_t word[4];
};

// Returns the four words of a block (base/philox.h).
TFJOB_DEVICE Words Draw(const RandomWords& words, uint32_t block, uint32_t attempt) {
  const uint64_t seed = static_cast<uint64_t>(*words.seed);
  uint32_t key_low = static_cast<uint32_t>(seed), key_high = static_cast<uint32_t>(seed >> 32);
  Words c{{block, words.op_id, words.replica | attempt << 16, static_cast<uint32_t>(*words.step)}};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = static_cast<uint64_t>(0xD2511F53u) * c.word[0];
    const uint64_t b = static_cast<uint64_t>(0xCD9E8D57u) * c.word[2];
    c = {{static_cast<uint32_t>(b >> 32) ^ c.word[1] ^ key_low, static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ c.word[3] ^ key_high, static_cast<uint32_t>(a)}};
    key_low += 0x9E3779B9u;
    key_high += 0xBB67AE85u;
  }
  return c;
}

}  // namespace
}  // namespace tfjob::kernels::cuda
