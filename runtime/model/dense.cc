#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/graph/ops.h"
#include "runtime/model/activation.h"
#include "runtime/model/layer_call.h"

namespace tfjob::model {
namespace {

Status ReadOptionalInitializer(Arguments& arguments, std::string_view name, Initializer& into) {
  const JsonField field = arguments[name];
  if (!field.present()) return OkStatus();
  StatusOr<Initializer> value = ReadInitializer(field);
  if (!value.ok()) return arguments.Named(value.status());
  into = *value;
  return OkStatus();
}

}  // namespace

Status Dense::Read(Arguments& arguments) {
  RETURN_IF_ERROR(arguments.Read("units", units));
  if (units < 1 || units > std::numeric_limits<int32_t>::max()) {
    return arguments.Named(arguments["units"].Mismatch("an integer of at least 1"));
  }
  RETURN_IF_ERROR(ReadActivation(arguments, "activation", activation));
  RETURN_IF_ERROR(arguments.Read("use_bias", use_bias));
  RETURN_IF_ERROR(ReadOptionalInitializer(arguments, "kernel_initializer", kernel_initializer));
  RETURN_IF_ERROR(ReadOptionalInitializer(arguments, "bias_initializer", bias_initializer));
  return arguments.OnlyNull({"kernel_regularizer", "bias_regularizer", "activity_regularizer",
                             "kernel_constraint", "bias_constraint", "lora_rank", "lora_alpha",
                             "quantization_config"});
}

void Dense::Write(Json& config) const {
  config["units"] = units;
  config["activation"] = std::string(Name(activation));
  config["use_bias"] = use_bias;
  config["kernel_initializer"] = WriteInitializer(kernel_initializer);
  config["bias_initializer"] = WriteInitializer(bias_initializer);
  for (const char* name :
       {"kernel_regularizer", "bias_regularizer", "kernel_constraint", "bias_constraint"}) {
    config[name] = nullptr;
  }
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
  variables.push_back(
      {.name = "kernel", .shape = {in.dim(-1), units}, .initializer = kernel_initializer});
  if (use_bias)
    variables.push_back({.name = "bias", .shape = {units}, .initializer = bias_initializer});
  return variables;
}

graph::Output Dense::Apply(const LayerCall& call) const {
  graph::Builder& b = call.b;
  const Shape in = b.shape(call.input);
  // If the rank is higher, every axis but the last is a batch axis.
  const bool matrix = in.rank() == 2;
  const graph::Output rows = matrix ? call.input : graph::Reshape(b, call.input, {-1, in.dim(-1)});
  graph::Output y = graph::MatMul(b, rows, call.variables[0]);
  if (use_bias) y = graph::BiasAdd(b, y, call.variables[1]);
  y = Activate(b, activation, y);
  if (matrix) return y;
  std::vector<int64_t> dims = in.dims();
  dims.back() = units;
  return graph::Reshape(b, y, Shape(std::move(dims)));
}

}  // namespace tfjob::model
