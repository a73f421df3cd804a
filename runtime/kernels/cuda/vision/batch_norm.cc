// Implements the host's side of batch_norm.cu.
#include <algorithm>
#include <limits>
#include <memory>
#include <utility>

#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/vision/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

using cpu::NormOptions;

int64_t PartsOf(int64_t rows) {
  return std::max<int64_t>(1, (rows + kNormRows - 1) / kNormRows);
}

// Returns the grid for a matrix. The grid has at least one part even if the matrix has no rows,
// because sums over no rows are needed, too.
Grid NormGrid(int64_t rows, uint32_t cols) {
  return {Blocks(cols, 32) * static_cast<unsigned>(PartsOf(rows))};
}
constexpr Grid kNormBlock{32, kNormWarps};

const float* FloatsOf(const void* address) {
  return static_cast<const float*>(address);
}

// Computes the moments of a matrix, and normalises it.
class BatchNormKernel final : public Kernel {
 public:
  BatchNormKernel(Launcher launcher, const KernelRequest& request, const NormOptions& options)
      : launcher_(std::move(launcher)),
        options_(options),
        rows_(request.inputs[0].rows()),
        cols_(static_cast<uint32_t>(request.inputs[0].cols())),
        x_stride_(request.inputs[0].row_stride),
        side_stride_(options.side ? request.inputs[3].row_stride : 0),
        y_stride_(request.outputs[0].row_stride) {}

  size_t workspace_bytes() const override {
    // The moments of the parts are written to two areas alternately.
    return rows_ <= kNormRows ? 0 : 2 * area_bytes();
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* const mean = static_cast<float*>(outputs[1]);
    auto* const variance = static_cast<float*>(outputs[2]);
    Observe(FloatsOf(inputs[0]), {mean, variance}, static_cast<float*>(workspace), stream);
    const BatchNormParameter p{.x = FloatsOf(inputs[0]),
                               .side = options_.side ? FloatsOf(inputs[3]) : nullptr,
                               .y = static_cast<float*>(outputs[0]),
                               .channels = {FloatsOf(inputs[1]), FloatsOf(inputs[2]), mean,
                                            variance, static_cast<float>(options_.epsilon)},
                               .x_stride = x_stride_,
                               .side_stride = side_stride_,
                               .y_stride = y_stride_,
                               .rows = rows_,
                               .cols = cols_,
                               .relu = options_.relu ? 1 : 0};
    Submit(launcher_, "BatchNorm", NormGrid(rows_, cols_), kNormBlock, p, stream);
  }

 private:
  // The moments of all columns in each part.
  struct Moments {
    float* mean;
    float* squares;
  };

  size_t area_bytes() const {
    return static_cast<size_t>(2 * PartsOf(rows_) * cols_) * sizeof(float);
  }

  // Computes the moments of parts, and merges those of kNormRows parts until only one part is left.
  void Observe(const float* x, const Moments& result, float* workspace, Stream& stream) const {
    int64_t parts = PartsOf(rows_), part_rows = kNormRows;
    const int64_t area = 2 * parts * cols_;
    Moments to = parts == 1 ? result : Moments{workspace, workspace + parts * cols_};
    Moments other = parts == 1 ? result : Moments{to.mean + area, to.squares + area};
    const ColumnMomentsParameter first{
        x, to.mean, to.squares, x_stride_, rows_, cols_, parts == 1 ? divisor() : 1};
    Submit(launcher_, "ColumnMoments", NormGrid(rows_, cols_), kNormBlock, first, stream);
    while (parts > 1) {
      const bool last = parts <= kNormRows;
      const Moments from = std::exchange(to, last ? result : other);
      other = from;
      const MergeMomentsParameter merge{.mean_in = from.mean,
                                        .squares_in = from.squares,
                                        .mean = to.mean,
                                        .squares = to.squares,
                                        .rows = rows_,
                                        .part_rows = part_rows,
                                        .parts = parts,
                                        .cols = cols_,
                                        .divisor = last ? divisor() : 1};
      Submit(launcher_, "MergeMoments", NormGrid(parts, cols_), kNormBlock, merge, stream);
      part_rows *= kNormRows;
      parts = PartsOf(parts);
    }
  }

  // The variance of no rows is NaN.
  float divisor() const { return static_cast<float>(rows_); }

  const Launcher launcher_;
  const NormOptions options_;
  const int64_t rows_;
  const uint32_t cols_;
  const int64_t x_stride_, side_stride_, y_stride_;
};

// Computes the gradient before the activation, then the sums of this gradient, and from these the
// gradients of the inputs.
class BatchNormGradKernel final : public Kernel {
 public:
  BatchNormGradKernel(Launcher launcher, const KernelRequest& request, const NormOptions& options)
      : launcher_(std::move(launcher)),
        request_(request),
        options_(options),
        rows_(request.inputs[1].rows()),
        cols_(static_cast<uint32_t>(request.inputs[1].cols())),
        parts_(PartsOf(rows_)),
        sum_(MakeColumnSums(launcher_, parts_, 2 * int64_t{cols_})) {}

