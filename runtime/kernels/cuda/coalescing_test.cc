// Checks that every kernel of the table accesses memory in as few transactions as possible. This is
// required only if the kernel's operands are aligned, and if neighbouring elements of the output
// depend on neighbouring elements of the inputs. Other cases, such as a Slice that starts at an odd
// column or a permutation of short rows, need more transactions, and are not measured.
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/kernels/cuda/emulator/memory.h"
#include "runtime/kernels/cuda/emulator/shadow.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/window.h"

namespace tfjob::kernels::cuda {
namespace {

// Adds requests for the kernels of layout.cu and select.cu.
void AddLayoutRequests(std::vector<KernelRequest>& requests) {
  const auto dense = [](DType dtype, Shape shape) { return Operand::Dense(dtype, shape); };
  const std::vector<int64_t> zeros = {0, 0};
  for (const DType dtype : {DType::kFloat32, DType::kInt64, DType::kUInt8}) {
    const Operand matrix = dense(dtype, Shape({64, 256})), half = dense(dtype, Shape({64, 128}));
    const Operand condition = dense(DType::kBool, Shape({64, 256}));
    requests.push_back({"Transpose", {}, {matrix}, {dense(dtype, Shape({256, 64}))}});
    requests.push_back({"Concat", {{"axis", int64_t{1}}}, {half, half}, {matrix}});
    requests.push_back({"Slice", {{"begin", zeros}}, {matrix}, {half}});
    requests.push_back({"Pad", {{"before", zeros}}, {half}, {matrix}});
    requests.push_back({"Fill", {}, {}, {matrix}});
    requests.push_back({"Select", {}, {condition, matrix, matrix}, {matrix}});
    for (const char* op : {"Equal", "Greater", "GreaterEqual", "Less"})
      requests.push_back({op, {}, {matrix, matrix}, {condition}});
  }
  const Operand tensor = dense(DType::kFloat32, Shape({8, 16, 64}));
  const Operand middle = dense(DType::kFloat32, Shape({8, 1, 64}));
  requests.push_back({"BroadcastTo", {}, {middle}, {tensor}});
  requests.push_back({"Add", {}, {tensor, middle}, {tensor}});
  for (const int64_t axis : {0, 2}) {
    const Operand out = dense(DType::kInt64, axis == 0 ? Shape({16, 64}) : Shape({8, 16}));
    requests.push_back({"ArgMax", {{"axis", axis}}, {tensor}, {out}});
  }
}

// Adds requests for the kernels of gather.cu, and for updates by rows.
void AddRowRequests(std::vector<KernelRequest>& requests) {
  const Operand matrix = Operand::Dense(DType::kFloat32, Shape({64, 256}));
  const Operand ids = Operand::Dense(DType::kInt64, Shape({64}));
  const Operand number = Operand::Dense(DType::kInt64, Shape({}));
  requests.push_back({"Gather", {}, {matrix, ids}, {matrix}});
  requests.push_back({"DeduplicateIndexedSlices", {}, {ids, matrix}, {ids, matrix}});
  requests.push_back(
      {"UnsortedSegmentSum", {{"num_segments", int64_t{64}}}, {matrix, ids}, {matrix}});
  auto adam = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  for (const bool lazy : {false, true}) {
    adam.lazy = lazy;
    requests.push_back({"ApplyOptimizerRows",
                        ToAttributes(adam),
                        {number, ids, matrix, matrix, matrix, matrix},
                        {matrix, matrix, matrix}});
  }
  requests.push_back({"ApplyOptimizerRows",
                      ToAttributes(optimizer::Optimizer()),
                      {number, ids, matrix, matrix},
                      {matrix}});
}

// Adds requests for the kernels of attention.
void AddAttentionRequests(std::vector<KernelRequest>& requests) {
  const auto dense = [](DType dtype, Shape shape) { return Operand::Dense(dtype, shape); };
  const Attributes attributes = {{"rate", 0.5}, {"masked", -1e9}, {"clears", true}};
  const Operand mask = dense(DType::kBool, {64, 64}), number = dense(DType::kInt64, {});
  const Operand statistics = dense(DType::kFloat32, {2, 1, 2, 64});
  for (const DType dtype : {DType::kBFloat16, DType::kFloat16}) {
    for (const int64_t size : {64, 128}) {
      const Operand q = dense(dtype, {1, 64, 2, size});
      requests.push_back(
          {"Attention", attributes, {q, q, q, mask, number, number}, {q, statistics}});
      requests.push_back({"AttentionGrad",
                          attributes,
                          {q, q, q, q, statistics, q, mask, number, number},
                          {q, q, q}});
    }
  }
}

// Adds requests for the kernels of layer normalization.
void AddNormalizationRequests(std::vector<KernelRequest>& requests) {
  const Operand row = Operand::Dense(DType::kFloat32, {256});
  const Operand statistics = Operand::Dense(DType::kFloat32, {2, 64});
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const Operand x = Operand::Dense(dtype, {64, 256});
    requests.push_back({"LayerNormalization", {}, {x, row, row}, {x, statistics}});
    requests.push_back({"LayerNormalizationGrad", {}, {x, row, statistics, x}, {x, row, row}});
  }
}

// Adds requests for the kernels in vision/. The windows overlap, and some cover padding.
void AddVisionRequests(std::vector<KernelRequest>& requests) {
  const auto dense = [](Shape shape) { return Operand::Dense(DType::kFloat32, std::move(shape)); };
  const Operand image = dense({2, 9, 9, 32}), output = dense({2, 5, 5, 32});
  const WindowAxis axis{.size = 3, .stride = 2, .before = 1, .after = 1};
  Attributes window;
  SetWindow(window, {axis, axis});
  for (const int64_t depth : {32, 16, 1}) {
    const Operand filter = dense({3, 3, depth, 32});
    requests.push_back({"Conv2D", window, {image, filter}, {output}});
    requests.push_back({"FusedConv2D", window, {image, filter}, {output}});
    requests.push_back({"Conv2DBackpropInput", window, {filter, output}, {image}});
    requests.push_back({"Conv2DBackpropFilter", window, {image, output}, {filter}});
  }
  requests.push_back({"MaxPool", window, {image}, {output}});
  requests.push_back({"MaxPoolGrad", window, {image, output, output}, {image}});
  requests.push_back({"AvgPool", window, {image}, {output}});
  requests.push_back({"AvgPoolGrad", window, {output}, {image}});
  const Operand transforms = dense({2, 8});
  const Attributes transform = {{"fill_mode", std::string("WRAP")},
                                {"interpolation", std::string("BILINEAR")},
                                {"images", image.shape}};
  requests.push_back({"ImageProjectiveTransformV3", transform, {image, transforms}, {output}});
  requests.push_back({"ImageProjectiveTransformV3Grad", transform, {output, transforms}, {image}});
  const Operand x = dense({300, 64}), c = dense({64});
  const Attributes relu = {{"activation", std::string("Relu")}};
  requests.push_back({"FusedBatchNorm", {}, {x, c, c}, {x, c, c}});
  requests.push_back({"FusedBatchNormEx", relu, {x, c, c, x}, {x, c, c}});
  requests.push_back({"FusedBatchNormGrad", {}, {x, x, c, c, c, c}, {x, c, c}});
  requests.push_back({"FusedBatchNormGradEx", relu, {x, x, c, c, c, c}, {x, c, c}});
  requests.push_back({"FusedBatchNormGradEx", relu, {x, x, c, c, c, c, x, x}, {x, c, c, x}});
}

// Returns one or more requests for each op of the table except the products, which the library
// computes. Their operands are dense, with 64 rows and 256 columns.
std::vector<KernelRequest> DenseRequests() {
  const auto dense = [](DType dtype, Shape shape) { return Operand::Dense(dtype, shape); };
  const Operand matrix = dense(DType::kFloat32, Shape({64, 256}));
  const Operand row = dense(DType::kFloat32, Shape({256})),
                column = dense(DType::kFloat32, Shape({64}));
  const Operand scalar = dense(DType::kFloat32, Shape({})),
                number = dense(DType::kInt64, Shape({}));
  const Attributes first_axis = {{"axes", std::vector<int64_t>{0}}};
  const Attributes last_axis = {{"axes", std::vector<int64_t>{1}}};
  const Attributes program = {{"program", std::string("Mul i0 i1; Add t0 i1; Sub t1 t0")}};
  std::vector<KernelRequest> requests;
  for (const char* op : {"Neg", "Abs", "Square", "Sqrt", "Rsqrt", "Exp", "Log", "Erf", "Sin", "Cos",
                         "Relu", "Sigmoid", "Tanh", "ClipByValue", "Softmax", "LogSoftmax",
                         "Identity", "Reshape", "CheckNumerics"})
    requests.push_back({op, {}, {matrix}, {matrix}});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Maximum", "Minimum", "Pow", "ReluGrad",
                         "SigmoidGrad", "TanhGrad", "SoftmaxGrad", "Assign", "AssignAdd"})
    requests.push_back({op, {}, {matrix, matrix}, {matrix}});
  for (const char* op : {"Dropout", "DropoutGrad"})
    requests.push_back({op, {{"rate", 0.5}}, {matrix, number, number}, {matrix}});
  for (const char* op : {"Sum", "Mean", "Max", "Min"}) {
    requests.push_back({op, first_axis, {matrix}, {row}});
    requests.push_back({op, last_axis, {matrix}, {column}});
    requests.push_back({op, {}, {matrix}, {scalar}});
  }
  requests.push_back({"BiasAdd", {}, {matrix, row}, {matrix}});
  requests.push_back({"BiasAddGrad", {}, {matrix}, {row}});
  requests.push_back({"FusedElementwise", program, {matrix, row}, {matrix}});
  requests.push_back({"SparseSoftmaxCrossEntropyWithLogits",
                      {},
                      {matrix, dense(DType::kInt64, Shape({64}))},
                      {column, matrix}});
  requests.push_back({"SoftmaxCrossEntropyWithLogits", {}, {matrix, matrix}, {column, matrix}});
  for (const char* op : {"RandomUniform", "RandomNormal", "TruncatedNormal"})
    requests.push_back({op, {}, {number, number}, {matrix}});
  requests.push_back({"BroadcastTo", {}, {row}, {matrix}});
  requests.push_back(
      {"ApplyOptimizer", ToAttributes(optimizer::Optimizer()), {number, matrix, matrix}, {matrix}});
  requests.push_back({"ApplyOptimizers",
                      ToAttributes(optimizer::Optimizer::Default(optimizer::Kind::kAdam)),
                      {matrix, matrix, matrix, matrix, matrix, matrix, number, matrix, matrix},
                      {matrix, matrix, matrix, matrix, matrix, matrix}});
  AddLayoutRequests(requests);
  AddRowRequests(requests);
  AddAttentionRequests(requests);
  AddNormalizationRequests(requests);
  AddVisionRequests(requests);
  for (const DType dtype : {DType::kFloat64, DType::kInt64, DType::kUInt8})
    requests.push_back({"Cast", {}, {matrix}, {dense(dtype, matrix.shape)}});
  return requests;
}

