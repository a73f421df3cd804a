// Defines a tensor whose values stay in a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::io {

class DataFile;

// A tensor in an open file. The file stays open, so the values stay readable even if the file is
// deleted. Copies share the file. Thread-safe.
class StoredTensor {
 public:
  // The dense values start at byte `offset` of the file.
  StoredTensor(std::shared_ptr<const DataFile> file, DType dtype, Shape shape, int64_t offset)
      : file_(std::move(file)), dtype_(dtype), shape_(std::move(shape)), offset_(offset) {}

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
  std::shared_ptr<const DataFile> file_;
  DType dtype_;
  Shape shape_;
  int64_t offset_;
};

}  // namespace tfjob::io
