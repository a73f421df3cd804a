// Defines attention layers without projections.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Contains the arguments that Attention and AdditiveAttention have in common. The inputs of a call
// are a list: the query [T,d], the value [S,e] and, unless the key is the value, the key [S,d].
struct AttentionArguments {
  double dropout = 0;  // applied to the attention weights
  std::optional<int64_t> seed = {};
  // The arguments of a call. `mask` contains the masks of the query, the value and the key; as in
  // Keras, the key's mask is ignored. Without `mask`, the masks of the inputs are used.
  std::vector<int> inputs = {0, 1};
  std::vector<int> mask = {};
  bool return_attention_scores = false, use_causal_mask = false;

  void Visit(ArgumentVisitor& visitor);
  void CallArguments(CallVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;

  graph::Output query(const LayerCall& call) const { return call.inputs[0]; }
  graph::Output key(const LayerCall& call) const { return call.inputs[inputs.size() - 1]; }
  // Returns softmax(scores)·value and, if requested, the weights softmax(scores). The output has
  // the query's mask, and is 0 where this mask is false.
  std::vector<graph::Output> Attend(LayerCall& call, graph::Output scores) const;

 private:
  graph::Output MaskOf(const LayerCall& call, size_t input) const;
};

// Computes softmax(scores)·value: [T,e]. If score_mode is dot, the scores are scale·query·keyᵀ; if
// it is concat, they are concat_score_weight·Σ tanh(scale·(query + key)). Variables: scale [] (if
// use_scale), concat_score_weight [] (for concat).
struct Attention : AttentionArguments {
  static constexpr std::string_view kClass = "Attention";
  enum class ScoreMode { kDot, kConcat };
  bool use_scale = false;
  ScoreMode score_mode = ScoreMode::kDot;

  void Arguments(ArgumentVisitor& visitor);
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;
};

// Computes the same as Attention, but with the scores Σ scale·tanh(query + key) (Bahdanau et al.,
// "Neural Machine Translation by Jointly Learning to Align and Translate", 2015). Variable: scale
// [d] (if use_scale).
struct AdditiveAttention : AttentionArguments {
  static constexpr std::string_view kClass = "AdditiveAttention";
  bool use_scale = true;

  void Arguments(ArgumentVisitor& visitor);
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  std::vector<graph::Output> Apply(LayerCall& call) const;
};

}  // namespace tfjob::model::layers
