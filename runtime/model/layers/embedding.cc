#include "runtime/model/layers/embedding.h"

#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"

namespace tfjob::model::layers {

void Embedding::Arguments(ArgumentVisitor& visitor) {
  const IntegerRule size{.least = 1, .expected = kPositive.expected, .required = true};
  visitor.Integer("input_dim", input_dim, size);
  visitor.Integer("output_dim", output_dim, size);
  visitor.Initializer("embeddings_initializer", embeddings_initializer);
  visitor.Rules("embeddings", embeddings_rules);
  visitor.Flag("mask_zero", mask_zero);
  for (const char* name : {"weights", "lora_rank", "lora_alpha", "quantization_config"}) {
    visitor.Retired(name, "null");
  }
  visitor.Ignored("input_length");
}

StatusOr<std::vector<TensorType>> Embedding::OutputTypes(std::span<const TensorType> in) const {
  RETURN_IF_ERROR(ExpectOneInput(in, /*any_dtype=*/true));
  std::vector<int64_t> dims = in[0].shape.dims();
  dims.push_back(output_dim);
  return std::vector{TensorType{DType::kFloat32, Shape(std::move(dims))}};
}

std::vector<VariableSpec> Embedding::Variables(std::span<const TensorType>) const {
  return {{.name = "embeddings",
           .shape = {input_dim, output_dim},
           .initializer = embeddings_initializer,
           .rules = embeddings_rules}};
}

graph::Output Embedding::Apply(LayerCall& call) const {
  graph::Builder& b = call.b;
  if (mask_zero) call.output_masks = {NotEqual(b, call.x(), 0)};
  const DType given = b.dtype(call.x());
  const bool index = given == DType::kInt32 || given == DType::kInt64;
  const graph::Output ids = index ? call.x() : graph::Cast(b, call.x(), DType::kInt32);
  return graph::Gather(b, call.variables[0], ids);
}

}  // namespace tfjob::model::layers
