// Generates random numbers without state. Philox-4x32-10 (Salmon et al., "Parallel random numbers:
// as easy as 1, 2, 3", 2011) is a function of a key and a counter. Its output is therefore the same
// on every machine and in every order of evaluation.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "runtime/base/fnv1a.h"

namespace tfjob {

using PhiloxBlock = std::array<uint32_t, 4>;

// Returns the four random words for `counter` under `key`. The counter's words are in the paper's
// order.
constexpr PhiloxBlock Philox(uint64_t key, PhiloxBlock counter) {
  uint32_t key_low = static_cast<uint32_t>(key);
  uint32_t key_high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key_low, static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key_high, static_cast<uint32_t>(a)};
    key_low += 0x9E3779B9;
    key_high += 0xBB67AE85;
  }
  return counter;
}

// Derives a key for a named stream from a seed: computes the FNV-1a hash of the name, and mixes the
// hash with the seed by encrypting one block.
constexpr uint64_t PhiloxKey(uint64_t seed, std::string_view name) {
  const uint64_t hash = Fnv1a().Add(name).hash();
  const PhiloxBlock mixed =
      Philox(seed, {static_cast<uint32_t>(hash), static_cast<uint32_t>(hash >> 32), 0, 0});
  return mixed[0] | uint64_t{mixed[1]} << 32;
}

// Generates a sequence of random numbers: the words of a key's blocks 0, 1, 2, …, one by one.
class PhiloxStream {
 public:
  explicit constexpr PhiloxStream(uint64_t key) : key_(key) {}

  constexpr uint32_t Next() {
    if (used_ == 4) {
      block_ =
          Philox(key_, {static_cast<uint32_t>(next_), static_cast<uint32_t>(next_ >> 32), 0, 0});
      ++next_;
      used_ = 0;
    }
    return block_[used_++];
  }
  // Returns a multiple of 2^-53 in [0, 1).
  constexpr double Uniform() {
    const uint64_t high = Next() >> 5, low = Next() >> 6;
    return static_cast<double>(high << 26 | low) * 0x1p-53;
  }
  // Returns a number in [0, bound). All values are equally likely (Lemire, "Fast random integer
  // generation in an interval", 2019).
  constexpr uint32_t Below(uint32_t bound) {
    uint64_t product = uint64_t{Next()} * bound;
    if (static_cast<uint32_t>(product) < bound) {
      const uint32_t refused = -bound % bound;
      while (static_cast<uint32_t>(product) < refused) product = uint64_t{Next()} * bound;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  uint64_t key_;
  uint64_t next_ = 0;
  PhiloxBlock block_{};
  unsigned used_ = 4;
};

}  // namespace tfjob
