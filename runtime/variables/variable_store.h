// Stores all variables of a task. Maps a variable's name to its memory, type, kind and version, and
// keeps the order of creation.
//
// The store owns the memory of the variables, which belongs to a device, never moves, and is freed
// with the store. Programs have pointers into this memory. A variable may have padding between its
// rows (row_stride). Messages and checkpoints contain only dense values, without padding. CopyOut
// and CopyIn convert between the two forms, and copy from and to the device.
//
// Threads: only one thread at a time may create variables or access a variable's contents. The
// owner of the store (a strategy or an evaluation) must ensure this. Any thread may read `version`
// at any time, and any thread may finish a copy that BeginCopy has started.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/cpu_runtime.h"
#include "runtime/device/device_runtime.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"
#include "runtime/tensor/tensor.h"
#include "runtime/variables/value_copy.h"

namespace tfjob::variables {

enum class Kind { kTrainable, kMovingStatistic, kSlot, kCounter };
std::string_view Name(Kind kind);  // "trainable", "moving statistic", "slot", "counter"

class Variable {
 public:
  // `memory` must have space for rows of `row_stride` elements, and belongs to `runtime`.
  Variable(std::string name, DType dtype, Shape shape, Kind kind, int64_t row_stride,
           std::shared_ptr<device::DeviceRuntime> runtime, device::Memory memory);
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;
  // Finishes a copy in progress.
  ~Variable();

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  Kind kind() const { return kind_; }

  // Returns the number of elements from the start of one row to the start of the next. All
  // dimensions except the last are flattened into rows. Without padding, the stride is the size of
  // the last dimension. The content of padding is undefined.
  int64_t row_stride() const { return row_stride_; }
  bool dense() const { return rows_ <= 1 || row_stride_ == cols_; }
  // Returns the address of the memory. The host may access it only if the device is immediate.
  void* data() { return memory_.get(); }
  const void* data() const { return memory_.get(); }
  const device::DeviceRuntime& runtime() const { return *runtime_; }

  // Returns the size of the dense value, which CopyOut writes and CopyIn reads.
  size_t num_bytes() const { return static_cast<size_t>(rows_ * cols_) * SizeOf(dtype_); }

  // Copy the whole value to or from dense row-major bytes. Return InvalidArgument if the sizes
  // differ; the message names the variable.
  Status CopyOut(std::span<std::byte> dense) const;
  Status CopyIn(std::span<const std::byte> dense);
  // Copy only part.size() bytes of the dense value, starting at byte `offset`. Used for values that
  // are transferred in chunks. Return InvalidArgument if the part extends beyond the value.
  Status CopyOut(size_t offset, std::span<std::byte> part) const;
  Status CopyIn(size_t offset, std::span<const std::byte> part);
  // Copy the value to a new tensor, or from a tensor. FromTensor returns InvalidArgument if the
  // tensor's dtype or shape differs from the variable's.
  Tensor ToTensor() const;
  Status FromTensor(const Tensor& value);

  // Returns the variable's memory as a tensor, so that a caller can write a new value directly. A
  // later call of FromTensor with this tensor need not copy. If the rows have padding, or the host
  // cannot access the memory, returns a new tensor, whose content is undefined. Finishes a copy in
  // progress.
  Tensor Memory();

  // Starts a copy of the value to `to`, which must have the variable's dtype and shape, and returns
  // at once. The content of `to` is undefined until Finish is called, which any thread may do.
  // Later writes to the variable do not change the copy, because every writer first finishes the
  // copy. A variable has at most one copy in progress: BeginCopy finishes any earlier copy. If the
  // device is not immediate, the copy is finished when BeginCopy returns.
  std::shared_ptr<ValueCopy> BeginCopy(Tensor to);
  // Finishes the copy in progress, if there is one. Called by CopyIn and FromTensor.
  void BeforeWrite();

  // Returns the number of times that the whole value has been written. CopyIn and FromTensor of the
  // whole value count as one write, as does each run of a program that writes the variable. CopyIn
  // of a part is not counted. Code that writes through data() must call BeforeWrite first, and
  // CountWrite afterwards.
  int64_t version() const { return version_.load(std::memory_order_acquire); }
  void CountWrite() { version_.fetch_add(1, std::memory_order_acq_rel); }

 private:
  Status CheckSize(size_t size) const;
  Status CheckRange(size_t offset, size_t size) const;
  template <typename Move>
  Status ForEachPiece(size_t offset, size_t size, Move move) const;

  std::string name_;
  DType dtype_;
  Shape shape_;
  Kind kind_;
  int64_t rows_;
  int64_t cols_;
  int64_t row_stride_;
  std::shared_ptr<device::DeviceRuntime> runtime_;
  device::Memory memory_;            // with the padding
  std::shared_ptr<ValueCopy> copy_;  // the copy started since the last write; null if none
  std::atomic<int64_t> version_{0};
};

// Returns the row stride of a new variable. For CPUs, use exec::RowStride.
using RowStrideFunction = int64_t (*)(DType dtype, const Shape& shape);
int64_t DenseRowStride(DType dtype, const Shape& shape);

class VariableStore {
 public:
  // Allocates the memory of the variables from `runtime`, the runtime of the device on which
  // programs use the variables.
  explicit VariableStore(RowStrideFunction row_stride = DenseRowStride,
                         std::shared_ptr<device::DeviceRuntime> runtime = device::CpuRuntime())
      : row_stride_(row_stride), runtime_(std::move(runtime)) {}

  // Creates a variable of zeros. Returns AlreadyExists if the name is taken; InvalidArgument if the
  // name is empty, a dimension is below 0, or there are more than 2^40 elements; and
  // ResourceExhausted if the device has too little memory.
  StatusOr<Variable*> Create(std::string_view name, DType dtype, Shape shape, Kind kind);

  // Returns the variable, or null if there is no such variable. The pointer stays valid while the
  // store exists.
  Variable* Find(std::string_view name) const;
  // Like Find, but returns NotFound if there is no such variable. The message lists the first 10
  // names.
  StatusOr<Variable*> Get(std::string_view name) const;

  // Returns the variables in the order of creation.
  const std::vector<std::unique_ptr<Variable>>& variables() const { return variables_; }
  // Returns the total size of the dense values, in bytes.
  size_t num_bytes() const;

 private:
  RowStrideFunction row_stride_;
  std::shared_ptr<device::DeviceRuntime> runtime_;
  std::vector<std::unique_ptr<Variable>> variables_;
  std::map<std::string, Variable*, std::less<>> by_name_;
};

}  // namespace tfjob::variables
