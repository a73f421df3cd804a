#include "runtime/rpc/buffer_pool.h"

#include <algorithm>

namespace tfjob::rpc {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kSmallest = size_t{16} << 10;

constexpr size_t Rounded(size_t bytes) {
  return std::max(kSmallest, (bytes + kPage - 1) / kPage * kPage);
}

// Returns whether a buffer of `size` bytes is suitable for a request of `wanted` bytes: at most an
// eighth of the buffer may be wasted.
constexpr bool Fits(size_t size, size_t wanted) {
  return size >= wanted && size - wanted <= size / 8;
}

}  // namespace

BufferPool::Lease* BufferPool::Take(size_t bytes) {
  const size_t wanted = Rounded(bytes);
  std::unique_ptr<Lease> lease;
  {
    MutexLock lock(mutex_);
    auto best = free_.lower_bound(wanted);
    if (best != free_.end() && Fits(best->first, wanted)) {
      free_bytes_ -= best->first;
      lease = std::move(best->second);
      free_.erase(best);
    }
    lent_bytes_ += lease != nullptr ? lease->buffer_.size() : wanted;
  }
  if (lease == nullptr) lease.reset(new Lease(wanted));
  lease->holders_ = 1;
  lease->pool_ = shared_from_this();
  return lease.release();
}

void BufferPool::Lease::Release(void* argument) {
  auto* lease = static_cast<Lease*>(argument);
  if (lease->holders_.fetch_sub(1) != 1) return;
  // Reset pool_, because a free lease must not keep its pool alive. The local reference keeps the
  // pool and its mutex alive until the lock is released.
  std::shared_ptr<BufferPool> pool = std::move(lease->pool_);
  pool->Return(std::unique_ptr<Lease>(lease));
}

void BufferPool::Return(std::unique_ptr<Lease> lease) {
  const size_t bytes = lease->buffer_.size();
  Leases surplus;  // freed after the lock is released
  MutexLock lock(mutex_);
  lent_bytes_ -= bytes;
  free_bytes_ += bytes;
  free_.emplace(bytes, std::move(lease));
  Shrink(bytes, surplus);
}

void BufferPool::KeepAtMost(size_t bytes) {
  Leases surplus;
  MutexLock lock(mutex_);
  most_free_ = bytes;
  Shrink(0, surplus);
}

// Moves free buffers to `surplus` until the limit is met. Buffers of the size `size_in_use` are
// moved last.
void BufferPool::Shrink(size_t size_in_use, Leases& surplus) {
  const size_t keep = size_in_use == 0 ? 0 : 1;
  while (free_bytes_ > most_free_ && free_.size() > keep) {
    auto victim = free_.begin();
    if (victim->first == size_in_use) victim = std::prev(free_.end());
    free_bytes_ -= victim->first;
    surplus.insert(free_.extract(victim));
  }
}

size_t BufferPool::bytes() const {
  MutexLock lock(mutex_);
  return free_bytes_ + lent_bytes_;
}

size_t BufferPool::free_bytes() const {
  MutexLock lock(mutex_);
  return free_bytes_;
}

size_t BufferPool::lent_bytes() const {
  MutexLock lock(mutex_);
  return lent_bytes_;
}

}  // namespace tfjob::rpc
