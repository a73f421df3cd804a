#include "runtime/collectives/socket/machine_memory.h"

#include <utility>

#include "runtime/tensor/tensor.h"

namespace tfjob::collectives {
namespace {

class PlainMemory : public Communicator::Memory {
 public:
  explicit PlainMemory(size_t bytes) : buffer_(bytes) {}
  std::span<std::byte> bytes() const override { return {buffer_.data(), buffer_.size()}; }

 private:
  mutable Buffer buffer_;
};

// Memory that MachineMemory keeps, too.
class KeptMemory : public Communicator::Memory {
 public:
  explicit KeptMemory(std::shared_ptr<Communicator::Memory> memory) : memory_(std::move(memory)) {}
  std::span<std::byte> bytes() const override { return memory_->bytes(); }

 private:
  const std::shared_ptr<Communicator::Memory> memory_;
};

}  // namespace

Status MachineMemory::Offer(size_t bytes) {
  return level_.space ? level_.space->Offer(bytes) : OkStatus();
}

StatusOr<std::unique_ptr<Communicator::Memory>> MachineMemory::Take(size_t bytes) {
  if (!level_.space) return std::make_unique<PlainMemory>(bytes);
  ASSIGN_OR_RETURN(std::unique_ptr<Communicator::Memory> taken, level_.space->Take(bytes));
  kept_.push_back(std::move(taken));
  return std::make_unique<KeptMemory>(kept_.back());
}

void MachineMemory::Start(PlanRun& run, std::span<std::byte> values, std::span<std::byte> scratch) {
  Place place;
  if (level_.space) place = level_.space->PlaceOf(values);
  if (!level_.space || place.allocation != 0) {
    const SharedPlace told{.allocation = place.allocation, .offset = place.offset};
    return run.Start(values, scratch, {.bytes = values}, told);
  }
  const int64_t window = run.plan().window_bytes;
  const auto bytes = level_.window->bytes().first(static_cast<size_t>(window));
  place = level_.space->PlaceOf(bytes);
  run.Start(values, scratch, {.bytes = bytes, .window = window},
            {.allocation = place.allocation,
             .offset = place.offset,
             .window = static_cast<uint64_t>(window)});
}

Status MachineMemory::Learn(PlanRun& run, int rank) {
  const SharedPlace told = run.PlaceOf(rank);
  const Plan& plan = run.plan();
  const auto window = static_cast<uint64_t>(plan.window_bytes);
  const uint64_t bytes = told.window > 0 ? window : static_cast<uint64_t>(plan.call.bytes);
  std::byte* found = nullptr;
  if (level_.space && (told.window == 0 || told.window == window) &&
      told.offset % static_cast<uint64_t>(plan.call.element_bytes) == 0) {
    found = level_.space->Find(hosts().PlaceOf(rank), {told.allocation, told.offset}, bytes);
  }
  if (found == nullptr) {
    return DataLoss("rank ", rank, " announced ", bytes, " bytes at offset ", told.offset,
                    " of shared allocation ", told.allocation,
                    ": expected a range of that allocation, aligned to its elements");
  }
  run.SetNeighbour(rank, {.bytes = {found, bytes}, .window = static_cast<int64_t>(told.window)});
  return OkStatus();
}

}  // namespace tfjob::collectives
