#include "runtime/model/layers/multi_head_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

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

// Returns the sizes of the axes of positions of an example: all but the last one.
std::vector<int64_t> PositionsOf(const Shape& example) {
  return {example.dims().begin(), example.dims().end() - 1};
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

// Splits the axes of positions of a query, a key or a value into those over which attention is
// computed, and the others, which divide the positions into groups. Attention is computed within
// each group.
class Groups {
 public:
  // `dims` are the sizes of the axes of positions, and `axes` the indices of those for attention,
  // in ascending order.
  Groups(std::vector<int64_t> dims, const std::vector<size_t>& axes) : dims_(std::move(dims)) {
    for (size_t i = 0; i < dims_.size(); ++i) {
      const bool attends = std::ranges::find(axes, i) != axes.end();
      (attends ? inner_ : outer_).push_back(i);
    }
  }

  // Return the sizes of the axes of the groups, and of those over which attention is computed.
  std::vector<int64_t> outer() const { return Sizes(outer_); }
  std::vector<int64_t> inner() const { return Sizes(inner_); }

  // Converts [batch,…dims] or [batch,…dims,elements] to [batch·groups,positions,elements], where
  // `positions` is the number of positions of a group. The axes of positions may already be one
  // axis. If there is only one group, returns x.
  Output Split(Builder& b, Output x, int64_t elements) const {
    if (outer_.empty() || !b.ok()) return x;
    const int64_t batch = b.shape(x).dim(0);
    const auto last = static_cast<int64_t>(dims_.size()) + 1;
    std::vector<int64_t> order = {0};
    for (const auto* axes : {&outer_, &inner_})
      for (const size_t axis : *axes) order.push_back(static_cast<int64_t>(axis) + 1);
    order.push_back(last);
    const Output moved = Transpose(b, graph::Reshape(b, x, Whole(batch, elements)), order);
    return graph::Reshape(b, moved, {batch * ProductOf(outer()), ProductOf(inner()), elements});
  }

  // The inverse of Split: returns [batch,…dims,elements], or x if there is only one group.
  Output Join(Builder& b, Output x) const {
    if (outer_.empty() || !b.ok()) return x;
    const int64_t batch = b.shape(x).dim(0) / ProductOf(outer());
    std::vector<int64_t> dims = {batch}, order(dims_.size() + 2);
    int64_t next = 1;
    for (const auto* axes : {&outer_, &inner_}) {
      for (const size_t axis : *axes) {
        dims.push_back(dims_[axis]);
        order[axis + 1] = next++;
      }
    }
    dims.push_back(b.shape(x).dim(2));
    order.back() = next;
    return Transpose(b, graph::Reshape(b, x, Shape(std::move(dims))), order);
  }

 private:
  std::vector<int64_t> Sizes(const std::vector<size_t>& axes) const {
    std::vector<int64_t> sizes;
    for (const size_t axis : axes) sizes.push_back(dims_[axis]);
    return sizes;
  }
  Shape Whole(int64_t batch, int64_t elements) const {
    std::vector<int64_t> dims = {batch};
    dims.insert(dims.end(), dims_.begin(), dims_.end());
    dims.push_back(elements);
    return Shape(std::move(dims));
  }

  std::vector<int64_t> dims_;
  std::vector<size_t> inner_, outer_;
};

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

StatusOr<std::vector<size_t>> MultiHeadAttention::AttentionAxes(
    std::span<const TensorType> in) const {
  const Shape &of_query = in[0].shape, &of_value = in[1].shape;
  const int rank = of_query.rank();
  std::vector<size_t> axes;
  for (int64_t axis : attention_axes) {
    if (axis < 0) axis += rank + 1;
    const bool fits =
        axis >= 1 && axis < rank && (axes.empty() || static_cast<size_t>(axis - 1) > axes.back());
    if (!fits) {
      return InvalidArgument("attention_axes: expected axes from 1 to ", rank - 1,
                             ", in ascending order, for inputs ", of_query.ToString(),
                             " (axis 0 is the batch), got ", axis);
    }
    axes.push_back(static_cast<size_t>(axis - 1));
  }
  if (axes.empty()) {
    const size_t all = static_cast<size_t>(std::max(rank, of_value.rank())) - 1;
    for (size_t axis = 0; axis < all; ++axis) axes.push_back(axis);
  }
  const Groups queries(PositionsOf(of_query), axes), keys(PositionsOf(of_value), axes);
  if (queries.outer() == keys.outer()) return axes;
  return InvalidArgument(
      "attention_axes: expected inputs that have the same sizes along the other ",
      "axes of positions, got ", of_query.ToString(), " and ", of_value.ToString());
}

StatusOr<std::vector<TensorType>> MultiHeadAttention::OutputTypes(
    std::span<const TensorType> in) const {
  RETURN_IF_ERROR(CheckInputs(in));
  const Shape &of_query = in[0].shape, &of_value = in[1].shape;
  const int rank = of_query.rank();
  ASSIGN_OR_RETURN(const std::vector<size_t> axes, AttentionAxes(in));
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
  const Groups queries(PositionsOf(of_query), axes), keys(PositionsOf(of_value), axes);
  std::vector<int64_t> pairs = queries.inner();
  const std::vector<int64_t> inner_keys = keys.inner(), groups = queries.outer();
  pairs.insert(pairs.end(), inner_keys.begin(), inner_keys.end());
  std::vector<int64_t> masked = groups;
  masked.insert(masked.end(), pairs.begin(), pairs.end());
  RETURN_IF_ERROR(CheckMask(in, attention_mask, Shape(std::move(masked))));
  std::vector<int64_t> dims(of_query.dims().begin(), of_query.dims().end() - 1);
  for (int64_t dim : output_shape)
    if (dim < 1) return InvalidArgument("expected an output_shape of numbers above 0, got ", dim);
  dims.insert(dims.end(), output_shape.begin(), output_shape.end());
  if (output_shape.empty()) dims.push_back(of_query.dim(-1));
  std::vector<TensorType> types = {{in[0].dtype, Shape(std::move(dims))}};
  if (return_attention_scores) {
    pairs.insert(pairs.begin(), num_heads);
    pairs.insert(pairs.begin(), groups.begin(), groups.end());
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

// Converts a mask [batch,…] of all positions to [batch·groups,positions].
Output Flattened(Builder& b, const Groups& groups, Output mask) {
  const Output flat = groups.Split(b, mask, 1);
  if (!b.ok()) return {};
  return graph::Reshape(b, flat, {b.shape(flat).dim(0), b.shape(flat).dim(1)});
}

// Returns the combination of all masks, which broadcasts to [batch·groups,heads,T,S], or an invalid
// Output if there are none.
Output CombinedMask(const MultiHeadAttention& layer, const LayerCall& call, const Groups& of_query,
                    const Groups& of_value) {
  Builder& b = call.b;
  const int64_t queries = ProductOf(of_query.inner()), keys = ProductOf(of_value.inner());
  const auto input = [&](int index) { return call.inputs[static_cast<size_t>(index)]; };
  const auto of = [&](const Groups& groups, int given, int from) {
    const Output own = given == kNoInput ? call.mask(static_cast<size_t>(from)) : input(given);
    return own.valid() && !groups.outer().empty() ? Flattened(b, groups, own) : own;
  };
  AttentionMask mask(b);
  constexpr int kRank = 4;  // [batch·groups,heads,T,S]
  mask.AddQueries(of(of_query, kNoInput, layer.query), kRank);
  mask.AddKeys(of(of_value, layer.value_mask, layer.value), kRank);
  if (layer.key != kNoInput || layer.key_mask != kNoInput) {
    const int key = layer.key == kNoInput ? layer.value : layer.key;
    mask.AddKeys(of(of_value, layer.key_mask, key), kRank);
  }
  if (layer.use_causal_mask) mask.AddCausal(queries, keys);
  if (layer.sliding_window) mask.AddWindow(queries, keys, *layer.sliding_window);
  if (layer.attention_mask != kNoInput)
    mask.Add(graph::Reshape(b, input(layer.attention_mask), {-1, 1, queries, keys}));
  return mask.combined();
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
  const std::vector<TensorType> in = InFloat32(call.ExampleTypes());
  const std::vector<size_t> axes = *AttentionAxes(in);
  const Groups of_query(PositionsOf(ExampleOf(b.shape(input(query)))), axes);
  const Groups of_value(PositionsOf(ExampleOf(b.shape(input(value)))), axes);
  const auto split = [&](const Groups& groups, Output x, int64_t size) {
    return SplitHeads(b, groups.Split(b, x, num_heads * size), num_heads);
  };

  const Output scale = Scalar(b, b.dtype(call.x()), 1 / std::sqrt(static_cast<double>(key_dim)));
  const Output q = split(of_query, Mul(b, projected(input(query)), scale), key_dim);
  const Output k = split(of_value, projected(input(key_input)), key_dim);
  const Output gate = use_gate ? penalized(Sigmoid(b, product(input(query)))) : Output();
  const Output v = split(of_value, projected(input(value)), value_size());

  const Output mask = CombinedMask(*this, call, of_query, of_value);
  const Output scores = BatchMatMul(b, q, k, false, true);
  // As in Keras, the result for a query that attends to no key is 0 only in these cases.
  const bool clears = dropout > 0 || return_attention_scores || call.ExampleShape().rank() > 2;
  const Output weights =
      !mask.valid() ? graph::Softmax(b, scores)
      : clears      ? MaskedSoftmax(b, scores, mask, {3})
                    : graph::Softmax(b, Select(b, mask, scores,
                                               Scalar(b, b.dtype(scores), LargeNegative(b, scores))));
  const bool drops = call.training && dropout > 0;
  const Output kept =
      drops ? graph::Dropout(b, weights, call.step, call.seed, dropout, call.replica) : weights;
  Output heads = JoinHeads(b, BatchMatMul(b, kept, v));
  if (use_gate) heads = Mul(b, heads, of_query.Split(b, gate, num_heads * value_size()));
  heads = of_query.Join(b, heads);
  const std::vector<TensorType> types = *OutputTypes(in);
  std::vector<Output> outputs = {
      graph::Reshape(b, projected(heads, 2), Batched(call.batch_size(), types[0].shape))};
  if (return_attention_scores)
    outputs.push_back(graph::Reshape(b, weights, Batched(call.batch_size(), types[1].shape)));
  return outputs;
}

}  // namespace tfjob::model::layers
