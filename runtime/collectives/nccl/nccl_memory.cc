#include "runtime/collectives/nccl/nccl_memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace tfjob::collectives::nccl {
namespace {

using device::MemoryKind;

class PinnedMemory final : public Communicator::Memory {
 public:
  PinnedMemory(device::Memory memory, size_t bytes, std::shared_ptr<PinnedRanges> ranges)
      : memory_(std::move(memory)), size_(bytes), ranges_(std::move(ranges)) {
    ranges_->Add(bytes_of());
  }
  ~PinnedMemory() override { ranges_->Remove(bytes_of()); }
  std::span<std::byte> bytes() const override { return bytes_of(); }

 private:
  std::span<std::byte> bytes_of() const { return {static_cast<std::byte*>(memory_.get()), size_}; }

  const device::Memory memory_;
  const size_t size_;
  const std::shared_ptr<PinnedRanges> ranges_;
};

}  // namespace

void PinnedRanges::Add(std::span<const std::byte> range) {
  MutexLock lock(mutex_);
  sizes_[range.data()] = range.size();
}

void PinnedRanges::Remove(std::span<const std::byte> range) {
  MutexLock lock(mutex_);
  sizes_.erase(range.data());
}

bool PinnedRanges::Contain(std::span<const std::byte> range) const {
  MutexLock lock(mutex_);
  auto after = sizes_.upper_bound(range.data());
  if (after == sizes_.begin()) return false;
  const auto& [begin, size] = *std::prev(after);
  return range.data() + range.size() <= begin + size;
}

StatusOr<std::unique_ptr<Communicator::Memory>> NcclMemory::Allocate(size_t bytes) {
  ASSIGN_OR_RETURN(device::Memory memory,
                   device_->Allocate(MemoryKind::kPinned, bytes, Buffer::Contents::kZero,
                                     "memory for exchanges"));
  return std::make_unique<PinnedMemory>(std::move(memory), bytes, pinned_);
}

StatusOr<std::byte*> NcclMemory::CopyIn(std::span<const std::byte> values, size_t reserve,
                                        device::Stream& stream) {
  if (reserve > on_device_bytes_) {
    on_device_.reset();  // first, because the GPU might not have room for both
    on_device_bytes_ = 0;
    ASSIGN_OR_RETURN(on_device_,
                     device_->Allocate(MemoryKind::kDevice, reserve, Buffer::Contents::kUndefined,
                                       "memory for exchanges on the GPU"));
    on_device_bytes_ = reserve;
  }
  const std::byte* from = values.data();
  if (!values.empty() && !pinned_->Contain(values)) {
    RETURN_IF_ERROR(ReserveStaging(values.size()));
    std::memcpy(staging_.get(), values.data(), values.size());
    from = static_cast<const std::byte*>(staging_.get());
  }
  auto* const to = static_cast<std::byte*>(on_device_.get());
  device_->Copy(to, from, values.size(), stream);
  return to;
}

Status NcclMemory::CopyOut(std::span<std::byte> values, const std::byte* from,
                           device::Stream& stream) {
  if (values.empty()) return OkStatus();
  std::byte* to = values.data();
  if (!pinned_->Contain(values)) {
    RETURN_IF_ERROR(ReserveStaging(values.size()));
    to = static_cast<std::byte*>(staging_.get());
  }
  device_->Copy(to, from, values.size(), stream);
  return OkStatus();
}

void NcclMemory::TakeOut(std::span<std::byte> values) {
  if (values.empty() || pinned_->Contain(values)) return;
  std::memcpy(values.data(), staging_.get(), values.size());
}

Status NcclMemory::ReserveStaging(size_t bytes) {
  if (bytes <= staging_bytes_) return OkStatus();
  staging_.reset();
  staging_bytes_ = 0;
  ASSIGN_OR_RETURN(staging_,
                   device_->Allocate(MemoryKind::kPinned, bytes, Buffer::Contents::kUndefined,
                                     "memory for copies of exchanges"));
  staging_bytes_ = bytes;
  return OkStatus();
}

}  // namespace tfjob::collectives::nccl
