#include "runtime/kernels/cuda/emulator/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "runtime/kernels/cuda/emulator/shadow.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr size_t kBytes = size_t{1} << 28;
constexpr size_t kAlignment = 256;

std::byte* Arena() {
  static std::byte* const kArena = [] {
    void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    shadow::SetArena(reinterpret_cast<uintptr_t>(memory), kBytes);
    return static_cast<std::byte*>(memory);
  }();
  return kArena;
}

}  // namespace

EmulatedMemory::EmulatedMemory() {
  Arena();
  shadow::Reset();
}

EmulatedMemory::~EmulatedMemory() {
  madvise(Arena(), kBytes, MADV_DONTNEED);
}

std::byte* EmulatedMemory::Allocate(size_t bytes, const std::string& name, size_t offset) {
  std::byte* const address = Arena() + used_ + offset;
  // Leave at least kAlignment unused bytes between two allocations.
  used_ += (offset + bytes + 2 * kAlignment - 1) / kAlignment * kAlignment;
  if (used_ > kBytes) std::abort();
  std::memset(address, 0xff, bytes);
  shadow::Allocated(reinterpret_cast<uintptr_t>(address), bytes, name);
  return address;
}

void EmulatedMemory::Free(std::byte* memory) {
  shadow::Freed(reinterpret_cast<uintptr_t>(memory));
}

void EmulatedMemory::Write(std::byte* to, const void* from, size_t bytes) {
  if (bytes == 0) return;
  std::memcpy(to, from, bytes);
  shadow::HostWrote(reinterpret_cast<uintptr_t>(to), bytes);
}

}  // namespace tfjob::kernels::cuda
