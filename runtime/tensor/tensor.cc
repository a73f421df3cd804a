#include "runtime/tensor/tensor.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <utility>

#include "runtime/base/check.h"

namespace tfjob {
namespace {

constexpr size_t kAlignment = 64;

// Allocates memory, with calloc if it must be zero: calloc need not write to memory that it has
// just obtained from the kernel, because such memory is already zero.
void* Allocate(size_t bytes, Buffer::Contents contents) {
  ENFORCE(bytes <= std::numeric_limits<size_t>::max() - 2 * kAlignment, "the size of a buffer");
  // Pad the memory to a multiple of the alignment, because kernels read whole registers.
  const size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
  void* memory = contents == Buffer::Contents::kZero ? std::calloc(1, padded) : std::malloc(padded);
  ENFORCE(memory != nullptr, "out of memory");
  return memory;
}

std::byte* Aligned(void* memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory);
  return reinterpret_cast<std::byte*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

}  // namespace

Buffer::Buffer(size_t bytes, Contents contents)
    : memory_(Allocate(bytes, contents)), data_(Aligned(memory_)), size_(bytes) {}

Buffer::Buffer(std::shared_ptr<void> memory, size_t bytes)
    : memory_(nullptr),
      other_(std::move(memory)),
      data_(static_cast<std::byte*>(other_.get())),
      size_(bytes) {}

Buffer::~Buffer() {
  std::free(memory_);
}

Tensor::Tensor(DType dtype, Shape shape, Buffer::Contents contents)
    : dtype_(dtype),
      shape_(std::move(shape)),
      elements_(shape_.num_elements()),
      buffer_(std::make_shared<Buffer>(static_cast<size_t>(elements_) * SizeOf(dtype), contents)) {}

Tensor::Tensor(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer)
    : dtype_(dtype),
      shape_(std::move(shape)),
      elements_(shape_.num_elements()),
      buffer_(std::move(buffer)) {
  ENFORCE(buffer_->size() == num_bytes(), "a buffer of the tensor's size");
}

void Tensor::WrongType(DType requested) const {
  ENFORCE(requested == dtype_, "the element type of the tensor");
  std::abort();
}

void Tensor::WrongCount() {
  ENFORCE(false, "as many values as elements");
  std::abort();
}

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
