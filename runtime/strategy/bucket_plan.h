// Decides which contributions of a step are sent in the same bucket. Large buckets use the network
// efficiently. Small buckets can be sent earlier, while the backward pass is still running. The
// plan depends only on the model, so it is the same on all ranks, regardless of their batch sizes
// and schedules. Gradients of tables are exchanged by rows (gradient_rows.h), after all buckets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/strategy/model/model_definition.h"

namespace tfjob::strategy {

// One dense contribution to a variable.
struct BucketItem {
  int variable = -1;              // index in ModelDefinition::variables
  bool gradient = true;           // if false: a value to assign, such as a moving statistic
  DType dtype = DType::kFloat32;  // float32 or float64
  int64_t elements = 0;
  size_t begin =
      0;  // position in the memory of all buckets, in bytes; a multiple of kBucketAlignment

  bool operator==(const BucketItem&) const = default;
};

struct Bucket {
  DType dtype = DType::kFloat32;
  size_t begin = 0;             // in bytes; a multiple of kBucketAlignment
  size_t bytes = 0;             // including the padding between items, which is zero
  size_t first = 0, count = 0;  // items [first, first + count)

  bool operator==(const Bucket&) const = default;
};

// The gradient of a table. A step contributes only some of its rows (model::Change::kGradientRows).
struct TableItem {
  int variable = -1;              // index in ModelDefinition::variables
  std::string name;               // of the variable
  DType dtype = DType::kFloat32;  // float32 or float64
  int64_t rows = 0, cols = 0;     // of the table
  // The largest number of rows that a batch of ModelDefinition::build.batch_size contributes.
  int64_t batch_rows = 0;

  bool operator==(const TableItem&) const = default;
};

struct BucketPlan {
  std::vector<BucketItem> items;  // in the order in which the backward pass finishes them
  std::vector<Bucket> buckets;
  size_t bytes = 0;               // total size of all buckets
  std::vector<TableItem> tables;  // in the same order
};

inline constexpr size_t kBucketAlignment = 64;
// The maximum size of the first and the last bucket. The first bucket is small so that the exchange
// starts early. The last bucket is small because it is sent after the backward pass.
inline constexpr int64_t kSmallBucketBytes = 1 << 20;
inline constexpr int64_t kDefaultBucketBytes = 4 << 20;
inline constexpr int64_t kMostBucketBytes = 25 << 20;

// Plans a training step of the definition. The items and tables are in the order of
// BuiltGraph::contributions. Returns Unimplemented, with a message that names the variable, if
// contributions to a variable cannot be averaged.
StatusOr<BucketPlan> PlanStep(const ModelDefinition& definition, int64_t bytes_per_pack);

// Packs the items in their order. All items of a bucket have the same dtype. A bucket contains at
// most `bytes_per_pack` bytes, or a single larger item; the first and the last bucket contain at
// most kSmallBucketBytes, or a single larger item. If `bytes_per_pack` is larger than
// kMostBucketBytes, kMostBucketBytes is used instead; 0 stands for kDefaultBucketBytes.
BucketPlan PlanBuckets(std::vector<BucketItem> items, int64_t bytes_per_pack);

// Returns the plan as one line, which must be equal on all ranks: "3 in 1216 bytes of float32, 1 in
// 64 bytes of float64, embedding/embeddings by rows".
std::string Describe(const BucketPlan& plan);

}  // namespace tfjob::strategy
