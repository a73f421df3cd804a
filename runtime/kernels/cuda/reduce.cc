// Implements the host's side of reduce.cu. The kernels for matrices reduce over the first axes, the
// last axes or all axes. For other axes, the tensor is transposed first.
#include <algorithm>
#include <limits>

#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// A matrix that is reduced over its rows or its columns.
struct Matrix {
  int64_t rows = 0, cols = 0, stride = 0;
  FloatType type = FloatType::kFloat32;
};

// Describes a reduction: the sum, multiplied by `scale`, or the maximum or minimum. `type` is the
// type of the result; the results of parts are stored as float32.
struct Reduction {
  ReduceOp op = ReduceOp::kSum;
  float scale = 1;
  FloatType type = FloatType::kFloat32;
};

// Sums the rows of a matrix. If there are many rows, first sums the rows of each part, and then
// adds up the sums of the parts.
class ColumnSums final : public Kernel {
 public:
  ColumnSums(Launcher launcher, const Matrix& in, const Reduction& reduction)
      : launcher_(std::move(launcher)),
        in_(in),
        reduction_(reduction),
        parts_(std::max<int64_t>(1, (in.rows + kSumRows - 1) / kSumRows)) {}

  size_t workspace_bytes() const override {
    // The sums of the parts are written to two areas alternately.
    return parts_ == 1 ? 0 : static_cast<size_t>(2 * parts_ * in_.cols) * sizeof(float);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    SumColumnsParameter p{.in = inputs[0],
                          .out = nullptr,
                          .in_type = in_.type,
                          .out_type = FloatType::kFloat32,
                          .in_stride = in_.stride,
                          .rows = in_.rows,
                          .cols = static_cast<int32_t>(in_.cols),
                          .scale = 1,
                          .op = reduction_.op};
    auto* area = static_cast<float*>(workspace);
    float* other = parts_ == 1 ? nullptr : area + parts_ * in_.cols;
    for (int64_t parts = parts_;; parts = (parts + kSumRows - 1) / kSumRows) {
      const bool last = parts == 1;
      p.out = last ? outputs[0] : area;
      p.out_type = last ? reduction_.type : FloatType::kFloat32;
      p.scale = last ? reduction_.scale : 1;
      Submit(launcher_, "SumColumns", {Blocks(in_.cols, 32) * static_cast<unsigned>(parts)},
             {32, kSumWarps}, p, stream);
      if (last) return;
      p.in = area;
      p.in_type = FloatType::kFloat32;
      p.in_stride = in_.cols;
      p.rows = parts;
      std::swap(area, other);
    }
  }

 private:
  const Launcher launcher_;
  const Matrix in_;
  const Reduction reduction_;
  const int64_t parts_;
};

// Sums the columns of a matrix. If there are many columns, first sums the columns of each part, and
// then adds up the sums of the parts.
class RowSums final : public Kernel {
 public:
  RowSums(Launcher launcher, const Matrix& in, const Reduction& reduction)
      : launcher_(std::move(launcher)),
        in_(in),
        reduction_(reduction),
        parts_(std::max<int64_t>(1, (in.cols + kSumColumns - 1) / kSumColumns)) {}

  size_t workspace_bytes() const override {
    return parts_ == 1 ? 0 : static_cast<size_t>(2 * parts_ * in_.rows) * sizeof(float);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    SumRowsParameter p{.in = inputs[0],
                       .out = nullptr,
                       .in_type = in_.type,
                       .out_type = FloatType::kFloat32,
                       .in_stride = in_.stride,
                       .cols = in_.cols,
                       .rows = static_cast<uint32_t>(in_.rows),
                       .parts = 1,
                       .scale = 1,
                       .op = reduction_.op};
    auto* area = static_cast<float*>(workspace);
    float* other = parts_ == 1 ? nullptr : area + parts_ * in_.rows;
    for (int64_t parts = parts_;; parts = (parts + kSumColumns - 1) / kSumColumns) {
      const bool last = parts == 1;
      p.out = last ? outputs[0] : area;
      p.out_type = last ? reduction_.type : FloatType::kFloat32;
      p.scale = last ? reduction_.scale : 1;
      p.parts = static_cast<int32_t>(parts);
      if (p.cols <= kShortRow) {
        Submit(launcher_, "SumShortRows", {Blocks(in_.rows, kSumThreads / 32)}, {kSumThreads}, p,
               stream);
      } else {
        Submit(launcher_, "SumRows", {static_cast<unsigned>(in_.rows * parts)}, {kSumThreads}, p,
               stream);
      }
      if (last) return;
      p.in = area;
      p.in_type = FloatType::kFloat32;
      p.in_stride = parts;
      p.cols = parts;
      std::swap(area, other);
    }
  }

