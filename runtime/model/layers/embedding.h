// Defines layers that look up rows of a table.
#pragma once

#include "runtime/model/layer/layer.h"

namespace tfjob::model::layers {

// Replaces each number i of its input with row i of the variable embeddings [input_dim,output_dim],
// so the output has an additional axis. Fractional numbers are truncated. If a number is negative,
// or is not less than input_dim, the run fails. The gradient of the table contains only the rows
// that occur in the batch.
struct Embedding {
  static constexpr std::string_view kClass = "Embedding";
  static constexpr bool kComputesInFloat32 = true;
  int64_t input_dim = 0;
  int64_t output_dim = 0;
  bool mask_zero = false;
  Initializer embeddings_initializer = {.kind = Initializer::Kind::kRandomUniform};
  WeightRules embeddings_rules = {};

  void Arguments(ArgumentVisitor& visitor);
  StatusOr<std::vector<TensorType>> OutputTypes(std::span<const TensorType> in) const;
  std::vector<VariableSpec> Variables(std::span<const TensorType> in) const;
  graph::Output Apply(LayerCall& call) const;
};

}  // namespace tfjob::model::layers
