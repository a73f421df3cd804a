// Counts the memory of a server's states, and of the copies of shards kept for a checkpoint.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

namespace tfjob::ps {

// Thread-safe.
class StateMemory {
 public:
  // Copies are made only while the combined size of states, copies and buffers is at most `most`
  // bytes. `staged` returns the bytes of the buffers, and may be
  // called by any thread.
  explicit StateMemory(
      int64_t most, std::function<int64_t()> staged = [] { return 0; })
      : most_(most), staged_(std::move(staged)) {}

  // Counts the memory of a state, which is never refused.
  void Take(int64_t bytes) { used_ += bytes; }
  // Counts the memory of a copy and returns true. If the copy would exceed the limit, returns false
  // without counting it.
  bool TryTake(int64_t bytes) {
    const int64_t most = most_ - staged_();
    int64_t used = used_;
    while (bytes <= most - used) {
      if (used_.compare_exchange_weak(used, used + bytes)) return true;
    }
    return false;
  }
  void Return(int64_t bytes) { used_ -= bytes; }

  int64_t most() const { return most_; }

 private:
  const int64_t most_;
  const std::function<int64_t()> staged_;
  std::atomic<int64_t> used_ = 0;
};

}  // namespace tfjob::ps
