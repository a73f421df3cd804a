// Defines memory for the values of a varying number of examples.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/tensor/tensor.h"

namespace tfjob::data {

class RowMemory {
 public:
  // Allocates memory for at most `rows` examples of the shape `example`. The contents are
  // undefined.
  RowMemory(DType dtype, Shape example, int64_t rows)
      : dtype_(dtype),
        example_(std::move(example)),
        memory_(std::make_shared<Buffer>(Bytes(rows), Buffer::Contents::kUndefined)) {}

  // Returns a tensor [rows, …] at the beginning of the memory. All tensors that this function
  // returns share the memory.
  Tensor First(int64_t rows) const {
    std::vector<int64_t> dims = example_.dims();
    dims.insert(dims.begin(), rows);
    auto part =
        std::make_shared<Buffer>(std::shared_ptr<void>(memory_, memory_->data()), Bytes(rows));
    return Tensor(dtype_, Shape(std::move(dims)), std::move(part));
  }

 private:
  size_t Bytes(int64_t rows) const {
    return static_cast<size_t>(example_.num_elements() * rows) * SizeOf(dtype_);
  }

  DType dtype_;
  Shape example_;
  std::shared_ptr<Buffer> memory_;
};

}  // namespace tfjob::data
