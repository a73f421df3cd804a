#include "runtime/data/bucket_batches.h"

#include <algorithm>
#include <string>

#include "runtime/base/philox.h"
#include "runtime/base/status.h"

namespace tfjob::data {
namespace {

std::vector<BucketBatches::Planned> PlanBatches(const Buckets& buckets,
                                                std::span<const int64_t> batch_sizes,
                                                bool drop_remainder) {
  std::vector<BucketBatches::Planned> batches;
  for (size_t bucket = 0; bucket < buckets.count(); ++bucket) {
    const int64_t size = batch_sizes[bucket];
    for (int64_t begin = 0; buckets.size(bucket) - begin >= size; begin += size)
      batches.push_back({bucket, begin, size});
  }
  std::ranges::sort(batches, {}, [&](const BucketBatches::Planned& batch) {
    return buckets.Row(batch.bucket, batch.begin + batch.rows - 1);
  });
  for (size_t bucket = 0; bucket < buckets.count() && !drop_remainder; ++bucket) {
    const int64_t rest = buckets.size(bucket) % batch_sizes[bucket];
    if (rest > 0) batches.push_back({bucket, buckets.size(bucket) - rest, rest});
  }
  return batches;
}

Order::Kind BucketOrder(const BucketBatchOptions& options, int64_t size) {
  if (!options.shuffle || size == 0) return Order::Kind::kFiles;
  return size <= options.most_listed ? Order::Kind::kList : Order::Kind::kPermutation;
}

}  // namespace

BucketBatches::BucketBatches(const Buckets& buckets, std::span<const int64_t> batch_sizes,
                             const BucketBatchOptions& options)
    : buckets_(buckets),
      batches_(PlanBatches(buckets, batch_sizes, options.drop_remainder)),
      order_(BucketOrder(options, size()), PhiloxKey(options.seed, "batches"), size()) {
  for (size_t bucket = 0; bucket < buckets.count(); ++bucket) {
    orders_.emplace_back(BucketOrder(options, buckets.size(bucket)),
                         PhiloxKey(options.seed, StrCat("bucket ", bucket)), buckets.size(bucket));
  }
}

void BucketBatches::Begin(int64_t epoch) {
  order_.Begin(epoch);
  for (Order& order : orders_) order.Begin(epoch);
}

int64_t BucketBatches::Count(const Buckets& buckets, std::span<const int64_t> batch_sizes,
                             bool drop_remainder) {
  int64_t count = 0;
  for (size_t bucket = 0; bucket < buckets.count(); ++bucket) {
    const int64_t size = batch_sizes[bucket], rows = buckets.size(bucket);
    count += rows / size + (rows % size > 0 && !drop_remainder ? 1 : 0);
  }
  return count;
}

}  // namespace tfjob::data
