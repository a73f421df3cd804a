// Stores the dimensions of a tensor. All dimensions are known, except that the argument of Reshape
// may contain a -1. A tensor of rank 0 is a scalar with one element.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace tfjob {

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : dims_(dims) {}
  explicit Shape(std::vector<int64_t> dims) : dims_(std::move(dims)) {}

  int rank() const { return static_cast<int>(dims_.size()); }
  // Returns a dimension. A negative axis counts from the end. The axis must exist.
  int64_t dim(int axis) const {
    return dims_[static_cast<size_t>(axis < 0 ? axis + rank() : axis)];
  }
  const std::vector<int64_t>& dims() const { return dims_; }
  // Returns the product of the dimensions, which must fit into 63 bits. For a shape that comes from
  // a peer or a file, call CheckedElements first.
  int64_t num_elements() const;
  // Returns the number of elements, or nullopt if a dimension is negative or the number does not
  // fit into 63 bits.
  std::optional<int64_t> CheckedElements() const;

  // Returns "[128,784]", or "[]" for a scalar.
  std::string ToString() const;

  bool operator==(const Shape&) const = default;

 private:
  std::vector<int64_t> dims_;
};

}  // namespace tfjob
