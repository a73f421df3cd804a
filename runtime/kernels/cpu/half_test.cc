#include "runtime/tensor/half.h"

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <string_view>

#include "runtime/kernels/cpu/check.h"
#include "runtime/kernels/stream.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cpu {
namespace {

using D = DType;

// Converts a tensor of type `from` to type `to`; one of them is float32, and the other is a half
// type. Returns tensors of any other type unchanged.
Tensor As(const Tensor& tensor, D from, D to) {
  if (tensor.dtype() != from) return tensor;
  Tensor result(to, tensor.shape());
  for (int64_t i = 0; i < tensor.num_elements(); ++i) SetValue(result, i, ValueAt(tensor, i));
  return result;
}

// Describes one run of an op in float32. The test also runs the op in each half type.
struct HalfCase {
  std::string op;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;  // only their types are used
  Attributes attributes = {};
};

Tensor X(const Shape& shape, int seed = 1, double low = -2, double high = 2) {
  return Values(D::kFloat32, shape, seed, low, high);
}

Tensor Positive(const Shape& shape, int seed = 1) {
  return X(shape, seed, 0.2, 1);
}

Tensor Truth(const Shape& shape) {
  Tensor tensor(D::kBool, shape);
  for (int64_t i = 0; i < shape.num_elements(); i += 2) SetValue(tensor, i, 1);
  return tensor;
}

std::vector<HalfCase> ElementwiseCases() {
  const Shape s({3, 37});
  std::vector<HalfCase> cases;
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "Exp", "Erf", "Sin", "Cos", "Neg", "Abs",
                         "Square", "Identity", "CheckNumerics"})
    cases.push_back({op, {X(s)}, {X(s)}});
  for (const char* op : {"Log", "Sqrt", "Rsqrt"}) cases.push_back({op, {Positive(s)}, {X(s)}});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow"})
    cases.push_back({op, {Positive(s), Positive({37}, 2)}, {X(s)}});
  for (const char* op : {"ReluGrad", "SigmoidGrad", "TanhGrad"})
    cases.push_back({op, {X(s), X(s, 2)}, {X(s)}});
  for (const char* op : {"Equal", "Greater", "GreaterEqual", "Less"})
    cases.push_back({op, {X(s), X(s, 2)}, {Truth(s)}});
  const Attributes limits{{"clip_value_min", -0.5}, {"clip_value_max", 1.0}};
  cases.push_back({"ClipByValue", {X(s)}, {X(s)}, limits});
  cases.push_back({"Select", {Truth(s), X(s), X(s, 2)}, {X(s)}});
  const Attributes program{{"program", std::string("Mul i0 0.5; Add t0 i1; Tanh t1")}};
  cases.push_back({"FusedElementwise", {X(s), X({37}, 2)}, {X(s)}, program});
  cases.push_back({"BiasAdd", {X(s), X({37}, 2)}, {X(s)}});
  cases.push_back({"BiasAddGrad", {X(s)}, {X({37})}});
  const Tensor step = Tensor::Scalar<int64_t>(3), seed = Tensor::Scalar<int64_t>(4);
  const Attributes draws{{"rate", 0.4}, {"op_id", int64_t{1}}};
  for (const char* op : {"Dropout", "DropoutGrad"})
    cases.push_back({op, {X(s), step, seed}, {X(s)}, draws});
  for (const char* op : {"RandomUniform", "RandomNormal", "TruncatedNormal"})
    cases.push_back({op, {step, seed}, {X(s)}, {{"op_id", int64_t{1}}}});
  return cases;
}

