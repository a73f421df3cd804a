// Decides which contributions of a step are sent in the same bucket. Large buckets use the network
// efficiently. Small buckets can be sent earlier, while the backward pass is still running. The
// plan depends only on the model, so it is the same on all ranks, regardless of their batch sizes
// and schedules. Gradients of tables are exchanged by rows (gradient_rows.h), after all buckets.
// If the program itself exchanges values (exec/exchange.h), each of these values is a bucket, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/exec/exchange.h"
#include "runtime/strategy/model/model_definition.h"

namespace tfjob::strategy {

// One dense contribution to a variable.
struct BucketItem {
  int variable = -1;              // index in ModelDefinition::variables
  bool gradient = true;           // if false: a value to assign, such as a moving statistic
  DType dtype = DType::kFloat32;  // float32 or float64
  bool compressed = false;        // sent as bfloat16; only for float32 gradients
  int64_t elements = 0;
  size_t begin =
      0;  // position in the memory of all buckets, in bytes; a multiple of kBucketAlignment

  bool operator==(const BucketItem&) const = default;
};

// Returns the type in which the contribution is sent.
inline DType SentType(const BucketItem& item) {
  return item.compressed ? DType::kBFloat16 : item.dtype;
}

struct Bucket {
  DType dtype = DType::kFloat32;  // SentType of its items
  size_t begin = 0;               // in bytes; a multiple of kBucketAlignment
  size_t bytes = 0;               // including the padding between items, which is zero
  size_t first = 0, count = 0;    // items [first, first + count)
  // If not negative, the bucket has no items, but contains the value of this exchange of the
  // program (exec/exchange.h).
  int64_t exchange = -1;
  std::string name = {};  // of the exchange: "batch_normalization/AllReduceMean"

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
  std::vector<Bucket> buckets;    // in the order in which they are reduced
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
// BuiltGraph::contributions. With Compression::kBFloat16, all items that are float32 gradients are
// compressed; assigned values and the rows of tables never are. Returns Unimplemented, with a
// message that names the variable, if contributions to a variable cannot be averaged.
StatusOr<BucketPlan> PlanStep(const ModelDefinition& definition, int64_t bytes_per_pack,
                              config::Compression compression = config::Compression::kNone);

// Packs the items in their order. All items of a bucket have the same SentType. A bucket contains
// at most `bytes_per_pack` bytes, or a single larger item; the first and the last bucket contain at
// most kSmallBucketBytes, and the bucket before the last at most three times as many bytes, or a
// single larger item. If `bytes_per_pack` is larger than
// kMostBucketBytes, kMostBucketBytes is used instead; 0 stands for kDefaultBucketBytes.
BucketPlan PlanBuckets(std::vector<BucketItem> items, int64_t bytes_per_pack);

// Adds a bucket for each exchange. `announced` contains the positions at which a program announces
// the items of the plan (exec::AnnouncedAt). The bucket of an exchange comes before the bucket of
// every item that is announced only after the exchange, because the program waits for the exchange.
void AddExchanges(const std::vector<exec::PlannedExchange>& exchanges,
                  const std::vector<int>& announced, BucketPlan& plan);

// Returns whether a bucket may stay in the memory of a GPU: its items are gradients, which programs
// weight themselves, and they are sent as they are.
bool SuitsDevice(const BucketPlan& plan, const Bucket& bucket);

// Returns the plan as one line, which must be equal on all ranks: "3 in 1216 bytes of float32, 1 in
// 64 bytes of float64, embedding/embeddings by rows". An exchange is "exchange of 32 bytes of
// float32".
std::string Describe(const BucketPlan& plan);

}  // namespace tfjob::strategy
