// Implements a pool of buffers that are lent to the transport and returned once it no longer
// reads them.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::rpc {

// Keeps buffers for reuse, so that the steady state allocates nothing. Thread-safe. Outstanding
// leases keep the pool alive.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  class Lease {
   public:
    std::byte* data() { return buffer_.data(); }
    std::span<std::byte> bytes(size_t count) { return {buffer_.data(), count}; }
    // Adds a holder. The lease returns to the pool once every holder has called Release. The
    // caller of Take is the first holder.
    Lease* Hold() {
      ++holders_;
      return this;
    }
    // Removes one holder. Can be used as a Segment's `release`, with the lease as its `argument`.
    static void Release(void* lease);

   private:
    friend class BufferPool;
    explicit Lease(size_t bytes) : buffer_(bytes) {}
    Buffer buffer_;
    std::atomic<int> holders_ = 1;
    std::shared_ptr<BufferPool> pool_;  // set while the lease is out
  };

  static std::shared_ptr<BufferPool> Create() {
    return std::shared_ptr<BufferPool>(new BufferPool());
  }
  // Returns a lease on a buffer of at least `bytes` bytes, whose contents are undefined.
  Lease* Take(size_t bytes);

 private:
  BufferPool() = default;

  Mutex mutex_;
  std::vector<std::unique_ptr<Lease>> free_ ABSL_GUARDED_BY(mutex_);
};

// The deleter of OwnedLease, which releases its lease at the end of a scope.
struct Releaser {
  void operator()(BufferPool::Lease* lease) const { BufferPool::Lease::Release(lease); }
};
using OwnedLease = std::unique_ptr<BufferPool::Lease, Releaser>;

}  // namespace tfjob::rpc
