// Implements the host's side of reduce.cu: sums over the first axes, the last axes, or all axes.
#include <algorithm>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// A matrix whose rows or columns are added.
struct Matrix {
  int64_t rows = 0, cols = 0, stride = 0;
};

// Adds the rows. If there are many, first adds them in parts.
class ColumnSums final : public Kernel {
 public:
  ColumnSums(Launcher launcher, const Matrix& in, float scale)
      : launcher_(std::move(launcher)),
        in_(in),
        scale_(scale),
        parts_(std::max<int64_t>(1, (in.rows + kSumRows - 1) / kSumRows)) {}

  size_t workspace_bytes() const override {
    // There are two areas, to which the sums of the parts are written alternately.
    return parts_ == 1 ? 0 : static_cast<size_t>(2 * parts_ * in_.cols) * sizeof(float);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    SumColumnsParameter p{.in = static_cast<const float*>(inputs[0]),
                          .out = nullptr,
                          .in_stride = in_.stride,
                          .rows = in_.rows,
                          .cols = static_cast<int32_t>(in_.cols),
                          .scale = 1};
    auto* area = static_cast<float*>(workspace);
    float* other = parts_ == 1 ? nullptr : area + parts_ * in_.cols;
    for (int64_t parts = parts_;; parts = (parts + kSumRows - 1) / kSumRows) {
      const bool last = parts == 1;
      p.out = last ? static_cast<float*>(outputs[0]) : area;
      p.scale = last ? scale_ : 1;
      Submit(launcher_, "SumColumns", {Blocks(in_.cols, 32), static_cast<unsigned>(parts)},
             {32, kSumWarps}, p, stream);
      if (last) return;
      p.in = area;
      p.in_stride = in_.cols;
      p.rows = parts;
      std::swap(area, other);
    }
  }

 private:
  const Launcher launcher_;
  const Matrix in_;
  const float scale_;
  const int64_t parts_;
};

// Adds the columns. If there are many, first adds them in parts.
class RowSums final : public Kernel {
 public:
  RowSums(Launcher launcher, const Matrix& in, float scale)
      : launcher_(std::move(launcher)),
        in_(in),
        scale_(scale),
        parts_(std::max<int64_t>(1, (in.cols + kSumColumns - 1) / kSumColumns)) {}

  size_t workspace_bytes() const override {
    return parts_ == 1 ? 0 : static_cast<size_t>(2 * parts_ * in_.rows) * sizeof(float);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    SumRowsParameter p{.in = static_cast<const float*>(inputs[0]),
                       .out = nullptr,
                       .in_stride = in_.stride,
                       .cols = in_.cols,
                       .parts = 1,
                       .scale = 1};
    auto* area = static_cast<float*>(workspace);
    float* other = parts_ == 1 ? nullptr : area + parts_ * in_.rows;
    for (int64_t parts = parts_;; parts = (parts + kSumColumns - 1) / kSumColumns) {
      const bool last = parts == 1;
      p.out = last ? static_cast<float*>(outputs[0]) : area;
      p.scale = last ? scale_ : 1;
      p.parts = static_cast<int32_t>(parts);
      Submit(launcher_, "SumRows", {static_cast<unsigned>(in_.rows), static_cast<unsigned>(parts)},
             {kSumThreads}, p, stream);
      if (last) return;
      p.in = area;
      p.in_stride = parts;
      p.cols = parts;
      std::swap(area, other);
    }
  }

 private:
  const Launcher launcher_;
  const Matrix in_;
  const float scale_;
  const int64_t parts_;
};

// Computes the sum of all elements of each matrix. The matrices are padded, and follow each other
// in memory. First adds the elements of each row.
class PaddedSums final : public Kernel {
 public:
  // `in` contains the rows of all matrices; each matrix has `rows` rows.
  PaddedSums(const Launcher& launcher, const Matrix& in, int64_t rows, float scale)
      : of_rows_(launcher, in, 1),
        of_matrices_(launcher, {in.rows / rows, rows, rows}, scale),
        rows_(in.rows) {}

  size_t workspace_bytes() const override {
    return static_cast<size_t>(rows_) * sizeof(float) +
           std::max(of_rows_.workspace_bytes(), of_matrices_.workspace_bytes());
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* const sums = static_cast<float*>(workspace);
    void* const written[] = {sums};
    const void* const read[] = {sums};
    of_rows_.Run(inputs, written, sums + rows_, stream);
    of_matrices_.Run(read, outputs, sums + rows_, stream);
  }

