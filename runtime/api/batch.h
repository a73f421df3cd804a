// Defines the examples of one step of a program's own loop.
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

// Some examples. A dataset with one input and one output has batches with `x` and `y`; otherwise,
// the arrays are in the maps, by the names of inputs and outputs.
using Batch = data::Arrays;

struct DistributeOptions {
  int64_t batch_size = 32;      // examples of all tasks and devices together: 1 to 16777216
  bool shuffle = true;          // whether each epoch has a new order, that of Fit
  int64_t epochs = 1;           // how often the data are read
  int64_t initial_epoch = 0;    // the number of the first of these epochs, for its order
  bool drop_remainder = false;  // leave out the last batch of an epoch if it is smaller
};

struct BatchesData;

// The batches of a dataset, which a thread prepares ahead. A copy continues where the original is,
// and the two share their place. Not synchronised.
class Batches {
 public:
  // Returns the next batch, or nullopt after the last one. Its arrays are overwritten by the next
  // call, so Clone those that you keep. Returns the error of the data; call Next again to go on
  // behind it.
  Result<std::optional<Batch>> Next();

  // For `for`. If the data cannot be read, the process ends (Exit), as Result::value does.
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
