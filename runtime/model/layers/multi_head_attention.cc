#include "runtime/model/layers/multi_head_attention.h"

#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "runtime/graph/ops.h"
#include "runtime/model/layer/activation.h"
#include "runtime/model/layer/attention_mask.h"
#include "runtime/tensor/half.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr IntegerRule kRequiredCount = {
    .least = 1, .expected = kPositive.expected, .required = true};

int64_t ProductOf(std::span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// Returns the number of positions of an example: the product of all dimensions except the last.
int64_t Positions(const Shape& example) {
  return ProductOf(std::span(example.dims()).first(example.dims().size() - 1));
}

// Multiplies x by the kernel, summing over the last `axes` axes of x, which must match the first
// `axes` axes of the kernel. Returns [batch,positions,elements], where `elements` is the product of
// the remaining axes of the kernel. Adds the bias, unless it is invalid.
Output Projected(Builder& b, Output x, Output kernel, Output bias, int axes) {
  const std::span<const int64_t> dims = b.shape(kernel).dims();
  const auto split = static_cast<size_t>(axes);
  const int64_t in = ProductOf(dims.first(split)), out = ProductOf(dims.subspan(split));
  const Output rows = graph::Reshape(b, x, {b.shape(x).dim(0), -1, in});
  const Output y = MatMul(b, rows, graph::Reshape(b, kernel, {in, out}));
  return bias.valid() ? BiasAdd(b, y, graph::Reshape(b, bias, {out})) : y;
}

// Converts [batch,positions,heads·size] to [batch,heads,positions,size].
Output SplitHeads(Builder& b, Output x, int64_t heads) {
  const Shape& shape = b.shape(x);
  const Output split =
      graph::Reshape(b, x, {shape.dim(0), shape.dim(1), heads, shape.dim(2) / heads});
  return Transpose(b, split, {0, 2, 1, 3});
}

// Converts [batch,heads,positions,size] to [batch,positions,heads·size].
Output JoinHeads(Builder& b, Output x) {
  const Shape shape = b.shape(x);
  const Output together = Transpose(b, x, {0, 2, 1, 3});
  return graph::Reshape(b, together, {shape.dim(0), shape.dim(2), shape.dim(1) * shape.dim(3)});
}

}  // namespace

void MultiHeadAttention::Arguments(ArgumentVisitor& visitor) {
  visitor.Integer("num_heads", num_heads, kRequiredCount);
  visitor.Integer("key_dim", key_dim, kRequiredCount);
  visitor.Optional("value_dim", value_dim);
  visitor.Number("dropout", dropout,
                 {.least = 0, .most = 1, .below_most = true, .expected = "a number in [0, 1)"});
  visitor.Flag("use_bias", use_bias);
  visitor.Flag("use_gate", use_gate);
  visitor.OptionalAxes("output_shape", output_shape);
  visitor.OptionalAxes("attention_axes", attention_axes);
  visitor.Optional("sliding_window", sliding_window);
  visitor.Initializer("kernel_initializer", kernel_initializer);
  visitor.Initializer("bias_initializer", bias_initializer);
  visitor.Rules("kernel", kernel_rules);
  visitor.Rules("bias", bias_rules);
  visitor.Regularizer("activity_regularizer", activity_regularizer);
  visitor.Optional("seed", seed);
  // Ignore arguments of tf.keras 2: shapes that follow from the inputs, and an option that matters
  // only if all positions are masked.
  for (const char* name : {"query_shape", "key_shape", "value_shape", "softmax_robust_masking"})
    visitor.Ignored(name);
  visitor.Ignored("flash_attention");  // only affects the speed
}

void MultiHeadAttention::CallArguments(CallVisitor& visitor) {
  visitor.Input("query", query, /*required=*/true);
  visitor.Input("value", value, /*required=*/true);
  visitor.Input("key", key);
  visitor.Unsupported("query_mask");  // Keras ignores this argument, and uses the query's mask
  visitor.Input("value_mask", value_mask);
  visitor.Input("key_mask", key_mask);
  visitor.Input("attention_mask", attention_mask);
  visitor.Flag("return_attention_scores", return_attention_scores);
  visitor.Unsupported("training");
  visitor.Flag("use_causal_mask", use_causal_mask);
}

Status MultiHeadAttention::CheckMask(std::span<const TensorType> in, int mask,
                                     const Shape& expected) const {
  if (mask == kNoInput) return OkStatus();
  const TensorType& type = in[static_cast<size_t>(mask)];
  if (type.shape == expected) return OkStatus();
  return InvalidArgument("expected a mask ", expected.ToString(), ", got ", type.ToString());
}

