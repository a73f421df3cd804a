// Groups the examples of each epoch into batches, each with examples of a single bucket. Any batch
// can be determined at any time, so a task can continue at any position.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "runtime/data/buckets.h"
#include "runtime/data/order.h"

namespace tfjob::data {

struct BucketBatchOptions {
  bool shuffle = true;  // whether to shuffle the examples of each bucket, and the batches
  bool drop_remainder = false;
  uint64_t seed = 0;
  // If a bucket has more examples than this, their order is a KeyedPermutation rather than a list.
  int64_t most_listed = 1 << 20;
};

// Owned by one thread. The buckets must outlive it.
class BucketBatches {
 public:
  // The examples [begin, begin + rows) of the epoch's order of a bucket.
  struct Planned {
    size_t bucket = 0;
    int64_t begin = 0;
    int64_t rows = 0;
    bool operator==(const Planned&) const = default;
  };

  // `batch_sizes` has one size per bucket; each is at least 1. The last batch of a bucket may be
  // smaller.
  BucketBatches(const Buckets& buckets, std::span<const int64_t> batch_sizes,
                const BucketBatchOptions& options);

  int64_t size() const { return static_cast<int64_t>(batches_.size()); }  // batches per epoch
  // Makes `epoch` the current epoch. Must be called before the functions below. Does nothing if
  // `epoch` is already the current epoch.
  void Begin(int64_t epoch);
  // Returns batch `batch` of the epoch; `batch` is in [0, size()). Without shuffling, the full
  // batches come first, in the order of their last examples, as in tf.data. The smaller batches
  // follow.
  const Planned& At(int64_t batch) { return batches_[static_cast<size_t>(order_.At(batch))]; }
  // Returns the index that an example of a bucket has in the source. `index` is the position of the
  // example in the epoch's order of the bucket.
  int64_t Row(size_t bucket, int64_t index) {
    return buckets_.Row(bucket, orders_[bucket].At(index));
  }

  // Returns the number of batches per epoch that this class would create.
  static int64_t Count(const Buckets& buckets, std::span<const int64_t> batch_sizes,
                       bool drop_remainder);

 private:
  const Buckets& buckets_;
  std::vector<Planned> batches_;
  Order order_;                // the order of the batches
  std::vector<Order> orders_;  // the order of the examples of each bucket
};

}  // namespace tfjob::data
