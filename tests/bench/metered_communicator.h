// Measures the all-reduces of a communicator. Can also slow them down, as a slower network would,
// or leave them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/collectives/communicator.h"

namespace tfjob::bench {

// The all-reduces since the last call of MeteredCommunicator::TakeMeasurements.
struct Measurements {
  double seconds = 0;      // including the sleep of a throttled all-reduce
  double cpu_seconds = 0;  // of the threads that called the operations
  int64_t bytes = 0;
};

// Passes all operations on to another communicator. Only one thread at a time may use it, as with
// any communicator.
class MeteredCommunicator : public collectives::Communicator {
 public:
  // `inner` must outlive this object.
  explicit MeteredCommunicator(collectives::Communicator& inner) : inner_(inner) {}

  // Makes each following all-reduce sleep for this time per byte before it exchanges values. The
  // sleep takes no processor time, so computation can continue.
  void Throttle(double seconds_per_byte) { seconds_per_byte_ = seconds_per_byte; }
  // If `exchanges` is false, each following all-reduce returns at once, and leaves the values as
  // they are.
  void Exchange(bool exchanges) { exchanges_ = exchanges; }
  Measurements TakeMeasurements();

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  std::string_view transport() const override { return inner_.transport(); }
  StatusOr<std::unique_ptr<Memory>> Allocate(size_t bytes) override {
    return inner_.Allocate(bytes);
  }
  Status AllReduce(std::span<std::byte> values, DType dtype,
                   collectives::Reduction reduction) override;
  Status ReduceScatter(std::span<std::byte> values, DType dtype,
                       collectives::Reduction reduction) override {
    return inner_.ReduceScatter(values, dtype, reduction);
  }
  Status AllGather(std::span<std::byte> values, size_t element_bytes) override {
    return inner_.AllGather(values, element_bytes);
  }
  Status AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                           std::vector<std::byte>& all, std::vector<size_t>& sizes) override {
    return inner_.AllGatherVariable(own, most_bytes, all, sizes);
  }
  Status Broadcast(std::span<std::byte> values, int root) override {
    return inner_.Broadcast(values, root);
  }
  Status Reduce(std::span<std::byte> values, DType dtype, collectives::Reduction reduction,
                int root) override {
    return inner_.Reduce(values, dtype, reduction, root);
  }
  Status AllToAll(std::span<std::byte> values, size_t element_bytes) override {
    return inner_.AllToAll(values, element_bytes);
  }
  Status Barrier() override { return inner_.Barrier(); }
  void Abort(const Status& why) override { inner_.Abort(why); }
  collectives::Waiting CurrentWait() const override { return inner_.CurrentWait(); }

 private:
  collectives::Communicator& inner_;
  double seconds_per_byte_ = 0;
  bool exchanges_ = true;
  Measurements measurements_;
};

}  // namespace tfjob::bench