 private:
  const Launcher launcher_;
  const Matrix in_;
  const Reduction reduction_;
  const int64_t parts_;
};

// Runs kernels one after another. The input of each kernel is the output of the previous one.
class Chain final : public Kernel {
 public:
  // Appends a kernel. `bytes` is the size of its output, which is stored in the workspace, unless
  // the kernel is the last one.
  void Add(std::unique_ptr<Kernel> kernel, size_t bytes) {
    space_ += kernels_.empty() ? 0 : bytes_.back();
    workspace_ = std::max(workspace_, kernel->workspace_bytes());
    kernels_.push_back(std::move(kernel));
    bytes_.push_back((bytes + kAlignment - 1) / kAlignment * kAlignment);
  }

  size_t workspace_bytes() const override { return space_ + workspace_; }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* space = static_cast<std::byte*>(workspace);
    const void* from = inputs[0];
    for (size_t i = 0; i < kernels_.size(); ++i) {
      void* const to = i + 1 == kernels_.size() ? outputs[0] : space;
      kernels_[i]->Run(&from, &to, static_cast<std::byte*>(workspace) + space_, stream);
      from = to;
      space += bytes_[i];
    }
  }

 private:
  static constexpr size_t kAlignment = 64;

  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<size_t> bytes_;  // by kernel
  size_t space_ = 0;           // the bytes of all outputs but the last
  size_t workspace_ = 0;       // the largest workspace of a kernel
};

// Returns the product of the dimensions of the axes in [begin, end).
int64_t Product(const Shape& shape, int begin, int end) {
  int64_t product = 1;
  for (int axis = begin; axis < end; ++axis) product *= shape.dim(axis);
  return product;
}

// A tensor and the axes over which it is reduced, in ascending order.
struct Reduced {
  Operand in;
  std::vector<int> axes;
  FloatType type = FloatType::kFloat32;  // of the tensor

  int rank() const { return in.shape.rank(); }
  int count() const { return static_cast<int>(axes.size()); }
  bool consecutive() const { return axes.back() - axes.front() == count() - 1; }
  bool are_last() const { return consecutive() && axes.back() == rank() - 1; }
  // Returns whether the reduced axes form the rows of one matrix. If rows are padded, all axes but
  // the last must be reduced.
  bool are_first() const {
    return consecutive() && axes.front() == 0 && (in.dense() || count() == rank() - 1);
  }
};

// Adds a transposition to the chain. Returns its output, to be reduced over the last axes.
StatusOr<Reduced> AddTranspose(const Launcher& launcher, const Reduced& reduced, Chain& chain) {
  std::vector<int64_t> perm, dims;
  Reduced result{.in = {}, .axes = {}, .type = reduced.type};
  for (int axis = 0; axis < reduced.rank(); ++axis)
    if (!std::ranges::binary_search(reduced.axes, axis)) perm.push_back(axis);
  for (const int axis : reduced.axes) {
    result.axes.push_back(static_cast<int>(perm.size()));
    perm.push_back(axis);
  }
  for (const int64_t axis : perm) dims.push_back(reduced.in.shape.dim(static_cast<int>(axis)));
  result.in = Operand::Dense(reduced.in.dtype, Shape(dims));
  ASSIGN_OR_RETURN(
      auto kernel,
      PrepareTranspose(launcher, {"Transpose", {{"perm", perm}}, {reduced.in}, {result.in}}));
  chain.Add(std::move(kernel), result.in.bytes());
  return result;
}

// Adds the kernels that reduce over the last axes.
void AddLastAxes(const Launcher& launcher, const Reduced& reduced, const Reduction& reduction,
                 Chain& chain) {
  const Operand& in = reduced.in;
  const int first = reduced.axes.front();
  const int64_t rows = Product(in.shape, 0, first), cols = Product(in.shape, first, reduced.rank());
  if (in.dense() || reduced.count() == 1) {
    const Matrix matrix{rows, cols, in.dense() ? cols : in.row_stride, reduced.type};
    chain.Add(std::make_unique<RowSums>(launcher, matrix, reduction),
              static_cast<size_t>(rows) * sizeof(float));
    return;
  }
  // Reduces each padded row first, and then the results within each matrix.
  const int64_t per_matrix = in.rows() / rows;
  const Matrix all{in.rows(), in.cols(), in.row_stride, reduced.type};
  const Matrix matrices{rows, per_matrix, per_matrix};
  chain.Add(std::make_unique<RowSums>(launcher, all, Reduction{reduction.op, 1}),
            static_cast<size_t>(in.rows()) * sizeof(float));
  chain.Add(std::make_unique<RowSums>(launcher, matrices, reduction),
            static_cast<size_t>(rows) * sizeof(float));
}