// Returns all requests, and the same requests with bfloat16 in place of float32.
std::vector<KernelRequest> AllRequests() {
  std::vector<KernelRequest> requests = DenseRequests();
  for (size_t i = 0, count = requests.size(); i < count; ++i) {
    KernelRequest half = requests[i];
    if (half.op.starts_with("ApplyOptimizer") || half.op.starts_with("Attention") ||
        half.op.starts_with("LayerNormalization"))
      continue;
    for (auto* side : {&half.inputs, &half.outputs}) {
      for (Operand& operand : *side)
        if (operand.dtype == DType::kFloat32) operand.dtype = DType::kBFloat16;
    }
    requests.push_back(half);
  }
  const auto matrix = [](DType dtype) { return Operand::Dense(dtype, Shape({64, 256})); };
  requests.push_back({"Cast", {}, {matrix(DType::kFloat32)}, {matrix(DType::kBFloat16)}});
  requests.push_back({"Cast", {}, {matrix(DType::kFloat16)}, {matrix(DType::kFloat32)}});
  return requests;
}

// Returns zeros or, for a list of int64, the numbers 0, 1, 2, …, which are valid rows of tables.
std::vector<std::byte> ContentsOf(const Operand& operand) {
  std::vector<std::byte> contents(operand.bytes());
  if (operand.dtype != DType::kInt64 || operand.shape.rank() != 1) return contents;
  std::vector<int64_t> numbers(static_cast<size_t>(operand.cols()));
  std::iota(numbers.begin(), numbers.end(), 0);
  std::memcpy(contents.data(), numbers.data(), contents.size());
  return contents;
}

