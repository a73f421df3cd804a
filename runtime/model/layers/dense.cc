#include "runtime/model/layers/dense.h"

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {

void Dense::Arguments(ArgumentVisitor& visitor) {
  visitor.Integer("units", units, {.least = 1, .expected = kPositive.expected, .required = true});
  visitor.Activation("activation", activation, /*required=*/false);
  visitor.Flag("use_bias", use_bias);
  visitor.Initializer("kernel_initializer", kernel_initializer);
  visitor.Initializer("bias_initializer", bias_initializer);
  visitor.Rules("kernel", kernel_rules);
  visitor.Rules("bias", bias_rules);
  for (const char* name : {"lora_rank", "lora_alpha", "quantization_config"})
    visitor.Retired(name, "null");
}

StatusOr<Shape> Dense::OutputShape(const Shape& in) const {
  if (in.rank() == 0)
    return InvalidArgument("expected examples of rank 1 or more, got shape ", in.ToString());
  std::vector<int64_t> dims = in.dims();
  dims.back() = units;
  return Shape(std::move(dims));
}

std::vector<VariableSpec> Dense::Variables(const Shape& in) const {
  std::vector<VariableSpec> variables;
  variables.push_back({.name = "kernel",
                       .shape = {in.dim(-1), units},
                       .initializer = kernel_initializer,
                       .rules = kernel_rules});
  if (use_bias)
    variables.push_back(
        {.name = "bias", .shape = {units}, .initializer = bias_initializer, .rules = bias_rules});
  return variables;
}

graph::Output Dense::Apply(const LayerCall& call) const {
  graph::Builder& b = call.b;
  const Shape in = b.shape(call.x());
  // If the rank is higher than 2, all axes except the last are batch axes.
  const bool matrix = in.rank() == 2;
  const graph::Output rows = matrix ? call.x() : graph::Reshape(b, call.x(), {-1, in.dim(-1)});
  graph::Output y = graph::MatMul(b, rows, call.variables[0]);
  if (use_bias) y = graph::BiasAdd(b, y, call.variables[1]);
  y = Activate(b, activation, y);
  if (matrix) return y;
  std::vector<int64_t> dims = in.dims();
  dims.back() = units;
  return graph::Reshape(b, y, Shape(std::move(dims)));
}

}  // namespace tfjob::model::layers
