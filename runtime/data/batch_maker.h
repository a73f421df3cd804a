// Creates the batches of one worker: chooses the examples of each batch, and reads them. This part
// of Pipeline uses no threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/bucket_batches.h"
#include "runtime/data/file_order.h"
#include "runtime/data/order.h"
#include "runtime/data/pipeline.h"

namespace tfjob::data {

// Memory for one batch. Each shape has its own tensors, so no batch needs an allocation. There is
// one shape for full batches and one for the smaller batch at the end of an epoch. With buckets,
// each bucket has both. The tensors of different buckets share their memory.
struct BatchSlot {
  std::vector<Batch> batches;  // by the index of the shape
  Batch* filled = nullptr;     // the element of `batches` that was filled last
};

class Pipeline::Maker {
 public:
  static StatusOr<std::unique_ptr<Maker>> Create(std::shared_ptr<const Source> source,
                                                 const PipelineOptions& options);

  BatchSlot NewSlot();
  // Fills the slot with the next batch. Returns false after the last epoch. If an example cannot be
  // read, returns the error; the next call then tries the same batch again.
  StatusOr<bool> Fill(BatchSlot& slot);

  Position next() const { return next_; }
  void Seek(Position next) { next_ = next; }
  // From now on, uses part `worker` of `workers` of every global batch. Requires global_batch.
  // Slots created before this call must not be filled any more, because their size may be wrong.
  void TakePart(int64_t worker, int64_t workers);
  bool Takes(int64_t worker, int64_t workers) const {
    return worker == worker_ && workers == workers_;
  }
  int64_t batches_per_epoch() const { return batches_; }
  int64_t remainder() const { return bucketed_ == nullptr ? shapes_[1].part.size : 0; }
  // Returns the next position.
  Position After(Position position) const;
  // See Pipeline::Describe.
  std::string Describe() const;

 private:
  Maker(std::shared_ptr<const Source> source, const PipelineOptions& options);
  // The shape of full batches or of smaller ones. With buckets, the shape applies only to batches
  // from one bucket.
  struct BatchShape {
    int64_t rows = 0;    // rows of all workers that share the batch; 0: no such batch
    Part part;           // this worker's part of these rows
    int64_t length = 0;  // length to which by_length columns are truncated; 0: none
  };
  // The examples of one batch.
  struct Draw {
    size_t shape = 0;
    size_t bucket = 0;
    int64_t begin = 0;  // the first place in the order of the epoch or bucket
  };

  Status Check() const;
  Status CheckFiles() const;
  void MakeOrder();
  void SetRows();
  void SetShapes();
  void SetBucketShapes();
  Status CheckBuckets() const;
  Tensor NewTensor(const Column& column, const BatchShape& shape, bool cut) const;
  void ShareMemory(std::vector<Batch>& batches) const;
  bool Cuts(const Column& column, size_t shape) const;
  void Stage();
  Draw DrawOf(int64_t batch);
  Status Read(size_t shape, Batch& batch);
  std::string BucketText() const;
  std::string ShareText() const;
  bool together() const { return options_.global_batch > 0; }
  // Returns whether this worker reads all examples, independently of the other workers.
  bool own() const { return options_.sharding == Sharding::kOff; }
  uint64_t seed() const;
  int64_t file_groups() const {
    return options_.file_groups > 0 ? options_.file_groups : options_.workers;
  }
  // Returns the position that example `index` of the current epoch has in the source. `index` is
  // the position in this worker's share or, with global_batch, among all examples of the epoch.
  int64_t Row(int64_t index) const;

  const std::shared_ptr<const Source> source_;
  const PipelineOptions options_;
  int64_t worker_, workers_;
  // The shapes of the full batches and of the last, smaller batch; with buckets, both for each
  // bucket.
  std::vector<BatchShape> shapes_;
  int64_t step_;       // rows from the start of one batch to the start of the next
  int64_t rows_;       // examples per epoch that are grouped into batches
  int64_t remainder_;  // number of examples in the last, smaller batch; 0 if there is none
  int64_t batches_;
  Order::Kind order_kind_ = Order::Kind::kFiles;
  Position next_;
  std::unique_ptr<RowReader> reader_;
  std::unique_ptr<Order> order_;             // null if there are buckets, or with file_order_
  std::unique_ptr<FileOrder> file_order_;    // null unless workers read whole files
  std::unique_ptr<BucketBatches> bucketed_;  // null if there are none
  // With buckets, one element per shape: tensors for the full-length values of the columns that the
  // shape truncates.
  std::vector<std::vector<NamedTensor>> staged_;
  std::vector<int64_t> batch_rows_;  // the examples of the batch that is being filled
};

}  // namespace tfjob::data
