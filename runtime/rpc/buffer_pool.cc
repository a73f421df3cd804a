#include "runtime/rpc/buffer_pool.h"

#include <algorithm>
#include <bit>

namespace tfjob::rpc {
namespace {

constexpr size_t kSmallest = size_t{16} << 10;
// Free buffers beyond this number are deleted.
constexpr size_t kMostFree = 64;

}  // namespace

BufferPool::Lease* BufferPool::Take(size_t bytes) {
  MutexLock lock(mutex_);
  auto fits = [&](const auto& lease) { return lease->buffer_.size() >= bytes; };
  // Orders leases that fit before those that do not, and the smaller before the larger.
  auto smaller = [&](const auto& a, const auto& b) {
    return fits(a) && (!fits(b) || a->buffer_.size() < b->buffer_.size());
  };
  std::unique_ptr<Lease> lease;
  auto best = std::min_element(free_.begin(), free_.end(), smaller);
  if (best != free_.end() && fits(*best)) {
    lease = std::move(*best);
    *best = std::move(free_.back());
    free_.pop_back();
  } else {
    // The sizes are powers of two, so that shards of similar sizes share buffers.
    lease.reset(new Lease(std::bit_ceil(std::max(bytes, kSmallest))));
  }
  lease->holders_ = 1;
  lease->pool_ = shared_from_this();
  return lease.release();
}

void BufferPool::Lease::Release(void* argument) {
  auto* lease = static_cast<Lease*>(argument);
  if (lease->holders_.fetch_sub(1) != 1) return;
  // A free lease must not keep its pool alive. The local reference keeps the pool and its mutex
  // alive until the lock is released.
  std::unique_ptr<Lease> owned(lease);
  std::shared_ptr<BufferPool> pool = std::move(lease->pool_);
  MutexLock lock(pool->mutex_);
  if (pool->free_.size() < kMostFree) pool->free_.push_back(std::move(owned));
}

}  // namespace tfjob::rpc
