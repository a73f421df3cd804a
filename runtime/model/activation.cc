#include "runtime/model/activation.h"

#include <iterator>
#include <nlohmann/json.hpp>

#include "runtime/base/did_you_mean.h"
#include "runtime/graph/ops.h"

namespace tfjob::model {
namespace {

// In the order of ActivationKind.
constexpr std::string_view kActivations[] = {"linear", "relu", "sigmoid", "tanh", "softmax"};

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

}  // namespace tfjob::model
