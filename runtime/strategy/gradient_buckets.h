// Reduces the contributions of a step over the ranks of a communicator, while the backward pass
// still computes further contributions. The buckets are in the communicator's memory. Programs
// compute their contributions directly there (MemoryOf), where they can; other contributions are
// copied. Contributions are scaled by the weight of this rank, so that the sum over all ranks is
// the mean. A background thread reduces the buckets in order, each as soon as it is complete. It
// then reduces the rows of tables and, finally, the totals of loss and metrics. Compressed
// contributions (BucketItem::compressed) are rounded to bfloat16 after they have been scaled. Their
// sum, which the communicator rounds once to bfloat16, is converted back to float32. The thread
// checks the numbers of each sum while they are in the cache.
//
// If the communicator adds in the memory of the device on which the programs compute
// (Communicator::device), the buckets of gradients are there, too. The background thread then
// submits the sums to the communicator's stream, and waits for the device before it reduces the
// totals. Moving statistics, compressed gradients and the rows of tables stay on the host.
//
// A program may also exchange values with the other ranks while it runs (exec/exchange.h). The
// value of each such exchange is one of the buckets (bucket_plan.h), and the program waits until
// this bucket has been reduced. All ranks reduce the same buckets in the same order, so no rank can
// wait for an operation that another rank calls only later.
//
//   RETURN_IF_ERROR(buckets.Connect(communicator));            // once per generation
//   program->PlaceContributions([&](int v) { return buckets.MemoryOf(v); });
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
#include "runtime/device/device_runtime.h"
#include "runtime/exec/exchange.h"
#include "runtime/strategy/bucket_plan.h"
#include "runtime/strategy/gradient_rows.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::strategy {

// Owned by one thread. Starts a background thread. Without tables, a step allocates no memory.
class GradientBuckets : public exec::Exchange {
 public:
  // The factors by which this rank's gradients and assigned values are multiplied before they are
  // summed over all ranks.
  struct Weights {
    double gradient = 1;
    double assign = 1;
  };

  // `variables` is the number of variables, and `totals` the number of totals that are summed in
  // each step. `checks_numbers`: see Finite.
  GradientBuckets(BucketPlan plan, size_t variables, size_t totals, bool checks_numbers = false);
  ~GradientBuckets() override;
  GradientBuckets(const GradientBuckets&) = delete;
  GradientBuckets& operator=(const GradientBuckets&) = delete;

  // Allocates the buckets in the communicator's memory. All ranks must call Connect. Replaces an
  // earlier connection. The communicator must outlive the connection. If `device` is not null, it
  // is the communicator's device, and the contributions to the variables v with OnDevice(v) are in
  // its memory. They are added as they are, so Weights::gradient must be 1.
  Status Connect(collectives::Communicator& communicator, device::DeviceRuntime* device = nullptr);
  // Ends the connection. The communicator is not used afterwards.
  void Disconnect();

  // Returns whether the contribution to variable v, and its sum, are in the device's memory.
  bool OnDevice(int v) const;
  // Returns whether this would be so if a device were given to Connect.
  bool SuitsDevice(int v) const;

  // Returns where a program may compute this rank's contribution to variable v, between Begin and
  // Add, so that Add need not copy it. The size is that of the contribution, and the address a
  // multiple of kBucketAlignment. Returns an empty span for a table, or if the plan has no
  // contribution to v. Requires a connection; valid until the next Connect or Disconnect.
  std::span<std::byte> MemoryOf(int v);

