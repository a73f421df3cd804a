#include "runtime/kernels/cuda/emulator/lane_products.h"

#include <cstddef>

namespace tfjob::kernels::cuda {
namespace {

constexpr size_t kLanes = 32, kRows = 16, kColumns = 8, kInner = 16;

float Element(const LaneProduct& lane, uint32_t pair, size_t half) {
  return lane.widen(static_cast<uint16_t>(half == 0 ? pair : pair >> 16));
}

}  // namespace

void MultiplyLanes(std::span<Thread> warp) {
  float a[kRows][kInner], b[kInner][kColumns];
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const LaneProduct& product = *warp[lane].product;
    const size_t group = lane / 4, first = lane % 4 * 2;
    for (size_t half = 0; half < 2; ++half) {
      for (size_t pair = 0; pair < 4; ++pair) {
        const size_t row = group + pair % 2 * 8, inner = first + pair / 2 * 8 + half;
        a[row][inner] = Element(product, product.a[pair], half);
      }
      for (size_t pair = 0; pair < 2; ++pair)
        b[first + pair * 8 + half][group] = Element(product, product.b[pair], half);
    }
  }
  for (size_t lane = 0; lane < kLanes; ++lane) {
    float* const c = warp[lane].product->c;
    for (size_t i = 0; i < 4; ++i) {
      const size_t row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      for (size_t inner = 0; inner < kInner; ++inner) c[i] += a[row][inner] * b[inner][column];
    }
  }
}

}  // namespace tfjob::kernels::cuda