void AddFirstAxes(const Launcher& launcher, const Reduced& reduced, const Reduction& reduction,
                  Chain& chain) {
  const Operand& in = reduced.in;
  const int64_t rows = Product(in.shape, 0, reduced.count());
  const int64_t cols = Product(in.shape, reduced.count(), reduced.rank());
  const Matrix matrix{rows, cols, in.dense() ? cols : in.row_stride, reduced.type};
  chain.Add(std::make_unique<ColumnSums>(launcher, matrix, reduction),
            static_cast<size_t>(cols) * sizeof(float));
}

// Adds the kernels that compute the output, which has no padding.
Status AddReduction(const Launcher& launcher, Reduced reduced, const Reduction& reduction,
                    Chain& chain) {
  if (!reduced.are_last() && !reduced.are_first()) {
    ASSIGN_OR_RETURN(reduced, AddTranspose(launcher, reduced, chain));
  }
  if (reduced.are_last()) {
    AddLastAxes(launcher, reduced, reduction, chain);
  } else {
    AddFirstAxes(launcher, reduced, reduction, chain);
  }
  return OkStatus();
}

// Returns the result of a reduction over no elements.
double ResultOfNothing(ReduceOp op, bool mean) {
  if (mean) return std::numeric_limits<double>::quiet_NaN();
  if (op == ReduceOp::kSum) return 0;
  return (op == ReduceOp::kMax ? -1 : 1) * std::numeric_limits<double>::infinity();
}

Prepared PrepareReduction(const Launcher& launcher, const KernelRequest& request, ReduceOp op,
                          bool mean) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  // It suffices to check the number of elements, because a grid has fewer blocks than that: one per
  // part of each sum.
  RETURN_IF_ERROR(CheckCount(in));
  Reduced reduced{in, {}, type};
  ASSIGN_OR_RETURN(reduced.axes, cpu::AxesOf(request.attributes, in.shape.rank()));
  const bool keep_dims = request.attributes.Get("keep_dims", false);
  RETURN_IF_ERROR(cpu::ExpectShape(out, cpu::ShapeWithout(in.shape, reduced.axes, keep_dims)));
  int64_t count = 1;
  for (const int axis : reduced.axes) count *= in.shape.dim(axis);
  const int64_t kept = out.shape.num_elements();
  if (kept == 0 || count == 0) return PrepareFill(launcher, out, ResultOfNothing(op, mean));
  if (reduced.axes.empty()) return PrepareCopy(launcher, in, out);
  auto chain = std::make_unique<Chain>();
  const Reduction reduction{op, mean ? 1.0F / static_cast<float>(count) : 1.0F, type};
  RETURN_IF_ERROR(AddReduction(launcher, std::move(reduced), reduction, *chain));
  if (!out.dense()) {
    ASSIGN_OR_RETURN(auto copy, PrepareCopy(launcher, Operand::Dense(out.dtype, out.shape), out));
    chain->Add(std::move(copy), out.bytes());
  }
  return chain;
}

Prepared PrepareBiasAddGrad(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  const Operand& in = request.inputs[0];
  RETURN_IF_ERROR(CheckCount(in));
  RETURN_IF_ERROR(cpu::ExpectShape(request.outputs[0], Shape({in.cols()})));
  const Matrix matrix{in.rows(), in.cols(), in.row_stride, type};
  return std::make_unique<ColumnSums>(launcher, matrix, Reduction{.type = type});
}

}  // namespace

std::unique_ptr<Kernel> MakeColumnSums(const Launcher& launcher, int64_t rows, int64_t cols) {
  return std::make_unique<ColumnSums>(launcher, Matrix{rows, cols, cols}, Reduction{});
}

KernelTable::Entries ReduceKernels(const Launcher& launcher) {
  const auto reduction = [&launcher](ReduceOp op, bool mean) -> KernelEntry {
    return {[launcher, op, mean](const KernelRequest& request) {
              return PrepareReduction(launcher, request, op, mean);
            },
            {}};
  };
  return {
      {"Sum", reduction(ReduceOp::kSum, false)},
      {"Mean", reduction(ReduceOp::kSum, true)},
      {"Max", reduction(ReduceOp::kMax, false)},
      {"Min", reduction(ReduceOp::kMin, false)},
      {"BiasAddGrad",
       {[launcher](const KernelRequest& request) { return PrepareBiasAddGrad(launcher, request); },
        {}}}};
}

}  // namespace tfjob::kernels::cuda