  // Starts a step. Requires a connection.
  void Begin(Weights weights);
  // Adds this rank's contribution to variable v. Does nothing if the plan has no contribution to v.
  // `value` may be MemoryOf(v). For a table, `indices` are the indices of the rows; see
  // ModelProgram::Indices.
  void Add(int v, std::span<const std::byte> value, std::span<const int64_t> indices = {});
  // Adds zeros for all contributions and exchanges. Call this instead of Add if this rank has no
  // examples.
  void AddZeros();
  // Carries out an exchange of this rank's program. The weight of this rank is Weights::gradient.
  // Call this on the thread that owns the buckets, in the order of the exchanges, and after Add for
  // all contributions of the preceding buckets. Otherwise, returns Internal. If the communicator
  // fails, returns its error; Finish then returns the same error.
  Status AllReduceMean(int64_t number, DType dtype, std::span<std::byte> values) override;
  // Waits until the contributions of all ranks have been reduced. Replaces `totals` with its sum
  // over all ranks. If the communicator fails, returns the communicator's error; `totals` and the
  // reduced contributions are then undefined. Returns Internal, and aborts the communicator, if a
  // contribution or an exchange of this rank is missing.
  Status Finish(std::span<double> totals);
  // Abandons the step and aborts the communicator with `why`. Call this instead of Finish.
  void Abandon(const Status& why);
  // Returns whether an exchange of this step has failed because the communicator has failed. Finish
  // then returns the communicator's error.
  bool exchange_failed() const { return exchange_failed_; }

  // Returns the reduced contribution to variable v in the last step, or an empty span if there is
  // none. For a table, the contribution consists of the rows that at least one rank has contributed
  // to. Valid until the next Begin, Connect or Disconnect.
  std::span<const std::byte> Reduced(int v) const;
  // Returns whether all numbers of Reduced(v) are finite. Returns true if the constructor was told
  // not to check numbers.
  bool Finite(int v) const;
  // Returns whether the contribution to variable v consists of rows of a table. The next two
  // functions are for such variables.
  bool ByRows(int v) const { return table_of_variable_[static_cast<size_t>(v)] >= 0; }
  // Returns the number of rows that Reduced returns.
  int64_t ReducedRowCount(int v) const;
  // Returns the rows of Reduced and their indices, padded to `rows` rows; padding rows are zero and
  // have index -1. Invalidates earlier results of Reduced for v.
  GradientRows::Rows ReducedRows(int v, int64_t rows);
  // Returns the memory of the buckets, which the communicator exchanges without copying. Use it
  // only between steps.
  std::span<std::byte> memory();

 private:
  Status AllocateOnDevice(device::DeviceRuntime* device);
  Status ReduceOnDevice(const Bucket& bucket);
  Status AwaitDevice();
  void ZeroOnDevice(const Bucket& bucket);
  void Pack(const BucketItem& item, std::span<const std::byte> value);
  void Complete(size_t bucket);
  Status CheckTurn(size_t bucket) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckAll();
  // Returns the memory of a contribution as it is sent.
  std::span<std::byte> BytesOf(const BucketItem& item) const;
  // Returns the memory of a compressed contribution, and of its sum, in float32.
  std::span<float> WideOf(const BucketItem& item);
  void Widen(const BucketItem& item);
  void CheckRows();
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
  std::vector<size_t> bucket_of_item_, bucket_of_exchange_;
  std::unique_ptr<collectives::Communicator::Memory> memory_;
  // The device if buckets are in its memory, which has the layout of the host's memory, and pinned
  // memory for copies of the sums whose numbers are checked. Both stay allocated between
  // connections, because operations of a communicator that has failed may use them until the
  // communicator is destroyed.
  device::DeviceRuntime* device_ = nullptr;
  device::Memory on_device_, copies_;
  std::vector<const std::byte*> sources_;  // by item: the contribution of this step; null: zeros
  std::vector<collectives::DeviceSum::Part> parts_;  // of the bucket that is being reduced
  Tensor wide_;  // compressed contributions in float32; empty if there are none
  const bool checks_numbers_;
  std::vector<unsigned char> suits_device_;  // by bucket
  std::vector<unsigned char> finite_;        // by variable; written by the thread that reduces
  collectives::Communicator* communicator_ = nullptr;
  Weights weights_;
  bool exchange_failed_ = false;

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
