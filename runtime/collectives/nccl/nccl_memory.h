// Moves the spans of operations between the host's memory and a GPU. Private to this package.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/device/cuda/cuda_runtime.h"

namespace tfjob::collectives::nccl {

// The ranges of pinned memory that a communicator has allocated and that still exist. Thread-safe.
class PinnedRanges {
 public:
  void Add(std::span<const std::byte> range);
  void Remove(std::span<const std::byte> range);
  bool Contain(std::span<const std::byte> range) const;

 private:
  mutable Mutex mutex_;
  std::map<const std::byte*, size_t> sizes_ ABSL_GUARDED_BY(mutex_);  // by address
};

// Used by one thread at a time.
class NcclMemory {
 public:
  explicit NcclMemory(std::shared_ptr<device::cuda::CudaRuntime> device)
      : device_(std::move(device)) {}

  // Returns memory of the host from which the GPU can copy.
  StatusOr<std::unique_ptr<Communicator::Memory>> Allocate(size_t bytes);

  // Submits a copy of the values to the GPU. Returns the copy's address, at which `reserve` bytes
  // are allocated in total. Invalidates the previous copy.
  StatusOr<std::byte*> CopyIn(std::span<const std::byte> values, size_t reserve,
                              device::Stream& stream);
  // Submits a copy of values.size() bytes from the GPU. Call TakeOut once it has run.
  Status CopyOut(std::span<std::byte> values, const std::byte* from, device::Stream& stream);
  void TakeOut(std::span<std::byte> values);

 private:
  Status ReserveStaging(size_t bytes);

  const std::shared_ptr<device::cuda::CudaRuntime> device_;
  const std::shared_ptr<PinnedRanges> pinned_ = std::make_shared<PinnedRanges>();
  device::Memory on_device_, staging_;  // staging_: pinned, for spans in other memory
  size_t on_device_bytes_ = 0, staging_bytes_ = 0;
};

}  // namespace tfjob::collectives::nccl
