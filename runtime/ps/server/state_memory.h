// Counts the memory of a server's states, and of the copies of shards that are kept for a
// checkpoint.
#pragma once

#include <atomic>
#include <cstdint>

namespace tfjob::ps {

// Thread-safe.
class StateMemory {
 public:
  // Copies are made only while states and copies together take at most `most` bytes.
  explicit StateMemory(int64_t most) : most_(most) {}

  // Counts the memory of a state, which is never refused.
  void Take(int64_t bytes) { used_ += bytes; }
  // Counts the memory of a copy. If the copy would exceed the limit, counts nothing and returns
  // false.
  bool TryTake(int64_t bytes) {
    int64_t used = used_;
    while (bytes <= most_ - used) {
      if (used_.compare_exchange_weak(used, used + bytes)) return true;
    }
    return false;
  }
  void Return(int64_t bytes) { used_ -= bytes; }

  int64_t most() const { return most_; }

 private:
  const int64_t most_;
  std::atomic<int64_t> used_ = 0;
};

}  // namespace tfjob::ps
