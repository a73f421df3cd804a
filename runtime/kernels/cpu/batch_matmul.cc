// Multiplies batches of matrices. Each pair of matrices is multiplied separately, so an operand
// only needs strides between its matrices: it may be broadcast, and its rows need not be
// contiguous.
#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/cpu/prepare.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr int64_t kRowsOfTile = 48;
constexpr int64_t kLeastMultiplications = 1 << 19;

// One operand: its matrices [rows, cols], and the distances between them in elements.
struct Matrices {
  std::vector<int64_t> batch, strides;  // by axis of the batch
  int64_t rows = 0, cols = 0, row_stride = 1;
};

// If `swap`, the last axis of the batch is stored after the axis of the rows.
StatusOr<Matrices> MatricesOf(const Operand& operand, bool swap) {
  std::vector<int64_t> dims = operand.shape.dims();
  const size_t rank = dims.size();
  if (rank < (swap ? 3u : 2u)) return InvalidArgument(operand.ToString(), " has too few axes");
  std::vector<int64_t> strides(rank, 1);
  int64_t stride = std::max<int64_t>(1, operand.row_stride);
  for (size_t axis = rank - 1; axis-- > 0;) {
    strides[axis] = stride;
    stride *= dims[axis];
  }
  if (swap) {
    std::swap(dims[rank - 3], dims[rank - 2]);
    std::swap(strides[rank - 3], strides[rank - 2]);
  }
  Matrices matrices{
      .rows = dims[rank - 2], .cols = dims[rank - 1], .row_stride = strides[rank - 2]};
  // BLAS requires a stride of at least the number of columns, even for a single row.
  matrices.row_stride = std::max(matrices.row_stride, std::max<int64_t>(1, matrices.cols));
  matrices.batch.assign(dims.begin(), dims.end() - 2);
  matrices.strides.assign(strides.begin(), strides.end() - 2);
  return matrices;
}

// Returns the strides with which the matrices are broadcast to `batch`.
StatusOr<std::vector<int64_t>> StridesIn(const Matrices& matrices,
                                         const std::vector<int64_t>& batch) {
  std::vector<int64_t> strides(batch.size());
  const size_t own = matrices.batch.size();
  if (own > batch.size()) return InvalidArgument("an operand has more axes than the output");
  for (size_t i = 0; i < own; ++i) {
    const size_t axis = batch.size() - own + i;
    if (matrices.batch[i] == batch[axis]) {
      strides[axis] = matrices.strides[i];
    } else if (matrices.batch[i] != 1) {
      return InvalidArgument("an operand does not broadcast to the output");
    }
  }
  return strides;
}

struct Layout {
  std::vector<int64_t> batch;                      // the output's axes except the last two
  std::vector<int64_t> x_steps, y_steps, z_steps;  // distances between matrices, by axis
  Matrices x, y, z;
  bool adj_x = false, adj_y = false;
  int64_t m = 0, n = 0, k = 0;
};

StatusOr<Layout> LayoutOf(const KernelRequest& request) {
  const Attributes& attributes = request.attributes;
  Layout l{.adj_x = attributes.Get("adj_x", false), .adj_y = attributes.Get("adj_y", false)};
  ASSIGN_OR_RETURN(l.x, MatricesOf(request.inputs[0], attributes.Get("swap_x", false)));
  ASSIGN_OR_RETURN(l.y, MatricesOf(request.inputs[1], attributes.Get("swap_y", false)));
  ASSIGN_OR_RETURN(l.z, MatricesOf(request.outputs[0], attributes.Get("swap_z", false)));
  l.batch = l.z.batch;
  ASSIGN_OR_RETURN(l.x_steps, StridesIn(l.x, l.batch));
  ASSIGN_OR_RETURN(l.y_steps, StridesIn(l.y, l.batch));
  l.z_steps = l.z.strides;
  l.m = l.adj_x ? l.x.cols : l.x.rows;
  l.k = l.adj_x ? l.x.rows : l.x.cols;
  l.n = l.adj_y ? l.y.rows : l.y.cols;
  if ((l.adj_y ? l.y.cols : l.y.rows) != l.k || l.z.rows != l.m || l.z.cols != l.n)
    return InvalidArgument("the inner dimensions must be equal, the outer ones the output's");
  return l;
}

template <typename T>
class BatchMatMul : public Kernel {
 public:
  explicit BatchMatMul(Layout layout) : l_(std::move(layout)) {
    for (int64_t dim : l_.batch) matrices_ *= dim;
    // Splits large matrices by rows, so that even a few of them keep all threads busy.
    const int64_t row_work = std::max<int64_t>(1, l_.n * l_.k);
    tile_ = (1 + kLeastMultiplications / row_work / kRowsOfTile) * kRowsOfTile;
    tiles_ = (l_.m + tile_ - 1) / tile_;
    grain_ = 1 + kLeastMultiplications / (std::max<int64_t>(1, std::min(tile_, l_.m)) * row_work);
  }

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* x = static_cast<const T*>(inputs[0]);
    const auto* y = static_cast<const T*>(inputs[1]);
    auto* z = static_cast<T*>(outputs[0]);
    stream.ParallelFor(matrices_ * tiles_, grain_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) Multiply(i / tiles_, i % tiles_ * tile_, x, y, z);
    });
  }

 private:
  // Computes the tile that begins at row `row` of product number `number`.
  void Multiply(int64_t number, int64_t row, const T* x, const T* y, T* z) const {
    for (size_t axis = l_.batch.size(); axis-- > 0;) {
      const int64_t index = number % l_.batch[axis];
      number /= l_.batch[axis];
      x += index * l_.x_steps[axis];
      y += index * l_.y_steps[axis];
      z += index * l_.z_steps[axis];
    }
    x += l_.adj_x ? row : row * l_.x.row_stride;
    z += row * l_.z.row_stride;
    Gemm(std::min(tile_, l_.m - row), l_.n, l_.k, T{1}, {x, l_.x.row_stride, l_.adj_x},
         {y, l_.y.row_stride, l_.adj_y}, T{0}, Matrix<T>{z, l_.z.row_stride});
  }

  Layout l_;
  int64_t matrices_ = 1, tile_ = 1, tiles_ = 1, grain_ = 1;
};

Prepared PrepareBatchMatMul(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  for (const Operand& input : request.inputs)
    if (input.dtype != request.outputs[0].dtype)
      return InvalidArgument("the operands differ in dtype");
  ASSIGN_OR_RETURN(Layout layout, LayoutOf(request));
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<BatchMatMul<T>>(std::move(layout)); });
}

}  // namespace

KernelTable::Entries BatchMatMulKernels() {
  return {{"BatchMatMulV2", {PrepareBatchMatMul, {}}}};
}

}  // namespace tfjob::kernels::cpu
