// Defines attention with several heads (Vaswani et al., "Attention Is All You Need", 2017).
#pragma once

#include <optional>

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Applies attention to a query [T,d], a value [S,e] and a key [S,f]. If a call has no key, the
// value is also the key. Each head projects the query and the key to key_dim elements, and the
// value to value_dim elements. From these projections, the head computes softmax(query·keyᵀ /
// √key_dim)·value. The concatenated results of the heads are projected to `output_shape`, or to the
// query's size. T and S may represent several axes. `attention_axes` may leave out some of them.
// Each position then attends only to the positions that have the same indices along the others.
//
// The variables are the same as in Keras: query/kernel [d,heads,key_dim] and query/bias
// [heads,key_dim]; then those of key, of gate (if use_gate is set; with value_dim) and of value, in
// the same form; then attention_output/kernel [heads,value_dim,…output] and attention_output/bias
// [output].
//
// A position of the query attends only to positions that are allowed by all of these masks:
//   - the call's attention_mask [T,S];
//   - the call's value_mask and key_mask [S] or, if the call has no such mask, the mask of the
//     value or of the key;
//   - the mask of the query;
//   - the causal mask, which excludes later positions;
//   - sliding_window, which excludes positions at this distance or farther away.
// If all positions are excluded for a position of the query, the results of the heads are, as in
// Keras, the mean of all values. They are 0 instead if there is dropout, if the scores are
// returned, or if T represents several axes.
struct MultiHeadAttention {
  static constexpr std::string_view kClass = "MultiHeadAttention";
  static constexpr bool kSupportsMasking = true;
  int64_t num_heads = 1;
  int64_t key_dim = 1;
  std::optional<int64_t> value_dim;  // key_dim if absent
  double dropout = 0;                // applied to the attention weights
  bool use_bias = true;
  bool use_gate = false;  // multiplies the heads' results by sigmoid(projected query)
  std::vector<int64_t> output_shape;
  std::vector<int64_t> attention_axes;  // of the batch of queries; empty for all inner axes
  std::optional<int64_t> sliding_window;
  Initializer kernel_initializer = Initializer::GlorotUniform();
  Initializer bias_initializer = Initializer::Zeros();
  WeightRules kernel_rules = {}, bias_rules = {};
  Regularizer activity_regularizer = {};  // for the outputs of the projections
  std::optional<int64_t> seed;
  // The arguments of a call.
  int query = 0, value = 1, key = kNoInput;
  int value_mask = kNoInput, key_mask = kNoInput, attention_mask = kNoInput;
  bool return_attention_scores = false, use_causal_mask = false;

  void Arguments(ArgumentVisitor& visitor);
  void CallArguments(CallVisitor& visitor);
  // Returns the type of the output and, if they are returned, of the attention scores [heads,T,S].
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;

 private:
  int64_t value_size() const { return value_dim.value_or(key_dim); }
  // Returns the indices of the axes of an example over which attention is computed.
  StatusOr<std::vector<size_t>> AttentionAxes(std::span<const TensorType> in) const;
  Status CheckInputs(std::span<const TensorType> in) const;
  Status CheckMask(std::span<const TensorType> in, int mask, const Shape& expected) const;
};

}  // namespace tfjob::model::layers