std::vector<HalfCase> MovingCases() {
  const Shape s({4, 6});
  const auto ints = [](std::vector<int64_t> values) { return values; };
  const Tensor ids = Tensor::Of<int32_t>({3}, {2, 0, 2});
  return {
      {"Reshape", {X(s)}, {X({3, 8})}},
      {"Transpose", {X(s)}, {X({6, 4})}, {{"perm", ints({1, 0})}}},
      {"BroadcastTo", {X({6})}, {X(s)}},
      {"Concat", {X(s), X({4, 3}, 2)}, {X({4, 9})}, {{"axis", int64_t{1}}}},
      {"Slice", {X(s)}, {X({2, 3})}, {{"begin", ints({1, 2})}}},
      {"Pad", {X(s)}, {X({6, 9})}, {{"before", ints({1, 2})}}},
      {"Gather", {X(s), ids}, {X({3, 6})}},
      {"UnsortedSegmentSum", {X({3, 6}), ids}, {X(s)}, {{"num_segments", int64_t{4}}}},
      {"DeduplicateIndexedSlices", {ids, X({3, 6})}, {Tensor(D::kInt64, {3}), X({3, 6})}},
      {"Fill", {}, {X(s)}, {{"value", 0.1}}},
      {"Assign", {X(s), X(s, 2)}, {X(s)}},
      {"AssignAdd", {X(s), X(s, 2)}, {X(s)}},
      {"Sum", {X(s)}, {X({4})}, {{"axes", ints({1})}}},
      {"Mean", {X(s)}, {X({6})}, {{"axes", ints({0})}}},
      {"Max", {X(s)}, {X({4})}, {{"axes", ints({1})}}},
      {"Min", {X(s)}, {X({4})}, {{"axes", ints({1})}}},
      {"ArgMax", {X(s)}, {Tensor(D::kInt64, {4})}},
  };
}

std::vector<HalfCase> ProductCases() {
  const Tensor a = X({5, 16}), b = X({16, 7}, 2), c = X({5, 7}, 3), labels = Positive({5, 7});
  const Tensor classes = Tensor::Of<int64_t>({5}, {0, 6, 3, 2, 1});
  const Attributes bias{{"bias", true}, {"activation", std::string("Relu")}};
  return {
      {"MatMul", {a, b}, {c}},
      {"FusedMatMul", {a, b, X({7}, 4)}, {c}, bias},
      {"MatMulAccumulate", {a, b, c}, {c}, {{"alpha", -0.25}}},
      {"BatchMatMulV2", {X({3, 5, 16}), X({3, 16, 7}, 2)}, {X({3, 5, 7})}},
      {"Softmax", {c}, {c}},
      {"LogSoftmax", {c}, {c}},
      {"SoftmaxGrad", {labels, c}, {c}},
      {"SoftmaxCrossEntropyWithLogits", {c, labels}, {X({5}), c}},
      {"SparseSoftmaxCrossEntropyWithLogits", {c, classes}, {X({5}), c}},
  };
}

std::vector<HalfCase> ImageCases() {
  Attributes window;
  SetWindow(window, {{3, 1, 1, 1, 1}, {3, 1, 1, 1, 1}});
  Attributes fused = window;
  fused.Set("bias", true);
  const Tensor image = X({2, 6, 6, 3}), filter = X({3, 3, 3, 4}, 2), y = X({2, 6, 6, 4}, 3);
  Attributes halved;
  SetWindow(halved, {{2, 2}, {2, 2}});
  const Tensor pooled = X({2, 3, 3, 3}, 4);
  Tensor largest(D::kFloat32, pooled.shape());
  const Attributes turned{{"height", int64_t{6}},
                          {"width", int64_t{6}},
                          {"interpolation", std::string("BILINEAR")},
                          {"fill_mode", std::string("NEAREST")}};
  Attributes back = turned;
  back.Set("images", image.shape());
  Tensor transforms(D::kFloat32, {2, 8});
  for (const int64_t i : {0, 4, 8, 12}) SetValue(transforms, i, 0.75);
  const Tensor gamma = Positive({3}, 5), beta = X({3}, 6), mean = X({3}, 7), scale = Positive({3});
  const Attributes epsilon{{"epsilon", 0.01}};
  return {
      {"Conv2D", {image, filter}, {y}, window},
      {"FusedConv2D", {image, filter, X({4}, 5)}, {y}, fused},
      {"Conv2DBackpropInput", {filter, y}, {image}, window},
      {"Conv2DBackpropFilter", {image, y}, {filter}, window},
      {"MaxPool", {image}, {pooled}, halved},
      {"MaxPoolGrad", {image, largest, pooled}, {image}, halved},
      {"AvgPool", {image}, {pooled}, halved},
      {"AvgPoolGrad", {pooled}, {image}, halved},
      {"ImageProjectiveTransformV3", {image, transforms}, {image}, turned},
      {"ImageProjectiveTransformV3Grad", {image, transforms}, {image}, back},
      {"FusedBatchNorm", {image, gamma, beta}, {image, mean, mean}, epsilon},
      {"FusedBatchNormEx", {image, gamma, beta}, {image, mean, mean}, epsilon},
      {"FusedBatchNormGrad",
       {image, image, gamma, beta, mean, scale},
       {image, mean, mean},
       epsilon},
      {"FusedBatchNormGradEx",
       {image, image, gamma, beta, mean, scale},
       {image, mean, mean},
       epsilon},
  };
}

