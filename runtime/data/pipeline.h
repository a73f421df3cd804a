// Creates batches of named tensors from a source of examples. Shuffles the examples every epoch,
// distributes them among the workers, groups them into batches, and converts them to the types that
// the model requires. A background thread prepares batches ahead of time.
//
//   ASSIGN_OR_RETURN(auto pipeline,
//                    Pipeline::Create(dataset, {.batch_size = 128,
//                                               .columns = {FloatColumn(*dataset, kFeaturesArray),
//                                                           ClassColumn(kLabelsArray, 10)}}));
//   while (const Batch* batch = pipeline->Next()) Step(*batch);
//   RETURN_IF_ERROR(pipeline->status());
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/data/column.h"
#include "runtime/data/dataset.h"
#include "runtime/data/part.h"
#include "runtime/data/source.h"

namespace tfjob::data {

// Identifies a batch in the sequence of all batches. Epochs, and the batches of each epoch, are
// counted from 0.
struct Position {
  int64_t epoch = 0;
  int64_t batch = 0;
  bool operator==(const Position&) const = default;
};

// How the workers share the examples of an epoch. The names are those of TensorFlow's
// tf.data.experimental.AutoShardPolicy.
enum class Sharding {
  kData,  // each worker takes its share of one order of all examples
  kFile,  // as kData, but in an order in which each worker reads files of its own (file_order.h)
  kOff,   // each worker reads all examples in every epoch, in an order of its own
};

struct PipelineOptions {
  int64_t batch_size = 32;
  int64_t epochs = 0;  // 0: unlimited
  bool shuffle = true;
  // If above 0, shuffles only within windows of this many consecutive examples
  // (Order::Kind::kWindows), so a worker reads one part of the files at a time.
  int64_t shuffle_buffer = 0;
  uint64_t seed = 0;
  // This pipeline reads the examples at the places worker, worker + workers, … of the epoch's
  // order. Together, the pipelines of all workers see every example once per epoch.
  int64_t worker = 0;
  int64_t workers = 1;
  Sharding sharding = Sharding::kData;  // kFile requires a source that knows its files
  // For kFile: the number of groups of files; 0: `workers`. If the number of workers may change
  // (TakePart), this number must not depend on it.
  int64_t file_groups = 0;
  // If above 0, all workers share each batch, and batch_size is ignored. Batch k of an epoch
  // consists of the examples at the places [k · global_batch, (k + 1) · global_batch) of the
  // epoch's order. This pipeline takes its part of each batch (PartOf). The last batch may be
  // smaller. All workers have the same number of batches. The combined parts of all workers are the
  // batches of a single worker with this batch size, in the same order. With kOff, a worker's
  // batches instead consist of the next examples of its own order, as many as its part has; the
  // workers then have different numbers of batches per epoch.
  int64_t global_batch = 0;
  // If the source has buckets, the number of examples per batch for each bucket. Replaces
  // batch_size or global_batch. A worker then takes the batches worker, worker + workers, … of the
  // epoch or, if global_batch is above 0, its part of every batch. shuffle_buffer must be 0.
  std::vector<int64_t> bucket_batches = {};
  bool drop_remainder = false;
  int64_t prefetch = 8;  // batches prepared ahead; 0: Next reads each batch on the caller's thread
  std::vector<Column> columns;  // the tensors of a batch; at least one
  Position start;
  // The order of a shuffled source is a list if the source has at most this many examples, or if it
  // keeps all of them in memory (Source::rows_in_memory). Otherwise, the order is a
  // KeyedPermutation (order.h). A list of 2^20 examples needs 4 MiB.
  int64_t most_listed = 1 << 20;
};

struct Batch {
  std::vector<NamedTensor> tensors;  // one per column, in column order
  Position position;

  // With PipelineOptions::global_batch, the size may be 0.
  int64_t size() const { return tensors[0].value.shape().dim(0); }
  // Returns null if there is no such tensor.
  const Tensor* Find(std::string_view name) const;
};

struct BatchSlot;

// Yields the batches of one worker. Only one thread may use a pipeline. The background thread
// belongs to the pipeline and ends with it.
class Pipeline {
 public:
  // Creates a pipeline. Propagates errors from Source::Open. Also returns InvalidArgument if this
  // worker would have no rows, if drop_remainder would leave no batch, or if `start` is not a
  // position in the data.
  static StatusOr<std::unique_ptr<Pipeline>> Create(std::shared_ptr<const Source> source,
                                                    const PipelineOptions& options);
  // Creates a pipeline for a dataset in memory. Checks every value. In all other respects, behaves
  // like the previous function.
  static StatusOr<std::unique_ptr<Pipeline>> Create(std::shared_ptr<const Dataset> dataset,
                                                    const PipelineOptions& options);
  // Describes a pipeline with these options as text: the order of the examples, this worker's
  // share, the batches, their tensors, and the buffers. Propagates errors from Create.
  static StatusOr<std::string> Describe(std::shared_ptr<const Source> source,
                                        const PipelineOptions& options);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  // Returns the next batch, or null after the last epoch or after an error (see status). The batch
  // stays valid and unchanged until the next call. Allocates nothing, unless the source's reader
  // does. May wait for the background thread.
  const Batch* Next();
  // Returns the error that made Next return null, or OK. The message names the file and the place
  // in the file. Sources in memory cause no errors. After an error, Next returns null until Seek or
  // TakePart is called.
  const Status& status() const { return status_; }

  // Returns the position of the batch that the next call of Next will return. A pipeline created
  // with this position as `start` continues from there.
  Position position() const;
  // Returns the number of batches from the beginning of epoch 0 to position().
  int64_t drawn() const;
  // Continues as if `drawn` batches, 0 or more, had been taken since the beginning of epoch 0.
  // Invalidates the batch that Next has returned last. Allocates memory and prepares new batches,
  // unless `drawn` is already the current position and there is no error.
  void Seek(int64_t drawn);
  // Takes part `worker` of `workers` of every global batch, from the next batch on. Requires
  // global_batch. Invalidates the batch that Next has returned last. Allocates memory and prepares
  // new batches, unless this pipeline already takes that part.
  void TakePart(int64_t worker, int64_t workers);
  int64_t batches_per_epoch() const;  // the number of this worker's batches
  // Returns the size of the last, smaller batch of an epoch, or 0 if there is none or if it is
  // empty. All other batches have batch_size examples, or this worker's part of global_batch. With
  // buckets, every bucket may have a smaller batch, and the result is 0.
  int64_t remainder() const;

 private:
  class Maker;
  class Ring;
  Pipeline(std::unique_ptr<Maker> maker, const PipelineOptions& options);

  std::unique_ptr<Maker> maker_;     // produces the batches; used by one thread
  std::unique_ptr<Ring> ring_;       // null without prefetching
  std::unique_ptr<BatchSlot> slot_;  // used without prefetching
  void Restart();

  int64_t prefetch_ = 0;
  Position next_;
  Status status_;
};

}  // namespace tfjob::data
