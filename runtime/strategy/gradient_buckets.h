// Reduces the contributions of a step over the ranks of a communicator, while the backward pass
// still computes further contributions. Contributions are packed into buckets in the communicator's
// memory, scaled by the weight of this rank, so that the sum over all ranks is the mean. A
// background thread reduces the buckets in order, each as soon as it is complete. It then reduces
// the rows of tables and, finally, the totals of loss and metrics.
//
//   RETURN_IF_ERROR(buckets.Connect(communicator));            // once per generation
//   buckets.Begin({.gradient = 0.25, .assign = 0.5});          // each step
//   program->Run(…, [&](int v) { buckets.Add(v, program->Contribution(v), program->Indices(v)); });
//   RETURN_IF_ERROR(buckets.Finish(totals));
//   … buckets.Reduced(v) …
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/strategy/bucket_plan.h"
#include "runtime/strategy/gradient_rows.h"

namespace tfjob::strategy {

// Owned by one thread. Starts a background thread. Without tables, a step allocates no memory.
class GradientBuckets {
 public:
  // The factors by which this rank's gradients and assigned values are multiplied before they are
  // summed over all ranks.
  struct Weights {
    double gradient = 1;
    double assign = 1;
  };

  // `variables` is the number of variables, and `totals` the number of totals that are summed in
  // each step.
  GradientBuckets(BucketPlan plan, size_t variables, size_t totals);
  ~GradientBuckets();
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Allocates the buckets in the communicator's memory. All ranks must call Connect. Replaces an
  // earlier connection. The communicator must outlive the connection.
  Status Connect(collectives::Communicator& communicator);
  // Ends the connection. The communicator is not used afterwards.
  void Disconnect();

  // Starts a step. Requires a connection.
  void Begin(Weights weights);
  // Adds this rank's contribution to variable v. Does nothing if the plan has no contribution to v.
  // For a table, `indices` are the indices of the rows; see ModelProgram::Indices.
  void Add(int v, std::span<const std::byte> value, std::span<const int64_t> indices = {});
  // Adds zeros for all contributions. Call this instead of Add if this rank has no examples.
  void AddZeros();
  // Waits until the contributions of all ranks have been reduced. Replaces `totals` with its sum
  // over all ranks. If the communicator fails, returns the communicator's error; `totals` and the
  // reduced contributions are then undefined.
  Status Finish(std::span<double> totals);
  // Abandons the step and aborts the communicator with `why`. Call this instead of Finish.
  void Abandon(const Status& why);

  // Returns the reduced contribution to variable v in the last step, or an empty span if there is
  // none. For a table, the contribution consists of the rows to which at least one rank has
  // contributed. Valid until the next Begin, Connect or Disconnect.
  std::span<const std::byte> Reduced(int v) const;
  // Returns whether the contribution to variable v consists of rows of a table. The next two
  // functions are for such variables.
  bool ByRows(int v) const { return table_of_variable_[static_cast<size_t>(v)] >= 0; }
  // Returns the number of rows that Reduced returns.
  int64_t ReducedRowCount(int v) const;
  // Returns the rows of Reduced and their indices, padded to `rows` rows; padding rows are zero and
  // have the index -1. Invalidates earlier results of Reduced for v.
  GradientRows::Rows ReducedRows(int v, int64_t rows);
  // Returns the memory of the buckets, which the communicator exchanges without copying. Use it
  // only between steps.
  std::span<std::byte> memory();

 private:
  void Pack(const BucketItem& item, std::span<const std::byte> value);
  void Complete(size_t bucket);
  std::span<std::byte> BytesOf(const BucketItem& item) const;
  void Work();
  void ReduceNext() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Reduce(size_t bucket);

  // The plan has additional buckets without items: one for the rows of all tables, if there are
  // tables, and one for the totals.
  BucketPlan plan_;
  const size_t totals_;
  size_t rows_bucket_;  // the number of buckets if there are no tables
  GradientRows rows_;
  std::vector<int> item_of_variable_, table_of_variable_;  // -1 if none
  std::vector<size_t> bucket_of_item_;
  std::unique_ptr<collectives::Communicator::Memory> memory_;
  collectives::Communicator* communicator_ = nullptr;
  Weights weights_;

  Mutex mutex_;
  CondVar work_, idle_;
  std::vector<size_t> missing_ ABSL_GUARDED_BY(mutex_);  // by bucket: contributions to wait for
  size_t next_ ABSL_GUARDED_BY(mutex_);  // the bucket to reduce next; the number of buckets if none
  bool reducing_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Status result_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace tfjob::strategy