  size_t workspace_bytes() const override {
    return Aligned(parts_) + Aligned(1) + sum_->workspace_bytes();
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* const space = static_cast<std::byte*>(workspace);
    const BatchNormChannels channels{FloatsOf(inputs[2]), FloatsOf(inputs[3]), FloatsOf(inputs[4]),
                                     FloatsOf(inputs[5]), static_cast<float>(options_.epsilon)};
    BatchNormSumsParameter sums = SumsParameter(inputs, channels);
    if (options_.side) sums.d_side = static_cast<float*>(outputs[3]);
    sums.sums = reinterpret_cast<float*>(space);
    Submit(launcher_, "BatchNormSums", NormGrid(rows_, cols_), kNormBlock, sums, stream);
    const void* const parts = space;
    void* const total = space + Aligned(parts_);
    sum_->Run(&parts, &total, space + Aligned(parts_) + Aligned(1), stream);
    const BatchNormGradParameter grad{
        .dy = options_.side ? sums.d_side : sums.dy,
        .x = sums.x,
        .sums = static_cast<const float*>(total),
        .dx = static_cast<float*>(outputs[0]),
        .d_gamma = static_cast<float*>(outputs[1]),
        .d_beta = static_cast<float*>(outputs[2]),
        .channels = channels,
        .dy_stride = options_.side ? sums.d_side_stride : sums.dy_stride,
        .x_stride = sums.x_stride,
        .dx_stride = request_.outputs[0].row_stride,
        .rows = rows_,
        .cols = cols_,
        .passed_by = options_.relu && !options_.side ? PassedBy::kComputed : PassedBy::kAll};
    Submit(launcher_, "BatchNormGrad", NormGrid(rows_, cols_), kNormBlock, grad, stream);
  }

 private:
  BatchNormSumsParameter SumsParameter(const void* const* inputs,
                                       const BatchNormChannels& channels) const {
    const bool more = request_.inputs.size() == 8;
    const auto activated = options_.side ? PassedBy::kRead : PassedBy::kComputed;
    return {.dy = FloatsOf(inputs[0]),
            .x = FloatsOf(inputs[1]),
            .y = options_.side ? FloatsOf(inputs[6]) : nullptr,
            .more = more ? FloatsOf(inputs[7]) : nullptr,
            .d_side = nullptr,
            .sums = nullptr,
            .channels = channels,
            .dy_stride = request_.inputs[0].row_stride,
            .x_stride = request_.inputs[1].row_stride,
            .y_stride = options_.side ? request_.inputs[6].row_stride : 0,
            .more_stride = more ? request_.inputs[7].row_stride : 0,
            .d_side_stride = options_.side ? request_.outputs[3].row_stride : 0,
            .rows = rows_,
            .cols = cols_,
            .passed_by = options_.relu ? activated : PassedBy::kAll};
  }

  // Returns the size in bytes of the sums for `parts` parts, rounded up to a multiple of 64, so
  // that an aligned address can follow.
  size_t Aligned(int64_t parts) const {
    return (static_cast<size_t>(2 * parts * cols_) * sizeof(float) + 63) / 64 * 64;
  }

  const Launcher launcher_;
  const KernelRequest request_;
  const NormOptions options_;
  const int64_t rows_;
  const uint32_t cols_;
  const int64_t parts_;
  const std::unique_ptr<Kernel> sum_;
};

template <typename K, auto kOptionsOf>
Prepared PrepareNorm(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const NormOptions options, kOptionsOf(request));
  RETURN_IF_ERROR(ExpectFloat32(request));
  const Operand& x = request.outputs[0];
  RETURN_IF_ERROR(CheckCount(x));
  // Check the rows and columns separately: even an empty matrix can have more rows or columns than
  // a grid can have blocks.
  if (x.rows() > INT32_MAX || x.cols() > INT32_MAX)
    return Unimplemented("a tensor of ", x.rows(), " rows of ", x.cols(), " elements");
  return std::make_unique<K>(launcher, request, options);
}

}  // namespace

KernelTable::Entries BatchNormKernels(const Launcher& launcher) {
  const KernelEntry forward = {[launcher](const KernelRequest& r) {
                                 return PrepareNorm<BatchNormKernel, cpu::BatchNormOf>(launcher, r);
                               },
                               {{0, 0}, {0, 3}}};
  const KernelEntry backward = {[launcher](const KernelRequest& r) {
                                  return PrepareNorm<BatchNormGradKernel, cpu::BatchNormGradOf>(
                                      launcher, r);
                                },
                                {{0, 1}, {0, 0}, {3, 0}}};
  return {{"FusedBatchNorm", forward},
          {"FusedBatchNormEx", forward},
          {"FusedBatchNormGrad", backward},
          {"FusedBatchNormGradEx", backward}};
}

}  // namespace tfjob::kernels::cuda
