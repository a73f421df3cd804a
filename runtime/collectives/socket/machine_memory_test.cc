// Tests that a neighbour's place, which comes from a peer, is checked.
#include "runtime/collectives/socket/machine_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace tfjob::collectives {
namespace {

constexpr size_t kPart = 4096;

// Two ranks that share one allocation, number 1.
class TwoParts final : public SharedSpace {
 public:
  std::string_view transport() const override { return "test"; }
  Place PlaceOf(std::span<std::byte> values) override {
    const auto begin = reinterpret_cast<uintptr_t>(values.data());
    const auto own = reinterpret_cast<uintptr_t>(memory_.data());
    if (begin < own || begin + values.size() > own + kPart) return {};
    return {.allocation = 1, .offset = begin - own};
  }
  std::byte* Find(int rank, const Place& place, size_t bytes) override {
    if (place.allocation != 1 || bytes > kPart || place.offset > kPart - bytes) return nullptr;
    return memory_.data() + static_cast<size_t>(rank) * kPart + place.offset;
  }
  Status Offer(size_t) override { return OkStatus(); }
  StatusOr<std::unique_ptr<Communicator::Memory>> Take(size_t) override;

  std::byte* data() { return memory_.data(); }

 private:
  std::vector<std::byte> memory_ = std::vector<std::byte>(2 * kPart);
};

class OwnPart : public Communicator::Memory {
 public:
  explicit OwnPart(std::span<std::byte> bytes) : bytes_(bytes) {}
  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  const std::span<std::byte> bytes_;
};

StatusOr<std::unique_ptr<Communicator::Memory>> TwoParts::Take(size_t) {
  return std::make_unique<OwnPart>(std::span(memory_).first(kPart));
}

constexpr Costs kCosts{.chunk_bytes = 256};
constexpr int64_t kWindowBytes = 512;

class MachineMemoryTest : public testing::Test {
 protected:
  MachineMemoryTest() {
    auto space = std::make_unique<TwoParts>();
    space_ = space.get();
    auto window = *space->Take(kPart);
    memory_ = std::make_unique<MachineMemory>(
        SharedLevel{.hosts = hosts_, .space = std::move(space), .window = std::move(window)});
    const Call call{.operation = Operation::kAllReduce,
                    .bytes = 1000,
                    .element_bytes = 4,
                    .dtype = DType::kFloat32};
    run_ = PlanRun(MakePlan(call, 0, 3, kCosts, Algorithm::kTwoLevels, hosts_));
    scratch_.resize(static_cast<size_t>(run_.plan().scratch_bytes));
  }

  // Returns what rank 0 learns from the place that rank 1 has sent.
  Status Learn(const SharedPlace& place) {
    memory_->Start(run_, values_, scratch_);
    const PlanRange range{.memory = PlanMemory::kPlace, .bytes = kPlaceBytes, .rank = 1};
    std::memcpy(run_.Bytes(range).data(), &place, sizeof place);
    return memory_->Learn(run_, 1);
  }

  const Hosts hosts_{std::vector{0, 0, 1}};
  TwoParts* space_ = nullptr;
  std::unique_ptr<MachineMemory> memory_;
  PlanRun run_;
  std::vector<std::byte> values_ = std::vector<std::byte>(1000), scratch_;
};

TEST_F(MachineMemoryTest, FindsTheSpansOfNeighbours) {
  EXPECT_EQ(Learn({.allocation = 1, .offset = kPart - 1000}), OkStatus());
  const PlanRange range{.memory = PlanMemory::kShared, .begin = 40, .bytes = 8, .rank = 1};
  EXPECT_EQ(run_.Bytes(range).data(), space_->data() + kPart + kPart - 1000 + 40);
  // A window contains two chunks at a time.
  EXPECT_EQ(Learn({.allocation = 1, .offset = 64, .window = kWindowBytes}), OkStatus());
  const PlanRange later{
      .memory = PlanMemory::kShared, .begin = kWindowBytes + 40, .bytes = 8, .rank = 1};
  EXPECT_EQ(run_.Bytes(later).data(), space_->data() + kPart + 64 + 40);
}

TEST_F(MachineMemoryTest, RefusesPlacesOutsideSharedMemory) {
  EXPECT_EQ(Learn({.allocation = 1, .offset = kPart - 996}),
            DataLoss("rank 1 announced 1000 bytes at offset 3100 of shared allocation 1: expected "
                     "a range of that allocation, aligned to its elements"));
  for (const SharedPlace& place :
       {SharedPlace{.allocation = 0}, SharedPlace{.allocation = 2},
        SharedPlace{.allocation = 1, .offset = 2}, SharedPlace{.allocation = 1, .offset = kPart},
        SharedPlace{.allocation = 1, .offset = UINT64_MAX - 3},
        SharedPlace{.allocation = 1, .window = 4}, SharedPlace{.allocation = 1, .window = 1 << 20},
        SharedPlace{.allocation = 1, .offset = kPart - 508, .window = kWindowBytes}}) {
    EXPECT_EQ(Learn(place).code(), StatusCode::kDataLoss)
        << place.allocation << " " << place.offset << " " << place.window;
  }
}

// Values outside shared memory are copied to the window when the operation starts.
TEST_F(MachineMemoryTest, TellsNeighboursWhereTheValuesAre) {
  values_[100] = std::byte{7};
  memory_->Start(run_, values_, scratch_);
  EXPECT_EQ(run_.PlaceOf(0).window, static_cast<uint64_t>(kWindowBytes));
  EXPECT_EQ(space_->data()[100], std::byte{7});
  const std::span<std::byte> shared(space_->data() + 1024, 1000);
  memory_->Start(run_, shared, scratch_);
  EXPECT_EQ(run_.PlaceOf(0).window, 0U);
  EXPECT_EQ(run_.PlaceOf(0).offset, 1024U);
}

}  // namespace
}  // namespace tfjob::collectives