// Runs the float32 kernel once.
std::vector<Tensor> RunFloat32(const HalfCase& test, const std::vector<Tensor>& inputs) {
  KernelRequest request{test.op, test.attributes, {}, {}};
  std::vector<Tensor> outputs;
  std::vector<Tensor> held;
  std::vector<const void*> from;
  std::vector<void*> to;
  for (const Tensor& input : inputs) {
    request.inputs.push_back(Operand::Dense(input.dtype(), input.shape()));
    held.push_back(input.Clone());
    from.push_back(held.back().bytes().data());
  }
  const KernelEntry* entry = CpuKernels().Find(test.op);
  for (const Tensor& output : test.outputs) {
    request.outputs.push_back(Operand::Dense(output.dtype(), output.shape()));
    outputs.emplace_back(output.dtype(), output.shape());
    for (const InPlace& rule : entry->in_place) {
      if (rule.rule == InPlace::kAlways) outputs.back() = held[static_cast<size_t>(rule.input)];
    }
    to.push_back(outputs.back().bytes().data());
  }
  auto kernel = CpuKernels().Prepare(request);
  EXPECT_TRUE(kernel.ok()) << kernel.status().ToString();
  if (!kernel.ok()) return outputs;
  Buffer workspace((*kernel)->workspace_bytes() + 64);
  Stream stream;
  (*kernel)->Run(from.data(), to.data(), workspace.data(), stream);
  return outputs;
}

// Returns whether the op adds up elements. If rows are padded, sums may be computed in a different
// order, so the last bit of the result may differ.
bool Adds(std::string_view op) {
  static const std::set<std::string_view> ops = {"BiasAddGrad",
                                                 "Sum",
                                                 "Mean",
                                                 "MatMul",
                                                 "FusedMatMul",
                                                 "MatMulAccumulate",
                                                 "BatchMatMulV2",
                                                 "Softmax",
                                                 "LogSoftmax",
                                                 "SoftmaxGrad",
                                                 "SoftmaxCrossEntropyWithLogits",
                                                 "SparseSoftmaxCrossEntropyWithLogits",
                                                 "Conv2D",
                                                 "FusedConv2D",
                                                 "Conv2DBackpropInput",
                                                 "Conv2DBackpropFilter",
                                                 "FusedBatchNorm",
                                                 "FusedBatchNormEx",
                                                 "FusedBatchNormGrad",
                                                 "FusedBatchNormGradEx"};
  return ops.contains(op);
}

// Checks that the result in a half type is the result in float32, rounded once.
void CheckInHalf(const HalfCase& test, D half) {
  SCOPED_TRACE(StrCat(test.op, " in ", Name(half)));
  Case check{test.op, test.attributes, {}, {}};
  check.tolerance = !Adds(test.op) ? 0 : half == D::kBFloat16 ? 0x1p-7 : 0x1p-10;
  std::vector<Tensor> rounded;
  for (const Tensor& input : test.inputs) {
    check.inputs.push_back(As(input, D::kFloat32, half));
    rounded.push_back(As(check.inputs.back(), half, D::kFloat32));
  }
  for (const Tensor& output : RunFloat32(test, rounded))
    check.expected.push_back(As(output, D::kFloat32, half));
  Check(check);
}

