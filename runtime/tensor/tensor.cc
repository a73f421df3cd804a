#include "runtime/tensor/tensor.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

namespace tfjob {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kHugePage = 2 << 20;
// Buffers of this size come from the kernel, in huge pages if it has them: touching new memory then
// costs less than half, and reading it misses the TLB less often. malloc, too, takes every block
// that is larger than this from the kernel, and returns it at once.
constexpr size_t kLarge = 32 << 20;

size_t AlignmentOf(size_t bytes) {
  return bytes >= kLarge ? kHugePage : kAlignment;
}

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Returns the size of a block in which `bytes` bytes can be aligned. Kernels read whole registers,
// so these bytes are padded to a multiple of kAlignment.
size_t SizeOfBlock(size_t bytes) {
  return RoundUp(bytes, kAlignment) + AlignmentOf(bytes);
}

std::byte* Aligned(void* memory, size_t alignment) {
  return reinterpret_cast<std::byte*>(RoundUp(reinterpret_cast<uintptr_t>(memory), alignment));
}

void* Map(size_t bytes) {
  void* memory = mmap(nullptr, SizeOfBlock(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, /*fd=*/-1, /*offset=*/0);
  ENFORCE(memory != MAP_FAILED, "out of memory");
  // Fails if the kernel has no huge pages.
  [[maybe_unused]] const int advised = madvise(Aligned(memory, kHugePage), bytes, MADV_HUGEPAGE);
  return memory;
}

// Neither calloc nor mmap writes to memory that comes from the kernel, which is zero already.
void* Allocate(size_t bytes, Buffer::Contents contents) {
  ENFORCE(bytes <= std::numeric_limits<size_t>::max() - 2 * kHugePage, "the size of a buffer");
  if (bytes >= kLarge) return Map(bytes);
  const size_t block = SizeOfBlock(bytes);
  void* memory = contents == Buffer::Contents::kZero ? std::calloc(1, block) : std::malloc(block);
  ENFORCE(memory != nullptr, "out of memory");
  return memory;
}

}  // namespace

Buffer::Buffer(size_t bytes, Contents contents)
    : memory_(Allocate(bytes, contents)),
      data_(Aligned(memory_, AlignmentOf(bytes))),
      size_(bytes) {}

Buffer::~Buffer() {
  if (size_ >= kLarge) {
    munmap(memory_, SizeOfBlock(size_));
  } else {
    std::free(memory_);
  }
}

Tensor::Tensor(DType dtype, Shape shape, Buffer::Contents contents)
    : dtype_(dtype),
      shape_(std::move(shape)),
      elements_(shape_.num_elements()),
      buffer_(std::make_shared<Buffer>(static_cast<size_t>(elements_) * SizeOf(dtype), contents)) {}

Tensor Tensor::Clone() const {
  Tensor copy(dtype_, shape_, Buffer::Contents::kUndefined);
  std::memcpy(copy.buffer_->data(), buffer_->data(), num_bytes());
  return copy;
}

Tensor Tensor::Reshaped(Shape shape) const {
  ENFORCE(shape.num_elements() == elements_, "reshape keeps the number of elements");
  Tensor view = *this;
  view.shape_ = std::move(shape);
  return view;
}

}  // namespace tfjob
