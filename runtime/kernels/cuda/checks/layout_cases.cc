#include <algorithm>
#include <string_view>

#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/kernels/cuda/checks/draw.h"

namespace tfjob::kernels::cuda {

std::vector<Comparison> CopyCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kBool}) {
    PhiloxStream random(seed);
    const RandomOperand matrix{DrawMatrix(random), dtype, 0, 100, true};
    const int64_t count = matrix.shape.num_elements();
    all.push_back({"Identity", {}, {matrix}, {matrix}, 0});
    all.push_back({"Assign", {}, {matrix, matrix}, {matrix}, 0});
    all.push_back({"Reshape", {}, {matrix}, {{Shape({count}), dtype}}, 0});
    all.push_back({"Reshape", {}, {{Shape({count}), dtype, 0, 100}}, {matrix}, 0});
  }
  PhiloxStream random(seed);
  const RandomOperand matrix{DrawMatrix(random)};
  all.push_back({"AssignAdd", {}, {matrix, matrix}, {matrix}});
  const RandomOperand doubles{matrix.shape, DType::kFloat64};
  all.push_back({"AssignAdd", {}, {doubles, matrix}, {doubles}, 1e-15});
  return all;
}

std::vector<Comparison> TransposeCases(uint64_t seed) {
  PhiloxStream random(seed);
  const DType dtype = DrawType(random);
  const std::vector<int64_t> dims = DrawDims(random, random.Below(5));
  const std::vector<int64_t> perm = DrawOrder(random, dims.size());
  std::vector<int64_t> permuted;
  for (const int64_t axis : perm) permuted.push_back(dims[static_cast<size_t>(axis)]);
  return {{"Transpose",
           {{"perm", perm}},
           {{Shape(dims), dtype, 0, 100}},
           {{Shape(permuted), dtype}},
           0}};
}

std::vector<Comparison> ConcatAndSliceCases(uint64_t seed) {
  PhiloxStream random(seed);
  const DType dtype = DrawType(random);
  const std::vector<int64_t> dims = DrawDims(random, 1 + random.Below(4));
  const size_t axis = random.Below(static_cast<uint32_t>(dims.size()));
  std::vector<RandomOperand> inputs;
  std::vector<int64_t> joined = dims;
  joined[axis] = 0;
  for (uint32_t i = 0; i < 1 + random.Below(4); ++i) {
    std::vector<int64_t> part = dims;
    part[axis] = random.Below(5);
    joined[axis] += part[axis];
    inputs.push_back({Shape(part), dtype, 0, 100});
  }
  std::vector<int64_t> begin, size;
  for (const int64_t dim : dims) {
    begin.push_back(random.Below(static_cast<uint32_t>(dim + 1)));
    size.push_back(random.Below(static_cast<uint32_t>(dim - begin.back() + 1)));
  }
  const RandomOperand whole{Shape(dims), dtype, 0, 100};
  return {{"Concat", {{"axis", static_cast<int64_t>(axis)}}, inputs, {{Shape(joined), dtype}}, 0},
          {"Slice", {{"begin", begin}}, {whole}, {{Shape(size), dtype}}, 0}};
}

std::vector<Comparison> PadCases(uint64_t seed) {
  PhiloxStream random(seed);
  const DType dtype = DrawType(random);
  const std::vector<int64_t> dims = DrawDims(random, random.Below(4));
  std::vector<int64_t> before, padded;
  for (const int64_t dim : dims) {
    before.push_back(random.Below(3));
    padded.push_back(before.back() + dim + random.Below(3));
  }
  return {
      {"Pad", {{"before", before}}, {{Shape(dims), dtype, 1, 100}}, {{Shape(padded), dtype}}, 0}};
}

std::vector<Comparison> FillCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kInt32, DType::kInt64,
                            DType::kUInt8, DType::kBool}) {
    PhiloxStream random(seed);
    all.push_back({"Fill", {{"value", 1.0}}, {}, {{Shape(DrawDims(random, 2)), dtype}}, 0});
  }
  return all;
}

std::vector<Comparison> AnyBroadcastCases(uint64_t seed) {
  PhiloxStream random(seed);
  const std::vector<int64_t> dims = DrawDims(random, random.Below(5));
  const DType dtype = DrawType(random);
  const Shape a = DrawRepeated(random, dims), b = DrawRepeated(random, dims);
  // One of the inputs has the output's shape, so that the result has it, too.
  return {{"BroadcastTo", {}, {{a, dtype, 0, 100}}, {{Shape(dims), dtype}}, 0},
          {"Sub", {}, {{a}, {Shape(dims)}}, {{Shape(dims)}}},
          {"Mul", {}, {{Shape(dims)}, {b}}, {{Shape(dims)}}}};
}

std::vector<Comparison> CompareCases(uint64_t seed) {
  std::vector<Comparison> all;
  for (const char* op : {"Equal", "Greater", "GreaterEqual", "Less"}) {
    PhiloxStream random(seed);
    const std::vector<int64_t> dims = DrawDims(random, random.Below(4));
    const DType dtype = DrawType(random);
    if (dtype == DType::kBool && std::string_view(op) != "Equal") continue;
    const double low = dtype == DType::kUInt8 ? 0 : -2;
    // The range is small, so that some of the values are equal.
    const RandomOperand a{Shape(dims), dtype, low, 2, true};
    const RandomOperand b{DrawRepeated(random, dims), dtype, low, 2, true};
    all.push_back({op, {}, {a, b}, {{Shape(dims), DType::kBool}}, 0});
  }
  return all;
}

std::vector<Comparison> SelectCases(uint64_t seed) {
  PhiloxStream random(seed);
  const std::vector<int64_t> dims = DrawDims(random, random.Below(5));
  const DType dtype = DrawType(random);
  const RandomOperand condition{DrawRepeated(random, dims), DType::kBool};
  const RandomOperand a{Shape(dims), dtype, 0, 100}, b{DrawRepeated(random, dims), dtype, 0, 100};
  return {{"Select", {}, {condition, a, b}, {{Shape(dims), dtype}}, 0},
          {"Select", {}, {condition, b, a}, {{Shape(dims), dtype}}, 0}};
}

std::vector<Comparison> ArgMaxCases(uint64_t seed) {
  PhiloxStream random(seed);
  std::vector<int64_t> dims = DrawDims(random, 1 + random.Below(4));
  const size_t axis = random.Below(static_cast<uint32_t>(dims.size()));
  dims[axis] = std::max<int64_t>(dims[axis], 1);
  std::vector<int64_t> rest = dims;
  rest.erase(rest.begin() + static_cast<int64_t>(axis));
  const Attributes along = {{"axis", static_cast<int64_t>(axis)}};
  const RandomOperand output{Shape(rest), DType::kInt64};
  // Some of the elements are NaN, infinite or equal.
  return {{"ArgMax", along, {{Shape(dims), DType::kFloat32, -1, 1, seed % 2 == 0}}, {output}, 0},
          {"ArgMax", along, {{Shape(dims), DType::kFloat32, 0, 0}}, {output}, 0}};
}

}  // namespace tfjob::kernels::cuda
