// Defines the interface between the package exec and a device. A kernel is prepared once for given
// dtypes, shapes, row strides and attributes. Preparation may be slow, and may fail. The kernel
// then runs many times on a stream, with the buffers of the execution plan. A run does not allocate
// memory (except inside oneDNN; see cpu/gemm.h). A run fails only if the values of the inputs are
// invalid. In this case, the kernel reports the error to the stream (Stream::Fail or
// Stream::refusal), and the outputs are undefined. ops.md documents the ops, their operands and
// their attributes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device_runtime.h"
#include "runtime/tensor/attributes.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::kernels {

class Stream;

// Describes the memory layout of a tensor. The last dimension is contiguous and forms a row. All
// other dimensions are flattened into a list of rows, which start row_stride elements apart.
// Padding between rows is never read, but may be overwritten. A tensor of rank 0 or 1 consists of
// one row.
//
// `memory` specifies where the tensor is stored. Kernels for CPUs can access all kinds of memory.
// Kernels for other devices access only device memory, so feeds and constants must first be copied
// to the device.
struct Operand {
  DType dtype = DType::kFloat32;
  Shape shape;
  int64_t row_stride = 1;  // in elements; ≥ cols()
  device::MemoryKind memory = device::MemoryKind::kDevice;

  static Operand Dense(DType dtype, Shape shape);

  int64_t cols() const { return shape.rank() == 0 ? 1 : shape.dim(-1); }
  int64_t rows() const;
  bool dense() const { return row_stride == cols() || rows() <= 1; }
  // Returns the size of the tensor's buffer in bytes, including the padding after the last row.
  size_t bytes() const { return static_cast<size_t>(rows() * row_stride) * SizeOf(dtype); }
  // Returns "float32[128,512]"; if rows are padded, "float32[128,512:528]".
  std::string ToString() const;

  // Compares the layouts, but not the kinds of memory.
  bool operator==(const Operand& other) const {
    return dtype == other.dtype && shape == other.shape && row_stride == other.row_stride;
  }
};

// Computes an op on operands for which it was prepared. Only one stream at a time may use a kernel.
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Runs the kernel or, on a device that is not immediate, submits its work to the stream. A kernel
  // that submits work must not read the operands before the work runs, and must copy the arrays of
  // pointers. The pointers are in the order of the request's operands; each must be aligned for its
  // element type (64-byte alignment is fastest). `workspace` points to workspace_bytes() bytes and
  // is aligned to 64 bytes. The contents of the workspace are unspecified before and after the
  // call.
  virtual void Run(const void* const* inputs, void* const* outputs, void* workspace,
                   Stream& stream) = 0;
  virtual size_t workspace_bytes() const { return 0; }
};

struct KernelRequest {
  std::string op;
  Attributes attributes;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;

  // Returns "MatMul(float32[2,3], float32[3,4]) -> float32[2,4]".
  std::string ToString() const;
};

using PrepareFunction = std::function<StatusOr<std::unique_ptr<Kernel>>(const KernelRequest&)>;

// Allows output `output` to use the memory of input `input` if both have the same dtype, shape and
// row stride (for Reshape, if both are dense). With kAlways, the output must use the memory of the
// input, because the op updates a variable in place (Assign, AssignAdd, MatMulAccumulate,
// ApplyOptimizer).
struct InPlace {
  enum Rule { kMay, kAlways };
  int output = 0;
  int input = 0;
  Rule rule = kMay;
};

struct KernelEntry {
  PrepareFunction prepare;
  std::vector<InPlace> in_place;
};

// Maps ops to the kernels of one device. Immutable.
class KernelTable {
 public:
  using Entries = std::map<std::string, KernelEntry, std::less<>>;
  // Set `host_operands` to false if the kernels can access only device memory.
  KernelTable(std::string device, Entries entries, bool host_operands = true)
      : device_(std::move(device)), entries_(std::move(entries)), host_operands_(host_operands) {}

  std::string_view device() const { return device_; }
  const Entries& entries() const { return entries_; }
  // Returns the entry for the op, or null if the device does not support the op.
  const KernelEntry* Find(std::string_view op) const;

  // Prepares a kernel. Returns Unimplemented if the device does not support the op for these
  // dtypes; the message names the op, the dtypes and the device. Returns InvalidArgument if an
  // operand or attribute is invalid for the op, or if an operand is in memory that the kernels
  // cannot access; the message names the operand or attribute.
  StatusOr<std::unique_ptr<Kernel>> Prepare(const KernelRequest& request) const;

  // Returns the union of this table and `more`. If both contain an op, the entry of `more` is used.
  KernelTable With(const KernelTable& more) const;

 private:
  std::string device_;
  Entries entries_;
  bool host_operands_;
};

// Returns the table for CPUs. It lacks ApplyOptimizer, which optimizer/apply_kernel.h provides.
const KernelTable& CpuKernels();

}  // namespace tfjob::kernels
