#include <cmath>
#include <numbers>

#include "runtime/base/philox.h"
#include "runtime/data/dataset.h"

namespace tfjob::data {
namespace {

// Draws a number from N(0, 1) with the Box-Muller method. Discards the second number of each pair.
double Normal(PhiloxStream& random) {
  const double radius = std::sqrt(-2 * std::log1p(-random.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform());
}

}  // namespace

StatusOr<Dataset> MakeLinear(const LinearOptions& options) {
  const int64_t width = static_cast<int64_t>(options.weights.size());
  const int64_t count = options.examples;
  if (width < 1) return InvalidArgument("linear data: expected at least one weight, got none");
  if (count < 1) return InvalidArgument("linear data: expected at least one example, got ", count);
  Dataset dataset;
  dataset.arrays.push_back(
      {kFeaturesArray, "linear data", Tensor(DType::kFloat32, {count, width})});
  dataset.arrays.push_back({kLabelsArray, "linear data", Tensor(DType::kFloat64, {count})});
  PhiloxStream random(PhiloxKey(options.seed, "linear data"));
  auto x = dataset.arrays[0].values.data<float>();
  auto y = dataset.arrays[1].values.data<double>();
  const double range = options.high - options.low;
  for (int64_t i = 0; i < count; ++i) {
    double sum = options.bias + options.noise * Normal(random);
    for (int64_t j = 0; j < width; ++j) {
      const double even = count == 1 ? 0 : static_cast<double>(i) / static_cast<double>(count - 1);
      const double value = options.low + range * (width == 1 ? even : random.Uniform());
      x[static_cast<size_t>(i * width + j)] = static_cast<float>(value);
      sum += options.weights[static_cast<size_t>(j)] * value;
    }
    y[static_cast<size_t>(i)] = sum;
  }
  return dataset;
}

}  // namespace tfjob::data
