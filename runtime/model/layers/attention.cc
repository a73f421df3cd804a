#include "runtime/model/layers/attention.h"

#include "runtime/graph/ops.h"
#include "runtime/model/layer/attention_mask.h"
#include "runtime/model/layer/mask.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

// Returns tanh(scale·(query + key)) for all pairs of a query and a key: [batch,T,S,d]. `scale` may
// be invalid.
Output TanhOfPairs(Builder& b, Output query, Output key, Output scale) {
  const Shape q = b.shape(query), k = b.shape(key);
  const Output sum = graph::Add(b, graph::Reshape(b, query, {q.dim(0), q.dim(1), 1, q.dim(2)}),
                                graph::Reshape(b, key, {k.dim(0), 1, k.dim(1), k.dim(2)}));
  return Tanh(b, scale.valid() ? Mul(b, scale, sum) : sum);
}

Status ExpectMask(const TensorType& type, int64_t steps) {
  if (type.shape == Shape{steps}) return OkStatus();
  return InvalidArgument("expected a mask [", steps, "], got ", type.ToString());
}

}  // namespace

void AttentionArguments::Visit(ArgumentVisitor& visitor) {
  visitor.Number("dropout", dropout,
                 {.least = 0, .most = 1, .below_most = true, .expected = "a number in [0, 1)"});
  visitor.Optional("seed", seed);
}

void AttentionArguments::CallArguments(CallVisitor& visitor) {
  visitor.Inputs("inputs", inputs, /*required=*/true);
  visitor.Inputs("mask", mask);
  visitor.Unsupported("training");
  visitor.Flag("return_attention_scores", return_attention_scores);
  visitor.Flag("use_causal_mask", use_causal_mask);
}

StatusOr<std::vector<TensorType>> AttentionArguments::OutputTypes(
    std::span<const TensorType> in) const {
  if (inputs.size() < 2 || inputs.size() > 3 || in.size() < inputs.size())
    return InvalidArgument("expected a list of query, value and perhaps key");
  if (mask.size() == 1 || mask.size() > 3)
    return InvalidArgument("expected a list of two or three masks, got ", mask.size());
  for (const TensorType& type : in.first(inputs.size())) {
    RETURN_IF_ERROR(ExpectOneInput(std::span(&type, 1), false));
    if (type.shape.rank() != 2 || type.dtype != in[0].dtype) {
      return InvalidArgument("expected inputs of one type and of shape [positions,elements], got ",
                             type.ToString());
    }
  }
  const Shape &query = in[0].shape, &value = in[1].shape, &key = in[inputs.size() - 1].shape;
  if (query.dim(1) != key.dim(1) || value.dim(0) != key.dim(0)) {
    return InvalidArgument("expected query [T,d], value [S,e] and key [S,d], got ",
                           query.ToString(), ", ", value.ToString(), " and ", key.ToString());
  }
  if (use_causal_mask) RETURN_IF_ERROR(CheckPositions(query, value));
  for (size_t i = 0; i < mask.size(); ++i) {
    if (mask[i] == kNoInput) continue;
    RETURN_IF_ERROR(ExpectMask(in[static_cast<size_t>(mask[i])], (i == 0 ? query : value).dim(0)));
  }
  std::vector<TensorType> types = {{in[0].dtype, {query.dim(0), value.dim(1)}}};
  if (return_attention_scores) types.push_back({in[0].dtype, {query.dim(0), value.dim(0)}});
  return types;
}

Output AttentionArguments::MaskOf(const LayerCall& call, size_t input) const {
  if (mask.empty()) return call.mask(input);
  if (mask[input] == kNoInput) return {};
  return Cast(call.b, call.inputs[static_cast<size_t>(mask[input])], DType::kBool);
}

std::vector<Output> AttentionArguments::Attend(LayerCall& call, Output scores) const {
  Builder& b = call.b;
  const Shape shape = b.shape(scores);
  AttentionMask combined(b);
  combined.AddKeys(MaskOf(call, 1), 3);
  if (use_causal_mask) combined.AddCausal(shape.dim(1), shape.dim(2));
  if (combined.combined().valid()) {
    const DType dtype = b.dtype(scores);
    const double large = dtype == DType::kFloat16 ? 65504 : 1e9;
    const Output hidden = Sub(b, scores, Scalar(b, dtype, large));
    scores = Select(b, combined.combined(), scores, hidden);
  }
  const Output weights = graph::Softmax(b, scores);
  const bool drops = call.training && dropout > 0;
  const Output kept =
      drops ? graph::Dropout(b, weights, call.step, call.seed, dropout, call.replica) : weights;
  Output y = BatchMatMul(b, kept, call.inputs[1]);
  const Output of_query = MaskOf(call, 0);
  if (of_query.valid()) y = Masked(b, of_query, y);
  call.output_masks = {of_query};
  std::vector<Output> outputs = {y};
  if (return_attention_scores) outputs.push_back(kept);
  return outputs;
}

void Attention::Arguments(ArgumentVisitor& visitor) {
  static constexpr std::string_view kModes[] = {"dot", "concat"};
  visitor.Flag("use_scale", use_scale);
  visitor.Choice("score_mode", score_mode, kModes);
  Visit(visitor);
}

std::vector<VariableSpec> Attention::Variables(std::span<const TensorType>) const {
  std::vector<VariableSpec> variables;
  if (use_scale) variables.push_back({.name = "scale", .initializer = Initializer::Ones()});
  if (score_mode == ScoreMode::kConcat)
    variables.push_back({.name = "concat_score_weight", .initializer = Initializer::Ones()});
  return variables;
}

std::vector<Output> Attention::Apply(LayerCall& call) const {
  Builder& b = call.b;
  const Output scale = use_scale ? call.variables[0] : Output();
  if (score_mode == ScoreMode::kConcat) {
    const Output sum = Sum(b, TanhOfPairs(b, query(call), key(call), scale), {-1});
    return Attend(call, Mul(b, call.variables.back(), sum));
  }
  const Output scores = BatchMatMul(b, query(call), key(call), false, true);
  return Attend(call, use_scale ? Mul(b, scores, scale) : scores);
}

void AdditiveAttention::Arguments(ArgumentVisitor& visitor) {
  visitor.Flag("use_scale", use_scale);
  Visit(visitor);
  visitor.Ignored("score_mode");  // Keras accepts it, because Attention has it, and ignores it
}

std::vector<VariableSpec> AdditiveAttention::Variables(std::span<const TensorType> in) const {
  if (!use_scale) return {};
  return {{.name = "scale",
           .shape = {in[0].shape.dim(1)},
           .initializer = Initializer::GlorotUniform()}};
}

std::vector<Output> AdditiveAttention::Apply(LayerCall& call) const {
  Builder& b = call.b;
  const Output pairs = TanhOfPairs(b, query(call), key(call), Output());
  return Attend(call, Sum(b, use_scale ? Mul(b, call.variables[0], pairs) : pairs, {-1}));
}

}  // namespace tfjob::model::layers
