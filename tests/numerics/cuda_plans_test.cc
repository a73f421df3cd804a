// Predicts, from the plans of training steps, how many bytes a GPU moves and how long its matrix
// products take. Nothing is executed and no memory is allocated, so the models may be large.
// docs/gpu.md ("Speed") lists the results.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/exec/plan_program.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/build.h"
#include "runtime/variables/variable_store.h"
#include "tests/numerics/example_model.h"
#include "tests/numerics/unbacked_runtime.h"

namespace tfjob::model {
namespace {

using exec::PlannedStep;
using kernels::Operand;
using optimizer::Optimizer;

// The bytes and the multiplications of a step's ops, by op.
struct Work {
  std::map<std::string, double> bytes;
  double product_flops = 0;

  double BytesWithoutProducts() const {
    double sum = 0;
    for (const auto& [op, moved] : bytes)
      if (!IsProduct(op)) sum += moved;
    return sum;
  }
  double AllBytes() const {
    double sum = 0;
    for (const auto& [op, moved] : bytes) sum += moved;
    return sum;
  }
  void Print(const char* what, double unit) const {
    for (const auto& [op, moved] : bytes)
      std::printf("%s: %-40s %10.3f\n", what, op.c_str(), moved / unit);
  }
  static bool IsProduct(const std::string& op) { return op.find("MatMul") != std::string::npos; }
};

double Bytes(const Operand& operand) {
  return static_cast<double>(operand.bytes());
}

// Each tensor that the op must read or write counts once per op. Gather and Slice read only what
// they return.
double BytesOf(const PlannedStep& step) {
  double inputs = 0, outputs = 0;
  for (const exec::Value& input : step.inputs) inputs += Bytes(input.operand);
  for (const exec::Value& output : step.outputs) outputs += Bytes(output.operand);
  const std::string& op = step.request.op;
  return op == "Gather" || op == "Slice" ? 2 * outputs : inputs + outputs;
}

// The elements of a, b and c of a product [m,k] x [k,n] are m·k, k·n and m·n, so the root of their
// product is m·k·n; a batch of products multiplies each of them.
double ProductFlops(const PlannedStep& step) {
  const Operand &a = step.inputs[0].operand, &c = step.outputs[0].operand;
  const Operand& b = step.inputs[1].operand;
  const auto count = [](const Operand& x) { return static_cast<double>(x.shape.num_elements()); };
  double batch = 1;
  for (int i = 0; i + 2 < a.shape.rank(); ++i) batch *= static_cast<double>(a.shape.dim(i));
  return 2 * std::sqrt(count(a) * count(b) * count(c) / batch);
}

Work WorkOf(const BuiltGraph& built) {
  exec::Device device = exec::EmulatedCudaDevice(/*seed=*/1);
  device.runtime = std::make_shared<UnbackedRuntime>();
  variables::VariableStore store(device.row_stride, device.runtime);
  for (const VariableSpec& spec : built.variables)
    EXPECT_TRUE(store.Create(spec.name, spec.dtype, spec.shape, variables::Kind::kTrainable).ok());
  const auto planned = exec::PlanProgram(built.graph, store, device);
  EXPECT_TRUE(planned.ok()) << planned.status();
  Work work;
  if (!planned.ok()) return work;
  for (const PlannedStep& step : planned->plan.steps) {
    work.bytes[step.request.op] += BytesOf(step);
    if (Work::IsProduct(step.request.op)) work.product_flops += ProductFlops(step);
  }
  return work;
}

// Builds the model in mixed precision. As Keras recommends, the layers that return the model's
// outputs compute in float32, because the loss needs it.
BuiltGraph BuildMixed(Model model, const BuildOptions& options) {
  for (const ValueRef& output : model.outputs) {
    const int last = model.calls[static_cast<size_t>(output.call)].layer;
    model.layers[static_cast<size_t>(last)].policy = DTypePolicy::kFloat32;
  }
  EXPECT_TRUE(SetPolicy(model, DTypePolicy::kMixedBFloat16));
  auto built = Build(model, options);
  EXPECT_TRUE(built.ok()) << built.status();
  return *std::move(built);
}

TEST(CudaPlans, AWidePerceptronIsDominatedByItsProducts) {
  const Json file = ReadDocument(R"(
layers:
  - InputLayer: {batch_shape: [null, 8192]}
  - Dense: {units: 8192, activation: relu}
  - Dense: {units: 8192, activation: relu}
  - Dense: {units: 8192, activation: relu}
  - Dense: {units: 8192}
  - Activation: {activation: linear}
)",
                                 "layers");
  const auto model = ReadLayers(JsonField(file)["layers"]);
  ASSERT_TRUE(model.ok()) << model.status();
  const Work work =
      WorkOf(BuildMixed(*model, {.batch_size = 8192,
                                 .features = {{DType::kFloat32, Shape({8192})}},
                                 .objectives = {{.loss = {.kind = LossKind::kMeanSquaredError},
                                                 .labels = {DType::kFloat32, Shape({8192})}}},
                                 .optimizer = Optimizer::Default(optimizer::Kind::kSgd)}));
  // Four products forward, four for the weights, and three for the inputs of layers.
  EXPECT_NEAR(work.product_flops, 11 * 2 * std::pow(8192, 3), 1e9);
  const double seconds = work.product_flops / 700e12;
  const double share = work.BytesWithoutProducts() / 3e12 / seconds;
  work.Print("8192 x 4, GB", 1e9);
  std::printf("products at 700 TFLOP/s: %.2f ms; other ops at 3 TB/s: %.1f %% of that\n",
              1000 * seconds, 100 * share);
  EXPECT_LE(share, 0.11) << "the aim is 0.08";
}

Model ReadJson(const std::string& name) {
  const auto text = ReadFile(StrCat("deploy/examples/models/", name, ".json"));
  EXPECT_TRUE(text.ok()) << text.status();
  auto model = ReadKerasJson(*text, name);
  EXPECT_TRUE(model.ok()) << model.status();
  return *std::move(model);
}

// Returns the work for one batch of sequences of this length.
Work TransformerWork(const std::string& name, int64_t batch, int64_t length) {
  const Model model = ReadJson(name);
  BuildOptions options{.batch_size = batch,
                       .optimizer = Optimizer::Default(optimizer::Kind::kAdam)};
  for (const auto& stated : StatedInputs(model)) {
    TensorType type = stated.value_or(TensorType{DType::kInt32, Shape({length})});
    options.features.push_back(type);
  }
  const auto outputs = OutputTypes(model, options.features);
  EXPECT_TRUE(outputs.ok()) << outputs.status();
  for (const TensorType& output : *outputs) {
    std::vector<int64_t> places = output.shape.dims();
    places.pop_back();  // the classes
    options.objectives.push_back(
        {.loss = {.kind = LossKind::kSparseCategoricalCrossentropy, .from_logits = true},
         .labels = {DType::kInt64, Shape(places)}});
  }
  FindMasks(model, options);
  return WorkOf(BuildMixed(model, options));
}

// The bytes per token that docs/gpu.md ("Speed") counts by hand for one block of the model in
// bfloat16: forward and backward read or write 88 vectors of 768 elements.
constexpr double kBlockBytes = 88 * 768 * 2;

// Prints the bytes per token, and expects at most `most` times those that were counted by hand. The
// aim is 1.1 times.
void ExpectMoves(const char* name, int64_t batch, int64_t length, double by_hand, double most) {
  const Work work = TransformerWork(name, batch, length);
  const auto tokens = static_cast<double>(batch * length);
  work.Print(name, tokens * 1e3);
  const double per_token = work.AllBytes() / tokens;
  std::printf("%s: %.0f kB per token, %.2f times the count by hand\n", name, per_token / 1e3,
              per_token / by_hand);
  EXPECT_LE(per_token, most * by_hand);
  EXPECT_GE(per_token, by_hand) << "the count by hand is too high";
}

TEST(CudaPlans, Gpt2MovesSomeBytesPerToken) {
  constexpr double kParameters = 36 * 124.4e6 / (8 * 1024);
  ExpectMoves("gpt2-124m", 8, 1024, 12 * kBlockBytes + 30e3 + kParameters, 1.1);
}

TEST(CudaPlans, BertMovesSomeBytesPerToken) {
  constexpr double kParameters = 36 * 109.5e6 / (32 * 512);
  ExpectMoves("bert-base", 32, 512, 12 * kBlockBytes + 40e3 + kParameters, 1.28);
}

}  // namespace
}  // namespace tfjob::model
