// Implements the only store of a task's variables. It maps a variable's name to its memory, type,
// kind and version, and keeps the order of creation.
//
// The store owns the memory, which never moves and lives as long as the store; programs hold
// pointers into it. A variable may have padding between its rows (row_stride). The wire and
// checkpoints see only dense logical values, through CopyOut and CopyIn.
//
// Threads: only one thread at a time may create variables or access a variable's contents. The
// owner (a strategy, a shard of the parameter server) ensures this. Any thread may read
// `version` at any time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::variables {

enum class Kind { kTrainable, kMovingStatistic, kSlot, kCounter };
std::string_view Name(Kind kind);  // "trainable", "moving statistic", "slot", "counter"

class Variable {
 public:
  Variable(std::string name, DType dtype, Shape shape, Kind kind, int64_t row_stride);
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  Kind kind() const { return kind_; }

  // Returns the number of elements from the start of a row to the start of the next one, where all
  // dimensions but the last are flattened into rows. It is the size of the last dimension if there
  // is no padding. Padding may contain anything.
  int64_t row_stride() const { return row_stride_; }
  bool dense() const { return rows_ <= 1 || row_stride_ == cols_; }
  void* data() { return buffer_.data(); }
  const void* data() const { return buffer_.data(); }

  // Returns the size of the dense value, which CopyOut writes and CopyIn reads.
  size_t num_bytes() const { return static_cast<size_t>(rows_ * cols_) * SizeOf(dtype_); }

  // Copy the dense row-major value. Return InvalidArgument, with a message that names the variable,
  // if the sizes differ.
  Status CopyOut(std::span<std::byte> dense) const;
  Status CopyIn(std::span<const std::byte> dense);
  // Copy the bytes [offset, offset + size) of the dense value, for streams of chunks.
  Status CopyOut(size_t offset, std::span<std::byte> part) const;
  Status CopyIn(size_t offset, std::span<const std::byte> part);
  // Copy the value to or from a tensor, whose dtype and shape must agree.
  Tensor ToTensor() const;
  Status FromTensor(const Tensor& value);

  // Returns the number of writes of the whole value. It is incremented by CopyIn of the whole
  // value, and once per run by each program that writes the variable. The owner calls CountWrite
  // after writing through data().
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  void CountWrite() { version_.fetch_add(1, std::memory_order_acq_rel); }

 private:
  Status CheckSize(size_t size) const;
  Status CheckRange(size_t offset, size_t size) const;
  template <typename Move>
  void ForEachPiece(size_t offset, size_t size, Move move) const;

  std::string name_;
  DType dtype_;
  Shape shape_;
  Kind kind_;
  int64_t rows_;
  int64_t cols_;
  int64_t row_stride_;
  Buffer buffer_;
  std::atomic<int64_t> version_{0};
};

// Returns the row stride of a new variable. For CPUs, use exec::RowStride.
using RowStrideFunction = int64_t (*)(DType dtype, const Shape& shape);
int64_t DenseRowStride(DType dtype, const Shape& shape);

class VariableStore {
 public:
  explicit VariableStore(RowStrideFunction row_stride = DenseRowStride) : row_stride_(row_stride) {}

  // Creates a variable of zeros. Returns AlreadyExists if the name is taken, and InvalidArgument
  // for an empty name, a dimension below 0, or more than 2^40 elements.
  StatusOr<Variable*> Create(std::string_view name, DType dtype, Shape shape, Kind kind);

  // Returns null if there is no such variable. Pointers stay valid as long as the store.
  Variable* Find(std::string_view name) const;
  // Returns NotFound, with a message that lists the first 10 names, if there is no such variable.
  StatusOr<Variable*> Get(std::string_view name) const;

  // Returns the variables in the order of creation.
  const std::vector<std::unique_ptr<Variable>>& variables() const { return variables_; }
  // Returns the total size of the dense values, in bytes.
  size_t num_bytes() const;

 private:
  RowStrideFunction row_stride_;
  std::vector<std::unique_ptr<Variable>> variables_;
  std::map<std::string, Variable*, std::less<>> by_name_;
};

}  // namespace tfjob::variables