std::vector<HalfCase> AllCases() {
  std::vector<HalfCase> all = ElementwiseCases();
  for (const auto& more : {MovingCases(), ProductCases(), ImageCases()})
    all.insert(all.end(), more.begin(), more.end());
  return all;
}

TEST(HalfTest, EveryOpRoundsTheResultOfFloat32) {
  for (const HalfCase& test : AllCases()) {
    for (const D half : {D::kBFloat16, D::kFloat16}) CheckInHalf(test, half);
  }
}

TEST(HalfTest, TheCasesAboveCoverEveryOp) {
  std::set<std::string> tested = {"Cast", "Const"};  // tested below
  for (const HalfCase& test : AllCases()) tested.insert(test.op);
  for (const auto& [op, entry] : CpuKernels().entries())
    EXPECT_TRUE(tested.contains(op)) << op << " is not tested with half types";
}

TEST(HalfTest, CastsFromAndToEveryType) {
  const std::vector<double> values = {-2, 0, 1, 3, 100};
  for (const D half : {D::kBFloat16, D::kFloat16}) {
    for (const D other : {D::kFloat32, D::kFloat64, D::kInt32, D::kInt64, D::kUInt8, D::kBool,
                          D::kBFloat16, D::kFloat16}) {
      SCOPED_TRACE(StrCat(Name(half), " and ", Name(other)));
      Tensor x(half, {5}), expected(other, {5}), back(half, {5});
      for (int64_t i = 0; i < 5; ++i) {
        const double value = values[static_cast<size_t>(i)];
        SetValue(x, i, value);
        SetValue(expected, i, other == D::kUInt8 ? std::max(value, 0.0) : value);
        SetValue(back, i, ValueAt(expected, i));
      }
      Check({"Cast", {}, {x}, {expected}, 0});
      Check({"Cast", {}, {expected}, {back}, 0});
    }
  }
}

TEST(HalfTest, CastsRoundSaturateAndKeepNaN) {
  const auto x = Tensor::Of<float>({4}, {1.00390625F, 70000, NAN, -INFINITY});
  Check({"Cast",
         {},
         {x},
         {Tensor::Of<BFloat16>(
             {4}, {BFloat16(1.0F), BFloat16(70144.0F), BFloat16(NAN), BFloat16(-INFINITY)})},
         0});
  Check({"Cast",
         {},
         {x},
         {Tensor::Of<Float16>(
             {4}, {Float16(1.00390625F), Float16(INFINITY), Float16(NAN), Float16(-INFINITY)})},
         0});
  const auto special = Tensor::Of<Float16>({3}, {Float16(NAN), Float16(INFINITY), Float16(2.9F)});
  Check({"Cast", {}, {special}, {Tensor::Of<uint8_t>({3}, {0, 255, 2})}, 0});
}

TEST(HalfTest, ConstantsHaveHalfTypes) {
  const auto value = Tensor::Of<Float16>({3}, {Float16(1.5F), Float16(-2.0F), Float16(0.1F)});
  Check({"Const", {{"value", value}}, {}, {value}, 0});
}

TEST(HalfTest, RefusesTwoFloatTypesInOneOp) {
  const Operand half = Operand::Dense(D::kFloat16, {2, 2}),
                wide = Operand::Dense(D::kFloat32, {2, 2});
  for (const auto& [a, b, c] : {std::tuple(half, wide, half), std::tuple(half, half, wide)}) {
    const Status status = PrepareError("MatMul", {}, {a, b}, {c});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status.ToString();
    EXPECT_NE(status.message().find("float16"), std::string::npos) << status.ToString();
  }
}

}  // namespace
}  // namespace tfjob::kernels::cpu
