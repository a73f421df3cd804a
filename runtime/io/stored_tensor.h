// Defines a tensor whose values stay in files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/io/tensor_slice.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::io {

class DataFile;

// A tensor in one or more open files. The files stay open, so the values stay readable even if the
// files are deleted. Copies share the files. Thread-safe.
class StoredTensor {
 public:
  // A slice of the tensor, whose dense values start at byte `offset` of the file.
  struct Part {
    std::shared_ptr<const DataFile> file;
    int64_t offset;
    SlicePositions positions;
  };
  // Every element of the shape must be in exactly one part.
  StoredTensor(std::vector<Part> parts, DType dtype, Shape shape)
      : parts_(std::make_shared<const std::vector<Part>>(std::move(parts))),
        dtype_(dtype),
        shape_(std::move(shape)) {}

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }

  // Fills `to` with bytes of the dense values, starting at byte `offset`. Returns InvalidArgument
  // if the range is outside the tensor. Propagates I/O errors.
  Status Read(int64_t offset, std::span<std::byte> to) const;

  // Reads the rows of a matrix with these indices into `rows`, one after the other. `indices` may
  // be padded with -1 at the end; the corresponding rows of `rows` stay unchanged. Returns
  // InvalidArgument if a row does not exist or the tensor is not a matrix. Propagates I/O errors.
  Status ReadRows(std::span<const int64_t> indices, std::span<std::byte> rows) const;

 private:
  std::shared_ptr<const std::vector<Part>> parts_;
  DType dtype_;
  Shape shape_;
};

}  // namespace tfjob::io
