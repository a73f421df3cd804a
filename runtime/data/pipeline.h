// Dataset → batches: shuffled every epoch, shared among workers, cut into batches, converted to what the model takes,
// prepared ahead by a background thread.
//
//   ASSIGN_OR_RETURN(auto pipeline, Pipeline::Create(dataset, {.batch_size = 128, .scale = 1.0 / 255}));
//   while (const Batch* batch = pipeline->Next()) Step(batch->features, batch->labels);
#pragma once

#include <cstdint>
#include <memory>

#include "runtime/data/dataset.h"

namespace tfjob::data {

// How a batch holds its labels.
//   kClass    int64 [b], each in [0, classes)
//   kOneHot   float32 [b, classes]
//   kValue    float32 [b]
enum class LabelKind { kClass, kOneHot, kValue };

// A place in the sequence of batches: the epoch, and the batch in it, both from 0.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;
  bool operator==(const Position&) const = default;
};

struct PipelineOptions {
  int64_t batch_size = 32;
  int64_t epochs = 0;  // 0: without end
  bool shuffle = true;
  uint64_t seed = 0;
  // Worker `worker` of `workers` takes the rows worker, worker + workers, … of the epoch's order, so that all workers
  // together see every example once an epoch.
  int64_t worker = 0;
  int64_t workers = 1;
  bool drop_remainder = false;
  int64_t prefetch = 8;  // batches prepared ahead; 0: each in the caller's thread when it asks
  float scale = 1;       // of features
  LabelKind label_kind = LabelKind::kClass;
  int64_t classes = 0;  // for kClass and kOneHot; above 0
  Position start;
};

struct Batch {
  Tensor features;  // float32 [b, …]
  Tensor labels;
  Position position;
  int64_t size() const { return labels.shape().dim(0); }
};

struct BatchSlot;

// Owned by one thread; the background thread is the pipeline's own and ends with it.
class Pipeline {
 public:
  // Checks every label against the kind: InvalidArgument names file, row, value and the allowed range. Also when a worker
  // would have no rows, or drop_remainder would leave no batch.
  static StatusOr<std::unique_ptr<Pipeline>> Create(std::shared_ptr<const Dataset> dataset,
                                                    const PipelineOptions& options);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // The next batch, which stays as it is until the next call; null after the last epoch. Allocates nothing. May wait for
  // the background thread.
  const Batch* Next();

  // Of the batch that Next gives next: save it, and give it as `start` to go on there.
  Position position() const;
  int64_t batches_per_epoch() const;  // of this worker
  // Batch sizes are batch_size, and once an epoch this one; 0 when there is none.
  int64_t remainder() const;

 private:
  class Maker;
  class Ring;
  Pipeline(std::unique_ptr<Maker> maker, const PipelineOptions& options);

  std::unique_ptr<Maker> maker_;     // makes batch after batch; used by one thread
  std::unique_ptr<Ring> ring_;       // null without prefetch
  std::unique_ptr<BatchSlot> slot_;  // without prefetch
  Position next_;
};

}  // namespace tfjob::data
