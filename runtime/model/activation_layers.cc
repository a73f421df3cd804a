// Implements Activation, ReLU, Softmax and Dropout, and the activations that Dense also supports.
#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/base/did_you_mean.h"
#include "runtime/graph/ops.h"
#include "runtime/model/activation.h"
#include "runtime/model/layer_call.h"

namespace tfjob::model {
namespace {

// In the order of ActivationKind.
constexpr std::string_view kActivations[] = {"linear", "relu", "sigmoid", "tanh", "softmax"};

Status NeedsAnAxis(const Shape& in) {
  if (in.rank() > 0) return OkStatus();
  return InvalidArgument("softmax expects examples of rank 1 or more, got shape ", in.ToString());
}

}  // namespace

std::string_view Name(ActivationKind kind) {
  return kActivations[static_cast<size_t>(kind)];
}

Status ReadActivation(Arguments& arguments, std::string_view argument, ActivationKind& into) {
  JsonField field = arguments[argument];
  if (!field.present()) return OkStatus();
  if (field.value()->is_object() && field["config"].present()) field = field["config"];
  const StatusOr<std::string> name = field.String();
  if (!name.ok()) return arguments.Named(name.status());
  for (size_t i = 0; i < std::size(kActivations); ++i) {
    if (*name != kActivations[i]) continue;
    into = static_cast<ActivationKind>(i);
    return OkStatus();
  }
  const std::vector<std::string> known(std::begin(kActivations), std::end(kActivations));
  return InvalidArgument(arguments.subject(), ": ", field.path(), ": activation ", *name,
                         " is not supported", DidYouMean(*name, known));
}

graph::Output Activate(graph::Builder& b, ActivationKind kind, graph::Output x) {
  switch (kind) {
    case ActivationKind::kLinear:
      return x;
    case ActivationKind::kRelu:
      return graph::Relu(b, x);
    case ActivationKind::kSigmoid:
      return graph::Sigmoid(b, x);
    case ActivationKind::kTanh:
      return graph::Tanh(b, x);
    case ActivationKind::kSoftmax:
      return graph::Softmax(b, x);
  }
  return x;
}

Status Activation::Read(Arguments& arguments) {
  if (!arguments["activation"].present()) {
    return arguments.Named(arguments["activation"].Mismatch("the name of an activation"));
  }
  return ReadActivation(arguments, "activation", activation);
}
void Activation::Write(Json& config) const {
  config["activation"] = std::string(Name(activation));
}
StatusOr<Shape> Activation::OutputShape(const Shape& in) const {
  if (activation == ActivationKind::kSoftmax) RETURN_IF_ERROR(NeedsAnAxis(in));
  return in;
}
graph::Output Activation::Apply(const LayerCall& call) const {
  return Activate(call.b, activation, call.input);
}

Status ReLU::Read(Arguments& arguments) {
  RETURN_IF_ERROR(arguments.Only("max_value", "null"));
  RETURN_IF_ERROR(arguments.Only("negative_slope", "0.0"));
  return arguments.Only("threshold", "0.0");
}
void ReLU::Write(Json& config) const {
  config["max_value"] = nullptr;
  config["negative_slope"] = 0.0;
  config["threshold"] = 0.0;
}
graph::Output ReLU::Apply(const LayerCall& call) const {
  return graph::Relu(call.b, call.input);
}

Status Softmax::Read(Arguments& arguments) {
  return arguments.Only("axis", "-1");
}
void Softmax::Write(Json& config) const {
  config["axis"] = -1;
}
StatusOr<Shape> Softmax::OutputShape(const Shape& in) const {
  RETURN_IF_ERROR(NeedsAnAxis(in));
  return in;
}
graph::Output Softmax::Apply(const LayerCall& call) const {
  return graph::Softmax(call.b, call.input);
}

Status Dropout::Read(Arguments& arguments) {
  const JsonField field = arguments["rate"];
  if (!field.present()) return arguments.Named(field.Mismatch("a number in [0, 1)"));
  RETURN_IF_ERROR(arguments.Read("rate", rate));
  if (!(rate >= 0 && rate < 1)) return arguments.Named(field.Mismatch("a number in [0, 1)"));
  RETURN_IF_ERROR(arguments.Read("seed", seed));
  return arguments.Only("noise_shape", "null");
}
void Dropout::Write(Json& config) const {
  config["rate"] = rate;
  config["seed"] = seed ? Json(*seed) : Json();
  config["noise_shape"] = nullptr;
}
graph::Output Dropout::Apply(const LayerCall& call) const {
  if (!call.training || rate == 0) return call.input;
  return graph::Dropout(call.b, call.input, call.step, call.seed, rate, call.replica);
}

}  // namespace tfjob::model