// Consecutive lanes must access consecutive addresses: if the rows are dense and aligned, no access
// by a warp may touch more sectors than its bytes need.
TEST(CudaKernels, AccessesAreCoalesced) {
  if (!shadow::Enabled()) GTEST_SKIP() << "this build has a sanitizer in place of the shadow";
  const KernelTable table = MakeTable(EmulatedGpu(1));
  std::set<std::string> ops;
  for (const KernelRequest& request : AllRequests()) {
    ops.insert(request.op);
    EmulatedMemory memory;
    std::vector<const void*> inputs;
    std::vector<void*> outputs;
    for (const Operand& operand : request.inputs) {
      std::byte* const input = memory.Allocate(operand.bytes(), "input");
      EmulatedMemory::Write(input, ContentsOf(operand).data(), operand.bytes());
      inputs.push_back(input);
    }
    for (const Operand& operand : request.outputs)
      outputs.push_back(memory.Allocate(operand.bytes(), "output"));
    for (const InPlace& rule : table.Find(request.op)->in_place) {
      const auto output = static_cast<size_t>(rule.output);
      if (rule.rule == InPlace::kAlways && output < outputs.size())
        outputs[output] = const_cast<void*>(inputs[static_cast<size_t>(rule.input)]);
    }
    auto kernel = table.Prepare(request);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    void* const workspace = memory.Allocate((*kernel)->workspace_bytes(), "workspace");
    Stream stream;
    shadow::TakeTraffic();
    (*kernel)->Run(inputs.data(), outputs.data(), workspace, stream);
    ExpectNoReports(request.op);
    const std::vector<shadow::Traffic> traffic = shadow::TakeTraffic();
    EXPECT_FALSE(traffic.empty());
    for (const shadow::Traffic& line : traffic) {
      EXPECT_EQ(line.units, line.ideal)
          << request.op << " at " << line.where << ", " << (line.shared ? "shared" : "device")
          << " memory, " << line.requests << " requests";
    }
  }
  for (const auto& [op, entry] : table.entries())
    EXPECT_TRUE(ops.contains(op) || op.find("MatMul") != std::string::npos) << op;
}

}  // namespace
}  // namespace tfjob::kernels::cuda
