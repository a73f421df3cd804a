// Implements a dense, row-major array in host memory. A copy of a Tensor shares its buffer; Clone
// copies the bytes. Not thread-safe.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob {

// Memory that is aligned to 64 bytes, the size of a cache line and of an AVX-512 register. The
// process aborts if there is not enough memory, so a size that comes from a peer or a file must be
// checked first.
class Buffer {
 public:
  enum class Contents {
    kZero,
    kUndefined,  // the caller must write every byte before it reads any
  };
  explicit Buffer(size_t bytes, Contents contents = Contents::kZero);
  // Uses host memory that the caller provides, which must be aligned to 64 bytes.
  Buffer(std::shared_ptr<void> memory, size_t bytes);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  void* const memory_;  // as allocated; null if `other_` owns the memory
  const std::shared_ptr<void> other_;
  std::byte* const data_;
  const size_t size_;
};

class Tensor {
 public:
  Tensor() : Tensor(DType::kFloat32, Shape({0})) {}
  // Creates a tensor of zeros.
  Tensor(DType dtype, Shape shape) : Tensor(dtype, std::move(shape), Buffer::Contents::kZero) {}
  // With kUndefined, the caller must write every element before it reads any.
  Tensor(DType dtype, Shape shape, Buffer::Contents contents);
  // Shares a buffer, which must have the size of the tensor.
  Tensor(DType dtype, Shape shape, std::shared_ptr<Buffer> buffer);
  template <typename T>
  static Tensor Of(Shape shape, std::initializer_list<T> values) {
    Tensor tensor(DTypeOf<T>::value, std::move(shape));
    if (static_cast<size_t>(tensor.num_elements()) != values.size()) WrongCount();
    std::copy(values.begin(), values.end(), tensor.data<T>().begin());
    return tensor;
  }
  template <typename T>
  static Tensor Scalar(T value) {
    return Of<T>(Shape(), {value});
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int64_t num_elements() const { return elements_; }
  size_t num_bytes() const { return static_cast<size_t>(elements_) * SizeOf(dtype_); }

  template <typename T>
  std::span<T> data() {
    if (DTypeOf<T>::value != dtype_) [[unlikely]]
      WrongType(DTypeOf<T>::value);
    return {reinterpret_cast<T*>(buffer_->data()), static_cast<size_t>(elements_)};
  }
  template <typename T>
  std::span<const T> data() const {
    if (DTypeOf<T>::value != dtype_) [[unlikely]]
      WrongType(DTypeOf<T>::value);
    return {reinterpret_cast<const T*>(buffer_->data()), static_cast<size_t>(elements_)};
  }
  std::span<std::byte> bytes() { return {buffer_->data(), num_bytes()}; }
  std::span<const std::byte> bytes() const { return {buffer_->data(), num_bytes()}; }

  Tensor Clone() const;
  // Returns a tensor with a different shape that shares the buffer. The shape must have the same
  // number of elements.
  Tensor Reshaped(Shape shape) const;

 private:
  // Abort the process, because the error is a bug in the caller.
  [[noreturn]] void WrongType(DType requested) const;
  [[noreturn]] static void WrongCount();

  DType dtype_;
  Shape shape_;
  int64_t elements_;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace tfjob
