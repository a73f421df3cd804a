// Defines batches, which a program's own training loop iterates over.
//
//   for (const Batch& batch : session.Distribute(train, {.batch_size = 64}).value())
//     loss = trained.Step(batch).value().loss;
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "dataset.h"
#include "status.h"

namespace tfjob::api {

// The examples of a batch. `x`, `y` and `sample_weight` contain the arrays that have no names in
// the dataset; the maps contain the named arrays, by name.
using Batch = data::Arrays;

struct DistributeOptions {
  int64_t batch_size = 32;      // total over all tasks and devices: 1 to 16777216
  bool shuffle = true;          // whether each epoch has a new order, as in Fit
  int64_t epochs = 1;           // the number of passes over the data
  int64_t initial_epoch = 0;    // the index of the first epoch, which determines its order
  bool drop_remainder = false;  // leave out the last batch of an epoch if it is incomplete
};

struct BatchesData;

// Iterates over the batches of a dataset. A thread prepares the batches in advance. All copies
// share one position, so each batch is returned by only one of them. Not thread-safe.
class Batches {
 public:
  // Returns the next batch, or nullopt after the last one. The next call overwrites the batch's
  // arrays, so Clone the arrays that you want to keep. If a batch cannot be read, returns the
  // error; the next call then continues with the following batch.
  Result<std::optional<Batch>> Next();

  // Lets a range-based `for` iterate over the batches. If a batch cannot be read, ends the process
  // (Exit), as Result::value does for an error.
  class Iterator {
   public:
    const Batch& operator*() const { return *batch_; }
    Iterator& operator++();
    bool operator!=(std::nullptr_t) const { return batch_.has_value(); }

   private:
    friend class Batches;
    explicit Iterator(Batches* batches) : batches_(batches) { ++*this; }

    Batches* batches_;
    std::optional<Batch> batch_;
  };
  Iterator begin() { return Iterator(this); }
  std::nullptr_t end() const { return nullptr; }

  int64_t batches_per_epoch() const;

 private:
  friend struct Access;
  explicit Batches(std::shared_ptr<BatchesData> data) : data_(std::move(data)) {}

  std::shared_ptr<BatchesData> data_;
};

}  // namespace tfjob::api
