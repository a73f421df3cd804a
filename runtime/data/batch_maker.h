// Makes the batches of one worker: chooses the examples of each batch, and reads them. This is the
// part of Pipeline that has no threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/data/order.h"
#include "runtime/data/pipeline.h"

namespace tfjob::data {

// Memory for one batch. Full batches and the smaller batch at the end of an epoch have separate
// tensors, so that neither has to be allocated again.
struct BatchSlot {
  Batch full;
  Batch rest;
  Batch* filled = nullptr;  // points to full or rest
};

class Pipeline::Maker {
 public:
  static StatusOr<std::unique_ptr<Maker>> Create(std::shared_ptr<const Source> source,
                                                 const PipelineOptions& options);

  BatchSlot NewSlot();
  // Fills the slot with the next batch. Returns false after the last epoch. If an example cannot be
  // read, returns the error, and the next call tries the same batch again.
  StatusOr<bool> Fill(BatchSlot& slot);

  Position next() const { return next_; }
  void Seek(Position next) { next_ = next; }
  // Takes part `worker` of `workers` of every global batch from now on. Requires global_batch.
  // Slots made before this call must not be filled any more, because their size may be wrong.
  void TakePart(int64_t worker, int64_t workers);
  bool Takes(int64_t worker, int64_t workers) const {
    return worker == worker_ && workers == workers_;
  }
  int64_t batches_per_epoch() const { return batches_; }
  int64_t remainder() const { return rest_.size; }
  // Returns the next position.
  Position After(Position position) const;
  // See Pipeline::Describe.
  std::string Describe() const;

 private:
  Maker(std::shared_ptr<const Source> source, const PipelineOptions& options);
  Status Check() const;
  Batch NewBatch(int64_t size) const;
  bool together() const { return options_.global_batch > 0; }
  // Returns the position in the source of example `index` of the current epoch. `index` counts the
  // examples in this worker's share or, with global_batch, all examples.
  int64_t Row(int64_t index) const;

  const std::shared_ptr<const Source> source_;
  const PipelineOptions options_;
  int64_t worker_, workers_;
  Part full_;          // this worker's part of a full batch of step_ rows
  Part rest_;          // this worker's part of the last, smaller batch
  int64_t step_;       // rows from the start of one batch to the start of the next
  int64_t rows_;       // examples per epoch that are grouped into batches
  int64_t remainder_;  // number of examples in the last, smaller batch; 0 if there is none
  int64_t batches_;
  Position next_;
  std::unique_ptr<RowReader> reader_;
  std::unique_ptr<Order> order_;
  std::vector<int64_t> batch_rows_;  // the examples of the batch that is being filled
};

}  // namespace tfjob::data
