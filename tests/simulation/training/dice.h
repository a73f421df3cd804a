// Makes pseudorandom decisions that are the same with every compiler.
#pragma once

#include <cstdint>
#include <random>

#include "runtime/base/clock.h"

namespace tfjob::simulation {

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}

  // Returns a number from `least` to `most`.
  int64_t Number(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_() % static_cast<uint64_t>(most - least + 1));
  }
  Duration Time(Duration least, Duration most) {
    return Duration(Number(least.count(), most.count()));
  }
  bool Chance(double probability) {
    return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
  }

 private:
  std::mt19937_64 random_;
};

}  // namespace tfjob::simulation
