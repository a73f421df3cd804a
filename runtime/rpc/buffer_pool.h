// Implements a pool of buffers, which are lent to the transport and return to the pool once the
// transport no longer reads them.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>

#include "runtime/base/mutex.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::rpc {

// Keeps buffers for reuse, so that in the steady state no memory is allocated and no new pages are
// touched. A new buffer has the requested size, rounded up to a page. A free buffer is reused for a
// smaller request only if little of it is wasted. Thread-safe. Outstanding leases keep the pool
// alive.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  class Lease {
   public:
    std::byte* data() { return buffer_.data(); }
    std::span<std::byte> bytes(size_t count) { return {buffer_.data(), count}; }
    // Adds a holder and returns this lease. The lease returns to the pool once every holder has
    // called Release. The caller of Take is the first holder.
    Lease* Hold() {
      ++holders_;
      return this;
    }
    // Removes one holder. Can be used as the `release` of a Segment whose `argument` is the lease.
    static void Release(void* lease);

   private:
    friend class BufferPool;
    // Leaves the contents undefined: the caller of Take must write before it reads.
    explicit Lease(size_t bytes) : buffer_(bytes, Buffer::Contents::kUndefined) {}
    Buffer buffer_;
    std::atomic<int> holders_ = 1;
    std::shared_ptr<BufferPool> pool_;  // set while the lease is in use
  };

  // A pool keeps at most `most_free_bytes` for reuse, or a single buffer if that is larger. It
  // keeps the most recently returned buffers.
  static std::shared_ptr<BufferPool> Create(size_t most_free_bytes = kMostFreeBytes) {
    return std::shared_ptr<BufferPool>(new BufferPool(most_free_bytes));
  }
  // Changes the limit, and frees the buffers that exceed it.
  void KeepAtMost(size_t bytes);
  // Returns a lease on a buffer of at least `bytes` bytes, whose contents are undefined.
  Lease* Take(size_t bytes);

  size_t bytes() const;  // of free and lent buffers
  size_t free_bytes() const;
  size_t lent_bytes() const;

 private:
  static constexpr size_t kMostFreeBytes = size_t{64} << 20;

  explicit BufferPool(size_t most_free_bytes) : most_free_(most_free_bytes) {}
  using Leases = std::multimap<size_t, std::unique_ptr<Lease>>;  // by size

  void Return(std::unique_ptr<Lease> lease);
  void Shrink(size_t size_in_use, Leases& surplus) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  Leases free_ ABSL_GUARDED_BY(mutex_);
  size_t free_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t lent_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t most_free_ ABSL_GUARDED_BY(mutex_);
};

// The deleter of OwnedLease.
struct Releaser {
  void operator()(BufferPool::Lease* lease) const { BufferPool::Lease::Release(lease); }
};
using OwnedLease = std::unique_ptr<BufferPool::Lease, Releaser>;

}  // namespace tfjob::rpc