Status MultiHeadAttention::CheckInputs(std::span<const TensorType> in) const {
  size_t expected = 0;
  for (int input : {query, value, key, value_mask, key_mask, attention_mask})
    expected += input == kNoInput ? 0 : 1;
  if (in.size() != expected) {
    return InvalidArgument("expected ", expected, " inputs, beginning with query and value, got ",
                           in.size());
  }
  for (int input : {query, value, key == kNoInput ? value : key}) {
    const TensorType& type = in[static_cast<size_t>(input)];
    RETURN_IF_ERROR(ExpectOneInput(std::span(&type, 1), false));
    if (type.shape.rank() < 2 || type.dtype != in[0].dtype) {
      return InvalidArgument("expected inputs of one float type and of shape [positions,elements]",
                             ", got ", type.ToString());
    }
  }
  const Shape& of_value = in[static_cast<size_t>(value)].shape;
  const Shape& of_key = in[static_cast<size_t>(key == kNoInput ? value : key)].shape;
  std::vector<int64_t> same = of_key.dims();
  same.back() = of_value.dim(-1);
  if (Shape(same) == of_value) return OkStatus();
  return InvalidArgument("expected a value and a key of the same positions, got ",
                         of_value.ToString(), " and ", of_key.ToString());
}

StatusOr<std::vector<TensorType>> MultiHeadAttention::OutputTypes(
    std::span<const TensorType> in) const {
  RETURN_IF_ERROR(CheckInputs(in));
  const Shape &of_query = in[0].shape, &of_value = in[1].shape;
  const int rank = of_query.rank();
  std::vector<int64_t> all;
  for (int axis = 1; axis < rank; ++axis) all.push_back(axis);
  std::vector<int64_t> axes;
  for (int64_t axis : attention_axes) axes.push_back(axis < 0 ? axis + rank + 1 : axis);
  if (!axes.empty() && axes != all) {
    return InvalidArgument("attention_axes must be all axes but the first and the last one of ",
                           of_query.ToString(), " (axis 0 is the batch), or absent");
  }
  const bool one_axis = rank == 2 && of_value.rank() == 2;
  if (!one_axis && (use_causal_mask || sliding_window))
    return InvalidArgument(
        "use_causal_mask and sliding_window need inputs of one axis of positions");
  if (use_causal_mask || sliding_window) RETURN_IF_ERROR(CheckPositions(of_query, of_value));
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const int64_t window = sliding_window.value_or(1);
  if (value_size() < 1 || value_size() > kMost || window < 1 || window > kMost)
    return InvalidArgument("value_dim and sliding_window must be at least 1, and less than 2^31");
  std::vector<int64_t> steps(of_value.dims().begin(), of_value.dims().end() - 1);
  RETURN_IF_ERROR(CheckMask(in, value_mask, Shape(steps)));
  RETURN_IF_ERROR(CheckMask(in, key_mask, Shape(steps)));
  std::vector<int64_t> pairs(of_query.dims().begin(), of_query.dims().end() - 1);
  pairs.insert(pairs.end(), steps.begin(), steps.end());
  RETURN_IF_ERROR(CheckMask(in, attention_mask, Shape(pairs)));
  std::vector<int64_t> dims(of_query.dims().begin(), of_query.dims().end() - 1);
  for (int64_t dim : output_shape)
    if (dim < 1) return InvalidArgument("expected an output_shape of numbers above 0, got ", dim);
  dims.insert(dims.end(), output_shape.begin(), output_shape.end());
  if (output_shape.empty()) dims.push_back(of_query.dim(-1));
  std::vector<TensorType> types = {{in[0].dtype, Shape(std::move(dims))}};
  if (return_attention_scores) {
    pairs.insert(pairs.begin(), num_heads);
    types.push_back({in[0].dtype, Shape(std::move(pairs))});
  }
  return types;
}

std::vector<VariableSpec> MultiHeadAttention::Variables(std::span<const TensorType> in) const {
  std::vector<VariableSpec> variables;
  const auto add = [&](const std::string& name, std::vector<int64_t> from,
                       std::vector<int64_t> to) {
    const std::array<int64_t, 2> fans = {ProductOf(from), ProductOf(to)};
    from.insert(from.end(), to.begin(), to.end());
    Initializer kernel = kernel_initializer;
    kernel.fans = fans;
    variables.push_back({.name = name + "/kernel",
                         .shape = Shape(from),
                         .initializer = kernel,
                         .rules = kernel_rules});
    if (use_bias)
      variables.push_back({.name = name + "/bias",
                           .shape = Shape(to),
                           .initializer = bias_initializer,
                           .rules = bias_rules});
  };
  const auto size = [&](int input) { return in[static_cast<size_t>(input)].shape.dim(-1); };
  add("query", {size(query)}, {num_heads, key_dim});
  add("key", {size(key == kNoInput ? value : key)}, {num_heads, key_dim});
  if (use_gate) add("gate", {size(query)}, {num_heads, value_size()});
  add("value", {size(value)}, {num_heads, value_size()});
  add("attention_output", {num_heads, value_size()},
      output_shape.empty() ? std::vector{size(query)} : output_shape);
  return variables;
}

