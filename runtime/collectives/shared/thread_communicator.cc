#include "runtime/collectives/shared/thread_communicator.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/collectives/shared/shared_operations.h"

namespace tfjob::collectives {
namespace {

// Owns memory whose size is rounded up to the alignment.
class ThreadMemory final : public Communicator::Memory {
 public:
  static constexpr size_t kAlignment = 128;

  // Returns null if there is not enough memory.
  static std::unique_ptr<ThreadMemory> Make(size_t bytes) {
    if (bytes > PTRDIFF_MAX) return nullptr;
    const size_t rounded = (bytes / kAlignment + 1) * kAlignment;
    void* data = std::aligned_alloc(kAlignment, rounded);
    if (data == nullptr) return nullptr;
    return std::unique_ptr<ThreadMemory>(new ThreadMemory(static_cast<std::byte*>(data), bytes));
  }
  ~ThreadMemory() override { std::free(bytes_.data()); }
  ThreadMemory(const ThreadMemory&) = delete;
  ThreadMemory& operator=(const ThreadMemory&) = delete;

  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  ThreadMemory(std::byte* data, size_t bytes) : bytes_(data, bytes) {}

  const std::span<std::byte> bytes_;
};

// Treats the whole memory of the process as one allocation, in which an offset is an address.
class ThreadSpace final : public SharedSpace {
 public:
  std::string_view transport() const override { return "threads"; }

  Place PlaceOf(std::span<std::byte> values) override {
    return {.allocation = 1, .offset = reinterpret_cast<uintptr_t>(values.data())};
  }
  std::byte* Find(int, const Place& place, size_t) override {
    return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(place.offset));
  }

  Status Offer(size_t) override { return OkStatus(); }
  StatusOr<std::unique_ptr<Communicator::Memory>> Take(size_t bytes) override {
    std::unique_ptr<ThreadMemory> memory = ThreadMemory::Make(bytes);
    if (memory == nullptr) {
      return ResourceExhausted("there is not enough memory for ", bytes,
                               " bytes of spans that threads exchange");
    }
    std::memset(memory->bytes().data(), 0, bytes);
    return memory;
  }
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> MakeThreadCommunicators(int ranks) {
  ENFORCE(ranks >= 1 && ranks <= Board::kMostRanks, "a group of threads has 1 to 128 ranks");
  std::shared_ptr<ThreadMemory> memory = ThreadMemory::Make(SharedOperations::MemoryBytes(ranks));
  ENFORCE(memory != nullptr, "there is not enough memory for a group of threads");
  std::byte* const data = memory->bytes().data();
  std::memset(data, 0, Board::Bytes(ranks));
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < ranks; ++rank) {
    communicators.push_back(std::make_unique<SharedOperations>(
        memory, data, rank, ranks, Sharing::kThreads, std::make_unique<ThreadSpace>()));
  }
  return communicators;
}

}  // namespace tfjob::collectives
