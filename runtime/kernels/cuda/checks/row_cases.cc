#include <algorithm>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {

std::vector<Comparison> SumCases(uint64_t seed) {
  PhiloxStream random(seed);
  const int64_t rows = Draw(random, {1, 7, 255, 256, 257, 1500});
  const int64_t cols = Draw(random, {1, 5, 31, 32, 33, 70});
  const RandomOperand matrix{Shape({rows, cols}), DType::kFloat32, 0, 1};  // sums do not cancel
  std::vector<Comparison> all = {{"BiasAddGrad", {}, {matrix}, {{Shape({cols})}}, 2e-5}};
  for (const char* op : {"Sum", "Mean"}) {
    const auto axes = [](int64_t axis) { return Attributes{{"axes", std::vector<int64_t>{axis}}}; };
    all.push_back({op, axes(0), {matrix}, {{Shape({cols})}}, 2e-5});
    all.push_back({op, axes(1), {matrix}, {{Shape({rows})}}, 2e-5});
  }
  return all;
}

std::vector<Comparison> ReductionCases(uint64_t seed) {
  PhiloxStream random(seed);
  const std::vector<int64_t> dims = DrawDims(random, random.Below(5), 2500);
  std::vector<int64_t> axes, kept, ones;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    const bool reduced = random.Below(2) == 0;
    if (reduced) axes.push_back(static_cast<int64_t>(axis));
    if (!reduced) kept.push_back(dims[axis]);
    ones.push_back(reduced ? 1 : dims[axis]);
  }
  const RandomOperand positive{Shape(dims), DType::kFloat32, 0, 1};  // sums do not cancel
  const RandomOperand special{Shape(dims), DType::kFloat32, -3, 3, true};
  const bool keep = random.Below(2) == 0;
  const Attributes attributes = {{"axes", axes}, {"keep_dims", keep}};
  const RandomOperand output{Shape(keep ? ones : kept)};
  std::vector<Comparison> all;
  for (const char* op : {"Sum", "Mean"})
    all.push_back({op, attributes, {positive}, {output}, 2e-5});
  for (const char* op : {"Max", "Min"}) {
    all.push_back({op, attributes, {positive}, {output}, 0});
    all.push_back({op, attributes, {special}, {output}, 0});
  }
  return all;
}

std::vector<Comparison> SoftmaxCases(uint64_t seed) {
  PhiloxStream random(seed);
  const RandomOperand matrix{DrawMatrix(random), DType::kFloat32, -20, 20};
  RandomOperand special = matrix;
  special.special = true;
  const RandomOperand small{matrix.shape, DType::kFloat32, -1, 1};
  // Most outputs are far below 1, so a small floor keeps the comparison relative.
  return {{"Softmax", {}, {matrix}, {{matrix.shape}}, 1e-5, 1e-30},
          {"LogSoftmax", {}, {matrix}, {{matrix.shape}}},
          {"Softmax", {}, {special}, {{matrix.shape}}, 1e-5, 1e-30},
          {"LogSoftmax", {}, {special}, {{matrix.shape}}, 1e-5, 1e-30},
          {"SoftmaxGrad", {}, {small, small}, {{matrix.shape}}, 2e-5}};
}

std::vector<Comparison> SparseCrossEntropyCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kUInt8}) {
    PhiloxStream random(seed);
    const Shape shape = DrawMatrix(random);
    const Shape rows({shape.dim(0)});
    // Some labels are outside the range of the classes, which makes their rows NaN.
    const double least = dtype == DType::kUInt8 ? 0 : -2;
    const double most = static_cast<double>(std::min<int64_t>(shape.dim(1) + 1, 255));
    for (const bool special : {false, true}) {
      all.push_back({"SparseSoftmaxCrossEntropyWithLogits",
                     {},
                     {{shape, DType::kFloat32, -10, 10, special}, {rows, dtype, least, most}},
                     {{rows}, {shape}},
                     4e-6});
    }
  }
  return all;
}

std::vector<Comparison> DenseCrossEntropyCases(uint64_t seed) {
  PhiloxStream random(seed);
  const Shape shape = DrawMatrix(random);
  const Shape rows({shape.dim(0)});
  // The labels of a row need not sum to 1.
  const RandomOperand labels{shape, DType::kFloat32, 0, 2.0 / static_cast<double>(shape.dim(1))};
  std::vector<Comparison> all;
  for (const bool special : {false, true}) {
    all.push_back({"SoftmaxCrossEntropyWithLogits",
                   {},
                   {{shape, DType::kFloat32, -10, 10, special}, labels},
                   {{rows}, {shape}},
                   1e-5});
  }
  return all;
}

}  // namespace tfjob::kernels::cuda
