#include "runtime/rpc/buffer_pool.h"

#include <gtest/gtest.h>

#include <vector>

namespace tfjob::rpc {
namespace {

constexpr size_t kMegabyte = size_t{1} << 20;

TEST(BufferPool, ABufferHasTheSizeThatWasAskedFor) {
  auto pool = BufferPool::Create();
  OwnedLease lease(pool->Take(33 * kMegabyte / 2));
  EXPECT_EQ(pool->lent_bytes(), 33 * kMegabyte / 2);
  lease = nullptr;
  EXPECT_EQ(pool->lent_bytes(), 0u);
  EXPECT_EQ(pool->free_bytes(), 33 * kMegabyte / 2);
}

TEST(BufferPool, UsesABufferAgainUnlessMostOfItWouldBeWasted) {
  auto pool = BufferPool::Create();
  OwnedLease lease(pool->Take(8 * kMegabyte));
  std::byte* const memory = lease->data();
  lease = nullptr;
  lease.reset(pool->Take(kMegabyte));
  EXPECT_NE(lease->data(), memory);
  OwnedLease fitting(pool->Take(8 * kMegabyte - 100'000));
  EXPECT_EQ(fitting->data(), memory);
  EXPECT_EQ(pool->free_bytes(), 0u);
}

TEST(BufferPool, KeepsNoMoreBytesThanItsLimit) {
  auto pool = BufferPool::Create(10 * kMegabyte);
  std::vector<OwnedLease> leases;
  for (int i = 0; i < 100; ++i) leases.emplace_back(pool->Take(kMegabyte));
  EXPECT_EQ(pool->lent_bytes(), 100 * kMegabyte);
  leases.clear();
  EXPECT_EQ(pool->free_bytes(), 10 * kMegabyte);
  // Buffers of the new size replace free buffers of the previous size.
  for (int i = 0; i < 5; ++i) leases.emplace_back(pool->Take(2 * kMegabyte));
  leases.clear();
  EXPECT_EQ(pool->free_bytes(), 10 * kMegabyte);
  leases.emplace_back(pool->Take(2 * kMegabyte));
  EXPECT_EQ(pool->free_bytes(), 8 * kMegabyte) << "one of the last five";
  pool->KeepAtMost(0);
  EXPECT_EQ(pool->free_bytes(), 0u);
}

TEST(BufferPool, KeepsOneBufferThatExceedsTheLimit) {
  auto pool = BufferPool::Create(kMegabyte);
  OwnedLease lease(pool->Take(4 * kMegabyte));
  std::byte* const memory = lease->data();
  lease = nullptr;
  lease.reset(pool->Take(4 * kMegabyte));
  EXPECT_EQ(lease->data(), memory);
}

TEST(BufferPool, ALeaseKeepsItsPoolAlive) {
  auto pool = BufferPool::Create();
  OwnedLease lease(pool->Take(kMegabyte));
  std::weak_ptr<BufferPool> alive = pool;
  pool = nullptr;
  EXPECT_FALSE(alive.expired());
  BufferPool::Lease* const second = lease->Hold();
  lease = nullptr;
  EXPECT_FALSE(alive.expired());
  BufferPool::Lease::Release(second);
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace tfjob::rpc
