// Defines arrays of numbers in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "status.h"

namespace tfjob::api {

enum class DType { kFloat32, kFloat64, kInt32, kInt64, kUInt8, kBool };

// Returns NumPy's name for the type, such as "float32".
const char* Name(DType dtype);

// A dense array in row-major order, with any number of dimensions. A copy of a Tensor shares the
// elements; Clone copies them. Not thread-safe.
class Tensor {
 public:
  // Creates a Tensor without an array. Functions with an optional array treat such a Tensor as
  // absent.
  Tensor() = default;
  // Creates an array of zeros. Ends the process (Exit) if the shape has a negative dimension, or
  // more elements than memory can hold.
  Tensor(DType dtype, std::vector<int64_t> shape);
  // Return an array with copies of these elements. Return InvalidArgument if the shape has a
  // different number of elements.
  static Result<Tensor> Of(std::vector<int64_t> shape, std::span<const float> elements);
  static Result<Tensor> Of(std::vector<int64_t> shape, std::span<const double> elements);
  static Result<Tensor> Of(std::vector<int64_t> shape, std::span<const int32_t> elements);
  static Result<Tensor> Of(std::vector<int64_t> shape, std::span<const int64_t> elements);
  static Result<Tensor> Of(std::vector<int64_t> shape, std::span<const uint8_t> elements);
  static Result<Tensor> Of(std::vector<int64_t> shape, std::span<const bool> elements);

  bool present() const { return data_ != nullptr; }
  DType dtype() const;
  const std::vector<int64_t>& shape() const&;
  std::vector<int64_t> shape() && { return std::as_const(*this).shape(); }
  int64_t size() const;  // the number of elements; 0 if there is no array

  // Return the elements. End the process (Exit) if the elements have another type. The spans point
  // into the array, so these functions cannot be called on a temporary Tensor. Store it in a
  // variable: `Tensor y = Predict(x).value();`, and then `y.float32()`.
  std::span<float> float32() &;
  std::span<const float> float32() const&;
  std::span<const float> float32() && = delete;
  std::span<double> float64() &;
  std::span<const double> float64() const&;
  std::span<const double> float64() && = delete;
  std::span<int32_t> int32() &;
  std::span<const int32_t> int32() const&;
  std::span<const int32_t> int32() && = delete;
  std::span<int64_t> int64() &;
  std::span<const int64_t> int64() const&;
  std::span<const int64_t> int64() && = delete;
  std::span<uint8_t> uint8() &;
  std::span<const uint8_t> uint8() const&;
  std::span<const uint8_t> uint8() && = delete;
  std::span<bool> boolean() &;
  std::span<const bool> boolean() const&;
  std::span<const bool> boolean() && = delete;
  // Returns the bytes of the elements, which may be of any type.
  std::span<const std::byte> bytes() const&;
  std::span<const std::byte> bytes() && = delete;

  Tensor Clone() const;
  // Returns an array with another shape that shares the elements. Returns InvalidArgument if the
  // new shape has a different number of elements.
  Result<Tensor> Reshaped(std::vector<int64_t> shape) const;

 private:
  friend struct Access;
  struct Data;
  explicit Tensor(std::shared_ptr<Data> data) : data_(std::move(data)) {}

  std::shared_ptr<Data> data_;
};

}  // namespace tfjob::api
