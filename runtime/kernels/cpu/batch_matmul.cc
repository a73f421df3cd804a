// Multiplies batches of matrices. Each pair of matrices is multiplied separately, so operands may
// be broadcast, and their rows need not be contiguous.
#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/gemm.h"
#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/cpu/products.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr int64_t kRowsOfTile = 48;
constexpr int64_t kLeastMultiplications = 1 << 19;

template <typename T>
class BatchMatMul : public Kernel {
 public:
  explicit BatchMatMul(BatchLayout layout) : l_(std::move(layout)) {
    for (int64_t dim : l_.batch) matrices_ *= dim;
    // Split large matrices into tiles of rows, so that even a small batch keeps all threads busy.
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
  // Computes the tile of product number `number` that starts at row `row`.
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

  BatchLayout l_;
  int64_t matrices_ = 1, tile_ = 1, tiles_ = 1, grain_ = 1;
};

Prepared PrepareBatchMatMul(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  ASSIGN_OR_RETURN(BatchLayout layout, BatchLayoutOf(request));
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<BatchMatMul<T>>(std::move(layout)); });
}

}  // namespace

KernelTable::Entries BatchMatMulKernels() {
  return {{"BatchMatMulV2", {PrepareBatchMatMul, {}}}};
}

}  // namespace tfjob::kernels::cpu