 private:
  RowSums of_rows_, of_matrices_;
  const int64_t rows_;
};

// CUDA's limit for the second axis of a grid, which counts parts.
constexpr int64_t kMostParts = 65535;

Prepared MakeColumnSums(const Launcher& launcher, const Matrix& in, float scale) {
  if (in.rows > kMostParts * kSumRows || in.cols > INT32_MAX)
    return Unimplemented("the sum of ", in.rows, " rows of ", in.cols, " elements");
  return std::make_unique<ColumnSums>(launcher, in, scale);
}

Status CheckRowSums(int64_t rows, int64_t cols) {
  if (cols <= kMostParts * kSumColumns && rows <= INT32_MAX) return OkStatus();
  return Unimplemented("the sum of ", cols, " columns of ", rows, " elements");
}

Prepared MakeRowSums(const Launcher& launcher, const Matrix& in, float scale) {
  RETURN_IF_ERROR(CheckRowSums(in.rows, in.cols));
  return std::make_unique<RowSums>(launcher, in, scale);
}

Prepared MakePaddedSums(const Launcher& launcher, const Matrix& in, int64_t rows, float scale) {
  RETURN_IF_ERROR(CheckRowSums(in.rows, in.cols));
  RETURN_IF_ERROR(CheckRowSums(in.rows / rows, rows));
  return std::make_unique<PaddedSums>(launcher, in, rows, scale);
}

// Returns the product of the dimensions of the axes in [begin, end).
int64_t Product(const Shape& shape, int begin, int end) {
  int64_t product = 1;
  for (int axis = begin; axis < end; ++axis) product *= shape.dim(axis);
  return product;
}

Prepared PrepareSum(const Launcher& launcher, const KernelRequest& request, bool mean) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  RETURN_IF_ERROR(ExpectFloat32(request));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  const int rank = in.shape.rank();
  ASSIGN_OR_RETURN(const std::vector<int> axes, cpu::AxesOf(request.attributes, rank));
  const auto count = static_cast<int>(axes.size());
  const bool consecutive = count > 0 && axes.back() - axes.front() == count - 1;
  if (!out.dense() || count == 0 || !consecutive || (axes.front() != 0 && axes.back() != rank - 1))
    return Unimplemented("a sum over axes that are neither the first nor the last ones");
  int64_t added = 1;
  for (const int axis : axes) added *= in.shape.dim(axis);
  const float scale = mean ? 1.0F / static_cast<float>(added) : 1.0F;
  if (added == 0 || out.shape.num_elements() == 0) return Unimplemented("a sum over no elements");
  if (axes.front() == 0 && count < rank) {
    const int64_t cols = Product(in.shape, count, rank);
    // If rows are padded, a row contains only the last axis.
    if (!in.dense() && count != rank - 1)
      return Unimplemented(
          "a sum over the first axes of padded rows, except over all axes but the last");
    return MakeColumnSums(launcher, {added, cols, in.dense() ? cols : in.row_stride}, scale);
  }
  const int64_t rows = Product(in.shape, 0, axes.front());
  if (!in.dense() && count > 1) {
    return MakePaddedSums(launcher, {in.rows(), in.cols(), in.row_stride}, in.rows() / rows, scale);
  }
  return MakeRowSums(launcher, {rows, added, in.dense() ? added : in.row_stride}, scale);
}

Prepared PrepareBiasAddGrad(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  RETURN_IF_ERROR(ExpectFloat32(request));
  const Operand& in = request.inputs[0];
  RETURN_IF_ERROR(cpu::ExpectShape(request.outputs[0], Shape({in.cols()})));
  return MakeColumnSums(launcher, {in.rows(), in.cols(), in.row_stride}, 1);
}

}  // namespace

KernelTable::Entries ReduceKernels(const Launcher& launcher) {
  const auto sum = [launcher](bool mean) {
    return [launcher, mean](const KernelRequest& request) {
      return PrepareSum(launcher, request, mean);
    };
  };
  return {
      {"Sum", {sum(false), {}}},
      {"Mean", {sum(true), {}}},
      {"BiasAddGrad",
       {[launcher](const KernelRequest& request) { return PrepareBiasAddGrad(launcher, request); },
        {}}}};
}

}  // namespace tfjob::kernels::cuda