namespace {

// Returns the types as layers declare them, with float32 in place of a half type. In mixed
// precision, the values of a call are in 16 bits; only their shapes matter here.
std::vector<TensorType> InFloat32(std::vector<TensorType> types) {
  for (TensorType& type : types)
    if (IsHalf(type.dtype)) type.dtype = DType::kFloat32;
  return types;
}

}  // namespace

std::vector<Output> MultiHeadAttention::Apply(LayerCall& call) const {
  Builder& b = call.b;
  size_t next = 0;
  const auto penalized = [&](Output y) {
    if (activity_regularizer.present() && b.ok())
      call.penalties.push_back(ActivityPenalty(b, activity_regularizer, y));
    return y;
  };
  const auto product = [&](Output x, int axes = 1) {
    const Output kernel = call.variables[next++];
    return Projected(b, x, kernel, use_bias ? call.variables[next++] : Output(), axes);
  };
  const auto projected = [&](Output x, int axes = 1) { return penalized(product(x, axes)); };
  const auto input = [&](int index) { return call.inputs[static_cast<size_t>(index)]; };
  const int key_input = key == kNoInput ? value : key;
  const int64_t queries = Positions(ExampleOf(b.shape(input(query))));
  const int64_t keys = Positions(ExampleOf(b.shape(input(value))));

  const Output scale = Scalar(b, b.dtype(call.x()), 1 / std::sqrt(static_cast<double>(key_dim)));
  const Output q = SplitHeads(b, Mul(b, projected(input(query)), scale), num_heads);
  const Output k = SplitHeads(b, projected(input(key_input)), num_heads);
  const Output gate = use_gate ? penalized(Sigmoid(b, product(input(query)))) : Output();
  const Output v = SplitHeads(b, projected(input(value)), num_heads);

  AttentionMask mask(b);
  constexpr int kRank = 4;  // [batch,heads,T,S]
  const auto of = [&](int given, int from) {
    return given == kNoInput ? call.mask(static_cast<size_t>(from)) : input(given);
  };
  mask.AddQueries(call.mask(static_cast<size_t>(query)), kRank);
  mask.AddKeys(of(value_mask, value), kRank);
  if (key != kNoInput || key_mask != kNoInput) mask.AddKeys(of(key_mask, key_input), kRank);
  if (use_causal_mask) mask.AddCausal(queries, keys);
  if (sliding_window) mask.AddWindow(queries, keys, *sliding_window);
  if (attention_mask != kNoInput)
    mask.Add(graph::Reshape(b, input(attention_mask), {call.batch_size(), 1, queries, keys}));

  const Output scores = BatchMatMul(b, q, k, false, true);
  // As in Keras, the result for a query that attends to no key is 0 only in these cases.
  const bool clears = dropout > 0 || return_attention_scores || call.ExampleShape().rank() > 2;
  const Output weights =
      !mask.combined().valid() ? graph::Softmax(b, scores)
      : clears                 ? MaskedSoftmax(b, scores, mask.combined(), {3})
                               : graph::Softmax(b, Select(b, mask.combined(), scores,
                                                          Scalar(b, b.dtype(scores), LargeNegative(b, scores))));
  const bool drops = call.training && dropout > 0;
  const Output kept =
      drops ? graph::Dropout(b, weights, call.step, call.seed, dropout, call.replica) : weights;
  Output heads = JoinHeads(b, BatchMatMul(b, kept, v));
  if (use_gate) heads = Mul(b, heads, gate);
  const std::vector<TensorType> types = *OutputTypes(InFloat32(call.ExampleTypes()));
  std::vector<Output> outputs = {
      graph::Reshape(b, projected(heads, 2), Batched(call.batch_size(), types[0].shape))};
  if (return_attention_scores)
    outputs.push_back(graph::Reshape(b, weights, Batched(call.batch_size(), types[1].shape)));
  return outputs;
}

}  // namespace tfjob::model::layers
