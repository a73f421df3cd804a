#include <algorithm>

#include "runtime/graph/gradient_functions.h"
#include "runtime/graph/infer.h"
#include "runtime/graph/op.h"

namespace tfjob::graph {
namespace {

constexpr int kAnyNumber = 64;
constexpr bool kElementwise = true;
constexpr Effect kNoEffect = Effect::kNone;

std::vector<Op> SourcesAndWrites() {
  return {
      {"Placeholder", 0, 0, InferFromAttributes, NoGradient, Effect::kFeed},
      {"Const", 0, 0, InferConst, NoGradient},
      {"Fill", 0, 0, InferFromAttributes, NoGradient},
      {"ReadVariable", 0, 0, InferFromAttributes, NoGradient, Effect::kRead},
      {"Assign", 1, 1, InferWrite, nullptr, Effect::kWrite},
      {"AssignAdd", 1, 1, InferWrite, nullptr, Effect::kWrite},
      {"ApplyOptimizer", 2, 2, InferApplyOptimizer, nullptr, Effect::kWrite},
      {"MatMulAccumulate", 2, 2, InferMatMulAccumulate, nullptr, Effect::kWrite},
      {"RandomUniform", 2, 2, InferRandom, NoGradient},
      {"RandomNormal", 2, 2, InferRandom, NoGradient},
      {"TruncatedNormal", 2, 2, InferRandom, NoGradient},
  };
}

std::vector<Op> LinearAndLosses() {
  return {
      {"MatMul", 2, 2, InferMatMul, MatMulGradient},
      {"FusedMatMul", 2, 3, InferFusedMatMul, nullptr},
      {"BiasAdd", 2, 2, InferBiasAdd, BiasAddGradient},
      {"BiasAddGrad", 1, 1, InferBiasAddGrad, nullptr},
      {"Softmax", 1, 1, InferRows, SoftmaxGradient},
      {"LogSoftmax", 1, 1, InferRows, LogSoftmaxGradient},
      {"SparseSoftmaxCrossEntropyWithLogits", 2, 2, InferSparseCrossEntropy,
       SparseCrossEntropyGradient},
      {"SoftmaxCrossEntropyWithLogits", 2, 2, InferCrossEntropy, CrossEntropyGradient},
  };
}

std::vector<Op> Elementwise() {
  return {
      {"Relu", 1, 1, InferSameFloat, ReluGradient, kNoEffect, kElementwise},
      {"Sigmoid", 1, 1, InferSameFloat, SigmoidGradient, kNoEffect, kElementwise},
      {"Tanh", 1, 1, InferSameFloat, TanhGradient, kNoEffect, kElementwise},
      {"ReluGrad", 2, 2, InferGradOfSame, nullptr, kNoEffect, kElementwise},
      {"SigmoidGrad", 2, 2, InferGradOfSame, nullptr, kNoEffect, kElementwise},
      {"TanhGrad", 2, 2, InferGradOfSame, nullptr, kNoEffect, kElementwise},
      {"Identity", 1, 1, InferSame, IdentityGradient},
      {"Neg", 1, 1, InferSameNumeric, NegGradient, kNoEffect, kElementwise},
      {"Abs", 1, 1, InferSameNumeric, AbsGradient, kNoEffect, kElementwise},
      {"Square", 1, 1, InferSameNumeric, SquareGradient, kNoEffect, kElementwise},
      {"Exp", 1, 1, InferSameFloat, ExpGradient, kNoEffect, kElementwise},
      {"Log", 1, 1, InferSameFloat, LogGradient, kNoEffect, kElementwise},
      {"Sqrt", 1, 1, InferSameFloat, SqrtGradient, kNoEffect, kElementwise},
      {"Rsqrt", 1, 1, InferSameFloat, RsqrtGradient, kNoEffect, kElementwise},
      {"ClipByValue", 1, 1, InferClip, ClipGradient, kNoEffect, kElementwise},
      {"Add", 2, 2, InferBinaryNumeric, AddGradient, kNoEffect, kElementwise},
      {"Sub", 2, 2, InferBinaryNumeric, SubGradient, kNoEffect, kElementwise},
      {"Mul", 2, 2, InferBinaryNumeric, MulGradient, kNoEffect, kElementwise},
      {"Div", 2, 2, InferBinaryNumeric, DivGradient, kNoEffect, kElementwise},
      {"Maximum", 2, 2, InferBinaryNumeric, MaximumGradient, kNoEffect, kElementwise},
      {"Minimum", 2, 2, InferBinaryNumeric, MinimumGradient, kNoEffect, kElementwise},
      {"Pow", 2, 2, InferBinaryFloat, PowGradient, kNoEffect, kElementwise},
      {"Equal", 2, 2, InferEqual, NoGradient},
      {"Greater", 2, 2, InferCompare, NoGradient},
      {"GreaterEqual", 2, 2, InferCompare, NoGradient},
      {"Less", 2, 2, InferCompare, NoGradient},
      {"Select", 3, 3, InferSelect, SelectGradient},
      {"Cast", 1, 1, InferCast, CastGradient},
      {"FusedElementwise", 1, kAnyNumber, InferFusedElementwise, nullptr},
      {"Dropout", 3, 3, InferDropout, DropoutGradient},
      {"DropoutGrad", 3, 3, InferDropout, nullptr},
  };
}

std::vector<Op> ReductionsAndShapes() {
  return {
      {"Sum", 1, 1, InferReduceNumeric, SumGradient},
      {"Mean", 1, 1, InferReduceFloat, MeanGradient},
      {"Max", 1, 1, InferReduceNumeric, ExtremeGradient},
      {"Min", 1, 1, InferReduceNumeric, ExtremeGradient},
      {"ArgMax", 1, 1, InferArgMax, NoGradient},
      {"Reshape", 1, 1, InferReshape, ReshapeGradient},
      {"Transpose", 1, 1, InferTranspose, TransposeGradient},
      {"BroadcastTo", 1, 1, InferBroadcastTo, BroadcastToGradient},
  };
}

std::string Describe(std::string_view op, const std::vector<TensorType>& inputs) {
  std::string text = std::string(op) + "(";
  for (size_t i = 0; i < inputs.size(); ++i) text += (i > 0 ? ", " : "") + inputs[i].ToString();
  return text + ")";
}

// Keeps sizes in bytes, and sums of them, far from the limits of int64.
constexpr int64_t kMaxElements = int64_t{1} << 40;

Status CheckSize(const TensorType& type) {
  int64_t elements = 1;
  for (int64_t dim : type.shape.dims()) {
    if (__builtin_mul_overflow(elements, dim, &elements) || elements > kMaxElements) {
      return InvalidArgument("expected an output of at most 2^40 elements, got ", type.ToString());
    }
  }
  return OkStatus();
}

}  // namespace

const std::vector<Op>& AllOps() {
  static const std::vector<Op>* const kTable = [] {
    auto* table = new std::vector<Op>();
    for (auto part :
         {SourcesAndWrites(), LinearAndLosses(), Elementwise(), ReductionsAndShapes()}) {
      table->insert(table->end(), part.begin(), part.end());
    }
    return table;
  }();
  return *kTable;
}

const Op* FindOp(std::string_view name) {
  const std::vector<Op>& table = AllOps();
  const auto found = std::ranges::find(table, name, &Op::name);
  return found == table.end() ? nullptr : &*found;
}

StatusOr<std::vector<TensorType>> InferTypes(std::string_view name,
                                             const std::vector<TensorType>& inputs,
                                             Attributes& attributes) {
  const Op* op = FindOp(name);
  if (op == nullptr) return Unimplemented("there is no op ", name);
  const int count = static_cast<int>(inputs.size());
  if (count < op->min_inputs || count > op->max_inputs) {
    return InvalidArgument(Describe(name, inputs), ": expected ", op->min_inputs,
                           op->max_inputs > op->min_inputs ? " or more" : "", " inputs, got ",
                           count);
  }
  InferenceContext context{inputs, attributes};
  auto outputs = op->infer(context);
  if (!outputs.ok()) return Annotate(outputs.status(), Describe(name, inputs));
  for (const TensorType& type : *outputs) {
    if (Status size = CheckSize(type); !size.ok()) return Annotate(size, Describe(name, inputs));
  }
  return outputs;
}

}  // namespace tfjob::graph
