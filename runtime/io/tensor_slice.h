// Describes a slice of a partitioned variable: a box within the tensor whose values are stored
// together. TensorFlow stores each slice of such a variable under a key of its own
// (tensorflow/core/framework/tensor_slice, tensorflow/core/util/saved_tensor_slice_util).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/shape.h"

namespace tfjob::io {

// Contains, in every dimension d of a tensor, the indices from start[d] up to, but not including,
// start[d] + length[d].
struct TensorSlice {
  std::vector<int64_t> start;
  std::vector<int64_t> length;

  // Returns "[0:5, 3:6]".
  std::string ToString() const;
};

// Returns the slice that contains the whole tensor.
TensorSlice WholeSlice(const Shape& shape);

// Returns the key of a slice of the tensor `name` in the index of a checkpoint. An extent of the
// whole dimension has the length -1 in the key if the writer left its length open.
std::string SliceKey(std::string_view name, std::span<const int64_t> starts,
                     std::span<const int64_t> lengths);

// Returns DataLoss, with a message that names the slice, unless the slices are within the shape,
// are disjoint, and together contain every element. The time grows quadratically with the number of
// slices, so callers must limit that number.
Status CheckPartition(const Shape& shape, std::span<const TensorSlice* const> slices);

// Converts between the positions of elements in a tensor and in one of its slices, both in
// row-major order. CheckPartition must have accepted the slice.
class SlicePositions {
 public:
  SlicePositions(const Shape& shape, const TensorSlice& slice);

  // Returns the number of elements in the slice.
  int64_t size() const { return size_; }
  // Returns the size of the blocks of the slice that are contiguous in the tensor, at least 1.
  int64_t block() const { return block_; }
  // Returns where the tensor contains the element of the slice at `position`.
  int64_t InTensor(int64_t position) const;
  // Returns where the slice contains the element of the tensor at `position`, or nullopt if it does
  // not contain the element.
  std::optional<int64_t> InSlice(int64_t position) const;

 private:
  struct Dimension {
    int64_t stride;        // in the tensor
    int64_t slice_stride;  // in the slice
    int64_t start;
    int64_t length;
  };
  // Excludes the inner dimensions that the slice contains as a whole.
  std::vector<Dimension> dimensions_;
  int64_t size_ = 1;
  int64_t block_ = 1;
};

}  // namespace tfjob::io
