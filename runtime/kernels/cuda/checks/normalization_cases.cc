#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {

std::vector<Comparison> LayerNormalizationCases(uint64_t seed) {
  PhiloxStream random(seed);
  const auto type = [&random] {
    const DType types[] = {DType::kFloat32, DType::kBFloat16, DType::kFloat16};
    return types[random.Below(3)];
  };
  const int64_t rows = Draw(random, {1, 2, 3, 5, 33, 70});
  const int64_t cols = Draw(random, {1, 3, 4, 31, 128, 132, 300});
  const Shape shape = random.Below(2) == 0 ? Shape({rows, cols}) : Shape({2, rows, cols});
  const int64_t all = shape.num_elements() / cols;
  const RandomOperand x{shape, type(), 1, 3, random.Below(8) == 0};
  const RandomOperand y{shape, type()}, dx{shape, type()}, added{shape, type()};
  const RandomOperand row{Shape({cols})};
  const RandomOperand statistics{Shape({2, all}), DType::kFloat32, 0.5, 2};
  return {{"LayerNormalization", {{"epsilon", 1e-3}}, {x, row, row}, {y, statistics}, 2e-5},
          {"LayerNormalizationGrad", {}, {x, row, statistics, y}, {dx, row, row}, 5e-5},
          {"LayerNormalizationGrad", {}, {x, row, statistics, y, added}, {dx, row, row}, 5e-5}};
}

}  // namespace tfjob::kernels::cuda
