#include "runtime/tensor/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tfjob {
namespace {
constexpr size_t kAlignment = 64;
}

Buffer::Buffer(size_t bytes) : size_(bytes) {
  const size_t rounded =
      std::max<size_t>(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  ENFORCE(data_ != nullptr, "out of memory");
  std::memset(data_, 0, rounded);
}

Buffer::~Buffer() {
  std::free(data_);
}

Tensor::Tensor(DType dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      elements_(shape_.num_elements()),
      buffer_(std::make_shared<Buffer>(static_cast<size_t>(elements_) * SizeOf(dtype))) {}

Tensor Tensor::Clone() const {
  Tensor copy(dtype_, shape_);
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
