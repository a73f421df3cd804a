// Memory that is lent to the wire and comes back when the wire no longer reads it.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::rpc {

// Keeps buffers for reuse; in the steady state nothing is allocated. Thread-safe. What is lent
// keeps the pool alive.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  class Lease {
   public:
    std::byte* data() { return buffer_.data(); }
    std::span<std::byte> bytes(size_t count) { return {buffer_.data(), count}; }
    // One holder more; the lease returns when each has called Release. Whoever took it is the first.
    Lease* Hold() {
      ++holders_;
      return this;
    }
    // As a Segment's `release`, with the lease as its argument.
    static void Release(void* lease);

   private:
    friend class BufferPool;
    explicit Lease(size_t bytes) : buffer_(bytes) {}
    Buffer buffer_;
    std::atomic<int> holders_ = 1;
    std::shared_ptr<BufferPool> pool_;  // while it is lent
  };

  static std::shared_ptr<BufferPool> Create() {
    return std::shared_ptr<BufferPool>(new BufferPool());
  }
  // A buffer of at least `bytes`, contents undefined.
  Lease* Take(size_t bytes);

 private:
  BufferPool() = default;

  Mutex mutex_;
  std::vector<std::unique_ptr<Lease>> free_ ABSL_GUARDED_BY(mutex_);
};

// A lease that is released by scope.
struct Releaser {
  void operator()(BufferPool::Lease* lease) const { BufferPool::Lease::Release(lease); }
};
using OwnedLease = std::unique_ptr<BufferPool::Lease, Releaser>;

}  // namespace tfjob::rpc
